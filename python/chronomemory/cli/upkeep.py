"""The commands that compact, back up, prune, restore, repair, erase and sweep a store."""

from __future__ import annotations

import json
import sys
import unicodedata
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from typer import Argument, Option

from chronomemory._core import canonical_json, file_holds
from chronomemory.cli.options import DryRun, LogReason, Yes
from chronomemory.cli.output import clean, size, spelled
from chronomemory.cli.session import NotFoundError, ScopedTarget, Session, Target
from chronomemory.cli.tables import damage_table, pairs
from chronomemory.cli.targets import check_target, write_target
from chronomemory.erasure import Erased
from chronomemory.face.results import counted
from chronomemory.layout import log_folder, log_path
from chronomemory.scope import Scope
from chronomemory.types import Damage
from chronomemory.upkeep import Pruned


def compact(
    drop_history: Annotated[bool, Option("--drop-history", help="Drop the old events for good.")] = False,
    yes: Yes = False,
    *,
    at: Target,
) -> None:
    """Start a short new log that commits to the old one; at a terminal --drop-history asks first."""
    with at.open() as here:
        if drop_history and not yes and sys.stdin.isatty():
            here.out.warn("the old events are dropped for good: no history, and nothing to look back at")
            typer.confirm("Drop them?", abort=True, err=True)
        before = _log_bytes(at.project)
        with here.out.progress("compacting") as progress:
            events = here.store.compact(keep_history=not drop_history, progress=progress)
        after = _log_bytes(at.project)
        document = {"events": int(events), "bytes_before": before, "bytes_after": after}
        document |= {"folder_before": events.bytes_before, "folder_after": events.bytes_after}
        done = f"compacted {counted(events, 'event')} into one line" if events else "nothing to compact"
        here.out.answer({**document, "history_kept": not drop_history}, done)
        if events and not at.as_json:
            facts = {
                "log": f"{size(before)} → {size(after)}",
                "folder": f"{size(events.bytes_before)} → {size(events.bytes_after)}",
                "old events": "dropped" if drop_history else "kept in the archive, its hash in the new log",
            }
            here.out.show(pairs(facts))


def backup(
    to: Annotated[
        Path | None,
        Option(metavar="FOLDER", help="Outside the project: the copy gets a folder there, verified."),
    ] = None,
    keep: Annotated[
        int | None, Option(min=1, help="Of the copies in the same place, so many of the newest stay.")
    ] = None,
    listed: Annotated[bool, Option("--list", help="Only say which copies there are.")] = False,
    forget: Annotated[list[Path] | None, Option(help="Forget a copy outside that is gone for good.")] = None,
    *,
    at: Target,
) -> None:
    """Make a consistent copy, beside the log or elsewhere, where it is verified and remembered."""
    if (listed or forget) and (to is not None or keep is not None):
        raise typer.BadParameter("no copy is made with --list or --forget", param_hint="--to")
    with at.open() as here:
        if forget:
            gone = here.store.upkeep.forget_backups(*forget)
            here.out.answer({"forgotten": gone}, f"forgot {counted(gone, 'backup')}")
            return
        if listed:
            _list_backups(here)
            return
        with here.out.progress("copying") as progress:
            made = here.store.backup(to=to, keep=keep, progress=progress)
        if at.as_json:
            document = {name: getattr(made, name) for name in ("seq", "head", "bytes", "verified")}
            document |= {"folder_before": made.bytes_before, "folder_after": made.bytes_after}
            removed = [spelled(path) for path in made.removed]
            here.out.document({"path": spelled(made), **document, "removed": removed})
        else:
            checked = ", verified" if made.verified else ""
            facts = {
                "copy": f"{size(made.bytes)}, up to event {made.seq:,}{checked}",
                "older copies removed": f"{len(made.removed):,}" if made.removed else "",
                "folder": f"{size(made.bytes_before)} → {size(made.bytes_after)}",
            }
            here.out.show(pairs(facts))
            here.out.done("backup made; bring it back with")
            here.out.console.print(f"  chronomemory restore {clean(made)}", soft_wrap=True)


