"""The commands that explain a record and reinstate what a rollback changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from io import StringIO
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console, RenderableType
from rich.text import Text
from rich.tree import Tree
from typer import Argument, Option

from chronomemory.cli.options import Force, RecordId
from chronomemory.cli.output import clean
from chronomemory.cli.session import FINDING, NotFoundError, ScopedTarget, Target, end_in_doubt
from chronomemory.cli.tables import (
    change_table,
    confidence_text,
    rollback_text,
    status_text,
)
from chronomemory.cli.targets import check_target, write_target
from chronomemory.face.results import counted
from chronomemory.reasons import DEEPEST, LARGEST, Reason, Why
from chronomemory.record import ChronoRecord

AGAIN = {"circle": "↺ a circle: it stands on itself", "told": "told elsewhere in this tree"}


def reason_tree(tree: Why) -> Tree:
    top = Tree(_about(tree.root), guide_style="dim")
    waiting = [(tree.root, top)]
    while waiting:
        reason, branch = waiting.pop()
        for ground in reason.grounds:
            waiting.append((ground, branch.add(_about(ground))))
        if reason.left_out:
            branch.add(Text(f"and {counted(reason.left_out, 'more reason')} (--depth, --limit)", style="dim"))
    return top


def _about(reason: Reason) -> Text:
    text = Text()
    if reason.relation:
        text.append(f"{reason.relation}  ", "dim")
    record = reason.record
    if record is None:
        return text.append(clean(reason.record_id), "cyan" if reason.edge_id or not reason.relation else "")
    text.append(clean(reason.record_id), "bold cyan")
    if record.label:
        text.append(f"  {clean(record.label)}")
    if reason.again:
        return text.append(f"\n{AGAIN[reason.again]}", "yellow" if reason.again == "circle" else "dim")
    text.append("\n")
    text.append_text(status_text(record.status))
    text.append("  ")
    text.append_text(confidence_text(record.confidence))
    text.append(f"  {clean(record.kind)}, {when(reason)}", "dim")
    if record.in_doubt:
        text.append(f"\nin doubt: {record.in_doubt}", "yellow")
    for rollback in reason.rollbacks:
        text.append("\n✗ ", "red" if rollback.reinstated is None else "dim")
        text.append_text(rollback_text(rollback))
    return text


def when(reason: Reason) -> str:
    """Say which events made a record and spoke of it last, and which one drew the edge to it."""
    record = reason.record
    if record is None or record.created_seq is None:
        return "since a time that is not known"
    parts = [_event(record.created_seq, record.created_at)]
    known = [seq for each in reason.rollbacks for seq in (each.seq, each.reinstated_seq)]
    if record.updated_seq not in (record.created_seq, *known):
        parts.append(f"last {_event(record.updated_seq, record.updated_at)}")
    if reason.edge_seq is not None:
        parts.append(f"edge {reason.edge_seq:,}")
    return ", ".join(parts)


def _event(seq: int | None, at: datetime | None) -> str:
    moment = "" if at is None else f" of {at.astimezone(timezone.utc):%Y-%m-%d %H:%M}"
    return f"event {seq or 0:,}{moment}"


#: A page that loads and runs nothing; rich fills in the text and its colours.
_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Why is this believed?</title>
<main><pre style="white-space: pre-wrap">{code}</pre></main>
</html>
"""
_PAGE_COLUMNS = 160


def _show_tree(show: Callable[[RenderableType], object], tree: Why) -> None:
    show(reason_tree(tree))
    if tree.circles:
        show(Text(f"\nstands on itself: {', '.join(map(clean, tree.circles))}", style="dim"))


def why(
    record_id: RecordId,
    depth: Annotated[int, Option(metavar="N", min=1, max=DEEPEST, help="How far down.")] = 12,
    limit: Annotated[int, Option(metavar="N", min=1, max=LARGEST, help="How many at most.")] = 500,
    html: Annotated[Path | None, Option(metavar="FILE", help="Write a page for a browser instead.")] = None,
    force: Force = False,
    *,
    at: ScopedTarget,
) -> None:
    """Say why something is believed, or not any more.

    The tree shows evidence, edges, events and rollbacks; --depth and --limit cut it. The exit code is 3 if a
    record in it is in doubt: the log is damaged.
    """
    with at.open() as here:
        if html is not None:
            check_target(html, at.project, force=force)
        tree = here.door.why(record_id, depth=depth, limit=limit)
        if tree.root.record is None and not tree.root.grounds:
            raise NotFoundError(
                f"there is no record {record_id!r}, and no edge speaks of it", recovery="Check the id."
            )
        if html is not None:
            console = Console(record=True, file=StringIO(), width=_PAGE_COLUMNS, force_terminal=True)
            _show_tree(console.print, tree)
            page = console.export_html(code_format=_PAGE, inline_styles=True)
            write_target(html, [page.encode("utf-8", "replace")], at.project, force=force)
        if at.as_json:
            here.out.document(tree.to_dict())
        elif html is not None:
            here.out.done(f"drew {counted(tree.size, 'place')} into ", (clean(html), "cyan"))
        else:
            _show_tree(here.out.show, tree)
        end_in_doubt(here.out, _records_of(tree.root))


def _records_of(root: Reason) -> Iterator[ChronoRecord]:
    waiting = [root]
    while waiting:
        reason = waiting.pop()
        waiting += reason.grounds
        if reason.record is not None:
            yield reason.record


def reinstate(
    rollback_id: Annotated[str, Argument(metavar="ROLLBACK", help="The id of its report.")],
    reason: Annotated[str, Option(help="Why it holds after all.")],
    *,
    at: Target,
) -> None:
    """Take a rollback back: put back what it changed, as one atomic batch.

    What was written since is left alone and named. The exit code is 1 if nothing could be put back.
    """
    with at.open() as here:
        report = here.store.reinstate(rollback_id, reason)
        if at.as_json:
            here.out.document({**report.to_dict(), "seq": here.store.wal_seq()})
        else:
            if report.restored:
                here.out.show(change_table(report.restored))
                name = (clean(report.rollback_id), "cyan")
                back = f": {counted(len(report.restored), 'record')} put back in one atomic batch"
                here.out.done("took back ", name, back)
            for left in report.left:
                here.out.warn(f"{left.record_id} was left alone: {left.why}")
            if not report.restored:
                here.out.warn("nothing was written")
    if not report.restored:
        raise typer.Exit(FINDING)
