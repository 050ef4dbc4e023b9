"""Do the engine and the independent verifier give one verdict, on the corpus and on whatever can be made of it?"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from chronomemory import _core

ROOT = Path(__file__).parent.parent
CORPUS = ROOT / "tests" / "corpus"
LOGS: dict[str, Any] = json.loads((CORPUS / "verdicts.json").read_bytes())
FOLDERS: dict[str, Any] = json.loads((CORPUS / "folder_verdicts.json").read_bytes())
SMALL = [name for name in LOGS if (CORPUS / "logs" / f"{name}.wal").stat().st_size < 8192]
HASH = re.compile(rb'"hash": ?"([0-9a-f]{64})"')
MIB = 1024 * 1024

# What a careless or malicious hand might put into a line.
TOKENS = [
    *(
        b'"',
        b"\\",
        b",",
        b":",
        b"{",
        b"}",
        b"[",
        b"]",
        b" ",
        b"\t",
        b"\r",
        b"\n",
        b"\x00",
        b"\x7f",
        b"\xff",
        b"\x0b",
    ),
    *(
        b"0",
        b"-",
        b"-0",
        b"1e0",
        b".0",
        b"e5",
        b"NaN",
        b"Infinity",
        b"1e999",
        b"true",
        b"null",
        b"{}",
        b"[]",
        b"\n\n",
    ),
    *(
        b'"x":1,',
        b'"seq":1,',
        b"\\u0061",
        b"\\u001F",
        b"\\ud800",
        b"\\ude00",
        b"\\u2028",
        b"\\/",
        b"\xc2\x85",
    ),
    *(
        b"\xe2\x80\xa8",
        b"\xef\xbb\xbf",
        b"\xed\xa0\x80",
        b"\xc0\x80",
        b"\xf0\x9f\x98\x80",
        b"9" * 4299,
        b"[" * 201,
    ),
]
slow_is_fine = settings(
    deadline=None,
    max_examples=400,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def load_verifier() -> Any:
    spec = importlib.util.spec_from_file_location("verify_log", ROOT / "tools" / "verify_log.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


verify_log = load_verifier()


def essence(report: dict[str, Any]) -> dict[str, Any]:
    """What two verifiers must agree on; reasons and notes are free text."""
    same = (
        "valid",
        "events",
        "first_seq",
        "last_seq",
        "head",
        "blank_lines",
        "bytes",
        "committed_end",
        "base",
    )
    damage = sorted((found["path"], found["offset"], found["kind"]) for found in report["damage"])
    tail = report["tail"] and (report["tail"]["offset"], report["tail"]["length"])
    return {**{name: report[name] for name in same}, "damage": damage, "tail": tail}


def place(folder: Path, data: bytes, synced: bytes | None = None) -> Path:
    inner = folder / ".chronomemory"
    inner.mkdir()
    (inner / "events.wal").write_bytes(data)
    if synced is not None:
        (inner / "synced").write_bytes(synced)
    return inner


def assert_agreed(inner: Path) -> dict[str, Any]:
    ours, second = _core.verify_path(str(inner)), verify_log.verify_folder(inner)
    assert essence(ours) == essence(second)
    return ours


def assert_agreed_on(data: bytes, synced: bytes | None = None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert_agreed(place(Path(folder), data, synced))


def log_of(name: str) -> tuple[bytes, bytes | None]:
    synced = CORPUS / "logs" / f"{name}.synced"
    return (
        CORPUS / "logs" / f"{name}.wal"
    ).read_bytes(), synced.read_bytes() if synced.exists() else None


def assert_verdict(report: dict[str, Any], verdict: dict[str, Any]) -> None:
    assert report["valid"] == verdict["valid"], verdict["note"]
    assert sorted([found["offset"], found["kind"]] for found in report["damage"]) == sorted(
        verdict["damage"]
    )
    assert (report["tail"]["offset"] if report["tail"] else None) == verdict["tail_offset"]
    assert report["events"] == verdict["events"]
    assert report["base"] == verdict.get("base", report["base"])


@pytest.mark.parametrize("name", LOGS)
def test_engine_gives_the_log_its_verdict(name: str, tmp_path: Path) -> None:
    inner = place(tmp_path, *log_of(name))
    assert_verdict(_core.verify_path(str(inner)), LOGS[name])
    assert_agreed(inner)


@pytest.mark.parametrize("name", FOLDERS)
def test_engine_gives_the_folder_its_verdict(name: str, tmp_path: Path) -> None:
    inner = tmp_path / ".chronomemory"
    shutil.copytree(CORPUS / "folders" / name, inner)
    assert_verdict(_core.verify_path(str(inner)), FOLDERS[name])
    assert_agreed(inner)


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


def rehash(text: bytes) -> bytes:
    """Give a line the hash that its changed content asks for, if it still is an event."""
    try:
        event = json.loads(text)
        names = ("seq", "ts", "op", "record_id", "record", "prev_hash", "recursion_depth")
        payload = json.dumps(
            {name: event[name] for name in names},
            sort_keys=True,
            separators=(",", ":"),
            ensure_ascii=False,
        )
        digest = hashlib.sha256(payload.encode()).hexdigest().encode()
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
                changed = (
                    lines[one][:position] + draw(st.sampled_from(TOKENS)) + lines[one][position:]
                )
                lines[one] = rehash(changed) if action == 8 else changed
            data = b"\n".join(lines)
    if draw(st.booleans()):
        synced = mark_for(data, draw(st.integers(0, data.count(b"\n"))))
    return data, synced


@slow_is_fine
@given(mutated())
def test_verifiers_agree_on_mutated_logs(case: tuple[bytes, bytes | None]) -> None:
    assert_agreed_on(*case)


numbers = st.one_of(
    st.integers(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False)
)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    numbers,
    st.text(max_size=6),
    st.sampled_from(["\u2028", "\x85", "\x7f", "\x1f"]),
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
FORMS = (
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
)
OPS = (
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
)


def form_line(form: str, fields: dict[str, Any]) -> tuple[bytes, str]:
    """A line with the right hash in one of the forms that tools and attackers use, and that hash."""
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    if form == "spaced":
        text = json.dumps(fields, sort_keys=True, ensure_ascii=False)
    digest = hashlib.sha256(text.encode()).hexdigest()
    event = {**fields, "hash": digest, **({"zz": 1} if form in ("injected", "unknown") else {})}
    tight = json.dumps(event, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    loose = json.dumps(event, ensure_ascii=form == "ascii")
    line = {
        "garbage": "?",
        "blank": " \r",
        "edited": tight.replace('"ts":"', '"ts":"E'),
        "crlf": tight + "\r",
    }.get(form)
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
        record = (
            {"events": count}
            if op == "begin"
            else draw(
                st.one_of(st.none(), st.dictionaries(st.text(max_size=3), values, max_size=3))
            )
        )
        link = draw(
            st.sampled_from([hashes[-1]] * 12 + [hashes[0], hashes[len(hashes) // 2], "ab" * 32])
        )
        fields = {
            "seq": seq,
            "ts": "",
            "op": op,
            "record_id": "r",
            "record": record,
            "prev_hash": link,
            "recursion_depth": 0,
        }
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


SPELLINGS = (
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
)


def spelled(token: str) -> bytes:
    """A line of our form with this number, hashed as spelled."""
    fields = {
        "op": "upsert",
        "prev_hash": "",
        "record": {"x": "@"},
        "record_id": "r",
        "recursion_depth": 0,
        "seq": 1,
        "ts": "",
    }
    text = json.dumps(fields, sort_keys=True, separators=(",", ":")).replace('"@"', token).encode()
    return b'{"hash":"' + hashlib.sha256(text).hexdigest().encode() + b'",' + text[1:] + b"\n"


@slow_is_fine
@given(
    st.lists(
        st.tuples(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(SPELLINGS)),
        min_size=20,
    )
)
@example(
    [(562949953421312.25 + step / 4, spelling) for step in range(40) for spelling in SPELLINGS]
)
@example([(2.0**power, spelling) for power in range(-1074, 1024, 7) for spelling in SPELLINGS])
@example([(10.0**power, spelling) for power in range(-324, 309, 3) for spelling in SPELLINGS])
def test_verifiers_agree_on_numbers(tokens: list[tuple[float, str]]) -> None:
    """Links break, which is as good a verdict as any: what counts is which lines are altered."""
    assert_agreed_on(b"".join(spelled(spelling.format(number)) for number, spelling in tokens))


@settings(parent=slow_is_fine, max_examples=200)
@given(st.data())
def test_verifiers_agree_on_mutated_folders(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(FOLDERS)))
    with tempfile.TemporaryDirectory() as folder:
        inner = Path(folder) / ".chronomemory"
        shutil.copytree(CORPUS / "folders" / name, inner)
        victim = data.draw(
            st.sampled_from(sorted(path for path in inner.rglob("*") if path.is_file()))
        )
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
                content[:at]
                + bytes([content[at] ^ (1 << data.draw(st.integers(0, 7)))])
                + content[at + 1 :]
            )
        assert_agreed(inner)


@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_verifiers_agree_on_the_longest_line(extra: int, tmp_path: Path) -> None:
    empty = spelled('""')
    room = 16 * MIB - (len(empty) - 1) + extra
    inner = place(tmp_path, spelled('"' + "x" * room + '"') + empty)
    assert len((inner / "events.wal").read_bytes()) - len(empty) == 16 * MIB + 1 + extra
    kinds = [found["kind"] for found in assert_agreed(inner)["damage"]]
    assert kinds == (["unreadable"] if extra > 0 else ["unlinked"])


@pytest.mark.parametrize("end", [b"", b"\n", b"x\n", b"x"])
def test_verifiers_agree_on_lines_too_long_to_read(end: bytes, tmp_path: Path) -> None:
    assert_agreed(place(tmp_path, spelled("1") + b" " * (33 * MIB) + end))
