"""The command that takes away what has expired."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from chronomemory.cli.options import HERE, AgentName, AsJson, OfEveryone, Project, SessionName, UserName
from chronomemory.cli.output import clean, counted
from chronomemory.cli.session import Whose, session

__all__ = ["sweep"]

#: So many ids are shown to people.
_SHOWN = 20


def sweep(
    erase: Annotated[
        bool, typer.Option("--erase", help="Erase them, from all of the past too, in one erasure.")
    ] = False,
    reason: Annotated[
        str, typer.Option(help="Why they are erased; it stays in the log for ever.")
    ] = "expired",
    backup: Annotated[
        bool, typer.Option(help="If backups went with what was erased, make one new, and verify it.")
    ] = True,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what has expired.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    everyone: OfEveryone = False,
    project: Project = HERE,
    as_json: AsJson = False,
) -> None:
    """Delete the records whose data.expires_at is over, or erase them.

    Answers leave them out already. Deleted ones keep their past; with --erase nobody can read them any more,
    and at a terminal it asks first. It is of what all share, or of the names that are given, or with
    --everyone of all.
    """
    with session(project, as_json, whose=Whose(user, agent, in_session, everyone)) as here:
        told = here.door.sweep(erase=erase, reason=reason, dry_run=True)
        if told.ids and not dry_run:
            if erase and not yes and sys.stdin.isatty():
                here.out.warn(f"{counted(len(told.ids), 'record')} go for good, with all of their past")
                typer.confirm("Erase them?", abort=True, err=True)
            told = here.door.sweep(erase=erase, reason=reason, backup=backup)
        if as_json:
            gone = told.erased
            here.out.document(
                {
                    "ids": list(told.ids),
                    "erased": None if gone is None else gone.seq,
                    "new_backup": None if gone is None else gone.new_backup,
                    "backup_fault": None if gone is None else gone.backup_fault,
                    "dry_run": dry_run,
                }
            )
        elif not told.ids:
            here.out.done("nothing has expired")
        else:
            verb = "erased" if erase else "deleted"
            said = f"{counted(len(told.ids), 'record')} {'would be ' if dry_run else ''}{verb}"
            here.out.done(said)
            for name in told.ids[:_SHOWN]:
                here.out.show(f"  {clean(name)}")
            if len(told.ids) > _SHOWN:
                here.out.show(f"  and {len(told.ids) - _SHOWN:,} more")
            if told.erased is not None and told.erased.backup_fault is not None:
                here.out.warn(f"no new backup could be made: {clean(told.erased.backup_fault)}")