def _list_backups(here: Session) -> None:
    copies = here.store.upkeep.backups()
    if here.out.as_json:
        for copy in copies:
            here.out.document({**asdict(copy), "path": spelled(copy.path), "at": copy.at.isoformat()})
        return
    if not copies:
        here.out.done("no copies are known")
    for copy in copies:
        parts = (
            [f"event {copy.seq:,} {copy.head[:12]}", size(copy.bytes)] if copy.there else ["not there now"]
        )
        parts += ["verified"] if copy.verified else []
        here.out.show(f"{copy.at:%Y-%m-%d %H:%M}  {', '.join(parts)}  {clean(copy.path)}")


def prune(
    days: Annotated[
        float | None, Option("--older-than-days", min=0.0, help="Archives of logs that ended so long ago.")
    ] = None,
    keep_backups: Annotated[int | None, Option(min=0, help="All backups but so many of the newest.")] = None,
    reason: LogReason = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    *,
    at: Target,
) -> None:
    """Remove the oldest archives and backups for good, and record it; at a terminal it asks first."""
    if days is None and keep_backups is None:
        raise typer.BadParameter(
            "say what: --older-than-days or --keep-backups", param_hint="--older-than-days"
        )
    if days is not None and not reason:
        raise typer.BadParameter("say why: it stays in the log", param_hint="--reason")
    older_than = None if days is None else timedelta(days=days)

    with at.open() as here:

        def pruned(dry: bool) -> Pruned:
            return here.store.upkeep.prune(
                older_than=older_than, keep_backups=keep_backups, reason=reason, dry_run=dry
            )

        report = pruned(True)
        if not dry_run and (report.archives or report.backups):
            if not yes and sys.stdin.isatty():
                here.out.show(_prune_table(report))
                typer.confirm("Remove them for good?", abort=True, err=True)
            report = pruned(False)
        if at.as_json:
            document = {**asdict(report), "archives": list(report.archives), "backups": list(report.backups)}
            document["folder_before"] = document.pop("bytes_before")
            document["folder_after"] = document.pop("bytes_after")
            here.out.document(document)
        elif not report.archives and not report.backups:
            here.out.done("nothing to prune")
        else:
            here.out.done("this would go" if report.dry_run else "pruned")
            here.out.show(_prune_table(report))


def _prune_table(report: Pruned) -> Table:
    facts = {
        "archives": f"{len(report.archives):,}, up to event {report.last_seq:,}" if report.archives else "",
        "kept though old": f"{report.held:,}: no base behind them is there" if report.held else "",
        "backups": f"{len(report.backups):,}" if report.backups else "",
        "folder": f"{size(report.bytes_before)} → {size(report.bytes_after)}",
    }
    return pairs(facts)


def restore(
    source: Annotated[
        Path,
        Argument(
            metavar="FOLDER",
            exists=True,
            help="What backup made, or what repair or restore set aside; or a tail in quarantine.",
        ),
    ],
    damaged: Annotated[bool, Option("--damaged", help="Bring a damaged copy back as it is.")] = False,
    bring_back: Annotated[
        bool, Option("--bring-back", help="Bring back what was erased since, and say so for ever.")
    ] = False,
    *,
    at: Target,
) -> None:
    """Go back to a backup, once it is verified; what is replaced goes to the quarantine folder."""
    with at.open() as here:
        with here.out.progress("restoring"):
            report = here.store.upkeep.restore(source, damaged=damaged, bring_back=bring_back)
        seq, records = here.store.wal_seq(), here.store.record_count()
        repaired = {} if report is None else {"repaired": report}
        here.out.answer(
            {"path": spelled(source), "seq": seq, "records": records, **repaired},
            f"restored: {counted(records, 'active record')} as of event {seq:,}",
        )
        if report is not None and not at.as_json:
            here.out.show(_repair_table(report))


def repair(
    unproven: Annotated[bool, Option("--unproven", help="Take what nothing proves, and mark it.")] = False,
    *,
    at: Target,
) -> None:
    """Bring back what something in the folder proves, name the rest, and set the damaged bytes aside."""
    with at.open() as here:
        report: dict[str, Any] = here.store.upkeep.repair(unproven=unproven)
        if at.as_json:
            here.out.document(report)
            return
        if not report["damage"]:
            here.out.done("nothing is damaged; nothing was done")
        else:
            here.out.show(damage_table(Damage(**item) for item in report["damage"]))
            here.out.done(f"a clean log starts from {counted(report['records'], 'record')}")
            here.out.show(_repair_table(report))
        for kept in report["quarantine"]:
            here.out.show(_quarantined(kept))


