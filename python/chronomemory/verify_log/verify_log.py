"""Verifies a log: a second opinion that shares no code with the engine.

Standard library only, to be read in one sitting and run anywhere; beside it `named_files.py` looks at base
and archives, `packed_log.py` unpacks those, `vector_rows.py` checks embeddings, `record_scopes.py` whose
records are. It follows docs/format.md, one line of the log at a time. PATH is a project, its `.chronomemory`
folder or a lone log. Exit code: 0 all is valid, 1 not, 2 cannot tell: nothing wrong was seen, but not all
could be looked at, 3 all is valid, but what was erased is back, or `synced` is damaged.
"""

import argparse
import hashlib
import importlib.util
import io
import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

LOG = "events.wal"
MAX_LINE_BYTES = 16 * 1024 * 1024
MAX_INT_DIGITS, MAX_DEPTH, MAX_SEQ = 4300, 200, 2**63 - 1
FIELDS = frozenset(["seq", "ts", "op", "record_id", "record", "prev_hash", "hash", "recursion_depth"])
BESIDE = ("named_files", "packed_log", "vector_rows", "record_scopes")
NAMED, PACKED_LOG, ROWS, SCOPES = (
    importlib.import_module(n) if importlib.util.find_spec(n) else None for n in BESIDE
)
MOST_LOOKS = 8

# A lowered interpreter limit would make honest integers look like damage.
if hasattr(sys, "set_int_max_str_digits") and 0 < sys.get_int_max_str_digits() < MAX_INT_DIGITS:
    sys.set_int_max_str_digits(MAX_INT_DIGITS)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(found := dict(pairs)) != len(pairs):
        raise ValueError("duplicate key")
    return found


def _number(digits: str) -> float:
    bare = digits.lstrip("-")
    whole = bare.isdecimal()  # json keeps the two apart: 1e0 is a float, -0 is the integer 0
    size, most = (len(bare), MAX_INT_DIGITS) if whole else (abs(float(digits)), sys.float_info.max)
    if not size <= most:  # NaN is not, either
        raise ValueError(f"integer of more than {MAX_INT_DIGITS} digits, or a number that is not finite")
    return int(digits) if whole else float(digits)


DECODER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_int=_number, parse_float=_number, parse_constant=_number
)


def parse(raw: bytes, max_depth: int = MAX_DEPTH) -> Any:
    """The value of strict JSON text, or ValueError. Depth is counted first, to spare the stack."""
    text, depth = raw.decode("utf-8"), 0
    # Without escaped backslashes and quotes, every quote begins or ends a string.
    is_flat = text.count("{") + text.count("[") <= max_depth
    bare = "" if is_flat else text.replace("\\\\", "").replace('\\"', "")
    for token in re.finditer(r'"[^"]*"?|[\[{]|[\]}]', bare):
        depth += (token[0] in ("{", "[")) - (token[0] in ("}", "]"))
        if depth > max_depth:
            raise ValueError(f"nested deeper than {max_depth}")
    value = DECODER.decode(text)
    if b"\\u" in raw:
        canonical(value)  # only an escape can bring a lone surrogate, and encoding it fails
    return value


def canonical(value: Any, separators: tuple[str, str] = (",", ":")) -> bytes:
    """Keys sorted at every level, non-ASCII raw. Older files have a space after each separator."""
    return json.dumps(value, sort_keys=True, separators=separators, ensure_ascii=False).encode("utf-8")


class Line(NamedTuple):
    offset: int
    number: int
    end: int
    raw: bytes | None  # without its newline; None when too long
    complete: bool


def split(stream: BinaryIO) -> Iterator[Line]:
    """The lines of a log, split on newline only. Bytes after the last newline come as an incomplete line."""
    offset, number = 0, 0
    while chunk := stream.readline(MAX_LINE_BYTES + 1):
        raw: bytes | None = chunk.removesuffix(b"\n")
        number, end = number + 1, offset + len(chunk)
        while chunk and end - offset > MAX_LINE_BYTES and not chunk.endswith(b"\n"):
            raw, chunk = None, stream.readline(MAX_LINE_BYTES)
            end += len(chunk)
        yield Line(offset, number, end, raw, chunk.endswith(b"\n"))
        offset = end


