"""Opens the files that a log names, and checks that they are what it says.

Section 8 of docs/format.md, for `verify_log.py`. Others go on using the store meanwhile: a compaction
replaces the log, removes the base that it started from and moves the rows of embeddings. So the files that
one log names are opened first, in a moment; the log must still be the one at its path then. What could not
be looked into is kept in `unseen`: a verdict without findings requires that all was read.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import lost_base
import past_logs
import replaced_log
from erased_lines import is_digest, sentinel_data
from erased_lines import is_erasure as is_erasure

LOG = "events.wal"
MAX_LINE_BYTES = 16 * 1024 * 1024
#: A longer `synced` is none, and a larger state is not parsed: in memory it takes many times its bytes.
HINT_BYTES, MOST_STATE_BYTES = 120, 1 << 30
#: How often files are gathered again that were replaced meanwhile.
MOST_TRIES = 100
#: More files of rows are not held: a process may open only so many.
MOST_ROWS = 200
#: What a base and an archive of ours are called.
BASE_NAME = re.compile(r"[0-9a-f]{64}\.json")
PAST_BASE_NAME = re.compile(r"[0-9a-f]{64}\.json(\.zst)?")
ARCHIVE_NAME = re.compile(r"[0-9]+-[0-9]+-[0-9a-f]{16}\.wal(\.zst(\.erased)?)?")
#: What a hint is called that a log did not live up to.
KEPT_HINT = re.compile(r"[0-9]{8}T[0-9]{6}-synced(-[0-9]+)?")
#: What a copy of ours is called: a backup, and a store that recovery set aside.
COPIES = (
    ("backup", re.compile(r"[0-9]{8}T[0-9]{6}(-[0-9]+)*")),
    ("quarantine", re.compile(r"[0-9]{8}T[0-9]{6}-(damaged|before-restore)(-[0-9]+)?")),
)


def read_hint(path: Path) -> bytes:
    """The bytes of `synced`, or of a file kept from it; one byte more if it is longer than it may be."""
    with path.open("rb") as stream:
        return stream.read(HINT_BYTES + 1)


def read_state(stream: BinaryIO, name: str) -> bytes:
    """The bytes of a base, a snapshot or a note about an erasure; OSError if they are too many."""
    if len(raw := stream.read(MOST_STATE_BYTES + 1)) > MOST_STATE_BYTES:
        raise OSError(f"{name}: at most {MOST_STATE_BYTES >> 20} MiB are read, and it is larger")
    return raw


def knows_a_log(synced: bytes) -> bool:
    """Whether the bytes of `synced` are whole, whatever log they speak of: section 6 of the format."""
    is_whole = len(synced) == HINT_BYTES and synced[:8] == b"CMSYNC\x00\x01" and any(synced[8:16])
    return is_whole and hashlib.sha256(synced[:88]).digest() == synced[88:]


def has_blank_log(stream: BinaryIO) -> bool:
    """Whether there is no complete line that is not blank."""
    stream.seek(0)
    while (line := stream.readline(MAX_LINE_BYTES)).endswith(b"\n"):
        if line.strip(b" \t\r\n"):
            return False
    return len(line) < MAX_LINE_BYTES


def _names(folder: Path, shape: re.Pattern[str]) -> list[str]:
    """Names of ours in a folder, the last first; a link in its place is ignored."""
    try:
        names = [] if folder.is_symlink() else [one.name for one in folder.iterdir() if not one.is_symlink()]
    except OSError:
        names = []
    return sorted((name for name in names if shape.fullmatch(name)), reverse=True)


def _holds_event(log: Path, law: Any) -> bool:
    if log.is_symlink() or not log.is_file():
        return False
    try:
        with log.open("rb") as stream:
            return any(line.complete and not law.read_event(line.raw)[1] for line in law.split(stream))
    except OSError:
        return False


def traces(path: Path, law: Any) -> list[str]:
    """What beside a log shows that there was one: section 1 of the format; `law` judges lines."""
    try:
        synced = read_hint(path / "synced")
    except OSError:
        synced = b""
    found = ["synced"] if knows_a_log(synced) else []
    for inner, shape in (("base", PAST_BASE_NAME), ("archive", ARCHIVE_NAME)):
        names = _names(path / inner, shape)
        found += [inner] if any((path / inner / name).is_file() for name in names) else []
    copies = (f"{inner}/{name}" for inner, shape in COPIES for name in _names(path / inner, shape))
    found += next(([copy] for copy in copies if _holds_event(path / copy / LOG, law)), [])
    return found


def kept_hints(path: Path, log: Any, stream: BinaryIO) -> list[str]:
    """What hints that were put aside know of this log and it does not hold: section 6 of the format."""
    found = []
    for name in reversed(_names(path / "quarantine", KEPT_HINT)):
        try:
            hint = read_hint(path / "quarantine" / name)
        except OSError:
            continue
        if not knows_a_log(hint) or not log.known.first or log.known.first["hash"] != hint[24:56].hex():
            continue
        end = int.from_bytes(hint[8:16], "little")
        stream.seek(max(0, end - MAX_LINE_BYTES - 1))
        before = stream.read(min(end, MAX_LINE_BYTES + 1))
        head = f'"hash":"{hint[56:88].hex()}"'.encode()
        is_there = end <= log.bytes and before.endswith(b"\n") and head in before[:-1].rpartition(b"\n")[2]
        if not is_there:
            found.append(f"the log was cut once: quarantine/{name} knows it with {end} bytes")
    return found


class Beginning(io.RawIOBase):
    """The first bytes of a file that grows."""

    def __init__(self, file: BinaryIO, length: int) -> None:
        self._file, self._length, self._at = file, length, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._length}[whence]
        self._at = start + offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        wanted = max(0, min(len(buffer), self._length - self._at))
        data = os.pread(self._file.fileno(), wanted, self._at)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


class Folder:
    """The files of a store as they were together."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.unseen: list[str] = []
        self.has_empty_hint = False
        self.returned: list[dict[str, Any]] = []
        self._held: dict[str, BinaryIO] = {}
        for _ in range(MOST_TRIES):
            # The hint first: a writer that comes between makes the log longer, never the hint wrong.
            self.synced = self._hint()
            self._file = (path / LOG).open("rb")
            self._then = os.fstat(self._file.fileno())
            self._hold_named()
            if self._is(self._now(), self._then):
                break
            self.close()
        else:
            raise OSError(f"{path / LOG}: the log keeps being replaced: no quiet look at it")
        self.log: BinaryIO = io.BufferedReader(Beginning(self._file, self._then.st_size))

    def _hint(self) -> bytes:
        self.has_empty_hint = False
        try:
            hint = read_hint(self.path / "synced")
        except PermissionError as error:
            self.cannot_look("synced", str(error))
        except OSError:
            pass
        else:
            self.has_empty_hint = not hint
            return hint
        return b""

    def _now(self) -> os.stat_result | None:
        try:
            return (self.path / LOG).stat()
        except OSError:
            return None

    def _is(self, now: os.stat_result | None, then: os.stat_result) -> bool:
        return now is not None and (now.st_dev, now.st_ino) == (then.st_dev, then.st_ino)

    def is_untouched(self) -> bool:
        """Whether neither the log nor the hint that was read before it has changed since."""
        now = self._now()
        try:
            hint = read_hint(self.path / "synced")
        except OSError:
            hint = b""
        is_same = now is not None and self._is(now, self._then) and now.st_size == self._then.st_size
        return is_same and hint == self.synced

    def _hold_named(self) -> None:
        """Open the base that the log names, whatever its lines are worth, and every file of rows."""
        line = b"\n"
        while line and not line.strip():
            line = self._file.readline(MAX_LINE_BYTES)
        found = re.search(rb'"base_sha256": ?"([0-9a-f]{64})"', line)
        names = [f"base/{found[1].decode()}.json"] if found else ["snapshot.json"]
        rows = sorted(self.names("vectors", ".f32"))
        for name in names + (rows if len(rows) <= MOST_ROWS else []):
            try:
                self._held[name] = (self.path / name).open("rb")
            except OSError:
                continue  # read again when it is needed

    def names(self, inner: str, suffix: str) -> list[str]:
        """The files of a folder that are called so."""
        try:
            return [
                f"{inner}/{one.name}" for one in (self.path / inner).iterdir() if one.name.endswith(suffix)
            ]
        except OSError:
            return []

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""
        try:
            return name in self._held or (self.path / name).is_file()
        except PermissionError:
            return True  # reported when it is opened

    def open(self, name: str) -> BinaryIO:
        """A file of the store, from its beginning."""
        held = self._held.get(name)
        if held is None:
            return (self.path / name).open("rb")
        length = os.fstat(held.fileno()).st_size
        return io.BufferedReader(Beginning(held, length))

    def read(self, name: str) -> bytes:
        """The bytes of a file."""
        with self.open(name) as stream:
            return read_state(stream, name)

    def digest(self, name: str) -> str:
        """The SHA-256 of a file."""
        with self.open(name) as stream:
            return past_logs.digest(stream)

    def cannot_look(self, name: str, why: str) -> None:
        """Keep in mind what was not looked into."""
        self.unseen.append(f"{name}: {why}")

    def close(self) -> None:
        for stream in (self._file, *self._held.values()):
            stream.close()
        self._held.clear()

    def __enter__(self) -> Folder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _read_state(folder: Folder, name: str, reader: Any) -> dict[str, Any] | None:
    """The content of a base or snapshot file, or None. A record lies one deeper in it than in its event."""
    try:
        raw = past_logs.read(folder, name, lambda stream: read_state(stream, name), reader)
        state = reader.parse(raw or b"", reader.MAX_DEPTH + 1)
        seq, last_hash, records = state["seq"], state["last_hash"], state["records"]
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return None
    sound = (
        type(seq) is int
        and 0 <= seq <= reader.MAX_SEQ
        and isinstance(last_hash, str)
        and isinstance(records, list)
    )
    sound = sound and all(isinstance(record, dict) for record in records)
    return dict(state) if sound and _has_sound_moments(state, reader) else None


