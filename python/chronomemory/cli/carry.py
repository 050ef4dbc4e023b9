"""How does everything leave a store, and come back without loss?

Records travel as NDJSON in canonical spelling, plain ones before those of the other faces, so
that export, import and export again give the same bytes. A history travels as the log itself.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chronomemory._core import Engine, canonical_json, parse_json
from chronomemory.cli.session import RefusedError
from chronomemory.errors import InvalidRecord, LogCorrupted
from chronomemory.layout import log_folder, log_path
from chronomemory.store import ChronoStore
from chronomemory.types import FACE_PREFIXES, Progress, VerifyReport

__all__ = ["FACES", "bring_history", "bring_records", "history_of", "records_of"]

#: The face that owns an id prefix: only through it may such a record be written.
FACES = {
    **dict.fromkeys(("block:", "bedge:", "contradiction:", "frame:", "session:", "config:"), "blocks"),
    **dict.fromkeys(("episode:", "fact:", "rule:"), "episodes"),
    **dict.fromkeys(("profile:", "node:", "gedge:", "path:", "plan:", "event:", "audit:"), "graph"),
    **dict.fromkeys(("page:", "entry:"), "pages"),
}

#: A line that may hold a face's record: most lines need no closer look.
_MAYBE_OF_FACE = re.compile(
    rb'"id"\s*:\s*"(?:' + b"|".join(prefix.encode() for prefix in FACE_PREFIXES) + rb")"
)
_BATCH_ROWS = 5_000

#: In which order the faces travel: plain records first.
_RANKS: dict[str | None, int] = {None: 0} | {face: rank for rank, face in enumerate(FACES.values(), 1)}

#: (line in the file, the record)
_Row = tuple[int, dict[str, Any]]


def records_of(engine: Engine) -> Iterator[bytes]:
    """Yield every record as a line, in the order in which they came within each face."""
    records = engine.query(status=None, faces=True)
    records.sort(key=lambda record: _RANKS[_face_of(record.id)])
    for record in records:
        yield canonical_json(record.to_dict()) + b"\n"


def history_of(project_root: Path, report: VerifyReport) -> Iterator[bytes]:
    """Yield the committed lines of a log, byte for byte."""
    path = log_path(project_root)
    if not path.exists():
        return
    left = report.committed_end
    with path.open("rb") as log:
        for line in log:
            if left <= 0:
                return
            left -= len(line)
            yield line


def bring_records(store: ChronoStore, source: Path, progress: Progress | None) -> dict[str, int]:
    """Write every record of a file; say how many there were, and how many belong to faces."""
    with tempfile.TemporaryDirectory(prefix="chronomemory-") as folder:
        plain, faces = _sorted_out(source, Path(folder))
        brought = store.ingest(plain, progress=progress).records
    of_faces = 0
    for face in sorted(faces, key=_RANKS.__getitem__):
        rows = faces[face]
        for start in range(0, len(rows), _BATCH_ROWS):
            kept = brought + of_faces
            _write(store.engine, face, rows[start : start + _BATCH_ROWS], source.name, kept)
            of_faces += len(rows[start : start + _BATCH_ROWS])
    return {"records": brought + of_faces, "of_faces": of_faces}


def _sorted_out(source: Path, folder: Path) -> tuple[Path, dict[str, list[_Row]]]:
    """Part the plain lines from those of faces.

    The file of plain lines keeps its name and has blank lines in place of the others, so that
    the engine names a bad line as the person sees it.
    """
    faces: dict[str, list[_Row]] = {}
    plain = folder / source.name
    with source.open("rb") as lines, plain.open("wb") as rest:
        for number, line in enumerate(lines, 1):
            row = _face_row(line, number, source.name) if _MAYBE_OF_FACE.search(line) else None
            if row is None:
                rest.write(line)
            else:
                rest.write(b"\n")
                faces.setdefault(row[0], []).append((number, row[1]))
    return plain, faces


def _face_row(line: bytes, number: int, name: str) -> tuple[str, dict[str, Any]] | None:
    try:
        record = parse_json(line)
    except ValueError:
        return None  # the engine says what is wrong with it
    face = _face_of(record.get("id")) if isinstance(record, dict) else None
    if face is None:
        return None
    depth = record.get("recursion_depth", 0)
    if not isinstance(depth, int) or isinstance(depth, bool):
        raise InvalidRecord(f"{name} line {number}: recursion_depth: not an integer", field="recursion_depth")
    return face, record


def _face_of(record_id: object) -> str | None:
    return FACES.get(record_id.partition(":")[0] + ":") if isinstance(record_id, str) else None


def _write(engine: Engine, face: str, rows: list[_Row], name: str, kept: int) -> None:
    """Write rows as one batch; if one is refused, go row by row to find out which."""
    try:
        engine.write([change for _, record in rows for change in _changes(record)], face)
    except InvalidRecord as refusal:
        if len(rows) == 1:
            raise InvalidRecord(
                f"{name} line {rows[0][0]}: {refusal} ({kept} records before it were kept)",
                field=refusal.field,
                recovery="Correct the line and import again.",
            ) from None
        for at, row in enumerate(rows):
            _write(engine, face, [row], name, kept + at)


def _changes(record: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Say a face's record so that it keeps its depth, which an upsert would stamp over."""
    yield "upsert", record
    if record.get("recursion_depth", 0) != 0:
        yield "patch", (record["id"], {"recursion_depth": record["recursion_depth"]})


def bring_history(store: ChronoStore, source: Path, progress: Progress | None) -> dict[str, int]:
    """Take over a log byte for byte, once it is verified, where there is none yet."""
    here = log_path(store.project_root)
    if here.exists() and here.stat().st_size:
        raise RefusedError(
            "this project has a log already, and two histories cannot become one",
            recovery="Import into an empty project, or import records without --history.",
        )
    with tempfile.TemporaryDirectory(prefix="chronomemory-") as folder:
        staged = Path(folder)
        log_folder(staged).mkdir()
        shutil.copyfile(source, log_path(staged))
        report = ChronoStore(staged).verify(progress=progress)
        _refuse_damage(report, source.name)
        store.restore(staged)
    return {"events": report.events, "last_seq": report.last_seq}


def _refuse_damage(report: VerifyReport, name: str) -> None:
    if report.damage:
        first = report.damage[0]
        compacted = report.base in ("missing", "damaged", "unanchored")
        raise LogCorrupted(
            f"{name} line {first.line}, byte {first.offset}: {first.kind}: {first.reason}",
            path=name,
            offset=first.offset,
            seq=first.seq,
            damage=first.kind,
            recovery="A compacted log stands on files beside it: use backup and restore."
            if compacted
            else "Nothing was imported; export the history again from a log that verifies.",
        )
    if report.tail:
        raise RefusedError(
            f"{name} ends in the middle of a write: {report.tail}",
            recovery="Nothing was imported; export the history again.",
        )
    if not report.events:
        raise RefusedError(f"{name} holds no events", recovery="Did you mean import without --history?")