def _is_int(value: Any, low: int, high: int) -> bool:
    return type(value) is int and low <= value <= high


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[0-9a-f]{64}", value) is not None


def _shape_error(event: Any) -> str | None:
    if not isinstance(event, dict) or not event.keys() >= FIELDS:
        return "not an object with the eight fields of an event"
    record, prev_hash = event["record"], event["prev_hash"]
    count = record.get("events") if isinstance(record, dict) else None
    rules = {
        "seq is an integer from 0 to 2^63-1": _is_int(event["seq"], 0, MAX_SEQ),
        "recursion_depth is a 64-bit integer": _is_int(event["recursion_depth"], -MAX_SEQ - 1, MAX_SEQ),
        "ts, op, record_id are strings": all(type(event[key]) is str for key in ("ts", "op", "record_id")),
        "record is an object or null": record is None or isinstance(record, dict),
        "hash is 64 lower-case hex digits": _is_digest(event["hash"]),
        'prev_hash is "" or 64 lower-case hex digits': prev_hash == "" or _is_digest(prev_hash),
        "begin says how many events follow": event["op"] != "begin" or _is_int(count, 1, 2**32 - 1),
    }
    return next((f"it does not hold that {rule}" for rule, holds in rules.items() if not holds), None)


def read_event(raw: bytes | None) -> tuple[Any, str, str]:
    """The value of a line, and if it cannot be loaded the kind of damage and the reason."""
    if raw is None:
        return None, "unreadable", "longer than 16 MiB, or its end is missing"
    try:
        event = parse(raw)
    except ValueError as error:
        return None, "unreadable", str(error)
    if reason := _shape_error(event):
        return event, "malformed", reason
    payload = {name: event[name] for name in FIELDS if name != "hash"}
    dialects = (canonical(payload, separators) for separators in ((",", ":"), (", ", ": ")))
    if not any(hashlib.sha256(text).hexdigest() == event["hash"] for text in dialects):
        return event, "altered", "hash does not match the content"
    return event, "", ""


def is_own_form(raw: bytes | None, event: dict[str, Any]) -> bool:
    """Whether these bytes are what we would write for this object, unknown fields included."""
    plain = canonical(event)
    escaped = re.sub("[\x85\u2028\u2029]", lambda found: f"\\u{ord(found[0]):04x}", plain.decode()).encode()
    return raw in (plain, escaped)


@dataclass
class Known:
    """What the lines so far say; copied where a batch begins, so that a half batch can be forgotten."""

    events: int = 0
    lines: int = 0
    blank_lines: int = 0
    unknown_fields: int = 0
    first: dict[str, Any] | None = None
    first_at: tuple[int, int] = (0, 0)
    last_seq: int = 0
    head: str = ""
    gap: bool = False  # lines that could not be loaded stand between the head and the next line
    adopt: dict[str, Any] | None = None
    hashes_at_watched_seq: tuple[str, ...] = ()


@dataclass
class Batch:
    begin: Line
    seq: int
    last: int
    before: Known
    expected: int
    begin_is_sound: bool  # if not, a half batch is damage: bytes that show a fault are never a tail to be cut
    damaged: bool = False

    def takes(self, event: dict[str, Any] | None, sound: bool) -> bool:
        """Whether the next line belongs to this batch. Whatever is not in its place damages the batch."""
        seq, op = (event["seq"], event["op"]) if event else (self.expected, "")
        member = not event or (op not in ("begin", "compact") and self.seq < seq <= self.last)
        self.damaged = self.damaged or not event or not sound or not member or seq != self.expected
        self.expected = seq + 1 if member else self.expected
        return member


def _is_adoption(event: dict[str, Any]) -> bool:
    record, named = event["record"] or {}, (event["op"], event["record_id"]) == ("adopt", "__adopt__")
    sound = _is_digest(record.get("base_sha256")) and _is_int(record.get("seq"), 0, MAX_SEQ)
    return named and sound and isinstance(record.get("last_hash"), str)


