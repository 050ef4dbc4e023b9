"""Lists records in an order, page by page, with a cursor from which the next page goes on.

A cursor is a position and no resource: the key of the last record of a page, the event that made the record,
and a digest of the question that it belongs to. It has no id. It never expires, and works after a restart and
in other processes.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from chronomemory._core import Engine, Walk, canonical_json, parse_json
from chronomemory._core import View as EngineView
from chronomemory.answers import Answer
from chronomemory.face.arguments import count, flag, must, number, refuse, string, string_or_none, strings
from chronomemory.face.moments import micros
from chronomemory.record import RAG_CONFIDENCE, ChronoRecord
from chronomemory.scope import Scope
from chronomemory.where import Where, where_json

__all__ = ["HasEngine", "Page", "iter_records", "page_of", "query_terms", "walk_terms"]

_ORDERS = ("created_at", "updated_at", "happened_at", "confidence", "id")
#: Shorter names of the moments, and what cursors and the engine call them.
_MOMENTS = {"created_at": "created", "updated_at": "updated", "happened_at": "happened"}
#: What records are ordered by unless the caller says so.
_USUAL_ORDER = "created"
#: What else records may be ordered by, if an index of it is declared.
_FIELDS = (*ChronoRecord(id="x").to_dict(), "tags", "scope")
#: How a cursor is packed; another way gets another number.
_PACKING = 2
_MOST_SIBLINGS = 2**32
#: What only a question has that looks into the records.
_LOOKS_INSIDE = ("condition", "tags", "since_us", "until_us")
#: So much of a digest tells questions apart.
_DIGEST_LETTERS = 16

#: The seq and the moment of the event that made a record, which of its records this is, and of how many.
_Made = tuple[int | None, int | None, int, int]
#: What the last record of a page was ordered by, and where it and the one behind it were made.
_End = tuple[int | bytes | None, _Made, _Made | None]
#: User, agent and session of who asks; None for everyone.
_Names = tuple[str | None, str | None, str | None] | None


@dataclass(frozen=True, slots=True)
class _Question:
    """What is asked and by whom: a cursor belongs to it alone."""

    terms: dict[str, Any]
    by: str
    reverse: bool
    asker: tuple[bool, _Names]

    def digest(self) -> str:
        """Tell it from others, however long its pages are."""
        wider, names = self.asker
        condition = self.terms["condition"]
        asked = {
            **self.terms,
            "condition": None if condition is None else condition.decode(),
            "status": self.terms["status"] or None,
            "by": self.by,
            "reverse": self.reverse,
            "asker": [wider, None if names is None else list(names)],
        }
        del asked["limit"]
        return hashlib.sha256(canonical_json(asked)).hexdigest()[:_DIGEST_LETTERS]


class Page(Answer[ChronoRecord]):
    """Records in order; ``cursor`` is where to go on, None at the end, ``plan`` how they were found."""

    __slots__ = ("_place", "plan")

    def __init__(
        self,
        records: Iterable[ChronoRecord] = (),
        place: tuple[_Question, _End] | None = None,
        plan: str = "",
        *,
        scope: Scope | None = None,
        known: bool = True,
    ) -> None:
        super().__init__(records, scope=scope, known=known)
        self._place = place
        self.plan = plan

    @property
    def cursor(self) -> str | None:
        """Where to go on; None at the end. Few ask, so it is spelled when they do."""
        return None if self._place is None else _cursor(self._place[0].digest(), self._place[1])


def query_terms(
    *,
    kind: str | Iterable[str] | None,
    status: str | None,
    rag_filter: bool,
    min_confidence: float,
    limit: int | None,
    faces: bool,
    where: Where | None = None,
    tags: Iterable[str] = (),
    since: datetime | None = None,
    until: datetime | None = None,
) -> dict[str, Any]:
    """Return what the engine is asked: of two thresholds, one's own and that of a prompt, the larger."""
    one_kind = kind is None or isinstance(kind, str)
    least, for_prompt = number("min_confidence", min_confidence), flag("rag_filter", rag_filter)
    return {
        "kind": string_or_none("kind", kind) if one_kind else strings("kind", kind),
        "status": string_or_none("status", status),
        "min_confidence": max(least, RAG_CONFIDENCE) if for_prompt else least,
        "limit": None if limit is None else count("limit", limit),
        "faces": flag("faces", faces),
        "condition": where_json(where),
        "tags": strings("tags", tags),
        "since_us": None if since is None else micros("since", since),
        "until_us": None if until is None else micros("until", until),
    }


