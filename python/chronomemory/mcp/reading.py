"""Searches, shows and explains memories, within a budget; every answer says what it left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

from chronomemory._core import canonical_json
from chronomemory.errors import InvalidArgument, UnknownRecord
from chronomemory.face.arguments import word
from chronomemory.face.moments import parse_instant
from chronomemory.face.results import counted
from chronomemory.mcp.lazy import LazyModule
from chronomemory.mcp.rendering import Budget, clipped, item_of, line_of, more_of, quoted, tokens_of
from chronomemory.mcp.served_store import ServedStore
from chronomemory.record import INFRASTRUCTURE_KINDS, ChronoRecord
from chronomemory.search import Hit, Hits
from chronomemory.selection import Page

#: Loaded by the first search of a server that has an embedder.
_searching = LazyModule("chronomemory.blocks.retrieval")

#: So many more hits are counted, so that an answer can say how many it left out.
_COUNTED = 100
#: What it takes to say that a text was cut.
_CUT_TOKENS = 14
#: No single memory takes more than this share of an answer.
_SHARE = 0.5
#: How many places of damage a report lists.
_PLACES = 20
#: What the ids of records begin with that a list of memories leaves out: bookkeeping, and entries of pages.
_BOOKS = (
    *("bedge:", "contradiction:", "frame:", "session:", "config:", "rule:", "profile:"),
    *("gedge:", "path:", "plan:", "event:", "audit:", "page:", "entry:", "vector:"),
)
#: The statuses that memories are given here; ``any`` stands for all.
_STATUSES = ("active", "archived", "superseded", "invalidated", "hypothesis", "inbox", "any")


@dataclass(frozen=True)
class Answer:
    """One answer in both channels, each complete in itself."""

    structured: dict[str, Any]
    lines: list[str]
    #: The memories that a call changed, and the pages.
    changed: list[str] = field(default_factory=list)
    changed_pages: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The content of the text channel."""
        return "\n".join(self.lines)


def heading(served: ServedStore, words: str, notes: Sequence[str] = ()) -> list[str]:
    """Return how every text begins: with the store, the scope and what the answer is."""
    return [
        f"store {quoted(served.place)}, scope {quoted(str(served.scope))}: {words}",
        *(f"note: {n}" for n in notes),
    ]


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
    """Take an event of the log by its seq, or a moment."""
    if spelled.isascii() and spelled.isdigit() and len(spelled) < 19:
        return int(spelled)
    return moment("as_of", spelled)


