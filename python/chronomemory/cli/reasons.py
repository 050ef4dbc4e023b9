"""The commands that explain a record and reinstate what a rollback changed."""

from __future__ import annotations

from datetime import datetime, timezone
from html import escape
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text
from rich.tree import Tree

from chronomemory.cli.options import RecordId, text
from chronomemory.cli.output import Output, clean, counted
from chronomemory.cli.session import FINDING, NotFoundError, ScopedTarget, Target
from chronomemory.cli.tables import (
    change_table,
    confidence_step,
    confidence_text,
    moment_text,
    status_step,
    status_text,
)
from chronomemory.cli.targets import check_target, write_target
from chronomemory.reasons import DEEPEST, LARGEST, Reason, Why
from chronomemory.rollback import ReinstateReport, Rollback

#: What is said where a tree does not go on.
AGAIN = {"circle": "↺ a circle: it stands on itself", "told": "told elsewhere in this tree"}


def reason_tree(tree: Why) -> Tree:
    """Return the grounds of a record as a tree, with events and rollbacks."""
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
        text.append("\n")
        text.append_text(_fell(rollback))
    return text


def _fell(rollback: Rollback) -> Text:
    """Describe a rollback in a line."""
    stands, change = rollback.reinstated is None, rollback.change
    text = Text.assemble(
        ("✗ ", "red" if stands else "dim"),
        f"“{clean(rollback.reason)}”  ",
        status_step(change.previous_status, change.new_status),
        "  ",
        confidence_step(change.previous_confidence, change.new_confidence),
        (f"  {clean(rollback.rollback_id)}{_event(rollback.seq, rollback.at)}", "dim"),
    )
    if not stands:
        text.append(f"\n↩ “{clean(rollback.reinstated)}”", "green")
        text.append(f"  taken back{_event(rollback.reinstated_seq)}", "dim")
    return text


def when(reason: Reason) -> str:
    """Say which events made a record and spoke of it last, and which one drew the edge to it."""
    record = reason.record
    if record is None or record.created_seq is None:
        return "since a time that is not known"
    parts = [_event(record.created_seq, record.created_at).removeprefix(", ")]
    known = [seq for each in reason.rollbacks for seq in (each.seq, each.reinstated_seq)]
    # A change made by a rollback is shown with the rollback.
    if record.updated_seq not in (record.created_seq, *known):
        parts.append("last" + _event(record.updated_seq, record.updated_at).removeprefix(","))
    if reason.edge_seq is not None:
        parts.append(f"edge {reason.edge_seq:,}")
    return ", ".join(parts)


def _event(seq: int | None, at: datetime | None = None) -> str:
    if seq is None:
        return ""
    moment = "" if at is None else f" of {at.astimezone(timezone.utc):%Y-%m-%d %H:%M}"
    return f", event {seq:,}{moment}"


_PAGE = "reasons_page.html"
#: The statuses that have a colour of their own.
_COLOURED = frozenset({"active", "hypothesis", "invalidated"})


def reasons_page(tree: Why) -> str:
    """Return the page: self-contained, and what records say can do nothing in it."""
    page = resources.files("chronomemory.cli").joinpath(_PAGE).read_text(encoding="utf-8")
    notes = [f"{tree.size:,} places"]
    if tree.circles:
        notes.append("stands on itself: " + ", ".join(map(_safe, tree.circles)))
    if tree.left_out:
        notes.append(f"{tree.left_out:,} more left out")
    parts = {
        "__NAME__": _safe(tree.root.record_id),
        "__NOTES__": " · ".join(notes),
        "__TREE__": _place(tree.root),
    }
    # In one walk: what stands in a record must not be taken for a place of the page.
    made, rest = [], page
    for mark in parts:
        before, rest = rest.split(mark, 1)
        made += [before, parts[mark]]
    return "".join((*made, rest))


def _safe(value: object) -> str:
    return f"<bdi>{escape(clean(value))}</bdi>"


def _place(reason: Reason) -> str:
    record = reason.record
    relation = f'<span class="how">{escape(reason.relation)}</span> ' if reason.relation else ""
    if record is None:
        return f'<div class="word">{relation}{_safe(reason.record_id)}</div>'
    status = record.status if record.status in _COLOURED else "other"
    lines = [
        f'{relation}<b>{_safe(reason.record_id)}</b> <span class="label">{_safe(record.label)}</span>',
        f'<span class="status {status}">{_safe(record.status)}</span> {_confidence(record.confidence)} '
        f'<span class="when">{_safe(record.kind)} · {escape(when(reason))}</span>',
    ]
    if reason.again:
        lines.append(f'<span class="{reason.again}">{escape(AGAIN[reason.again])}</span>')
    lines += [_rollback(rollback) for rollback in reason.rollbacks]
    head = "<br>".join(lines)
    below = "".join(f"<li>{_place(ground)}</li>" for ground in reason.grounds)
    if reason.left_out:
        below += f'<li class="when">and {reason.left_out:,} more</li>'
    if not below:
        return f'<div class="place">{head}</div>'
    return f'<details open><summary class="place">{head}</summary><ul>{below}</ul></details>'


def _confidence(value: object) -> str:
    if not isinstance(value, int | float):
        return _safe(value)
    return f'<meter min="0" max="1" value="{value:.4f}"></meter> {value:.2f}'


def _rollback(rollback: Rollback) -> str:
    change = rollback.change
    html = (
        f'<span class="fell">✗ {_safe(rollback.rollback_id)}</span> “{_safe(rollback.reason)}” '
        f'<span class="when">{_safe(change.previous_status)} → {_safe(change.new_status)}, '
        f"{change.previous_confidence:.2f} → {change.new_confidence:.2f}"
    )
    if rollback.seq is not None:
        html += f" · event {rollback.seq:,}, {escape(moment_text(rollback.at))}"
    html += "</span>"
    if rollback.reinstated is not None:
        html += f'<br><span class="back">↩ taken back: “{_safe(rollback.reinstated)}”</span>'
    return html


def why(
    record_id: RecordId,
    depth: Annotated[int, typer.Option(metavar="N", min=1, max=DEEPEST, help="How far down.")] = 12,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=LARGEST, help="How many at most.")] = 500,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page for a browser instead.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the page if it is there.")] = False,
    *,
    at: ScopedTarget,
) -> None:
    """Say why something is believed, or not any more.

    A tree: what the record stands on by its evidence and its edges, and so on down, with the events that
    made each, and the rollbacks that touched it. A circle is named, and what --depth and --limit leave out
    is counted.
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
            write_target(html, [reasons_page(tree).encode("utf-8", "replace")], at.project, force=force)
        if at.as_json:
            here.out.document(tree.to_dict())
        elif html is not None:
            here.out.done(f"drew {counted(tree.size, 'place')} into ", (clean(html), "cyan"))
        else:
            _tell(here.out, tree)


def _tell(out: Output, tree: Why) -> None:
    out.show(reason_tree(tree))
    if tree.circles:
        out.show("")
        out.hint(f"stands on itself: {', '.join(map(clean, tree.circles))}")


def reinstate(
    rollback_id: Annotated[
        str, typer.Argument(metavar="ROLLBACK", callback=text, help="The id of its report.")
    ],
    reason: Annotated[str, typer.Option(help="Why it holds after all.")],
    *,
    at: Target,
) -> None:
    """Take a rollback back: put back what it changed.

    What was written since is left alone and named. All of it is one atomic batch, and the report of the
    rollback keeps who was put back, and why. The exit code is 1 if nothing could be put back.
    """
    with at.open() as here:
        report = here.store.reinstate(rollback_id, reason)
        if at.as_json:
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