def page_of(
    where: Engine | EngineView,
    terms: dict[str, Any],
    order_by: str | None,
    after: str | None,
    *,
    explain: bool = False,
) -> Page:
    """Return the records that a query asks for, those behind a cursor if one is given."""
    explain = flag("explain", explain)
    looks_inside = any(terms[name] not in (None, []) for name in _LOOKS_INSIDE)
    if order_by is None and after is None and terms["limit"] is None and not looks_inside and not explain:
        whole = where.query(**{name: terms[name] for name in terms if name not in _LOOKS_INSIDE})
        return Page(whole, **_who(where))
    by, reverse = _order(order_by)
    question = _Question(terms, by, reverse, (where.sees_wider(), where.scope_names()))
    begin = None if after is None else _position(string("after", after), question.digest())
    if explain and not looks_inside:
        terms = {**terms, "condition": where_json({})}
    order = {"by": by, "reverse": reverse, "after": begin, "explain": explain}
    records, end, plan = where.page({**terms, **order})
    place = None if end is None else (question, end)
    return Page(records, place, plan if explain else "", **_who(where))


def _who(where: Engine | EngineView) -> dict[str, Any]:
    names = where.scope_names()
    return {"scope": None if names is None else Scope(*names), "known": where.is_known()}


class HasEngine(Protocol):
    """What a walk needs of a store."""

    @property
    def engine(self) -> Engine:
        """The open engine."""


def iter_records(
    store: HasEngine,
    *,
    kind: str | Iterable[str] | None = None,
    status: str | None = "active",
    rag_filter: bool = False,
    min_confidence: float = 0.0,
    limit: int | None = None,
    faces: bool = False,
    where: Where | None = None,
    tags: Iterable[str] = (),
    since: datetime | None = None,
    until: datetime | None = None,
    order_by: str | None = None,
    expired: bool = False,
) -> Walk:
    """Return what ``query`` would return now, one record at a time, whatever is written meanwhile.

    Records are made when they are asked for: a walk costs 16 bytes for each, and keeps what writers replace
    until it ends, is closed, or nobody holds it any more.
    """
    terms = query_terms(
        kind=kind,
        status=status,
        rag_filter=rag_filter,
        min_confidence=min_confidence,
        limit=limit,
        faces=faces,
        where=where,
        tags=tags,
        since=since,
        until=until,
    )
    engine = store.engine.with_expired() if flag("expired", expired) else store.engine
    return engine.walk(walk_terms(terms, order_by))


def walk_terms(terms: dict[str, Any], order_by: str | None) -> dict[str, Any]:
    """Return what the engine is asked for a walk: a question without pages."""
    by, reverse = _order(order_by)
    return {**terms, "by": by, "reverse": reverse, "after": None, "explain": False}


def _order(given: str | None) -> tuple[str, bool]:
    name = _USUAL_ORDER if given is None else string("order_by", given)
    bare = name.removeprefix("-")
    if bare not in _ORDERS and bare not in _MOMENTS.values() and "." not in bare and bare not in _FIELDS:
        known = ", ".join(_ORDERS)
        raise must(
            "order_by", f"be one of {known}, or a field with an index, perhaps with a - in front", given
        )
    return _MOMENTS.get(bare, bare), bare != name


def _cursor(question: str, end: _End) -> str:
    key, *made = end
    packed = canonical_json([_PACKING, question, key.hex() if isinstance(key, bytes) else key, *made])
    return base64.urlsafe_b64encode(packed).decode("ascii").rstrip("=")


def _position(cursor: str, question: str) -> _End:
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        packed = parse_json(base64.b64decode(padded, altchars=b"-_", validate=True))
        packing, asked, key, made, following = packed
        field = bytes.fromhex(key) if isinstance(key, str) else None
    except (ValueError, TypeError):
        raise must("after", "be the cursor of a page", cursor) from None
    if packing == 1:
        raise refuse("the cursor is of an earlier version; ask again from the start", "after")
    key = None if field is not None else key
    places = [made] if following is None else [made, following]
    if packing != _PACKING or not _is_number(key) or not all(map(_is_made, places)):
        raise must("after", "be the cursor of a page", cursor)
    if asked != question:
        raise refuse("the cursor belongs to another question; ask as for the page that it came with", "after")
    return key if field is None else field, tuple(made), None if following is None else tuple(following)


def _is_made(given: object) -> bool:
    if not isinstance(given, list) or len(given) != 4:
        return False
    seq, moment, *places = given
    is_place = all(type(place) is int and 0 <= place < _MOST_SIBLINGS for place in places)
    return is_place and _is_number(moment) and _is_number(seq) and (seq or 0) >= 0


def _is_number(given: object) -> bool:
    return given is None or (type(given) is int and -(2**63) <= given < 2**63)