def _repair_table(report: dict[str, Any]) -> Table:

    def some(names: list[str]) -> str:
        more = f" and {len(names) - 10:,} more" if len(names) > 10 else ""
        return ", ".join(clean(name) for name in names[:10]) + more

    facts = {
        "brought back": counted(report["healed"], "damaged place") if report["healed"] else "",
        "records changed": some(report["changed"]),
        "events lost": "\n".join(clean(event) for event in report["lost"][:10]),
        "on hold": some(report["unsettled"]),
        "unproven": some(report["unproven"]),
        "history": "kept" if report["history_kept"] else "set aside with the damaged log",
        "set aside": clean(report["kept"] or ""),
    }
    return pairs(facts)


def _quarantined(kept: dict[str, Any]) -> str:
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


def erase(
    ids: Annotated[list[str] | None, Argument(help="The records.", show_default=False)] = None,
    user: Annotated[str | None, Option(help="All that carries this user, or ever did.")] = None,
    agent: Annotated[str | None, Option(help="The same for an agent; with --user, both.")] = None,
    session_: Annotated[str | None, Option("--session", help="The same for a session.")] = None,
    reason: LogReason = "",
    drop_history: Annotated[
        bool, Option("--drop-history", help="Keep no history at all, of any record.")
    ] = False,
    derived: Annotated[bool, Option("--derived", help="Facts that rest on an episode go too.")] = False,
    backup: Annotated[bool, Option(help="If backups went with it, make one new, and verify it.")] = True,
    check: Annotated[
        str | None, Option(help="Only look where a text is left; - reads it from stdin.")
    ] = None,
    dry_run: DryRun = False,
    certificate: Annotated[
        Path | None,
        Option(metavar="FILE", dir_okay=False, help="Write what was done to a new file, as JSON."),
    ] = None,
    with_ids: Annotated[
        bool, Option("--with-ids", help="Let that file name the records and who was asked for.")
    ] = False,
    yes: Yes = False,
    *,
    at: Target,
) -> None:
    """Erase records from the log and from all of its past, after showing what would go and asking.

    The exit code is 1 if nothing matches. With --check nothing is erased: every byte of the folder is
    searched for a text, and the exit code is 1 if it is there.
    """
    with at.open() as here:
        if check is not None:
            found = _places(log_folder(at.project), sys.stdin.read().strip() if check == "-" else check)
            if at.as_json or not found:
                here.out.answer({"found": found}, "not found in any byte of the folder")
            for place in [] if at.as_json else found:
                here.out.warn(f"found in {clean(place)}")
            raise typer.Exit(1 if found else 0)
        if not reason and not dry_run:
            raise typer.BadParameter("say why: it stays in the log", param_hint="--reason")
        given = {"user": user, "agent": agent, "session": session_}
        scope = {level: name for level, name in given.items() if name is not None} or None
        if (scope is None) == (not ids):
            raise typer.BadParameter("name records, or a --user, --agent or --session", param_hint="IDS")
        order: dict[str, Any] = {"ids": ids or None, "scope": scope, "reason": reason, "derived": derived}
        order |= {"history": "drop" if drop_history else "redact", "backup": backup}
        if certificate is not None:
            check_target(certificate, at.project, force=False)
        report = here.store.erase(**order, dry_run=True)
        matched = bool(report.lines or report.replaced or report.backups or report.quarantine)
        for name in set(ids or ()) - set(report.ids) if matched else ():
            here.out.warn(f"nothing was ever written for {name!r}")
        if matched and not (yes or dry_run):
            here.out.show(_table(report))
            if not sys.stdin.isatty():
                raise typer.BadParameter("nobody to ask: give --yes", param_hint="--yes")
            typer.confirm("Erase them for good?", abort=True, err=True)
        if not matched:
            report = replace(report, dry_run=dry_run)
        elif not dry_run:
            with here.out.progress("erasing") as progress:
                report = here.store.erase(**order, progress=progress)
        if at.as_json:
            here.out.document(report.to_dict())
        elif report.seq is not None:
            here.out.done(f"erased {counted(len(report.ids), 'record')}; event {report.seq} tells of it")
        if not at.as_json and (matched or report.unread):
            here.out.show(_table(report))
        if certificate is not None and report.seq is not None:
            write_target(
                certificate, [canonical_json(report.to_dict(ids=with_ids)) + b"\n"], at.project, force=False
            )
        if report.backup_fault is not None:
            here.out.warn(f"no new backup could be made: {clean(report.backup_fault)}")
        if not matched:
            names = ", ".join(map(repr, ids)) if ids else str(Scope.of(**(scope or {})))
            raise NotFoundError(
                f"nothing was ever written for {names}, or it was erased before",
                recovery="Check the name; nothing was erased.",
            )