class Log:
    """Walks one log from its first byte to its committed end; afterwards the fields are the verdict."""

    def __init__(self, stream: BinaryIO, synced: bytes = b"", watched_seq: int | None = None) -> None:
        self.bytes = self.committed_end = stream.seek(0, io.SEEK_END)
        self.known, self.tail, self.watched_seq = Known(), "", watched_seq
        self.damage, self.notes = list[dict[str, Any]](), list[str]()
        self._batch: Batch | None = None
        self._scopes, self._dropped = list[tuple[int, Any]](), set[int]()
        self._erasures = list[tuple[int, int, dict[str, Any], tuple[int, int]]]()
        self._broken = self.fits_synced = self._synced_is_ours = False
        is_whole = synced[:8] == b"CMSYNC\x00\x01" and synced[88:] == hashlib.sha256(synced[:88]).digest()
        self.damaged_synced = bool(synced) and not (is_whole and any(synced[8:16]))
        synced = synced if is_whole else bytes(120)
        self._synced_end = int.from_bytes(synced[8:16], "little")
        self._synced_first, self._synced_head = synced[24:56].hex(), synced[56:88].hex()
        stream.seek(0)
        for line in split(stream):
            if not line.complete and self._was_whole(line.offset):
                self._takes(line._replace(raw=None))
            elif not line.complete:
                self.committed_end, self.tail = line.offset, "incomplete last line"
            elif line.raw is not None and not line.raw.strip(b" \t\r"):
                self.known.blank_lines += 1
            elif not self._takes(line):
                break
        batch = self._batch
        if batch and batch.begin_is_sound and not batch.damaged and not self._was_whole(batch.begin.offset):
            self.known, self.committed_end, self.tail = batch.before, batch.begin.offset, "half batch"
        elif batch:
            self._close(batch)
        self.damage.sort(key=lambda found: (found["offset"], found["kind"] == "broken-batch"))
        if self.known.unknown_fields:
            self.notes.append(f"unknown_fields: outside the hash in {self.known.unknown_fields} lines")
        if self._synced_is_ours and self._synced_end > self.bytes:
            self.notes.append("log is shorter than the last sync")

    def _was_whole(self, offset: int) -> bool:
        """Whether `synced` tells that what begins here had an end: without it, this is damage and no tail."""
        return offset < self._synced_end and (self._synced_is_ours or self.known.lines == 0)

    def report(self, kind: str, reason: str, seq: Any, path: str = LOG, at: tuple[int, int] = (0, 0)) -> None:
        found = {"path": path, "offset": at[0], "line": at[1], "seq": None, "kind": kind, "reason": reason}
        self.damage.append({**found, "seq": seq} if _is_int(seq, 0, MAX_SEQ) else found)

    def _takes(self, line: Line) -> bool:
        """Judge one line and remember it; False when it shows that the tail has begun."""
        known, batch = self.known, self._batch
        value, kind, reason = self._read(line)
        event, fields = None if kind else value, value if isinstance(value, dict) else {}
        # `synced` counts only if it names the hash of line one and that of the very line that it ends with.
        if known.lines == 0:
            self._synced_is_ours = not kind and fields["hash"] == self._synced_first
        if line.end == self._synced_end:
            self.fits_synced = self._synced_is_ours and fields.get("hash") == self._synced_head
        if event:
            unknown = sorted(event.keys() - FIELDS)
            if unknown and is_own_form(line.raw, event):
                kind, reason = "injected", f"unknown field {unknown[0]} in a line of our own form"
            elif event["prev_hash"] != known.head and not (known.gap and event["prev_hash"]):
                kind, reason = "unlinked", "prev_hash is not the hash of the event before"
        member = batch is not None and batch.takes(event, sound=not kind)
        if not self._broken and (kind or (batch and batch.damaged)):
            first_damage = batch.begin.offset if batch else line.offset
            if self.fits_synced and first_damage >= self._synced_end:
                self.known, self._batch = batch.before if batch else known, None
                self.committed_end, self.tail = first_damage, f"unsynced, and not whole at line {line.number}"
                return False
            self._broken = True
        if kind:
            self.report(kind, reason, fields.get("seq"), at=line[:2])
        if batch and not member:
            self._close(batch)
        before = replace(known) if event and event["op"] == "begin" else known
        known.lines, known.gap = known.lines + 1, event is None
        if event:
            seq, known.head, known.events = event["seq"], event["hash"], known.events + 1
            known.first_at = known.first_at if known.first else line[:2]
            known.first, known.last_seq = known.first or event, seq
            known.adopt = known.adopt or (event if _is_adoption(event) else None)
            known.unknown_fields += not FIELDS.issuperset(event)
            known.hashes_at_watched_seq += (event["hash"],) if seq == self.watched_seq else ()
            self._heard(line, event, batch.begin.offset if batch and member else line.offset)
            if event["op"] == "begin":
                self._batch = Batch(line, seq, seq + event["record"]["events"], before, seq + 1, not kind)
        if batch and member and batch.expected > batch.last:
            self._close(batch)
        return True

    def _read(self, line: Line) -> tuple[Any, str, str]:
        return read_event(line.raw)

    def _heard(self, line: Line, event: dict[str, Any], begin: int) -> None:
        """Remember what an event says that was loaded; `begin` is where its commit begins."""
        self._scopes += [(begin, one) for one in (SCOPES.scopes_in(event) if SCOPES else [])]
        if event["op"] == "erase" and NAMED and NAMED.is_erasure(event):
            self._erasures.append((begin, self.known.events - 1, event, line[:2]))

    def erasures(self) -> list[Any]:
        """The erase events of our shape: which of all events it is, the event and its place."""
        return [one[1:] for one in self._erasures if one[0] < self.committed_end]

    def _close(self, batch: Batch) -> None:
        self._batch = None
        if batch.damaged or batch.expected <= batch.last:
            self.known.adopt = batch.before.adopt
            self._dropped.add(batch.begin.offset)
            self.report("broken-batch", "not whole: nothing of it is applied", batch.seq, at=batch.begin[:2])

    def scopes(self) -> list[Any]:
        """What the events that count say of whose their records are."""
        return [one for at, one in self._scopes if at < self.committed_end and at not in self._dropped]


