"""Searches, shows and explains memories, within a budget; every answer says what it left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

from chronomemory.errors import UnknownRecord
from chronomemory.face.arguments import word
from chronomemory.face.moments import parse_instant
from chronomemory.face.results import counted
from chronomemory.mcp.lazy import LazyModule
from chronomemory.mcp.rendering import clipped, item_of, line_of, more_of, one_line, quoted, tokens_of
from chronomemory.mcp.served_store import ServedStore
from chronomemory.record import INFRASTRUCTURE_KINDS, ChronoRecord
from chronomemory.search import Hit, Hits
from chronomemory.selection import Page
from chronomemory.tools import cursor_errors, find_record, profile

#: Loaded by the first search of a server that has an embedder.
_searching = LazyModule("chronomemory.blocks.retrieval")

_COUNTED = 100
_PLACES = 20
#: What the ids of records begin with that a list of memories leaves out: bookkeeping, and entries of pages.
_BOOKS = (
    *("bedge:", "contradiction:", "frame:", "session:", "config:", "rule:", "profile:"),
    *("gedge:", "path:", "plan:", "event:", "audit:", "page:", "entry:", "vector:"),
)
_STATUSES = ("active", "archived", "superseded", "invalidated", "hypothesis", "inbox", "any")


@dataclass(frozen=True)
class Answer:
    """One answer: its text, and the same facts for the structured channel."""

    structured: dict[str, Any]
    lines: list[str]
    changed: list[str] = field(default_factory=list)
    changed_pages: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def heading(served: ServedStore, words: str, notes: Sequence[str] = ()) -> list[str]:
    """Return how every text begins: with the project, the scope and what the answer is."""
    project, scope = (quoted(name)[1:-1] for name in (served.place, str(served.scope)))
    return [f"{project}, {scope}: {words}", *(f"note: {note}" for note in notes)]


def answered(
    served: ServedStore, words: str, notes: list[str], lines: Iterable[str], **fields: Any
) -> Answer:
    """Return an answer that names the project and the scope."""
    structured = {**served.named(), **fields, "notes": notes}
    return Answer(structured, [*heading(served, words, notes), *lines])


def moment(name: str, spelled: str, *, ends: bool = True) -> datetime | None:
    """Take a moment in ISO 8601 with its time zone, or a day in UTC: its end, or its beginning."""
    if not spelled:
        return None
    if len(spelled) == 10:
        begins = parse_instant(name, f"{spelled}T00:00:00Z")
        end = begins + timedelta(days=1, microseconds=-1)
        return min(end, max(begins, datetime.now(timezone.utc))) if ends else begins
    return parse_instant(name, spelled)


def as_of(spelled: str) -> int | datetime | None:
    if spelled.isascii() and spelled.isdigit() and len(spelled) < 19:
        return int(spelled)
    return moment("as_of", spelled)


@dataclass(frozen=True)
class Question:
    """A search, or without a query a list of memories, newest first."""

    query: str
    limit: int = 10
    cursor: str = ""
    max_tokens: int = 4000
    kinds: Sequence[str] = ()
    status: str = "active"
    tags: Sequence[str] = ()
    where: Mapping[str, Any] = field(default_factory=dict)
    min_confidence: float = 0.0
    since: str = ""
    until: str = ""
    as_of: str = ""

    def reading(self, served: ServedStore) -> dict[str, Any]:
        """Return the search arguments of the embedder, if any; the past has no embeddings."""
        if served.embedder is None or self.as_of or not self.query:
            return {}
        found: dict[str, Any] = _searching.reading_of(served.door, served.embedder, self.query)
        return found

    def ask(
        self, served: ServedStore, limit: int, after: str | None, reading: Mapping[str, Any]
    ) -> Hits | Page:
        """Return a page of the answer of the store."""
        parts: list[dict[str, Any]] = [dict(self.where)] if self.where else []
        if self.tags:  # of blocks they are keys
            parts.append({"tags": {"all": list(self.tags)}})
        if not self.query and self.kinds:
            parts.append({"kind": {"in": list(self.kinds)}})
        elif not self.query:
            books: list[dict[str, Any]] = [{"id": {"starts": prefix}} for prefix in _BOOKS]
            parts.append({"not": {"or": [{"kind": {"in": sorted(INFRASTRUCTURE_KINDS)}}, *books]}})
        terms: dict[str, Any] = {
            "status": None if self.status == "any" else self.status,
            "min_confidence": self.min_confidence,
            "where": {"and": parts} if len(parts) > 1 else next(iter(parts), None),
            "since": moment("since", self.since, ends=False),
            "until": moment("until", self.until),
            "limit": limit,
            "after": after or None,
        }
        when = as_of(self.as_of)
        if self.query:
            return served.door.search(
                self.query, **reading, kind=list(self.kinds) or None, as_of=when, **terms
            )
        asked = served.door if when is None else served.door.as_of(when)
        return asked.query(faces=True, order_by="-created_at", **terms)


def search(served: ServedStore, asked: Question) -> Answer:
    """Return the best memories for a text, or the newest, as many as fit, and where to go on."""
    if not asked.as_of:
        seen = {status for _, status, _, _ in served.door.engine.tally()}
        word("status", asked.status, tuple(sorted(seen.union(_STATUSES))))
    reading = asked.reading(served)
    with cursor_errors():
        hits = asked.ask(served, asked.limit, asked.cursor, reading)
    notes = served.notes(nothing_found=not hits)
    if asked.query and not hits and served.door.engine.is_known():
        notes.append("no memory matched; an empty query shows what is known")
    budget = served.budget(asked.max_tokens, notes)
    things: list[Hit | ChronoRecord] = list(hits)
    items = budget.fit_texts(things, _item, line_of, asked.max_tokens)
    cursor = hits.cursor
    if len(items) < len(hits):
        cursor = asked.ask(served, len(items), asked.cursor, reading).cursor if items else None
    left_out, is_exact = len(hits) - len(items), True
    if hits.cursor is not None:
        more = asked.ask(served, _COUNTED, hits.cursor, reading)
        left_out, is_exact = left_out + len(more), more.cursor is None
    if hits and not items:
        notes.append("not one memory fits: ask again with a larger max_tokens")
    order = "best first" if asked.query else "newest first"
    words = f"{counted(len(items), 'memory', 'memories')}, {order}" if hits else "nothing found"
    if left_out:
        words += f"; {left_out}{'' if is_exact else ' or more'} left out"
    if cursor:
        words += f", next_cursor={cursor}"
    counts = {"left_out": left_out, "left_out_is_exact": is_exact, "next_cursor": cursor or ""}
    return answered(served, words, notes, map(line_of, items), memories=items, **counts)


_SECTIONS = {"constitution": "always true:", "most_used": "most used:", "newest": "newest:"}


def show_profile(served: ServedStore, *, limit: int, max_tokens: int) -> Answer:
    """Return what is known: the constitution, what is used most, and the newest memories."""
    every = Question(query="").ask(served, _COUNTED, None, {})
    sections = profile(served.door, [thing for thing in every if isinstance(thing, ChronoRecord)], limit)
    notes = served.notes(nothing_found=not every)
    budget = served.budget(max_tokens, notes)
    shown: dict[str, list[dict[str, Any]]] = {}
    lines: list[str] = []
    for name, title in _SECTIONS.items():
        shown[name] = budget.fit_texts(sections[name], _item, line_of, max_tokens)
        lines += [title, *map(line_of, shown[name])] if shown[name] else []
    total = f"{len(every)}{'' if every.cursor is None else ' or more'}"
    words = f"what is known, out of {total}; list_memories lists all" if every else "nothing found"
    return answered(served, words, notes, lines, **shown, total=len(every))


def _item(hit: Hit | ChronoRecord, tokens: int) -> dict[str, Any]:
    if isinstance(hit, Hit):
        return item_of(hit.record, tokens=tokens, score=hit.score)
    return item_of(hit, tokens=tokens)


def get(served: ServedStore, memory_id: str, *, as_of_spelled: str, offset: int, max_tokens: int) -> Answer:
    """Return one memory whole, now or as it was; a long text in pieces."""
    record = _record(served, memory_id, as_of_spelled)
    item = item_of(record, tokens=2**31)
    budget = served.budget(max_tokens, served.notes())
    text, room = item["text"][offset:], max(budget.left, 50)
    more = more_of(record)
    more_text = quoted(more)
    if tokens_of(more_text) * budget.channels > room // 2:
        more = {"evidence": [], "data": {}}
        more_text = "left out, being too long: ask with a larger max_tokens"
        room -= 20
    else:
        room -= budget.channels * tokens_of(more_text)
    shown, is_cut = clipped(text, max(room // budget.channels - 40, 10))
    shown = shown[:-1] if is_cut else shown
    end = offset + len(shown)
    item = {**item, "text": shown}
    left_out = max(len(text) - len(shown), 0)
    words = f"one memory; {left_out} characters left out, next_offset={end}" if is_cut else "one memory"
    counts = {"left_out": left_out, "next_offset": end if is_cut else 0}
    times = {name: item[name] for name in ("created_at", "updated_at", "status", "confidence", "kind")}
    lines = [line_of(item), f"- {one_line({'whole_id': record.id, **times})}", f"more: {more_text}"]
    return answered(served, words, served.notes(), lines, memory=item, **more, **counts)


def _record(served: ServedStore, memory_id: str, as_of_spelled: str) -> ChronoRecord:
    when = as_of(as_of_spelled)
    if when is None:
        return served.find(memory_id)
    found = find_record(served.door.as_of(when), memory_id)
    if found is None:
        raise UnknownRecord(
            f'there was no memory "{memory_id[:200]}" in {served.scope} then',
            id=memory_id,
            recovery="Ask for a later moment, or see its history.",
        )
    return found


def verify(served: ServedStore) -> Answer:
    """Read every byte of the store again and say what that proves."""
    report = served.store.verify()
    # Only files and kinds: places and contents are for the owner of the store.
    counts = Counter(f"{item.path}: {item.kind}" for item in report.damage)
    places = [f"{place}, {counted(number, 'place')}" for place, number in counts.items()]
    damage = places[:_PLACES]
    notes = [str(report.tail)] if report.tail else []
    if report.remembered_reason:
        notes.append(report.remembered_reason)
    if report.altered_indexes:
        notes.append(f"{len(report.altered_indexes)} indexes are not what the log says; repair removes them")
    # The scopes of records are private: only their number is shown.
    if report.scopes:
        notes.append(f"{len(report.scopes)} records changed their scope or have none that is one")
    advice = "" if report.valid else "Run `chronomemory repair` in the project, or restore a backup."
    left_out = len(places) - len(damage)
    names = ("valid", "rung", "events", "last_seq", "head")
    facts = {name: getattr(report, name) for name in names}
    words = (
        f"{report.rung}; {report.events} events, the last is {report.last_seq}, head {report.head or 'none'}"
    )
    lines = [f"- damage: {quoted(place)}" for place in damage]
    if left_out:
        lines.append(f"{left_out} more kinds of damage left out")
    lines += [advice] if advice else []
    return answered(served, words, notes, lines, **facts, damage=damage, left_out=left_out, advice=advice)
