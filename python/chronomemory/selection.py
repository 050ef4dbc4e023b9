"""Reads records by filters: pages with a cursor, streams, and views of an earlier moment."""

from __future__ import annotations

import base64
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from chronomemory._core import Engine, Reader, Walk, canonical_json, parse_json, sha256_hex
from chronomemory.face.arguments import LAST_SEQ, count, flag, must, refuse, string
from chronomemory.face.moments import EPOCH, micros
from chronomemory.filters import Filter, filter_terms, where_json
from chronomemory.record import RAG_CONFIDENCE, ChronoRecord
from chronomemory.scope import Answer, Scope
from chronomemory.types import HasEngine, Unpack

_ORDERS = ("created_at", "updated_at", "happened_at", "confidence", "id")
#: Shorter names of the moments, and what cursors and the engine call them.
_MOMENTS = {"created_at": "created", "updated_at": "updated", "happened_at": "happened"}
_USUAL_ORDER = "created"
_FIELDS = (*ChronoRecord(id="x").to_dict(), "tags", "scope")
_PACKING = 2
_MOST_SIBLINGS = 2**32
#: Terms for which the engine has to read the records.
_LOOKS_INSIDE = ("condition", "tags", "since_us", "until_us")
_DIGEST_LETTERS = 16
#: Clocks of machines that share a store differ by so much without anyone minding.
_CLOCKS_DIFFER_US = 2_000_000

#: The seq and the moment of the event that made a record, which of its records this is, and of how many.
_Made = tuple[int | None, int | None, int, int]
#: What the last record of a page was ordered by, and where it and the one behind it were made.
_End = tuple[int | None, _Made, _Made | None]
_Found = TypeVar("_Found")


class Paged(Answer[_Found]):
    """One page of an answer."""

    __slots__ = ("_cursor",)

    def __init__(
        self,
        found: Iterable[_Found] = (),
        cursor: Callable[[], str] | None = None,
        *,
        scope: Scope | None = None,
        known: bool = True,
    ) -> None:
        super().__init__(found, scope=scope, known=known)
        self._cursor = cursor

    @property
    def cursor(self) -> str | None:
        """The position behind this page; None at the end."""
        return None if self._cursor is None else self._cursor()


class Page(Paged[ChronoRecord]):
    """Records in order; ``cursor`` is where to go on, None at the end, ``plan`` how they were found."""

    __slots__ = ("plan",)
    plan: str


def digest_of(value: Any) -> str:
    """Return a short digest by which a cursor recognizes its question."""
    return sha256_hex(canonical_json(value))[:_DIGEST_LETTERS]


def question_digest(terms: Mapping[str, Any], **more: Any) -> str:
    """Identify a question and who asks it, whatever the length of its pages."""
    condition = terms["condition"]
    question = {**terms, "condition": None if condition is None else condition.decode(), "limit": None}
    return digest_of({**question, "status": terms["status"] or None, **more})


def query_terms(
    method: str = "query",
    *,
    rag_filter: bool = False,
    limit: int | None = None,
    faces: bool = False,
    **given: Unpack[Filter],
) -> dict[str, Any]:
    """Return the terms of a query for the engine; ``rag_filter`` raises the least confidence to 0.6."""
    terms = filter_terms(method, given)
    if flag("rag_filter", rag_filter):
        terms["min_confidence"] = max(terms["min_confidence"], RAG_CONFIDENCE)
    terms["limit"] = None if limit is None else count("limit", limit)
    terms["faces"] = flag("faces", faces)
    return terms


def engine_of(store: HasEngine, expired: bool) -> Engine:
    """Return the engine of a store; with ``expired`` it also shows records that have expired."""
    return store.engine.with_expired() if flag("expired", expired) else store.engine


def query(
    store: HasEngine,
    *,
    rag_filter: bool = False,
    limit: int | None = None,
    faces: bool = False,
    expired: bool = False,
    order_by: str | None = None,
    after: str | None = None,
    explain: bool = False,
    **given: Unpack[Filter],
) -> Page:
    """Return the records that a ``Filter`` selects, in insertion order.

    ``rag_filter`` keeps those of at least 0.6 confidence. ``order_by`` is ``created_at``, ``updated_at``,
    ``happened_at``, ``confidence``, ``id`` or an indexed field, with ``-`` reversed. With a ``limit`` the
    answer has a ``cursor`` for ``after``; with ``explain`` a ``plan``.
    """
    terms = query_terms(rag_filter=rag_filter, limit=limit, faces=faces, **given)
    for name in ("since", "until"):
        if (moment := terms[f"{name}_us"]) is not None:
            warn_of_stamps(name, store.engine, moment, stacklevel=3)
    return page_of(engine_of(store, expired), terms, order_by, after, explain=explain)


def stream(
    store: HasEngine,
    *,
    rag_filter: bool = False,
    limit: int | None = None,
    faces: bool = False,
    expired: bool = False,
    order_by: str | None = None,
    **given: Unpack[Filter],
) -> Walk:
    """Return what ``query`` would return now, one record at a time, whatever is written meanwhile."""
    terms = query_terms("stream", rag_filter=rag_filter, limit=limit, faces=faces, **given)
    return engine_of(store, expired).walk(walk_terms(terms, order_by))


