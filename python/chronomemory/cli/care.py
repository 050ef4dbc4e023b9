"""Which commands keep a store small, safe and whole?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from chronomemory.cli.options import HERE, AsJson, Project
from chronomemory.cli.output import clean, counted, size, spelled
from chronomemory.cli.session import session
from chronomemory.cli.tables import damage_table, pairs
from chronomemory.layout import log_path
from chronomemory.types import Damage

__all__ = ["backup", "compact", "repair", "restore"]


def compact(
    drop_history: Annotated[
        bool, typer.Option("--drop-history", help="Forget the old events for good.")
    ] = False,
    project: Project = HERE,
    as_json: AsJson = False,
) -> None:
    """Start a short new log that commits to the old one.

    The first line of the new log names the state it starts from, and the old log, by their hashes.
    """
    with session(project, as_json) as here:
        before = _log_bytes(project)
        with here.out.progress("compacting") as progress:
            events = here.store.compact(keep_history=not drop_history, progress=progress)
        told = {"events": events, "bytes_before": before, "bytes_after": _log_bytes(project)}
        if as_json:
            here.out.document({**told, "history_kept": not drop_history})
        elif not events:
            here.out.done("nothing to compact")
        else:
            kept = "dropped" if drop_history else "kept in the archive, its hash in the new log"
            here.out.done(f"compacted {counted(events, 'event')} into one line")
            here.out.show(pairs({"log": f"{size(before)} → {size(told['bytes_after'])}", "old events": kept}))


def backup(project: Project = HERE, as_json: AsJson = False) -> None:
    """Make a consistent copy beside the log."""
    with session(project, as_json) as here:
        with here.out.progress("copying") as progress:
            folder = here.store.backup(progress=progress)
        if as_json:
            here.out.document({"path": spelled(folder)})
        else:
            here.out.done("backup made; bring it back with")
            here.out.console.print(f"  chronomemory restore {clean(folder)}", soft_wrap=True)


def restore(
    source: Annotated[
        Path, typer.Argument(metavar="FOLDER", exists=True, file_okay=False, help="What backup made.")
    ],
    project: Project = HERE,
    as_json: AsJson = False,
) -> None:
    """Go back to a backup, once it is verified.

    The log that is replaced is kept in the store's quarantine folder.
    """
    with session(project, as_json) as here:
        with here.out.progress("restoring"):
            here.store.restore(source)
        seq, records = here.store.wal_seq(), here.store.record_count()
        if as_json:
            here.out.document({"path": spelled(source), "seq": seq, "records": records})
        else:
            here.out.done(f"restored: {counted(records, 'active record')} as of event {seq:,}")


def repair(project: Project = HERE, as_json: AsJson = False) -> None:
    """Start a clean log from every good line of a damaged one.

    The damaged log is kept as it is in the store's quarantine folder, and the first event of the
    new one says what was damaged.
    """
    with session(project, as_json) as here:
        told: dict[str, Any] = here.store.repair()
        if as_json:
            here.out.document(told)
        elif not told["damage"]:
            here.out.done("nothing is damaged; nothing was done")
        else:
            here.out.show(damage_table(Damage(**item) for item in told["damage"]))
            here.out.done(f"a clean log starts from {counted(told['records'], 'record')} of every good line")
            here.out.show(pairs({"kept": clean(told["kept"])}))


def _log_bytes(project: Path) -> int:
    path = log_path(project)
    return path.stat().st_size if path.exists() else 0