def _verdict(
    stream: BinaryIO, synced: bytes = b"", folder: Any = None, *, has_empty_hint: bool = False
) -> dict[str, Any]:
    log = Log(stream, synced)
    if NAMED:
        NAMED.look_for_lost(folder, stream, synced, log, sys.modules[__name__])
    base = (
        NAMED.check_base(folder, stream, synced, log, sys.modules[__name__]) if NAMED and folder else "none"
    )
    if NAMED and folder and (by := NAMED.replaced_by(folder, log, stream, sys.modules[__name__])):
        log.report("log-missing", f"{by}, and the one that was synced last is not there", None)
    end = log.committed_end
    log.notes += NAMED.kept_hints(folder.path, log, stream) if NAMED and folder else []
    return {
        "valid": not log.damage,
        "first_seq": log.known.first["seq"] if log.known.first else None,
        "first_op": log.known.first["op"] if log.known.first else None,
        **{name: getattr(log.known, name) for name in ("events", "last_seq", "head", "lines", "blank_lines")},
        "bytes": log.bytes,
        "committed_end": end,
        "base": base,
        "damage": log.damage,
        "tail": {"offset": end, "length": log.bytes - end, "reason": log.tail} if log.tail else None,
        "notes": log.notes,
        "damaged_synced": log.damaged_synced or (has_empty_hint and log.bytes > 0),
        "scopes": SCOPES.judge(
            (SCOPES.in_base(folder, log.known.first) if base == "anchored" else []) + log.scopes()
        )
        if SCOPES
        else [],
        "returned": folder.returned if folder else [],
        "cannot_tell": folder.unseen if folder else [],
    }


