"""Selects records by conditions on their fields, and declares the fields that they are looked up by."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Protocol

from chronomemory._core import Engine
from chronomemory.expiry import seen_through
from chronomemory.face.arguments import string
from chronomemory.paging import Page, page_of, query_terms
from chronomemory.view import warn_of_stamps
from chronomemory.where import Where

__all__ = ["create_index", "drop_index", "export_records", "indexes", "query"]


class HasEngine(Protocol):
    """What a question needs of a store."""

    @property
    def engine(self) -> Engine:
        """The open engine."""


def query(
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
    after: str | None = None,
    explain: bool = False,
    expired: bool = False,
) -> Page:
    """Return matching records in insertion order; ``status=""`` or None means any.

    ``where`` says of any field what it must be, as the guide has it: ``{"data.age": {"gte": 18}}``. The
    others are short forms; all that is given must hold. ``tags`` must all be there, ``since`` and
    ``until`` (both inclusive) go by the time that a record states, or else by when it was written.
    ``kind`` is one kind or a list. Records of the other faces appear when their kind is given, or with
    ``faces=True``. ``order_by`` is ``created_at`` (the same order), ``updated_at``, ``happened_at``,
    ``confidence``, ``id``, or a field that has an index; a ``-`` in front turns it round, and what has no
    value comes last. With a ``limit`` the answer has a ``cursor``, which is ``after`` for the next page. With
    ``explain`` its ``plan`` says how many records were looked at. What has expired is left out unless
    ``expired`` is given.
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
    for name in ("since", "until"):
        if (moment := terms[f"{name}_us"]) is not None:
            warn_of_stamps(name, store.engine, moment, stacklevel=3)
    return page_of(seen_through(store, expired), terms, order_by, after, explain=explain)


def export_records(
    store: HasEngine, *, status: str | None = "active", faces: bool = False, where: Where | None = None
) -> list[dict[str, Any]]:
    """Return the active plain records as dicts, or those of another status, for which ``where`` holds.

    A handle with names exports what is its own, not what is wider. What has expired and is still there is
    exported too: whoever takes records elsewhere wants all of them.
    """
    engine = store.engine.with_expired()
    terms = query_terms(
        kind=None, status=status, rag_filter=False, min_confidence=0.0, limit=None, faces=faces, where=where
    )
    if where is None:
        found = engine.export(status=terms["status"], faces=terms["faces"])
    else:
        found = engine.select_dicts(terms)
    if not any(engine.scope_names() or ()):
        return found
    owned = engine.are_own([record["id"] for record in found])
    return [record for record, is_own in zip(found, owned, strict=True) if is_own]


def create_index(store: HasEngine, path: str) -> bool:
    """Look records up by a field from now on, for all who use this store; say whether that is new.

    A field is written as in a ``where``, such as ``"data.customer"``; each element of an array is found.
    An index never changes an answer, only how many records are looked at. A store has at most 64.
    """
    return store.engine.create_index(string("path", path))


def drop_index(store: HasEngine, path: str) -> bool:
    """Take an index back; say whether there was one."""
    return store.engine.drop_index(string("path", path))


def indexes(store: HasEngine) -> list[str]:
    """Return the fields that have an index, the oldest first."""
    return store.engine.indexes()