def _has_sound_moments(state: dict[str, Any], reader: Any) -> bool:
    """Whether there is a row of moments for each record, or none at all; null is lower than any number."""
    lists = [state[name] for name in ("moments", "later_moments") if name in state]
    if not all(isinstance(rows, list) for rows in lists):
        return False
    rows = [row for rows in lists for row in rows]

    def is_sound(row: Any) -> bool:
        if not isinstance(row, list) or len(row) != 4:
            return False
        most = reader.MAX_SEQ
        lows = (0, -most, 0, -most)
        if not all(
            n is None or (type(n) is int and low <= n <= most) for n, low in zip(row, lows, strict=True)
        ):
            return False
        return all(row[at] is None or (row[at + 2] is not None and row[at] <= row[at + 2]) for at in (0, 1))

    return not lists or (len(rows) == len(state["records"]) and all(map(is_sound, rows)))


def _check_named_base(folder: Folder, log: Any, sha256: Any, good: str, reader: Any) -> str:
    # The path comes from the digest and never from the log, which therefore cannot point outside its folder.
    name = f"base/{sha256}.json" if is_digest(sha256) else "base"
    exists = folder.exists(name)
    try:
        if exists and folder.digest(name) == sha256 and _read_state(folder, name, reader) is not None:
            return good
    except PermissionError as error:
        folder.cannot_look(name, str(error))
        return good
    log.report("base-altered" if exists else "base-missing", "not the base this log starts from", None, name)
    return "damaged" if exists else "missing"


