"""The commands that say why something is believed, and give back what was withdrawn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from chronomemory.cli.options import (
    HERE,
    AgentName,
    AsJson,
    OfEveryone,
    Project,
    RecordId,
    SessionName,
    UserName,
    text,
)
from chronomemory.cli.output import Output, clean, counted
from chronomemory.cli.reasons_page import reasons_page
from chronomemory.cli.session import FINDING, NotFoundError, Whose, session
from chronomemory.cli.tables import change_table
from chronomemory.cli.targets import check_target, write_target
from chronomemory.cli.trees import reason_tree
from chronomemory.reasons import DEEPEST, LARGEST, Why
from chronomemory.rollback import ReinstateReport

__all__ = ["reinstate", "why"]


def why(
    record_id: RecordId,
    depth: Annotated[int, typer.Option(metavar="N", min=1, max=DEEPEST, help="How far down.")] = 12,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=LARGEST, help="How many at most.")] = 500,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page for a browser instead.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the page if it is there.")] = False,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    everyone: OfEveryone = False,
    project: Project = HERE,
    as_json: AsJson = False,
) -> None:
    """Say why something is believed, or not any more.

    A tree: what the record stands on by its evidence and its edges, and so on down, with the events that
    made each, and the rollbacks that touched it. A circle is named, and what --depth and --limit leave out
    is counted.
    """
    with session(project, as_json, whose=Whose(user, agent, in_session, everyone)) as here:
        if html is not None:
            check_target(html, project, force=force)
        told = here.door.why(record_id, depth=depth, limit=limit)
        if told.root.record is None and not told.root.grounds:
            raise NotFoundError(
                f"there is no record {record_id!r}, and no edge speaks of it", recovery="Check the id."
            )
        if html is not None:
            write_target(html, [reasons_page(told).encode("utf-8", "replace")], project, force=force)
        if as_json:
            here.out.document(told.to_dict())
        elif html is not None:
            here.out.done(f"drew {counted(told.size, 'place')} into ", (clean(html), "cyan"))
        else:
            _tell(here.out, told)


def _tell(out: Output, told: Why) -> None:
    out.show(reason_tree(told))
    if told.circles:
        out.show("")
        out.hint(f"stands on itself: {', '.join(map(clean, told.circles))}")


def reinstate(
    rollback_id: Annotated[
        str, typer.Argument(metavar="ROLLBACK", callback=text, help="The id of its report.")
    ],
    reason: Annotated[str, typer.Option(help="Why it holds after all.")],
    project: Project = HERE,
    as_json: AsJson = False,
) -> None:
    """Take a rollback back: put back what it changed.

    What was written since is left alone and named. All of it is one atomic batch, and the report of the
    rollback keeps who was put back, and why. The exit code is 1 if nothing could be put back.
    """
    with session(project, as_json) as here:
        report = here.store.reinstate(rollback_id, reason)
        if as_json:
            here.out.document({**report.to_dict(), "seq": here.store.wal_seq()})
        else:
            _tell_of(here.out, report)
    if not report.restored:
        raise typer.Exit(FINDING)


def _tell_of(out: Output, report: ReinstateReport) -> None:
    if report.restored:
        out.show(change_table(report.restored))
        out.done(
            "took back ",
            (clean(report.rollback_id), "cyan"),
            f": {counted(len(report.restored), 'record')} put back in one atomic batch",
        )
    for left in report.left:
        out.warn(f"{left.record_id} was left alone: {left.why}")
    if not report.restored:
        out.warn("nothing was written")
