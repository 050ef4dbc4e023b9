"""Shows records, events and findings as tables that fit the terminal; in a pipe nothing is cut."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.highlighter import JSONHighlighter
from rich.table import Column, Table
from rich.text import Text

from chronomemory.cli.output import clean
from chronomemory.event import WalEvent
from chronomemory.record import RAG_CONFIDENCE, ChronoRecord
from chronomemory.rollback import RecordStatusChange, Rollback
from chronomemory.types import Damage

_STATUS_STYLES = {
    "active": "green",
    "hypothesis": "yellow",
    "invalidated": "red",
    "deprecated": "dim",
    "tombstone": "dim",
}
_OP_STYLES = {"upsert": "green", "migrate": "green", "patch": "cyan", "act": "cyan", "delete": "red"}
_ID_COLUMNS = 26
_WORD_COLUMNS = 14
GAP = 3
_LEAST_LABEL = 12
_HASH_SHOWN = 12


def table(*headers: str, right: Sequence[str] = (), rows: Iterable[Iterable[str | Text]] = ()) -> Table:
    """Return a table; ids wrap and stay whole, the last column is cut."""
    made = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False)
    for name in headers:
        numeric = name in right
        made.add_column(name, justify="right" if numeric else "left", overflow="fold", no_wrap=numeric)
    for row in rows:
        made.add_row(*row)
    return made


def pairs(facts: Mapping[str, str | Text]) -> Table:
    made = Table.grid(padding=(0, 2))
    made.add_column(style="dim", no_wrap=True)
    made.add_column(overflow="fold")
    for name, value in facts.items():
        if str(value):
            made.add_row(name, value)
    return made


def status_text(status: object) -> Text:
    return Text(clean(status), style=_STATUS_STYLES.get(str(status), "magenta"))


def in_doubt_text(record: ChronoRecord) -> Text:
    """Mark a record of which later changes may be missing."""
    return Text("in doubt " if record.in_doubt else "", style="yellow")


def confidence_text(value: object, digits: int | None = 2) -> Text:
    """Colour a confidence: green may reach a prompt, red is nearly given up."""
    if not isinstance(value, int | float):
        return Text(clean(value), style="magenta")
    style = "green" if value >= RAG_CONFIDENCE else "yellow" if value >= RAG_CONFIDENCE / 2 else "red"
    return Text(repr(value) if digits is None else f"{value:.{digits}f}", style=style)


def status_step(before: object, now: object) -> Text:
    return Text.assemble(status_text(before), " → ", status_text(now))


def confidence_step(before: object, now: object) -> Text:
    """Show a confidence before and after, or once where it stayed."""
    if before == now:
        return confidence_text(now)
    return Text.assemble(confidence_text(before), " → ", confidence_text(now))


def record_table(records: Sequence[ChronoRecord], width: int) -> Table:
    """List records, one a line: labels are cut to the width, long ids wrap and stay whole."""
    made = table("id", "kind", "status", "conf", "label", right=("conf",))
    used = len("conf") + 2 * GAP
    for column, texts in (
        (made.columns[1], [record.kind for record in records]),
        (made.columns[2], [f"{in_doubt_text(record)}{record.status}" for record in records]),
    ):
        column.width = min(_longest([str(column.header), *texts]), max(_WORD_COLUMNS, width // 6))
        used += column.width + GAP
    room = fit_ids(made.columns[0], [record.id for record in records], width - used)
    for record in records:
        label = Text(clean(record.label), no_wrap=True)
        label.truncate(room, overflow="ellipsis")
        made.add_row(
            Text(clean(record.id), style="cyan"),
            clean(record.kind),
            Text.assemble(in_doubt_text(record), status_text(record.status)),
            confidence_text(record.confidence),
            label,
        )
    return made


def fit_ids(column: Column, ids: Sequence[str], width: int) -> int:
    """Divide a width between ids and labels; return the width of a label."""
    column.width = min(_longest(["id", *ids]), max(width - _LEAST_LABEL, _ID_COLUMNS))
    return max(width - column.width, _LEAST_LABEL)


def _longest(texts: Iterable[object]) -> int:
    return max(cell_len(clean(text)) for text in texts)


def record_card(record: ChronoRecord, touched: Sequence[Rollback] = ()) -> Table:
    facts: dict[str, str | Text] = {
        "id": Text(clean(record.id), style="bold cyan"),
        "label": Text(clean(record.label), style="bold"),
        "kind": clean(record.kind),
        "status": Text.assemble(in_doubt_text(record), status_text(record.status)),
        "confidence": confidence_text(record.confidence, digits=None),
        "source": clean(record.source_type) + (" (a hypothesis)" if record.is_hypothesis else ""),
        "evidence": _items(record.evidence),
        "boundary": _items(record.epistemic_boundary),
        "assumptions": _json(record.model_assumptions),
        "depth": clean(record.recursion_depth) if record.recursion_depth else "",
        "data": _json(record.data),
        "created": moment_text(record.created_at),
        "updated": moment_text(record.updated_at),
        "version": record.version or "",
        "rollback": Text("\n").join(rollback_text(each) for each in touched),
    }
    return pairs(facts)


def moment_text(then: datetime | None) -> str:
    return "" if then is None else then.isoformat(sep=" ", timespec="seconds")


def rollback_text(rollback: Rollback) -> Text:
    """Say which rollback touched a record, why, when, and whether it was taken back."""
    change = rollback.change
    when = "" if rollback.seq is None else f", event {rollback.seq:,}, {moment_text(rollback.at)}"
    text = Text.assemble(
        (clean(rollback.rollback_id), "cyan"),
        (when, "dim"),
        "\n“",
        clean(rollback.reason),
        "”  ",
        status_step(change.previous_status, change.new_status),
        "  ",
        confidence_step(change.previous_confidence, change.new_confidence),
    )
    if rollback.reinstated is not None:
        by = "" if rollback.reinstated_seq is None else f" with event {rollback.reinstated_seq:,}"
        text.append(f"\ntaken back{by}: “{clean(rollback.reinstated)}”", "green")
    return text


def event_table(events: Iterable[WalEvent]) -> Table:
    made = table("seq", "time (UTC)", "op", "record", "hash", right=("seq",))
    for event in events:
        made.add_row(
            clean(event.seq),
            Text(time_text(event.ts), style="dim"),
            op_text(event.op),
            Text(clean(event.record_id), style="cyan"),
            Text(clean(event.hash)[:_HASH_SHOWN], style="dim"),
        )
    return made


def damage_table(damage: Iterable[Damage]) -> Table:
    made = table("file", "line", "byte", "seq", "kind", "why", right=("line", "byte", "seq"))
    for item in damage:
        made.add_row(
            clean(item.path),
            f"{item.line:,}",
            f"{item.offset:,}",
            "" if item.seq is None else f"{item.seq:,}",
            Text(clean(item.kind), style="bold red"),
            clean(item.reason if item.id is None else f'{item.reason}: id "{item.id}"'),
        )
    return made


def change_table(changes: Iterable[RecordStatusChange]) -> Table:
    made = table("record", "status", "confidence")
    for change in changes:
        made.add_row(
            Text(clean(change.record_id), style="cyan"),
            status_step(change.previous_status, change.new_status),
            confidence_step(change.previous_confidence, change.new_confidence),
        )
    return made


def kind_table(kinds: Mapping[str, Mapping[str, int]]) -> Table:
    statuses = list(dict.fromkeys(status for counts in kinds.values() for status in counts))
    statuses.sort(key=lambda status: (status != "active", status))
    made = table("kind", *map(clean, statuses), right=tuple(map(clean, statuses)))
    for kind, counts in kinds.items():
        numbers = (f"{counts[status]:,}" if status in counts else "" for status in statuses)
        made.add_row(clean(kind), *numbers)
    return made


def _items(values: Any) -> Text:
    listed = values if isinstance(values, list) else [values]
    return Text("\n".join(f"• {clean(value)}" for value in listed))


def _json(value: Any) -> Text:
    if not value:
        return Text()
    spelled = clean(json.dumps(value, indent=2, ensure_ascii=False), keep="\n")
    return JSONHighlighter()(spelled)


def op_text(op: str) -> Text:
    return Text(clean(op), style=_OP_STYLES.get(op, "magenta"))


def time_text(ts: object) -> str:
    return clean(ts)[:19].replace("T", " ")