@dataclass(frozen=True)
class Question:
    """A search; an empty query lists memories, newest first."""

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

    def _where(self) -> dict[str, Any] | None:
        """Return all that must hold; tags are asked for so that those of blocks count, which are keys."""
        parts: list[dict[str, Any]] = [dict(self.where)] if self.where else []
        if self.tags:
            parts.append({"tags": {"all": list(self.tags)}})
        if not self.query and self.kinds:
            parts.append({"kind": {"in": list(self.kinds)}})
        elif not self.query:
            books: list[dict[str, Any]] = [{"id": {"starts": prefix}} for prefix in _BOOKS]
            parts.append({"not": {"or": [{"kind": {"in": sorted(INFRASTRUCTURE_KINDS)}}, *books]}})
        return {"and": parts} if len(parts) > 1 else next(iter(parts), None)

    def reading(self, served: ServedStore) -> dict[str, Any]:
        """Return the search arguments of the embedder, if any; the past has no embeddings."""
        if served.embedder is None or self.as_of or not self.query:
            return {}
        found: dict[str, Any] = _searching.reading_of(served.door, served.embedder, self.query)
        return found

    def ask(
        self, served: ServedStore, limit: int, after: str | None, reading: Mapping[str, Any]
    ) -> Hits | Page:
        """Put it to the store."""
        terms: dict[str, Any] = {
            "status": None if self.status == "any" else self.status,
            "min_confidence": self.min_confidence,
            "where": self._where(),
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
        return asked.query(faces=True, order_by="-created", **terms)


def search(served: ServedStore, asked: Question) -> Answer:
    """Return the best memories for a text, or the newest, as many as fit, and where to go on."""
    if not asked.as_of:
        seen = {status for _, status, _, _ in served.door.engine.tally()}
        word("status", asked.status, tuple(sorted(seen.union(_STATUSES))))
    reading = asked.reading(served)
    try:
        hits = asked.ask(served, asked.limit, asked.cursor, reading)
    except InvalidArgument as error:
        if error.field != "after":
            raise
        message = str(error).replace("after", "cursor", 1)  # as the argument is called here
        raise type(error)(message, field="cursor", recovery=error.recovery) from None
    notes = served.notes(nothing_found=not hits)
    if asked.query and not hits and served.door.engine.is_known():
        notes.append("no memory matched; an empty query lists the memories, newest first")
    items = _fitting(hits, served.budget(asked.max_tokens, notes), asked.max_tokens)
    cursor = hits.cursor
    if len(items) < len(hits):
        cursor = asked.ask(served, len(items), asked.cursor, reading).cursor if items else None
    left_out, is_exact = len(hits) - len(items), True
    if hits.cursor is not None:
        more = asked.ask(served, _COUNTED, hits.cursor, reading)
        left_out, is_exact = left_out + len(more), more.cursor is None
    if hits and not items:
        notes.append("not one memory fits: ask again with a larger max_tokens")
    structured = {
        **served.named(),
        "memories": items,
        "left_out": left_out,
        "left_out_is_exact": is_exact,
        "next_cursor": cursor or "",
        "notes": notes,
    }
    more_words = f"{left_out}{'' if is_exact else ' or more'} left out"
    if cursor:
        more_words += f", next_cursor={cursor}"
    which = " that match, best first" if asked.query else ", newest first"
    words = f"{len(items)} of the memories{which}, {more_words}" if hits else "nothing found"
    return Answer(structured, [*heading(served, words, notes), *map(line_of, items)])


def _fitting(hits: Hits | Page, budget: Budget, max_tokens: int) -> list[dict[str, Any]]:
    """Return the first hits, as many as there is room for; of the very first as much as there is room for."""
    items: list[dict[str, Any]] = []
    for hit in hits:
        record, score = (hit.record, hit.score) if isinstance(hit, Hit) else (hit, None)
        item = item_of(record, tokens=int(max_tokens * _SHARE / 2), score=score)
        if not items:
            bare = {**item, "text": ""}
            room = (budget.left - tokens_of(canonical_json(bare), line_of(bare))) // 2 - _CUT_TOKENS
            if room > 0:
                item = item_of(record, tokens=min(int(max_tokens * _SHARE / 2), room), score=score)
        if not budget.take(item, line_of(item)):
            break
        items.append(item)
    return items


def get(served: ServedStore, memory_id: str, *, as_of_spelled: str, offset: int, max_tokens: int) -> Answer:
    """Return one memory whole, now or as it was; a long text in pieces."""
    record = _record(served, memory_id, as_of_spelled)
    item = item_of(record, tokens=2**31)
    text, room = item["text"][offset:], max(served.budget(max_tokens, served.notes()).left, 50)
    more = more_of(record)
    told_more = quoted(more)
    if tokens_of(told_more) * 2 > room // 2:
        more = {"evidence": [], "data": {}}
        told_more = "left out, being too long: ask with a larger max_tokens"
        room -= 20
    else:
        room -= 2 * tokens_of(told_more)
    shown, is_cut = clipped(text, max(room // 2 - 40, 10))
    shown = shown[:-1] if is_cut else shown
    end = offset + len(shown)
    item = {**item, "text": shown}
    structured = {
        **served.named(),
        "memory": item,
        **more,
        "left_out": max(len(text) - len(shown), 0),
        "next_offset": end if is_cut else 0,
        "notes": served.notes(),
    }
    words = f"one memory; {structured['left_out']} characters of its text left out"
    if is_cut:
        words += f", next_offset={end}"
    lines = [*heading(served, words, structured["notes"]), line_of(item), f"more: {told_more}"]
    return Answer(structured, lines)


def _record(served: ServedStore, memory_id: str, as_of_spelled: str) -> ChronoRecord:
    when = as_of(as_of_spelled)
    if when is None:
        return served.find(memory_id)
    view = served.door.as_of(when)
    found = view.get(memory_id) or view.get(f"block:{memory_id}")
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
    structured = {
        **served.named(),
        "valid": report.valid,
        "rung": report.rung,
        "events": report.events,
        "last_seq": report.last_seq,
        "head": report.head,
        "damage": damage,
        "left_out": len(places) - len(damage),
        "advice": advice,
        "notes": notes,
    }
    words = (
        f"{report.rung}; {report.events} events, the last is {report.last_seq}, head {report.head or 'none'}"
    )
    lines = heading(served, words, notes)
    lines += [f"- damage: {quoted(place)}" for place in damage]
    if structured["left_out"]:
        lines.append(f"{structured['left_out']} more kinds of damage left out")
    return Answer(structured, [*lines, advice] if advice else lines)