def _check_past(folder: Folder, log: Any, reader: Any) -> None:
    """What the log tells of erasures, and all that its sentinel leads back to: sections 8 and 16."""
    past = past_logs.Past(folder, log, reader, _read_state)
    past.find(log.known.first, log.known.first_at, log)
    past.judge()
    base = sentinel_data(log.known.first).get("base_sha256")
    if _is_unfinished(folder, base):
        log.notes.append("erasure unfinished: the next process that may write completes it")
        return
    bases = _names(folder.path / "base", PAST_BASE_NAME)
    for path in past.returned(bases, _names(folder.path / "archive", ARCHIVE_NAME)):
        reason = "an erasure took it away, and it is back"
        where = {"path": path, "offset": 0, "line": 0, "seq": None}
        folder.returned.append({**where, "kind": "erased-returned", "reason": reason})


def _is_unfinished(folder: Folder, base: Any) -> bool:
    try:
        note = json.loads(folder.read("erasing"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(note, dict) and is_digest(base) and note.get("base") == base


def check_base(folder: Folder, stream: BinaryIO, synced: bytes, log: Any, reader: Any) -> str:
    """What the log starts from; `reader` is verify_log itself, since a script cannot be imported."""
    first = log.known.first
    if first is not None:
        _check_past(folder, log, reader)

    def hashes_at(seq: int) -> Any:
        return reader.Log(stream, synced, seq).known.hashes_at_watched_seq

    if lost_base.is_lost(first) and lost_base.is_lost((left := lost_base.look(stream, reader)).first):
        if has_blank_log(stream):
            return "none"
        if adopt := log.known.adopt:
            return _check_named_base(folder, log, adopt["record"]["base_sha256"], "adopted", reader)
        has_past = any(name in ("base", "archive") for name in traces(folder.path, reader))
        state = _read_state(folder, "snapshot.json", reader)
        return lost_base.check(log, left, has_past, state, hashes_at)
    if first is None or first["op"] != "compact":
        return "none"
    if data := sentinel_data(first):
        return _check_named_base(folder, log, data["base_sha256"], "anchored", reader)
    if adopt := log.known.adopt:
        return _check_named_base(folder, log, adopt["record"]["base_sha256"], "adopted", reader)
    bases = _names(folder.path / "base", BASE_NAME)
    if lost_base.unadopted(folder.path, bases, first["seq"], lambda name: _read_state(folder, name, reader)):
        log.report("base-missing", "the line that adopts it is lost", None, "base")
        return "missing"
    state = _read_state(folder, "snapshot.json", reader)
    if state is None:
        log.report("base-missing", "another tool's snapshot, the only base, is gone", None, "snapshot.json")
        return "missing"
    hashes = hashes_at(state["seq"])
    if hashes and state["last_hash"] not in hashes:
        log.report("snapshot-refused", "last_hash is not the hash at its seq", state["seq"], "snapshot.json")
        return "damaged"
    log.notes.append("unanchored: nothing in the log proves the snapshot it starts from")
    return "unanchored"


def look_for_lost(folder: Folder | None, stream: BinaryIO, synced: bytes, log: Any, reader: Any) -> None:
    """Report that a log without an event was one once, if anything shows it."""
    if log.known.events or log.damage or not has_blank_log(stream):
        return
    shown = traces(folder.path, reader) if folder else ["synced"] * knows_a_log(synced)
    if shown := shown or (made_of_lines(folder, log, reader) if folder else []):
        log.report("log-missing", f"there is no event, but there was a log: {', '.join(shown)}", None)


def lost_log(path: Path, reader: Any) -> dict[str, Any] | None:
    """What to say of a folder without a log in which something shows that there was one."""
    if not (shown := [one for inner in (path / ".chronomemory", path) for one in traces(inner, reader)]):
        return None
    reason = f"it is not there, but there was one: {', '.join(shown)}"
    return {"path": LOG, "offset": 0, "line": 0, "seq": None, "kind": "log-missing", "reason": reason}


def made_of_lines(folder: Folder, log: Any, reader: Any) -> list[str]:
    """The snapshot, if it shows that bytes without a whole line were lines once: section 1 of the format."""
    state = _read_state(folder, "snapshot.json", reader) if log.bytes else None
    return ["snapshot.json"] if state is not None and state["seq"] > 2 else []


def replaced_by(folder: Folder, log: Any, stream: BinaryIO, reader: Any) -> str | None:
    """What shows that another log took the place of this one."""
    return replaced_log.how(folder, log, stream, reader, lambda name: _read_state(folder, name, reader))


def has_findings(found: dict[str, Any]) -> bool:
    """Whether a verdict has anything against a store that a writer may have caused meanwhile."""
    return any(found[name] for name in ("damage", "notes", "damaged_synced"))


def findings_of(found: dict[str, Any]) -> str:
    """What a verdict has against a store, to be compared with that of the next look."""
    return json.dumps([found[name] for name in ("damage", "notes", "damaged_synced", "cannot_tell")])
