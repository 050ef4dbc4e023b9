"""Draws a tree of reasons for a person at a terminal."""

from __future__ import annotations

from datetime import datetime, timezone

from rich.text import Text
from rich.tree import Tree

from chronomemory.cli.output import clean, counted
from chronomemory.cli.tables import confidence_step, confidence_text, status_step, status_text
from chronomemory.reasons import Reason, Why
from chronomemory.rollback import Rollback

__all__ = ["AGAIN", "reason_tree", "when"]

#: What is said where a tree does not go on.
AGAIN = {"circle": "↺ a circle: it stands on itself", "told": "told elsewhere in this tree"}


def reason_tree(told: Why) -> Tree:
    """Draw what a belief stands on, each place with its events and the rollbacks that touched it."""
    top = Tree(_about(told.root), guide_style="dim")
    waiting = [(told.root, top)]
    while waiting:
        reason, branch = waiting.pop()
        for ground in reason.grounds:
            waiting.append((ground, branch.add(_about(ground))))
        if reason.left_out:
            branch.add(Text(f"and {counted(reason.left_out, 'more reason')} (--depth, --limit)", style="dim"))
    return top


def _about(reason: Reason) -> Text:
    said = Text()
    if reason.relation:
        said.append(f"{reason.relation}  ", "dim")
    record = reason.record
    if record is None:
        return said.append(clean(reason.record_id), "cyan" if reason.edge_id or not reason.relation else "")
    said.append(clean(reason.record_id), "bold cyan")
    if record.label:
        said.append(f"  {clean(record.label)}")
    if reason.again:
        return said.append(f"\n{AGAIN[reason.again]}", "yellow" if reason.again == "circle" else "dim")
    said.append("\n")
    said.append_text(status_text(record.status))
    said.append("  ")
    said.append_text(confidence_text(record.confidence))
    said.append(f"  {clean(record.kind)}, {when(reason)}", "dim")
    if record.in_doubt:
        said.append(f"\nin doubt: {record.in_doubt}", "yellow")
    for rollback in reason.rollbacks:
        said.append("\n")
        said.append_text(_fell(rollback))
    return said


def _fell(told: Rollback) -> Text:
    """Say in a line what a rollback did, why, and by which events."""
    stands, change = told.reinstated is None, told.change
    said = Text.assemble(
        ("✗ ", "red" if stands else "dim"),
        f"“{clean(told.reason)}”  ",
        status_step(change.previous_status, change.new_status),
        "  ",
        confidence_step(change.previous_confidence, change.new_confidence),
        (f"  {clean(told.rollback_id)}{_event(told.seq, told.at)}", "dim"),
    )
    if not stands:
        said.append(f"\n↩ “{clean(told.reinstated)}”", "green")
        said.append(f"  taken back{_event(told.reinstated_seq)}", "dim")
    return said


def when(reason: Reason) -> str:
    """Say which events made a record and spoke of it last, and which one drew the edge to it."""
    record = reason.record
    if record is None or record.created_seq is None:
        return "since a time that is not known"
    parts = [_event(record.created_seq, record.created_at).removeprefix(", ")]
    told = [seq for each in reason.rollbacks for seq in (each.seq, each.reinstated_seq)]
    # A change that a rollback made is told where the rollback is.
    if record.updated_seq not in (record.created_seq, *told):
        parts.append("last" + _event(record.updated_seq, record.updated_at).removeprefix(","))
    if reason.edge_seq is not None:
        parts.append(f"edge {reason.edge_seq:,}")
    return ", ".join(parts)


def _event(seq: int | None, at: datetime | None = None) -> str:
    if seq is None:
        return ""
    moment = "" if at is None else f" of {at.astimezone(timezone.utc):%Y-%m-%d %H:%M}"
    return f", event {seq:,}{moment}"