def verify_bytes(data: bytes, synced: bytes | None = None) -> dict[str, Any]:
    """The verdict on the bytes of a log alone: no base, no archives."""
    return _verdict(io.BytesIO(data), synced or b"", has_empty_hint=synced == b"")


def _find(path: Path) -> Path | None:
    """The folder of a store: the one inside a project, or the one that was given."""
    return next((one for one in (path / ".chronomemory", path) if os.path.lexists(one / LOG)), None)


def verify_folder(path: str | Path) -> dict[str, Any]:
    """The verdict on a project or its `.chronomemory` folder; a missing log is an empty one.

    Damage is reported if nothing was written meanwhile, or if a second reading finds the same.
    """
    inside, before = _find(Path(path)), ""
    if inside is None or NAMED is None:
        return verify_log_alone(inside / LOG) if inside else _without_log(Path(path))
    for _ in range(MOST_LOOKS):
        try:
            with NAMED.Folder(inside) as folder:
                found = _look(folder)
                is_quiet = folder.is_untouched() or not NAMED.has_findings(found)
        except FileNotFoundError:
            return _without_log(Path(path))
        if is_quiet or (findings := NAMED.findings_of(found)) == before:
            break
        before = findings
    return found


def _without_log(path: Path) -> dict[str, Any]:
    """The verdict on a folder without a log: empty, unless something shows that there was one."""
    found = verify_bytes(b"")
    if lost := NAMED.lost_log(path, sys.modules[__name__]) if NAMED else None:
        found |= {"valid": False, "damage": [lost]}
    return found


def verify_log_alone(path: Path) -> dict[str, Any]:
    """The verdict on a log without what it starts from, if it starts from anything."""
    with path.open("rb") as stream:
        found = _verdict(stream)
    if found["first_op"] == "compact":
        found["cannot_tell"].append("what the log starts from: only the log was looked at")
    return found


def _look(folder: Any) -> dict[str, Any]:
    found = _verdict(folder.log, folder.synced, folder, has_empty_hint=folder.has_empty_hint)
    if ROWS:
        found = ROWS.judge(found, folder, Log)
    elif folder.names("vectors", ".f32"):
        folder.cannot_look("vectors", "vector_rows.py is not beside verify_log.py")
    if any(folder.names(inner, "") for inner in ("index", "index/text", "index/vectors")):
        found["notes"].append("index not compared: it is derived, and chronomemory verify compares it")
    return found


def main() -> int:
    arguments = argparse.ArgumentParser(description="Is this log still true?")
    arguments.add_argument("path", type=Path, help="a project, its .chronomemory folder, or a log file")
    arguments.add_argument("--json", action="store_true", help="print the whole verdict")
    arguments.add_argument("--log-only", action="store_true", help="leave out the files beside the log")
    asked = arguments.parse_args()
    inside = _find(asked.path)
    try:
        if (inside or asked.path.is_dir()) and not asked.log_only:
            found = verify_folder(asked.path)
        else:
            found = verify_log_alone(inside / LOG if inside else asked.path)
            found["cannot_tell"] *= not asked.log_only
    except (OSError, MemoryError, RecursionError) as error:
        arguments.error(f"cannot tell: {str(error) or type(error).__name__}")
    unseen = [f"cannot tell: {what}" for what in found["cannot_tell"]]
    rung = "corrupt" if not found["valid"] else "cannot tell" if unseen else "chain ok"
    findings = (
        *found["damage"],
        *found["returned"],
        *unseen,
        *["synced is damaged: it cannot be told whether the log was cut at its end"]
        * found["damaged_synced"],
        *found["notes"],
        *found["scopes"],
        f"tail: {found['tail']}",
    )
    lines = (f"{found['events']} events, {rung}", *map(str, findings))
    print(json.dumps(found, indent=2) if asked.json else "\n".join(lines))
    is_suspect = found["returned"] or found["damaged_synced"]
    return 1 if not found["valid"] else 3 if is_suspect else 2 if unseen else 0


if __name__ == "__main__":
    sys.exit(main())
