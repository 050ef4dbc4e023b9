"""The commands that show the events of a record and of the log."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from chronomemory._core import WalEvent
from chronomemory.blocks.life.outcomes import in_words
from chronomemory.cli.options import MAX_SEQ, RecordId
from chronomemory.cli.output import clean
from chronomemory.cli.session import NotFoundError, ScopedTarget, Target
from chronomemory.cli.tables import event_table, op_text, table, time_text
from chronomemory.errors import HistoryUnavailable
from chronomemory.face.batch import merged
from chronomemory.record import is_same
from chronomemory.rollback import Rollback

#: Default number of events in a table; JSON has no limit.
_ROWS_SHOWN = 50
#: Events that say everything of a record.
_WHOLE = frozenset({"upsert", "migrate"})


def history(record_id: RecordId, *, at: ScopedTarget) -> None:
    """Tell the life of one record; with --json its events."""
    with at.open() as here:
        lines = here.door.engine.history(record_id)
        if not lines:
            record = here.door.get(record_id)
            if record is None:
                here.warn_unknown_scope()
                raise NotFoundError(f"there is no record {record_id!r}", recovery="Check the id.")
            since = (
                "" if record.updated_seq is None else f"; event {record.updated_seq:,} was the last of them"
            )
            raise HistoryUnavailable(
                f"the events of {record_id!r} were dropped by a compaction{since}",
                recovery="get shows the record as it is; a backup from before may have its events.",
            )
        if at.as_json:
            here.out.lines(lines)
        else:
            here.out.show(_history_table(_events_of(lines), record_id, here.door.rollbacks(record_id)))


def replay(
    from_seq: Annotated[int, typer.Option(min=0, max=MAX_SEQ, help="Begin here.")] = 0,
    limit: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=MAX_SEQ, help=f"At most so many; a table shows {_ROWS_SHOWN}."),
    ] = None,
    *,
    at: Target,
) -> None:
    """List the events of the log; with --json its lines as they are."""
    with at.open() as here:
        lines = here.store.engine.replay(from_seq)
        if at.as_json:
            here.out.lines(lines[:limit])
        elif not lines:
            here.out.show("no such events")
        else:
            shown = limit or _ROWS_SHOWN
            here.out.show(event_table(_events_of(lines[:shown])))
            if len(lines) > shown:
                here.out.hint(f"and {len(lines) - shown:,} more (--limit, --from-seq)")


def _events_of(lines: list[bytes]) -> list[WalEvent]:
    return [WalEvent.from_json_line(line) for line in lines]


def _history_table(events: Iterable[WalEvent], record_id: str, touched: Sequence[Rollback] = ()) -> Table:
    """Tell the life of one record: what each event changed, and for those of a rollback, why."""
    reasons: dict[int | None, Text] = {}
    for rollback in touched:
        reasons[rollback.seq] = _because("by", rollback.rollback_id, rollback.reason)
        if rollback.reinstated is not None:
            reasons[rollback.reinstated_seq] = _because(
                "taken back:", rollback.rollback_id, rollback.reinstated
            )
    made = table("seq", "time (UTC)", "op", "what changed", right=("seq",))
    before: dict[str, Any] | None = None
    for event in events:
        fields = event.record or {}
        when = clean(event.seq), Text(time_text(event.ts), style="dim"), op_text(event.op)
        if event.op == "act":
            # It says what happened to several records; what became of this one is the engine's to tell.
            made.add_row(*when, clean(in_words(fields, record_id)))
            continue
        # A patch and a deletion name only what they change; an upsert says everything.
        now = dict(fields) if event.op in _WHOLE else merged(before or {}, fields)
        story = _story(before, now)
        because = reasons.get(event.seq)
        made.add_row(*when, story if because is None else Text.assemble(story, "\n", because))
        before = now
    return made


def _because(how: str, rollback_id: str, reason: str) -> Text:
    return Text.assemble((f"{how} ", "dim"), (clean(rollback_id), "cyan"), f" “{clean(reason)}”")


def _story(before: dict[str, Any] | None, now: dict[str, Any]) -> Text:
    if before is None:
        known: dict[str, Any] = {name: now[name] for name in ("label", "status", "confidence") if name in now}
        data = now.get("data")
        if not known.get("label") and isinstance(data, dict) and data.get("content"):
            # A block has no label: what it says is its content.
            known.pop("label", None)
            known = {"content": data["content"], **known}
        return Text("\n").join(Text.assemble((f"{name} ", "dim"), _text(v)) for name, v in known.items())
    old, new = _leaves(before), _leaves(now)
    changed = [name for name in {**old, **new} if not is_same(old.get(name), new.get(name))]
    if not changed:
        return Text("nothing", style="dim")
    return Text("\n").join(
        Text.assemble((f"{clean(name)} ", "dim"), _text(old.get(name)), " → ", (_text(new.get(name)), "bold"))
        for name in changed
    )


def _leaves(value: dict[str, Any], path: str = "") -> dict[str, Any]:
    """Name every value inside an object by its path."""
    found: dict[str, Any] = {}
    for name, inner in value.items():
        if isinstance(inner, dict):
            found |= _leaves(inner, f"{path}{name}.")
        else:
            found[f"{path}{name}"] = inner
    return found


def _text(value: Any) -> str:
    if value is None:
        return "(none)"
    return clean(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