def page_of(
    where: Reader,
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
        return _page(where, whole)
    by, reverse = _order(order_by)
    names = where.scope_names()
    asker = [where.sees_wider(), None if names is None else list(names)]
    digest = partial(question_digest, terms, by=by, reverse=reverse, asker=asker)
    begin = None if after is None else _position(string("after", after), digest())
    if explain and not looks_inside:
        terms = {**terms, "condition": where_json({})}
    order = {"by": by, "reverse": reverse, "after": begin, "explain": explain}
    records, end, plan = where.page({**terms, **order})
    cursor = None if end is None else lambda: cursor_of([_PACKING, digest(), *end])
    return _page(where, records, cursor, plan if explain else "")


def _page(
    where: Reader, records: list[ChronoRecord], cursor: Callable[[], str] | None = None, plan: str = ""
) -> Page:
    names = where.scope_names()
    page = Page(records, cursor, scope=None if names is None else Scope(*names), known=where.is_known())
    page.plan = plan
    return page


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


def cursor_of(parts: list[Any]) -> str:
    """Return the parts of a cursor as letters."""
    return base64.urlsafe_b64encode(canonical_json(parts)).decode("ascii").rstrip("=")


def parts_of(cursor: str, count: int, of: str) -> list[Any]:
    """Return the parts of a cursor, or refuse what is none."""
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        parts = parse_json(base64.b64decode(padded, altchars=b"-_", validate=True))
    except ValueError:
        parts = None
    if not isinstance(parts, list) or len(parts) != count:
        raise must("after", f"be the cursor of {of}", cursor)
    return parts


def check_question(asked: object, question: str) -> None:
    """Refuse a cursor of another question."""
    if asked != question:
        raise refuse("the cursor belongs to another question; ask as for the page that it came with", "after")


def _position(cursor: str, question: str) -> _End:
    packing, asked, key, made, following = parts_of(cursor, 5, "a page")
    if packing == 1 or isinstance(key, str):
        raise refuse("the cursor is of an earlier version; ask again from the start", "after")
    places = [made] if following is None else [made, following]
    if packing != _PACKING or not _is_number(key) or not all(map(_is_made, places)):
        raise must("after", "be the cursor of a page", cursor)
    check_question(asked, question)
    return key, tuple(made), None if following is None else tuple(following)


def _is_made(given: object) -> bool:
    if not isinstance(given, list) or len(given) != 4:
        return False
    seq, moment, *places = given
    is_place = all(type(place) is int and 0 <= place < _MOST_SIBLINGS for place in places)
    return is_place and _is_number(moment) and _is_number(seq) and (seq or 0) >= 0


def _is_number(given: object) -> bool:
    return given is None or (type(given) is int and -(2**63) <= given < 2**63)


def view_of(engine: Engine, when: int | datetime) -> Reader:
    """Return the engine's view as of event ``when``, or a past moment with a time zone."""
    if isinstance(when, datetime):
        moment = micros("as_of", when)
        latest, now = engine.latest_us(), time.time_ns() // 1000
        if moment > max(now + _CLOCKS_DIFFER_US, latest or now):
            raise must("as_of", "be a moment that has come", when.isoformat())
        warn_of_stamps("as_of", engine, moment)
        return engine.as_of(ts_us=moment)
    if not isinstance(when, int) or isinstance(when, bool):
        raise must("as_of", "be a seq or a datetime", when)
    if count("as_of", min(when, LAST_SEQ)) > engine.last_seq():
        raise must("as_of", f"be at most {engine.last_seq()}, the last event", when)
    return engine.as_of(seq=when)


def warn_of_stamps(asked: str, engine: Engine, moment_us: int, stacklevel: int = 4) -> None:
    """Warn of a question by time where a clock was ahead once: stamps never go back, so times say little."""
    latest, now = engine.latest_us(), time.time_ns() // 1000
    if latest is not None and latest > now + _CLOCKS_DIFFER_US and moment_us < latest:
        ahead = (EPOCH + timedelta(microseconds=latest)).isoformat(timespec="seconds")
        warnings.warn(
            f"{asked}: the latest events carry {ahead}, which is ahead of this machine's clock: one was "
            "wrong when they were written. Stamps never go back, so all events since then carry it too; "
            "as_of(seq) tells them apart, and verify() names the first",
            RuntimeWarning,
            stacklevel=stacklevel,
        )


class StoreView:
    """A store as it was: read-only, and unmoved by what is written later."""

    def __init__(self, view: Reader) -> None:
        self._view = view

    @property
    def seq(self) -> int:
        """The last event that this view has seen."""
        return self._view.last_seq()

    def get(self, record_id: str) -> ChronoRecord | None:
        """Return the record as it was then, a tombstoned one too, or None."""
        return self._view.get(string("id", record_id))

    def query(
        self,
        *,
        rag_filter: bool = False,
        limit: int | None = None,
        faces: bool = False,
        order_by: str | None = None,
        after: str | None = None,
        explain: bool = False,
        **given: Unpack[Filter],
    ) -> Page:
        """Return what ``ChronoStore.query`` would have returned then."""
        terms = query_terms(rag_filter=rag_filter, limit=limit, faces=faces, **given)
        return page_of(self._view, terms, order_by, after, explain=explain)

    def count(self) -> int:
        """Return how many plain records were active."""
        return self._view.count()

    record_count = count

    def __repr__(self) -> str:
        return f"<StoreView as of seq {self.seq}>"
