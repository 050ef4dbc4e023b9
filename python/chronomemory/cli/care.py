"""The commands that keep a store small, safe and whole."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from chronomemory.cli.options import HERE, AsJson, Project
from chronomemory.cli.output import clean, counted, size, spelled
from chronomemory.cli.session import Session, session
from chronomemory.cli.tables import damage_table, pairs
from chronomemory.layout import log_path
from chronomemory.types import Damage
from chronomemory.upkeep import Pruned

__all__ = ["backup", "compact", "prune", "repair", "restore"]


def compact(
    drop_history: Annotated[
        bool, typer.Option("--drop-history", help="Forget the old events for good.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    project: Project = HERE,
    as_json: AsJson = False,
) -> None:
    """Start a short new log that commits to the old one.

    The first line of the new log names the state it starts from, and the old log, by their hashes. At a
    terminal --drop-history asks first: what is dropped cannot be looked at again, by history, why or --as-of.
    """
    with session(project, as_json) as here:
        if drop_history and not yes and sys.stdin.isatty():
            here.out.warn("the old events are dropped for good: no history, and nothing to look back at")
            typer.confirm("Drop them?", abort=True, err=True)
        before = _log_bytes(project)
        with here.out.progress("compacting") as progress:
            events = here.store.compact(keep_history=not drop_history, progress=progress)
        told = {"events": int(events), "bytes_before": before, "bytes_after": _log_bytes(project)}
        told |= {"folder_before": events.bytes_before, "folder_after": events.bytes_after}
        if as_json:
            here.out.document({**told, "history_kept": not drop_history})
        elif not events:
            here.out.done("nothing to compact")
        else:
            kept = "dropped" if drop_history else "kept in the archive, its hash in the new log"
            here.out.done(f"compacted {counted(events, 'event')} into one line")
            rows = {"log": f"{size(before)} → {size(told['bytes_after'])}"}
            rows["folder"] = f"{size(events.bytes_before)} → {size(events.bytes_after)}"
            here.out.show(pairs({**rows, "old events": kept}))


def backup(
    to: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Outside the project: the copy gets a folder there, verified."),
    ] = None,
    keep: Annotated[
        int | None, typer.Option(min=1, help="Of the copies in the same place, so many of the newest stay.")
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="Only say which copies there are.")] = False,
    forget: Annotated[
        list[Path] | None, typer.Option(help="Forget a copy outside that is gone for good.")
    ] = None,
    project: Project = HERE,
    as_json: AsJson = False,
) -> None:
    """Make a consistent copy, beside the log or elsewhere.

    A copy elsewhere is read again and verified before it has its name. The store remembers where it is: erase
    tells of it, and erasing there is up to you.
    """
    if (listed or forget) and (to is not None or keep is not None):
        raise typer.BadParameter("no copy is made with --list or --forget", param_hint="--to")
    with session(project, as_json) as here:
        if forget:
            gone = here.store.upkeep.forget_backups(*forget)
            if as_json:
                here.out.document({"forgotten": gone})
            else:
                here.out.done(f"forgot {counted(gone, 'backup')}")
            return
        if listed:
            _list_backups(here)
            return
        with here.out.progress("copying") as progress:
            made = here.store.backup(to=to, keep=keep, progress=progress)
        if as_json:
            here.out.document(
                {
                    "path": spelled(made),
                    "seq": made.seq,
                    "head": made.head,
                    "bytes": made.bytes,
                    "verified": made.verified,
                    "removed": [spelled(path) for path in made.removed],
                    "folder_before": made.bytes_before,
                    "folder_after": made.bytes_after,
                }
            )
        else:
            checked = ", verified" if made.verified else ""
            rows = {
                "copy": f"{size(made.bytes)}, up to event {made.seq:,}{checked}",
                "older copies removed": f"{len(made.removed):,}" if made.removed else "",
                "folder": f"{size(made.bytes_before)} → {size(made.bytes_after)}",
            }
            here.out.show(pairs({name: text for name, text in rows.items() if text}))
            here.out.done("backup made; bring it back with")
            here.out.console.print(f"  chronomemory restore {clean(made)}", soft_wrap=True)


def _list_backups(here: Session) -> None:
    copies = here.store.upkeep.backups()
    if here.out.as_json:
        for copy in copies:
            here.out.document(
                {
                    "path": spelled(copy.path),
                    "at": copy.at.isoformat(),
                    "seq": copy.seq,
                    "head": copy.head,
                    "bytes": copy.bytes,
                    "verified": copy.verified,
                    "there": copy.there,
                    "inside": copy.inside,
                }
            )
        return
    if not copies:
        here.out.done("no copies are known")
    for copy in copies:
        said = [f"event {copy.seq:,} {copy.head[:12]}", size(copy.bytes)] if copy.there else ["not there now"]
        said += ["verified"] if copy.verified else []
        here.out.show(f"{copy.at:%Y-%m-%d %H:%M}  {', '.join(said)}  {clean(copy.path)}")


def prune(
    days: Annotated[
        float | None,
        typer.Option("--older-than-days", min=0.0, help="Archives of logs that ended so long ago."),
    ] = None,
    keep_backups: Annotated[
        int | None, typer.Option(min=0, help="All backups but so many of the newest.")
    ] = None,
    reason: Annotated[str, typer.Option(help="Why; it stays in the log for ever.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    project: Project = HERE,
    as_json: AsJson = False,
) -> None:
    """Remove the oldest archives and backups, and say so for ever.

    Archives go oldest first, and only up to one that a base which is there stands behind: what is kept has no
    hole. What went cannot be looked at again, by history, why or --as-of. At a terminal it asks first.
    """
    if days is None and keep_backups is None:
        raise typer.BadParameter(
            "say what: --older-than-days or --keep-backups", param_hint="--older-than-days"
        )
    if days is not None and not reason:
        raise typer.BadParameter("say why: it stays in the log", param_hint="--reason")
    older_than = None if days is None else timedelta(days=days)

    with session(project, as_json) as here:

        def pruned(dry: bool) -> Pruned:
            return here.store.upkeep.prune(
                older_than=older_than, keep_backups=keep_backups, reason=reason, dry_run=dry
            )

        told = pruned(True)
        if not dry_run and (told.archives or told.backups):
            if not yes and sys.stdin.isatty():
                here.out.show(pairs(_pruned(told)))
                typer.confirm("Remove them for good?", abort=True, err=True)
            told = pruned(False)
        if as_json:
            here.out.document(
                {
                    "seq": told.seq,
                    "archives": list(told.archives),
                    "last_seq": told.last_seq,
                    "held": told.held,
                    "backups": list(told.backups),
                    "folder_before": told.bytes_before,
                    "folder_after": told.bytes_after,
                    "dry_run": told.dry_run,
                }
            )
        elif not told.archives and not told.backups:
            here.out.done("nothing to prune")
        else:
            here.out.done("this would go" if told.dry_run else "pruned")
            here.out.show(pairs(_pruned(told)))


def _pruned(told: Pruned) -> dict[str, str]:
    """Say what goes, row by row."""
    rows = {
        "archives": f"{len(told.archives):,}, up to event {told.last_seq:,}" if told.archives else "",
        "kept though old": f"{told.held:,}: no base behind them is there" if told.held else "",
        "backups": f"{len(told.backups):,}" if told.backups else "",
        "folder": f"{size(told.bytes_before)} → {size(told.bytes_after)}",
    }
    return {name: text for name, text in rows.items() if text}


def restore(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            exists=True,
            help="What backup made, or what repair or restore set aside; or a tail in quarantine.",
        ),
    ],
    damaged: Annotated[bool, typer.Option("--damaged", help="Bring a damaged copy back as it is.")] = False,
    bring_back: Annotated[
        bool, typer.Option("--bring-back", help="Bring back what was erased since, and say so for ever.")
    ] = False,
    project: Project = HERE,
    as_json: AsJson = False,
) -> None:
    """Go back to a backup, once it is verified.

    What is replaced is set aside in the store's quarantine folder, whole: restore takes it back.
    """
    with session(project, as_json) as here:
        with here.out.progress("restoring"):
            told = here.store.upkeep.restore(source, damaged=damaged, bring_back=bring_back)
        seq, records = here.store.wal_seq(), here.store.record_count()
        if as_json:
            repaired = {} if told is None else {"repaired": told}
            here.out.document({"path": spelled(source), "seq": seq, "records": records, **repaired})
        else:
            here.out.done(f"restored: {counted(records, 'active record')} as of event {seq:,}")
            if told is not None:
                here.out.show(pairs(_told(told)))


def repair(
    unproven: Annotated[
        bool, typer.Option("--unproven", help="Take what nothing proves, and mark it.")
    ] = False,
    project: Project = HERE,
    as_json: AsJson = False,
) -> None:
    """Bring back what something in the folder proves, and name the rest.

    What was damaged is set aside in the store's quarantine folder, and the first event of the new
    log says what was done.
    """
    with session(project, as_json) as here:
        told: dict[str, Any] = here.store.upkeep.repair(unproven=unproven)
        if as_json:
            here.out.document(told)
            return
        if not told["damage"]:
            here.out.done("nothing is damaged; nothing was done")
        else:
            here.out.show(damage_table(Damage(**item) for item in told["damage"]))
            here.out.done(f"a clean log starts from {counted(told['records'], 'record')}")
            here.out.show(pairs(_told(told)))
        for kept in told["quarantine"]:
            here.out.show(_kept(kept))


def _told(told: dict[str, Any]) -> dict[str, str]:
    """Say what a repair did, row by row; what does not apply is left out."""

    def some(names: list[str]) -> str:
        more = f" and {len(names) - 10:,} more" if len(names) > 10 else ""
        return ", ".join(clean(name) for name in names[:10]) + more

    kept = "kept" if told["history_kept"] else "set aside with the damaged log"
    rows = {
        "brought back": counted(told["healed"], "damaged place") if told["healed"] else "",
        "records changed": some(told["changed"]),
        "events lost": "\n".join(clean(event) for event in told["lost"][:10]),
        "on hold": some(told["unsettled"]),
        "unproven": some(told["unproven"]),
        "history": kept,
        "set aside": clean(told["kept"] or ""),
    }
    return {name: text for name, text in rows.items() if text}


def _kept(kept: dict[str, Any]) -> str:
    """Say what lies in quarantine beside whole stores."""
    path = clean(kept["path"])
    if kept["what"] == "synced":
        return f"{path} knows a log that was cut: it had {kept['offset']:,} bytes and event {kept['seq']:,}"
    way = (
        "restore takes it back, and sets aside what was written since"
        if kept["restorable"]
        else f"it cannot be restored: {kept['why']}"
    )
    return f"{path} holds {counted(kept['events'], 'whole event')} from {kept['first_seq']:,} on; {way}"


def _log_bytes(project: Path) -> int:
    path = log_path(project)
    return path.stat().st_size if path.exists() else 0
