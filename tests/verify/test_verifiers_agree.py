"""The engine and the independent verifier give one verdict, on the corpus and on what it can become."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from chronomemory import _core
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from shares import share
from verdicts import CORPUS, FOLDERS, LOGS, MIB, essence, expected, log_of, place, verdict_of, verify_log

SMALL = [name for name in LOGS if len(log_of(name)[0]) < 8192]
HASH = re.compile(rb'"hash": ?"([0-9a-f]{64})"')

# What a careless or malicious hand might put into a line.
TOKENS = [bytes([byte]) for byte in b'"\\,:{}[] \t\r\n\x00\x0b\x7f\x80\xff0-']
TOKENS += b'-0 1e0 .0 e5 NaN Infinity 1e999 true null {} [] "x":1, "seq":1,'.split()
TOKENS += rb"\u0061 \u001F \ud800 \ude00 \u2028 \u0085 \/ \n \x".split()
TOKENS += [char.encode() for char in "\x85\u2028\ufeff\U0001f600"]
TOKENS += [b"\xed\xa0\x80", b"\xc0\x80", b"\n\n", b"9" * 4299, b"[" * 201]
slow_is_fine = settings(
    deadline=None,
    max_examples=share(60, 1500),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def assert_agreed(inner: Path) -> dict[str, Any]:
    ours, second = _core.verify_path(str(inner)), verify_log.verify_folder(inner)
    assert essence(ours) == essence(second)
    return ours


def assert_agreed_on(data: bytes, synced: bytes | None = None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert_agreed(place(Path(folder), data, synced))


@pytest.mark.parametrize("name", LOGS)
def test_engine_gives_the_log_its_verdict(name: str, tmp_path: Path) -> None:
    report = assert_agreed(place(tmp_path, *log_of(name)))
    assert verdict_of(report) == expected(LOGS[name]), LOGS[name]["note"]


@pytest.mark.parametrize("name", FOLDERS)
def test_engine_gives_the_folder_its_verdict(name: str, tmp_path: Path) -> None:
    inner = tmp_path / ".chronomemory"
    shutil.copytree(CORPUS / "folders" / name, inner)
    report = assert_agreed(inner)
    assert verdict_of(report) == expected(FOLDERS[name]), FOLDERS[name]["note"]
    assert report["base"] == FOLDERS[name]["base"]


def mark_for(data: bytes, line: int) -> bytes | None:
    """A `synced` that fits this log after this line, if both hashes can be found."""
    lines = data.split(b"\n")[:-1][: line + 1]
    found = [HASH.search(text) for text in lines]
    if not lines or found[0] is None or found[-1] is None:
        return None
    offset = sum(map(len, lines)) + len(lines)
    body = b"CMSYNC\x00\x01" + offset.to_bytes(8, "little") + bytes(8)
    body += bytes.fromhex(found[0][1].decode()) + bytes.fromhex(found[-1][1].decode())
    return body + hashlib.sha256(body).digest()


def compact(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def rehash(text: bytes) -> bytes:
    """Give a line the hash that its changed content asks for, if it still is an event."""
    try:
        event = json.loads(text)
        names = ("seq", "ts", "op", "record_id", "record", "prev_hash", "recursion_depth")
        text_to_hash = compact({name: event[name] for name in names})
        digest = hashlib.sha256(text_to_hash.encode()).hexdigest().encode()
    except (ValueError, KeyError, TypeError, RecursionError):
        return text
    return HASH.sub(b'"hash":"' + digest + b'"', text, count=1)


@st.composite
def mutated(draw: st.DrawFn) -> tuple[bytes, bytes | None]:
    data, synced = log_of(draw(st.sampled_from(SMALL)))
    for _ in range(draw(st.integers(1, 4))):
        lines = data.split(b"\n")
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        one, two = draw(st.integers(0, len(lines) - 1)), draw(st.integers(0, len(lines) - 1))
        action = draw(st.integers(0, 9))
        if action == 0 and data:
            data = data[:at] + bytes([data[at] ^ (1 << draw(st.integers(0, 7)))]) + data[at + 1 :]
        elif action == 1:
            data = data[:at] + draw(st.sampled_from(TOKENS)) + data[at:]
        elif action == 2:
            data = data[:at] + data[at + draw(st.integers(1, 40)) :]
        elif action == 3:
            data = data[:at]
        elif action == 4:
            data += log_of(draw(st.sampled_from(SMALL)))[0]
        else:
            if action == 5:
                del lines[one]
            elif action == 6:
                lines.insert(two, lines[one])
            elif action == 7:
                lines[one], lines[two] = lines[two], lines[one]
            else:
                position = draw(st.integers(0, len(lines[one])))
                changed = lines[one][:position] + draw(st.sampled_from(TOKENS)) + lines[one][position:]
                lines[one] = rehash(changed) if action == 8 else changed
            data = b"\n".join(lines)
    if draw(st.booleans()):
        synced = mark_for(data, draw(st.integers(0, data.count(b"\n"))))
    return data, synced


@slow_is_fine
@given(mutated())
def test_verifiers_agree_on_mutated_logs(case: tuple[bytes, bytes | None]) -> None:
    assert_agreed_on(*case)


finite = st.floats(allow_nan=False, allow_infinity=False)
numbers = st.integers() | st.integers(-(2**70), 2**70) | finite
strings = st.text(max_size=6) | st.sampled_from(["\u2028", "\x85", "\x7f", "\x1f"])
scalars = st.none() | st.booleans() | numbers | strings
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
#: Keys before and behind that of a scope, by what they say or by how they are written.
keys = st.sampled_from(['"', "\n", "\x01", "1", "@", '@"', "@t", "\\", "é", "a"])
scopes = st.sampled_from([{"user": "ann"}, {"user": "bob"}, {"agent": "ann"}, {}, None, 7, {"user": ""}])
carrying = st.builds(
    lambda data, scope: {"data": {**data, "@scope": scope}},
    st.dictionaries(keys, values, max_size=3),
    scopes,
)
records = st.none() | st.dictionaries(st.text(max_size=3), values, max_size=3) | carrying
names = st.sampled_from(["r"] * 6 + ["", "s", "vector:s", "vector:s:0", "act:blocks"])
FORMS = [
    "own",
    "own",
    "own",
    "raw",
    "insertion",
    "spaced",
    "ascii",
    "crlf",
    "injected",
    "unknown",
    "garbage",
    "edited",
    "blank",
]
OPS = [
    "upsert",
    "upsert",
    "upsert",
    "delete",
    "patch",
    "migrate",
    "begin",
    "begin",
    "compact",
    "adopt",
    "annotate",
]


def payload(**changes: Any) -> dict[str, Any]:
    usual = {"seq": 1, "ts": "", "op": "upsert", "record_id": "r", "record": None, "prev_hash": ""}
    return {**usual, "recursion_depth": 0, **changes}


def form_line(form: str, fields: dict[str, Any]) -> tuple[bytes, str]:
    """A line with the right hash in one of the forms that tools and attackers use, and that hash."""
    text = json.dumps(fields, sort_keys=True, ensure_ascii=False) if form == "spaced" else compact(fields)
    digest = hashlib.sha256(text.encode()).hexdigest()
    event = {**fields, "hash": digest, **({"zz": 1} if form in ("injected", "unknown") else {})}
    tight = compact(event)
    loose = json.dumps(event, ensure_ascii=form == "ascii")
    edited = tight.replace('"ts":"', '"ts":"E')
    line = {"garbage": "?", "blank": " \r", "edited": edited, "crlf": tight + "\r"}.get(form)
    if line is None:
        line = tight if form in ("own", "raw", "injected") else loose
    if form in ("own", "injected"):
        line = re.sub("[\x85\u2028\u2029]", lambda found: f"\\u{ord(found[0]):04x}", line)
    return line.encode() + b"\n", digest


@st.composite
def made_up(draw: st.DrawFn) -> tuple[bytes, bytes | None]:
    """A log with honest hashes and any structure: links, batches, sentinels and forms at random."""
    lines, seq, hashes = [], draw(st.integers(0, 3)), [""]
    for _ in range(draw(st.integers(0, 12))):
        op, form = draw(st.sampled_from(OPS)), draw(st.sampled_from(FORMS))
        count = draw(st.sampled_from([1, 2, 2, 3, 3, 4, 0, True, 2**32 - 1, 2**32]))
        record = {"events": count} if op == "begin" else draw(records)
        link = draw(st.sampled_from([hashes[-1]] * 12 + [hashes[0], hashes[len(hashes) // 2], "ab" * 32]))
        fields = payload(seq=seq, op=op, record_id=draw(names), record=record, prev_hash=link)
        line, digest = form_line(form, fields)
        lines.append(line)
        if form not in ("garbage", "blank"):
            hashes.append(digest)
        seq = max(0, seq + draw(st.sampled_from([1] * 12 + [0, 2, -1])))
    data = b"".join(lines) + draw(st.sampled_from([b"", b"", b"{", b" "]))
    synced = mark_for(data, draw(st.integers(0, len(lines)))) if draw(st.booleans()) else None
    return data, synced


@slow_is_fine
@given(made_up())
def test_verifiers_agree_on_made_up_logs(case: tuple[bytes, bytes | None]) -> None:
    assert_agreed_on(*case)


SPELLINGS = [
    "{!r}",
    "{:.17g}",
    "{:.16g}",
    "{:.15g}",
    "{:.16e}",
    "{:.20f}",
    "{:E}",
    "{:.1f}",
    "{:.0f}",
    "{:.0f}.0",
]


def spelled(token: str) -> bytes:
    """A line of our form with this number, hashed as spelled."""
    text = compact(payload(record={"x": "@"})).replace('"@"', token).encode()
    return b'{"hash":"' + hashlib.sha256(text).hexdigest().encode() + b'",' + text[1:] + b"\n"


@settings(parent=slow_is_fine, max_examples=60)
@given(st.lists(st.tuples(finite, st.sampled_from(SPELLINGS)), min_size=20))
@example([(562949953421312.25 + step / 4, spelling) for step in range(40) for spelling in SPELLINGS])
@example([(2.0**power, spelling) for power in range(-1074, 1024, 7) for spelling in SPELLINGS])
@example([(10.0**power, spelling) for power in range(-324, 309, 3) for spelling in SPELLINGS])
def test_verifiers_agree_on_numbers(tokens: list[tuple[float, str]]) -> None:
    """Links break, which is as good a verdict as any: what counts is which lines are altered."""
    assert_agreed_on(b"".join(spelled(spelling.format(number)) for number, spelling in tokens))


@settings(parent=slow_is_fine, max_examples=80)
@given(st.data())
def test_verifiers_agree_on_mutated_folders(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(FOLDERS)))
    with tempfile.TemporaryDirectory() as folder:
        inner = Path(folder) / ".chronomemory"
        shutil.copytree(CORPUS / "folders" / name, inner)
        victim = data.draw(st.sampled_from(sorted(path for path in inner.rglob("*") if path.is_file())))
        content = victim.read_bytes()
        at = data.draw(st.integers(0, len(content)))
        action = data.draw(st.sampled_from(["remove", "cut", "insert", "flip"]))
        if action == "remove":
            victim.unlink()
        elif action == "cut":
            victim.write_bytes(content[:at])
        elif action == "insert":
            victim.write_bytes(content[:at] + data.draw(st.sampled_from(TOKENS)) + content[at:])
        elif content:
            at = min(at, len(content) - 1)
            victim.write_bytes(
                content[:at] + bytes([content[at] ^ (1 << data.draw(st.integers(0, 7)))]) + content[at + 1 :]
            )
        assert_agreed(inner)


@pytest.mark.parametrize("victim", ["log cut", "log altered", "base altered"])
def test_only_an_anchored_base_tells_of_scopes(victim: str, tmp_path: Path) -> None:
    inner = tmp_path / ".chronomemory"
    shutil.copytree(CORPUS / "folders" / "scope_in_base", inner)
    assert assert_agreed(inner)["scopes"]
    path = next((inner / "base").iterdir()) if victim == "base altered" else inner / "events.wal"
    content = path.read_bytes()
    path.write_bytes(content[:143] + (b"" if victim == "log cut" else b"#" + content[144:]))
    assert not assert_agreed(inner)["scopes"]


@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_verifiers_agree_on_the_longest_line(extra: int, tmp_path: Path) -> None:
    empty = spelled('""')
    room = 16 * MIB - (len(empty) - 1) + extra
    inner = place(tmp_path, spelled('"' + "x" * room + '"') + empty)
    assert len((inner / "events.wal").read_bytes()) - len(empty) == 16 * MIB + 1 + extra
    kinds = [found["kind"] for found in assert_agreed(inner)["damage"]]
    assert kinds == (["unreadable"] if extra > 0 else ["unlinked"])


@pytest.mark.parametrize("end", [b"", b"\n", b"x\n", b"x"])
@pytest.mark.parametrize("length", [16 * MIB, 16 * MIB + 1, 33 * MIB])
def test_verifiers_agree_on_lines_too_long_to_read(length: int, end: bytes, tmp_path: Path) -> None:
    assert_agreed(place(tmp_path, spelled("1") + b" " * length + end + spelled("2")))
