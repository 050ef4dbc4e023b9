"""A tree of reasons as one page that needs nothing but a browser, and no script."""

from __future__ import annotations

from html import escape
from importlib import resources

from chronomemory.cli.output import clean
from chronomemory.cli.tables import moment_text
from chronomemory.cli.trees import AGAIN, when
from chronomemory.reasons import Reason, Why
from chronomemory.rollback import Rollback

__all__ = ["reasons_page"]

_PAGE = "reasons_page.html"
#: The statuses that have a colour of their own.
_COLOURED = frozenset({"active", "hypothesis", "invalidated"})


def reasons_page(told: Why) -> str:
    """Return the page: self-contained, and what records say can do nothing in it."""
    page = resources.files("chronomemory.cli").joinpath(_PAGE).read_text(encoding="utf-8")
    notes = [f"{told.size:,} places"]
    if told.circles:
        notes.append("stands on itself: " + ", ".join(map(_safe, told.circles)))
    if told.left_out:
        notes.append(f"{told.left_out:,} more left out")
    parts = {
        "__NAME__": _safe(told.root.record_id),
        "__NOTES__": " · ".join(notes),
        "__TREE__": _place(told.root),
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


def _rollback(told: Rollback) -> str:
    change = told.change
    said = (
        f'<span class="fell">✗ {_safe(told.rollback_id)}</span> “{_safe(told.reason)}” '
        f'<span class="when">{_safe(change.previous_status)} → {_safe(change.new_status)}, '
        f"{change.previous_confidence:.2f} → {change.new_confidence:.2f}"
    )
    if told.seq is not None:
        said += f" · event {told.seq:,}, {escape(moment_text(told.at))}"
    said += "</span>"
    if told.reinstated is not None:
        said += f'<br><span class="back">↩ taken back: “{_safe(told.reinstated)}”</span>'
    return said
