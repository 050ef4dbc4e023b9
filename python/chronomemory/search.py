"""Searches records by their words, their vectors and their neighbours."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple, Protocol

from chronomemory._core import Reader
from chronomemory.errors import StaleCursor
from chronomemory.face import arguments as check
from chronomemory.face.moments import micros
from chronomemory.filters import Filter, filter_terms
from chronomemory.numpy_later import Floats, npt
from chronomemory.record import INFRASTRUCTURE_KINDS, ChronoRecord
from chronomemory.scope import Scope
from chronomemory.selection import (
    Paged,
    check_question,
    cursor_of,
    digest_of,
    parts_of,
    question_digest,
    view_of,
    warn_of_stamps,
)
from chronomemory.types import HasEngine, Unpack
from chronomemory.vectors import TOKEN_SPACE, Space, float_rows
from chronomemory.watching import timed

_CHOICE_ID = "search:fields"
_FACE = "search"
_PACKING = "s3"


@dataclass(frozen=True, slots=True)
class Hit:
    """A record that was found, its score, and with ``explain`` what the score is made of."""

    record: ChronoRecord
    score: float
    #: ``text`` and ``words`` (BM25), ``cosine``, ``tokens``, the share of each in the best, ``alone``, what
    #: is added and by which record (``linked``, ``second``, ``grouped``, ``timed``, ``spoken``), ``score``.
    why: dict[str, Any] | None = None

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def created_at(self) -> datetime | None:
        """When the record was made."""
        return self.record.created_at

    @property
    def updated_at(self) -> datetime | None:
        """When an event spoke of it last."""
        return self.record.updated_at

    @property
    def version(self) -> str | None:
        """Which version of the record was found."""
        return self.record.version


class Hits(Paged[Hit]):
    """Hits, best first; ``cursor`` is where to go on, None at the end."""

    __slots__ = ()


class QuestionReader(Protocol):
    """What reads a question: it has ``embed``, ``embed_query_tokens`` or both, as embedders do."""

    @property
    def model_name(self) -> str:
        """The model that embedded the records too."""


def search(
    store: HasEngine,
    text: str | None = None,
    vector: npt.ArrayLike | None = None,
    *,
    limit: int = 10,
    after: str | None = None,
    min_score: float | None = None,
    context: bool = True,
    now: datetime | None = None,
    as_of: int | datetime | None = None,
    explain: bool = False,
    space: str | None = None,
    query_tokens: npt.ArrayLike | None = None,
    token_space: str | None = None,
    embedder: QuestionReader | None = None,
    **given: Unpack[Filter],
) -> Hits:
    """Return the best records of all faces for a text, a vector, tokens or several of these, best first.

    A ``Filter`` selects records and never changes what a word is worth. With ``context`` linked records,
    groups, named times and speakers raise scores (``now`` is what "yesterday" is counted from). ``after``
    takes the ``cursor`` of a page, and raises ``StaleCursor`` if anything seen here has changed.

    A vector is compared exactly with a ``space``, ``query_tokens`` with a ``token_space``, as they are now.
    An ``embedder`` reads the text and gives both, as far as there are spaces of its model.
    """
    if embedder is not None:
        words = check.string("text", text)
        vector, query_tokens = _read(store, embedder, words, vector, query_tokens, space, token_space)
    if text is None and vector is None and query_tokens is None:
        raise check.refuse("a search needs a text or a vector, or tokens", "text")
    limit = check.count("limit", limit)
    terms = filter_terms("search", given)
    kind = terms.pop("kind")
    any_kind = not kind and not isinstance(kind, list)
    kinds = [] if any_kind else [kind] if isinstance(kind, str) else kind
    wanted: dict[str, Any] = {
        **terms,
        "text": check.string_or_none("text", text),
        "vector": None if vector is None else float_rows(vector, (1,))[0],
        "space": check.string_or_none("space", space),
        "query_tokens": None if query_tokens is None else check.floats("query_tokens", query_tokens, (2,)),
        "token_space": check.string_or_none("token_space", token_space),
        "kinds": kinds,
        "without_kinds": sorted(INFRASTRUCTURE_KINDS),
        "limit": limit if kinds or any_kind else 0,
        "context": check.flag("context", context),
        "now_us": None if now is None else micros("now", now),
    }
    for name in ("since", "until"):
        if (moment := wanted[f"{name}_us"]) is not None:
            warn_of_stamps(name, store.engine, moment, stacklevel=3)
    asked: Reader = store.engine if as_of is None else view_of(store.engine, as_of)
    explain = check.flag("explain", explain)
    least = None if min_score is None else check.number("min_score", min_score)
    question = {**wanted} if least is None else {**wanted, "min_score": least}
    begin = None if after is None else _position(check.string("after", after))
    start = 0 if begin is None else begin.start
    if begin is not None:
        wanted["now_us"] = begin.now_us
    elif now is None:
        wanted["now_us"] = time.time_ns() // 1000
    # One more than is wanted tells whether there is more.
    wanted["limit"] = start + wanted["limit"] + 1 if wanted["limit"] else 0
    with timed("a search"):
        found, (version, sees_wider, names, known) = asked.search(wanted, explain=explain)
    if least is not None:
        found = [hit for hit in found if hit[1] >= least]
    digest = partial(
        question_digest,
        question,
        vector=_hex(wanted["vector"]),
        query_tokens=_hex(wanted["query_tokens"]),
        asker=[sees_wider, list(names or ["everyone"])],
    )
    if begin is not None:
        check_question(begin.question, digest())
        # Embeddings belong to no scope, so no version covers them: compare what was shown before.
        shown = digest_of([record.id for record, _, _ in found[:start]]) if start else begin.shown
        if begin.version != list(version) or shown != begin.shown:
            raise StaleCursor(
                "after: what is seen here has changed since that page; search again", field="after"
            )
    hits = [Hit(record, score, why) for record, score, why in found[start : start + limit]]
    has_more = bool(hits) and len(found) > start + limit

    def cursor() -> str:
        before = [record.id for record, _, _ in found[: start + limit]]
        place = [list(version), len(before), digest_of(before), wanted["now_us"]]
        return cursor_of([_PACKING, digest(), *place])

    return Hits(
        hits, cursor if has_more else None, scope=None if names is None else Scope(*names), known=known
    )


def _read(
    store: HasEngine,
    embedder: QuestionReader,
    text: str,
    vector: npt.ArrayLike | None,
    tokens: npt.ArrayLike | None,
    space: str | None,
    token_space: str | None,
) -> tuple[npt.ArrayLike | None, npt.ArrayLike | None]:
    known_spaces = [Space(**known) for known in store.engine.vectors.spaces()]
    own = [known for known in known_spaces if known.model == embedder.model_name]
    embed, embed_tokens = (getattr(embedder, name, None) for name in ("embed", "embed_query_tokens"))
    if vector is None and embed is not None:
        plain = [known for known in own if not known.tokens]
        if any(known.is_default if space is None else known.name == space for known in plain):
            vector = embed(text)
    has_tokens = any(known.name == (token_space or TOKEN_SPACE) for known in own if known.tokens)
    if tokens is None and embed_tokens is not None and has_tokens:
        tokens = embed_tokens(text)
    if vector is None and tokens is None:
        raise check.refuse(f"nothing that is asked was embedded by {embedder.model_name!r}", "embedder")
    return vector, tokens


def _hex(rows: Floats | None) -> str | None:
    return None if rows is None else rows.tobytes().hex()


class _Position(NamedTuple):
    """Where a page begins: behind which hits of which question, and when the first page was asked for."""

    question: str
    version: list[int]
    start: int
    shown: str
    now_us: int


def _position(cursor: str) -> _Position:
    packing, *rest = parts_of(cursor, 6, "a search")
    begin = _Position(*rest)
    is_number = type(begin.start) is int and type(begin.now_us) is int and abs(begin.now_us) <= check.LAST_SEQ
    if (
        packing != _PACKING
        or not is_number
        or type(begin.shown) is not str
        or not 0 <= begin.start <= check.LAST_SEQ
    ):
        raise check.must("after", "be the cursor of a search", cursor)
    return begin


@check.contents
def set_search_fields(
    store: HasEngine, text: Mapping[str, int] | None, named: Mapping[str, Iterable[str] | None]
) -> None:
    """Write the record that says which fields are searched; see ``Upkeep.set_search_fields``."""
    data: dict[str, Any] = {}
    if text is not None:
        if not isinstance(text, Mapping):
            raise check.must("text", "be a mapping of paths to weights", text)
        for path, weight in text.items():
            if isinstance(weight, bool) or not isinstance(weight, int) or not 1 <= weight <= 100:
                raise check.refuse(
                    f"the weight of {path!r} is a whole number from 1 to 100, not {weight!r}", "text"
                )
        data["text"] = dict(zip(_paths("text", text), text.values(), strict=True))
    data |= {name: _paths(name, paths) for name, paths in named.items() if paths is not None}
    choice = ChronoRecord(id=_CHOICE_ID, kind="search_fields", label="", confidence=1.0, data=data)
    store.engine.upsert(choice, _FACE)


def _paths(field: str, given: Iterable[str]) -> list[str]:
    paths = check.strings(field, given)
    if "" in paths:
        raise check.must(field, "not have an empty path", "")
    return paths
