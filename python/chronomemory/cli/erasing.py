"""The command that erases records, and looks whether a text is left."""

from __future__ import annotations

import json
import sys
import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from chronomemory._core import canonical_json, file_holds
from chronomemory.cli.options import HERE, AsJson, Project
from chronomemory.cli.output import clean, counted
from chronomemory.cli.session import NotFoundError, session
from chronomemory.cli.tables import pairs
from chronomemory.cli.targets import check_target, write_target
from chronomemory.erasure import Erased
from chronomemory.layout import log_folder
from chronomemory.scope import Scope

__all__ = ["erase"]


def erase(
    ids: Annotated[list[str] | None, typer.Argument(help="The records.", show_default=False)] = None,
    user: Annotated[str | None, typer.Option(help="All that carries this user, or ever did.")] = None,
    agent: Annotated[str | None, typer.Option(help="The same for an agent; with --user, both.")] = None,
    session_: Annotated[str | None, typer.Option("--session", help="The same for a session.")] = None,
    reason: Annotated[str, typer.Option(help="Why; it stays in the log for ever.")] = "",
    drop_history: Annotated[
        bool, typer.Option("--drop-history", help="Keep no history at all, of any record.")
    ] = False,
    derived: Annotated[bool, typer.Option("--derived", help="Facts that rest on an episode go too.")] = False,
    backup: Annotated[
        bool, typer.Option(help="If backups went with it, make one new, and verify it.")
    ] = True,
    check: Annotated[
        str | None, typer.Option(help="Only look where a text is left; - reads it from stdin.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    certificate: Annotated[
        Path | None,
        typer.Option(metavar="FILE", dir_okay=False, help="Write what was done to a new file, as JSON."),
    ] = None,
    with_ids: Annotated[
        bool, typer.Option("--with-ids", help="Let that file name the records and who was asked for.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    project: Project = HERE,
    as_json: AsJson = False,
) -> None:
    """Erase records from the log and from all of its past.

    First it is told what would go; then it asks, unless --yes is given. The exit code is 1 if nothing
    matches. With --json the certificate is printed, ids included; --certificate writes it to a file. With
    --check nothing is erased: every byte of the folder is looked through for a text, and the
    exit code is 1 if it is there.
    """
    with session(project, as_json) as here:
        if check is not None:
            found = _places(log_folder(project), sys.stdin.read().strip() if check == "-" else check)
            if as_json:
                here.out.document({"found": found})
            for place in [] if as_json else found:
                here.out.warn(f"found in {clean(place)}")
            if not as_json and not found:
                here.out.done("not found in any byte of the folder")
            raise typer.Exit(1 if found else 0)
        if not reason:
            raise typer.BadParameter("say why: it stays in the log", param_hint="--reason")
        given = {"user": user, "agent": agent, "session": session_}
        scope = {level: name for level, name in given.items() if name is not None} or None
        if (scope is None) == (not ids):
            raise typer.BadParameter("name records, or a --user, --agent or --session", param_hint="IDS")
        order: dict[str, Any] = {"ids": ids or None, "scope": scope, "reason": reason, "derived": derived}
        order |= {"history": "drop" if drop_history else "redact", "backup": backup}
        if certificate is not None:
            check_target(certificate, project, force=False)
        told = here.store.erase(**order, dry_run=True)
        matched = bool(told.lines or told.replaced or told.backups or told.quarantine)
        for name in set(ids or ()) - set(told.ids) if matched else ():
            here.out.warn(f"nothing was ever written for {name!r}")
        if matched and not (yes or dry_run):
            here.out.show(_table(told))
            if not sys.stdin.isatty():
                raise typer.BadParameter("nobody to ask: give --yes", param_hint="--yes")
            typer.confirm("Erase them for good?", abort=True, err=True)
        if not matched:
            told = replace(told, dry_run=dry_run)
        elif not dry_run:
            with here.out.progress("erasing") as progress:
                told = here.store.erase(**order, progress=progress)
        if as_json:
            here.out.document(told.to_dict())
        elif told.seq is not None:
            here.out.done(f"erased {counted(len(told.ids), 'record')}; event {told.seq} tells of it")
        if not as_json and (matched or told.unread):
            here.out.show(_table(told))
        if certificate is not None and told.seq is not None:
            write_target(
                certificate, [canonical_json(told.to_dict(ids=with_ids)) + b"\n"], project, force=False
            )
        if told.backup_fault is not None:
            here.out.warn(f"no new backup could be made: {clean(told.backup_fault)}")
        if not matched:
            names = ", ".join(map(repr, ids)) if ids else str(Scope.of(**(scope or {})))
            raise NotFoundError(
                f"nothing was ever written for {names}, or it was erased before",
                recovery="Check the name; nothing was erased.",
            )


_UNREAD = "cannot be read to the end, and stays; remove it if it may hold it"


def _table(told: Erased) -> Table:
    said = {
        "records": str(len(told.ids)),
        "belonging to them": str(len(told.belonging)),
        "speaking of them, and staying": str(len(told.mentions)),
        "lines": str(told.lines),
        "of them without salt": str(told.unsalted),
        "files of the past": str(told.replaced),
        "backups that go": str(len(told.backups)),
        "quarantined that go": str(len(told.quarantine)),
    }
    if told.unread:
        said[_UNREAD] = "\n".join(map(clean, told.unread))
    if told.copies:
        said["copies elsewhere that hold it; erasing there is up to you"] = "\n".join(map(clean, told.copies))
    if told.missing_copies:
        said["copies that are not there now, and may hold it"] = "\n".join(map(clean, told.missing_copies))
    if told.removed_files:
        said["files of pages that go"] = "\n".join(map(clean, told.removed_files))
    if told.page_files:
        said["files of pages that hold it; take it out before the next sync"] = "\n".join(
            map(clean, told.page_files)
        )
    if told.new_backup is not None:
        said["new backup, verified"] = clean(told.new_backup)
    return pairs(said)


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
