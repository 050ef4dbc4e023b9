"""The commands that import and export records as NDJSON; embeddings travel only with backup and restore."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from chronomemory._core import canonical_json, parse_json
from chronomemory.blocks.ids import BLOCK, config_key
from chronomemory.blocks.survey import check_saying, unusable
from chronomemory.cli.options import STDIN, Force
from chronomemory.cli.output import clean, size, spelled
from chronomemory.cli.session import FINDING, RefusedError, ScopedTarget, Target
from chronomemory.cli.tables import pairs
from chronomemory.cli.targets import check_target, write_target
from chronomemory.errors import InvalidArgument, InvalidRecord, LogCorrupted
from chronomemory.face.results import counted
from chronomemory.ingestion import lines_of
from chronomemory.layout import log_folder, log_path, unlinked
from chronomemory.record import OPERATION_KIND, ChronoRecord
from chronomemory.store import ChronoStore, Records
from chronomemory.types import Progress, VerifyReport

_ERRORS_SHOWN = 20
_GO_ON = (
    "Run the same command again: a record with an id replaces itself. "
    "A line without an id would be loaded twice: remove the loaded lines from the file first."
)


def _readable(paths: Path | list[Path]) -> Path | list[Path]:
    for path in paths if isinstance(paths, list) else [paths]:
        if path != STDIN and (path.is_dir() or not path.exists()):
            raise typer.BadParameter(f"{path} is not a file that can be read")
    return paths


def ingest(
    files: Annotated[list[Path], Argument(metavar="FILE…", callback=_readable, help="NDJSON; - is stdin.")],
    skip: Annotated[bool, Option("--skip", help="Leave bad lines out, and name them.")] = False,
    *,
    at: ScopedTarget,
) -> None:
    """Load plain records in bulk from NDJSON, one object a line, in atomic batches.

    A bad line ends the load, and earlier batches stay; with --skip bad lines are left out, and the exit code
    is 1.
    """
    with at.open() as here, ExitStack() as spools:
        sources = [spools.enter_context(_on_disk(path)) for path in files]
        before = here.store.wal_seq()
        try:
            with here.out.progress("loading") as progress:
                report = here.door.ingest(sources, on_error="skip" if skip else "raise", progress=progress)
        except KeyboardInterrupt:
            last = here.store.wal_seq()
            kept = f"events {before + 1:,} to {last:,} are kept" if last > before else "nothing was loaded"
            here.out.fail(f"interrupted: {kept}", _GO_ON, "Interrupted")
            raise
        for error in report.errors[:_ERRORS_SHOWN]:
            here.out.warn(f"left out: {error}")
        if report.skipped > _ERRORS_SHOWN:
            here.out.warn(f"and {counted(report.skipped - _ERRORS_SHOWN, 'line')} more left out")
        here.out.answer(
            {**report.to_dict(), "files": [spelled(path) for path in files]},
            f"loaded {counted(report.records, 'record')} from {size(report.bytes)}",
        )
        if report.records and not at.as_json:
            here.out.show(pairs({"events": f"seq {report.first_seq:,} to {report.last_seq:,}"}))
    if report.skipped:
        raise typer.Exit(FINDING)


def import_(
    file: Annotated[
        Path, Argument(metavar="FILE", callback=_readable, help="What export wrote; - is stdin.")
    ],
    history: Annotated[bool, Option("--history", help="FILE is a log: take it over byte for byte.")] = False,
    *,
    at: Target,
) -> None:
    """Bring back what export wrote; records replace those with the same id, embeddings are not among them.

    With --history a verified log is taken over, into a project that has none.
    """
    with at.open() as here, _on_disk(file) as source:
        with here.out.progress("importing") as progress:
            if history:
                report = bring_history(here.store, source, progress)
            else:
                report = bring_records(here.store, source, progress)
        if bare := report.get("blocks_without_embedding"):
            here.out.warn(
                f"{counted(bare, 'active block')} without embedding here, found by words alone: embeddings "
                "do not travel as JSON; backup and restore carry them, update_block_scoring() gives new ones"
            )
        if history:
            done = f"took over {counted(report['events'], 'event')}; the log is byte for byte the same"
        else:
            done = f"imported {counted(report['records'], 'record')}"
        here.out.answer({"history": history, **report}, done)


def export(
    file: Annotated[
        Path, Argument(metavar="FILE", dir_okay=False, allow_dash=True, help="Where to; - is stdout.")
    ] = STDIN,
    history: Annotated[
        bool, Option("--history", help="The log's events as they are, instead of records.")
    ] = False,
    force: Force = False,
    *,
    at: ScopedTarget,
) -> None:
    """Write all records as NDJSON: every kind, status and face, with the times of creation and last change.

    With names only theirs, and with --history their events; with --history alone the log, for import
    --history. Settings and embeddings need backup and restore. The exit code is 1 if the log is damaged.
    """
    with at.open() as here:
        is_log = history and not at.names
        if file != STDIN:
            check_target(file, at.project, force=force)
        with here.out.progress("reading") as progress:
            report = here.store.verify(progress=progress) if is_log else _findings(here.store)
        if not report.valid:
            here.out.warn("the chain is invalid: what is exported is what the good lines say")
        if is_log and report.base != "none":
            here.out.warn(
                "the log was compacted: it stands on files beside it and cannot be imported alone; "
                "backup and restore carry everything"
            )
        door = here.store.everyone() if here.door is here.store else here.door
        embeddings = sum(space.living for space in door.vectors.spaces())
        if embeddings and is_log:
            here.out.warn(
                f"the log names {counted(embeddings, 'embedding')}, whose rows lie in files beside it: "
                "it cannot be imported alone; backup and restore carry everything"
            )
        elif embeddings:
            here.out.warn(
                f"{counted(embeddings, 'embedding')} left out: they do not travel as JSON; "
                "backup and restore carry them"
            )
        misfits = [] if history else unusable(door)
        for name, field, reason in misfits:
            here.out.warn(f"{name} left out: an import would refuse it: {field}: {reason}")
        if is_log:
            lines = history_of(here.store.project_root, report)
        else:
            here.warn_unknown_scope()
            lines = events_of(door) if history else records_of(door, {name for name, _, _ in misfits})
        total = report.events if history else len(door)
        if file == STDIN:
            with here.out.progress("exporting", beside_answer=True) as progress:
                blocks = _followed(lines, total, progress)
                here.out.bytes(line for block in blocks for line in block.splitlines())
        else:
            with here.out.progress("exporting") as progress:
                count, written = write_target(
                    file, _followed(lines, total, progress), at.project, force=force
                )
            what = counted(count, "event" if history else "record")
            document = {"path": spelled(file), "lines": count, "bytes": written}
            here.out.answer(document, f"wrote {what}, {size(written)}, to ", (clean(file), "cyan"))
    if not report.valid:
        raise typer.Exit(FINDING)


def migrate(
    folder: Annotated[
        Path | None,
        Argument(metavar="FOLDER", exists=True, file_okay=False, help="Default: .specsmith in the project."),
    ] = None,
    *,
    at: Target,
) -> None:
    """Bring in requirements.json and testcases.json; a second run changes nothing."""
    with at.open() as here:
        source = folder or at.project / ".specsmith"
        if not source.is_dir():
            raise RefusedError(
                f"there is no folder {source}", recovery="Name the folder with the JSON files."
            )
        counts = here.store.migrate_from_json(source)
        requirements = counted(counts["requirements"], "requirement")
        testcases = counted(counts["testcases"], "test case")
        here.out.answer(counts, f"{requirements} and {testcases} came in, {counts['skipped']:,} skipped")


def _followed(blocks: Iterator[bytes], total: int, progress: Progress | None) -> Iterator[bytes]:
    """Yield blocks of lines, and report the progress every thousand lines."""
    count = shown = 0
    for block in blocks:
        if progress is not None and (count == 0 or count - shown >= _LINES_AT_ONCE):
            progress(count, total)
            shown = count
        count += block.count(b"\n")
        yield block


@contextmanager
def _on_disk(path: Path) -> Iterator[Path]:
    """Give a file that can be read more than once: what comes through a pipe is put down first."""
    if path != STDIN and path.is_file():
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="chronomemory-") as folder:
        spooled = Path(folder) / ("stdin" if path == STDIN else path.name)
        with spooled.open("wb") as target:
            if path == STDIN:
                shutil.copyfileobj(sys.stdin.buffer, target)
            else:
                with path.open("rb") as source:
                    shutil.copyfileobj(source, target)
        yield spooled


_LINES_AT_ONCE = 1_000
#: Ids that begin so are of this store alone: embeddings, erasures, settings, clocks and kept answers.
_INTERNAL = ("vector:", "search:", "erasure:", "pruned:", config_key(""))
#: What a line has in it that may be a setting or a frame, however it is spelled.
_OF_SAYINGS = (b"config:", b"frame:", b"\\u")
#: Kinds of damage that begin so are found in rows of embeddings, not in the log.
_OF_ROWS = "row-"


def _findings(store: ChronoStore) -> VerifyReport:
    """Verify the log and its base; archives and derived files are not read."""
    store.engine.upkeep.verify_opened()
    return VerifyReport.from_dict(store.engine.upkeep.findings())


def records_of(store: Records, left_out: Iterable[str] = ()) -> Iterator[bytes]:
    """Yield the own records as blocks of lines, with their times, except those that an import refuses."""
    walk = store.stream(status=None, faces=True, expired=True)
    lines = partial(walk.lines_without, ids=list(left_out), kind=OPERATION_KIND, prefixes=_INTERNAL)
    yield from iter(lambda: lines(_LINES_AT_ONCE, line_of=_line_of), None)


def events_of(store: Records) -> Iterator[bytes]:
    """Yield every event of the own records, in the order of the log."""
    lines = {
        parse_json(line)["seq"]: line
        for block in records_of(store)
        for record in block.splitlines()
        for line in store.engine.history(parse_json(record)["id"])
    }
    yield from (lines[seq] + b"\n" for seq in sorted(lines))


def _line_of(record: ChronoRecord) -> bytes:
    times = {"created_at": record.created_at, "updated_at": record.updated_at}
    dates = {name: moment.isoformat() for name, moment in times.items() if moment is not None}
    return canonical_json({**record.to_dict(), **dates}) + b"\n"


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
    # Frames and settings that their face would refuse are refused here; the engine knows the shapes.
    with source.open("rb") as lines:
        for number, line in enumerate(lines_of(lines, source.name), 1):
            if not any(mark in line for mark in _OF_SAYINGS):
                continue
            try:
                match parse_json(line.strip()):
                    case {"id": str(name), "data": dict(data), **rest} if rest.get("status") != "tombstone":
                        check_saying(name, data)
            except InvalidArgument as error:
                raise InvalidRecord(
                    f"{source.name} line {number}, {error} (0 records before it were kept)",
                    field=error.field,
                    recovery="Correct the line, or leave it out; nothing was imported.",
                ) from None
            except ValueError:
                continue  # no JSON, or no line of ours: the engine says what is wrong with it
    report = store.engine.unscoped().ingest(source, progress, faces=True)
    named = {
        record.id: record.data["space"]
        for record in store.engine.blocks.records(BLOCK, "active", None)
        if "space" in record.data
    }
    here = {space.name for space in store.vectors.spaces()} & set(named.values())
    embedded = {(name, space) for space in here for name in store.engine.vectors.matrix(space=space)[3]}
    bare = sum(item not in embedded for item in named.items())
    return {"records": report["records"], "blocks_without_embedding": bare}


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
        name, first = source.name, next(iter(report.damage), None)
        if first is not None and all(damage.kind.startswith(_OF_ROWS) for damage in report.damage):
            raise RefusedError(
                f"{name} names embeddings, and their rows lie in files beside the log",
                recovery="Use backup and restore, or import records without --history.",
            )
        if first is not None:
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
        store.upkeep.restore(staged)
    return {"events": report.events, "last_seq": report.last_seq}