def _table(report: Erased) -> Table:
    counts = {
        "records": len(report.ids),
        "belonging to them": len(report.belonging),
        "speaking of them, and staying": len(report.mentions),
        "lines": report.lines,
        "of them without salt": report.unsalted,
        "files of the past": report.replaced,
        "backups that go": len(report.backups),
        "quarantined that go": len(report.quarantine),
    }
    places = {
        "cannot be read to the end, and stays; remove it if it may hold it": report.unread,
        "copies elsewhere that hold it; erasing there is up to you": report.copies,
        "copies that are not there now, and may hold it": report.missing_copies,
        "files of pages that go": report.removed_files,
        "files of pages that hold it; take it out before the next sync": report.page_files,
        "new backup, verified": [] if report.new_backup is None else [report.new_backup],
    }
    facts = {name: str(count) for name, count in counts.items()}
    return pairs(facts | {name: "\n".join(map(clean, listed)) for name, listed in places.items()})


def _places(folder: Path, text: str) -> list[str]:
    """Return the files whose bytes or names hold a text, in any spelling of JSON, normal form and case."""
    if not text:
        raise typer.BadParameter("an empty text is everywhere", param_hint="--check")
    forms = {unicodedata.normalize(form, text) for form in ("NFC", "NFD")}
    forms |= {change(form) for form in forms for change in (str.lower, str.upper, str.title)}
    spelled = set[bytes]()
    for form in forms:
        for quoted in (json.dumps(form)[1:-1], json.dumps(form, ensure_ascii=False)[1:-1], form):
            spelled |= {quoted.encode().lower(), quoted.replace("/", "\\/").encode().lower()}
    found = []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        is_named = any(form.lower() in name.lower() for form in forms)
        if path.is_file() and not path.is_symlink() and (is_named or file_holds(path, sorted(spelled))):
            found.append(name)
    return found


_SHOWN = 20


def sweep(
    erase: Annotated[
        bool, Option("--erase", help="Erase them, from all of the past too, in one erasure.")
    ] = False,
    reason: LogReason = "expired",
    backup: Annotated[
        bool, Option(help="If backups went with what was erased, make one new, and verify it.")
    ] = True,
    dry_run: DryRun = False,
    yes: Yes = False,
    *,
    at: ScopedTarget,
) -> None:
    """Delete the records whose data.expires_at is over, or erase them; with --erase it asks at a terminal."""
    with at.open() as here:
        report = here.door.sweep(erase=erase, reason=reason, dry_run=True)
        if report.ids and not dry_run:
            if erase and not yes and sys.stdin.isatty():
                here.out.warn(f"{counted(len(report.ids), 'record')} go for good, with all of their past")
                typer.confirm("Erase them?", abort=True, err=True)
            report = here.door.sweep(erase=erase, reason=reason, backup=backup)
        if at.as_json:
            gone = report.erased
            document = {"erased": gone and gone.seq, "new_backup": gone and gone.new_backup}
            document["backup_fault"] = gone and gone.backup_fault
            here.out.document({"ids": list(report.ids), **document, "dry_run": dry_run})
        elif not report.ids:
            here.out.done("nothing has expired")
        else:
            verb = f"{'would be ' if dry_run else ''}{'erased' if erase else 'deleted'}"
            here.out.done(f"{counted(len(report.ids), 'record')} {verb}")
            for name in report.ids[:_SHOWN]:
                here.out.show(f"  {clean(name)}")
            if len(report.ids) > _SHOWN:
                here.out.show(f"  and {len(report.ids) - _SHOWN:,} more")
            if report.erased is not None and report.erased.backup_fault is not None:
                here.out.warn(f"no new backup could be made: {clean(report.erased.backup_fault)}")
