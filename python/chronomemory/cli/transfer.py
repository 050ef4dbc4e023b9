"""The commands that import and export records."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from chronomemory.blocks.survey import unusable
from chronomemory.cli.archive_format import (
    bring_history,
    bring_records,
    embeddings_in,
    events_of,
    history_of,
    records_of,
)
from chronomemory.cli.options import STDIN, InputFile, InputFiles
from chronomemory.cli.output import clean, counted, size, spelled
from chronomemory.cli.session import FINDING, RefusedError, ScopedTarget, Target
from chronomemory.cli.tables import pairs
from chronomemory.cli.targets import check_target, write_target
from chronomemory.types import Progress

#: How many lines that were left out are named.
_ERRORS_SHOWN = 20
_GO_ON = (
    "Run the same command again: a record with an id replaces itself. "
    "A line without an id would be loaded twice: remove the loaded lines from the file first."
)


def ingest(
    files: InputFiles,
    skip: Annotated[bool, typer.Option("--skip", help="Leave bad lines out, and name them.")] = False,
    *,
    at: ScopedTarget,
) -> None:
    """Load plain records in bulk from NDJSON, one object a line.

    Lines go in as a row of atomic batches. A bad line ends the load: what came before its batch
    stays, and the message names the line. With --skip bad lines are left out, and the exit code is 1.
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
    file: InputFile,
    history: Annotated[
        bool, typer.Option("--history", help="FILE is a log: take it over byte for byte.")
    ] = False,
    *,
    at: Target,
) -> None:
    """Bring back what export wrote, with nothing lost.

    Records replace those with the same id; embeddings are not among them, and it is said how many active
    blocks have none here. With --history the log
    itself is taken over, after it was verified, and only into a project that has none.
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
        Path, typer.Argument(metavar="FILE", dir_okay=False, allow_dash=True, help="Where to; - is stdout.")
    ] = STDIN,
    history: Annotated[
        bool, typer.Option("--history", help="The log's events as they are, instead of records.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
    *,
    at: ScopedTarget,
) -> None:
    """Write all records as NDJSON: every kind, status and face, with the times of creation and last change.

    They are those of everyone; with names, those that are theirs, and nothing wider. With names and --history
    these are the events of their records, each with its time; with --history alone it is the log, which
    import --history takes over. Settings, clocks, kept answers and embeddings are the store's own and do not
    travel as JSON: use backup and restore. What the blocks face
    cannot use is left out and named, since an import would refuse it. A damaged log is
    exported as far as it can be read, and the exit code is 1.
    """
    with at.open() as here:
        is_log = history and not at.names
        if file != STDIN:
            check_target(file, at.project, force=force)
        with here.out.progress("reading") as progress:
            report = here.store.verify(progress=progress)
        if not report.valid:
            here.out.warn("the chain is invalid: what is exported is what the good lines say")
        if is_log and report.base != "none":
            here.out.warn(
                "the log was compacted: it stands on files beside it and cannot be imported alone; "
                "backup and restore carry everything"
            )
        door = here.store.everyone() if here.door is here.store else here.door
        embeddings = embeddings_in(door)
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
                here.out.bytes(line.rstrip(b"\n") for line in _followed(lines, total, progress))
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
        typer.Argument(
            metavar="FOLDER", exists=True, file_okay=False, help="Default: .specsmith in the project."
        ),
    ] = None,
    *,
    at: Target,
) -> None:
    """Bring in requirements.json and testcases.json.

    What is there with the same id, label and status is skipped, and what was deleted or rolled
    back since: a second run changes nothing.
    """
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


def _followed(lines: Iterator[bytes], total: int, progress: Progress | None) -> Iterator[bytes]:
    for count, line in enumerate(lines):
        if progress is not None and count % 1_000 == 0:
            progress(count, total)
        yield line


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
