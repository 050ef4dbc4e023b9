"""The NDJSON format of export and import.

Records are written in canonical JSON in the order of their creation, with their times; a history is the log
itself. Embeddings and internal records travel only with backup and restore.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Container, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from chronomemory._core import canonical_json, parse_json
from chronomemory.blocks.ids import BLOCK, config_key
from chronomemory.blocks.survey import check_saying
from chronomemory.cli.session import RefusedError
from chronomemory.errors import InvalidArgument, InvalidRecord, LogCorrupted
from chronomemory.ingestion import lines_of
from chronomemory.layout import log_folder, log_path, unlinked
from chronomemory.record import OPERATION_KIND, ChronoRecord
from chronomemory.store import ChronoStore, Records
from chronomemory.types import Progress, VerifyReport

#: So many records are asked about together whose they are.
_LOOKED_AT_ONCE = 1_000
#: Ids that begin so are of this store alone: embeddings, erasures, settings, clocks and kept answers.
_INTERNAL = ("vector:", "search:", "erasure:", "pruned:", config_key(""))
#: What a line has in it that may be a setting or a frame, however it is spelled.
_OF_SAYINGS = (b"config:", b"frame:", b"\\u")
#: Kinds of damage that begin so are found in rows of embeddings, not in the log.
_OF_ROWS = "row-"


def records_of(store: Records, left_out: Container[str] = ()) -> Iterator[bytes]:
    """Yield every own record as a line, with its times, except those that an import would refuse."""
    for record in _own_records(store):
        if record.id not in left_out:
            times = {"created_at": record.created_at, "updated_at": record.updated_at}
            dates = {name: moment.isoformat() for name, moment in times.items() if moment is not None}
            yield canonical_json({**record.to_dict(), **dates}) + b"\n"


def events_of(store: Records) -> Iterator[bytes]:
    """Yield every event of the own records, in the order of the log."""
    lines = {
        parse_json(line)["seq"]: line
        for record in _own_records(store)
        for line in store.engine.history(record.id)
    }
    yield from (lines[seq] + b"\n" for seq in sorted(lines))


def _own_records(store: Records) -> Iterator[ChronoRecord]:
    engine = store.engine.with_expired()
    walk = store.stream(status=None, faces=True, expired=True)
    while some := list(islice(walk, _LOOKED_AT_ONCE)):
        owned = engine.are_own([record.id for record in some])
        for record, is_own in zip(some, owned, strict=True):
            is_internal = record.kind == OPERATION_KIND or record.id.startswith(_INTERNAL)
            if is_own and not is_internal:
                yield record


def embeddings_in(store: Records) -> int:
    """Count the embeddings, which do not travel as JSON."""
    return sum(space.living for space in store.vectors.spaces())


def history_of(project_root: Path, report: VerifyReport) -> Iterator[bytes]:
    """Yield the committed lines of a log, byte for byte."""
    path = log_path(project_root)
    if not path.exists():
        return
    left = report.committed_end
    with open(path, "rb", opener=unlinked(path.parent)) as log:
        for line in log:
            if left <= 0:
                return
            left -= len(line)
            yield line


def bring_records(store: ChronoStore, source: Path, progress: Progress | None) -> dict[str, int]:
    """Import the records of a file; count them, and the active blocks without an embedding."""
    _check_sayings(source)
    # What is brought back is whosever it was.
    report = store.engine.everyone().ingest(source, progress, faces=True)
    return {"records": report["records"], "blocks_without_embedding": _bare_blocks(store)}


def _check_sayings(source: Path) -> None:
    """Refuse frames and settings that their face would refuse; of shapes the engine knows."""
    with source.open("rb") as lines:
        for number, line in enumerate(lines_of(lines, source.name), 1):
            if not any(mark in line for mark in _OF_SAYINGS):
                continue
            try:
                _check_saying(parse_json(line.strip()))
            except InvalidArgument as error:
                raise InvalidRecord(
                    f"{source.name} line {number}, {error} (0 records before it were kept)",
                    field=error.field,
                    recovery="Correct the line, or leave it out; nothing was imported.",
                ) from None
            except ValueError:
                continue  # no JSON, or no line of ours: the engine says what is wrong with it


def _check_saying(record: Any) -> None:
    if not isinstance(record, dict) or record.get("status") == "tombstone":
        return
    name, data = record.get("id"), record.get("data")
    if not isinstance(name, str) or not isinstance(data, dict):
        return
    check_saying(name, data)


def _bare_blocks(store: ChronoStore) -> int:
    """Count the active blocks that name a space which has no row of theirs."""
    named = {
        record.id: record.data["space"]
        for record in store.engine.block_records(BLOCK, "active", None)
        if "space" in record.data
    }
    here = {space.name for space in store.vectors.spaces()} & set(named.values())
    embedded = {(name, space) for space in here for name in store.engine.matrix(space=space)[3]}
    return sum(item not in embedded for item in named.items())


def bring_history(store: ChronoStore, source: Path, progress: Progress | None) -> dict[str, int]:
    """Take over a log byte for byte, once it is verified, where there is none yet."""
    here = log_path(store.project_root)
    if here.exists() and here.stat().st_size:
        raise RefusedError(
            "this project has a log already, and two histories cannot become one",
            recovery="Import into an empty project, or import records without --history.",
        )
    # A log that is missed is not replaced by another: what lies around may be all that is left of it.
    if missed := store.verify().damage:
        raise LogCorrupted(
            f"{missed[0].path}: {missed[0].kind}: {missed[0].reason}",
            path=missed[0].path,
            seq=missed[0].seq,
            damage=missed[0].kind,
            recovery="Nothing was imported; repair or restore this project first.",
        )
    with tempfile.TemporaryDirectory(prefix="chronomemory-") as folder:
        staged = Path(folder)
        log_folder(staged).mkdir()
        shutil.copyfile(source, log_path(staged))
        report = ChronoStore(staged).verify(progress=progress)
        _refuse_damage(report, source.name)
        store.upkeep.restore(staged)
    return {"events": report.events, "last_seq": report.last_seq}


def _refuse_damage(report: VerifyReport, name: str) -> None:
    if report.damage and all(damage.kind.startswith(_OF_ROWS) for damage in report.damage):
        raise RefusedError(
            f"{name} names embeddings, and their rows lie in files beside the log",
            recovery="Use backup and restore, or import records without --history.",
        )
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
