"""Searches records by their words, their vectors and their neighbours."""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from chronomemory._core import Engine, canonical_json, parse_json
from chronomemory._core import View as EngineView
from chronomemory.errors import StaleCursor
from chronomemory.face.arguments import (
    LAST_SEQ,
    contents,
    count,
    flag,
    floats,
    must,
    number,
    refuse,
    string,
    string_or_none,
    strings,
)
from chronomemory.face.moments import micros
from chronomemory.filters import Filter, filter_terms
from chronomemory.record import INFRASTRUCTURE_KINDS, ChronoRecord
from chronomemory.scope import Answer, Scope
from chronomemory.selection import view_of, warn_of_stamps
from chronomemory.types import HasEngine
from chronomemory.vectors import TOKEN_SPACE, Space, float_rows
from chronomemory.watching import timed

if TYPE_CHECKING:
    import numpy.typing as npt
    from typing_extensions import Unpack

#: The record that holds a store's choice of fields; the engine reads it.
_CHOICE_ID = "search:fields"
_FACE = "search"
#: How a cursor is packed, and how much of a digest tells questions apart.
_PACKING = "s3"
_DIGEST_LETTERS = 16


@dataclass(frozen=True, slots=True)
class Hit:
    """A record that was found, its score, and with ``explain`` what the score is made of."""

    record: ChronoRecord
    score: float
    #: ``text`` and ``words`` (BM25, in all and by word), ``cosine``, ``tokens`` (how much of the question's
    #: tokens it says), the share of each in the best (``text_share``, ``vector_share``, ``token_share``),
    #: ``alone`` (the score before what surrounds it counts),
    #: what is added and by which record: ``linked``, ``second`` (two steps away) and ``grouped``, each with
    #: ``_by``; ``timed`` (it happened when the text says), ``spoken`` (by whom the text names), ``score``.
    why: dict[str, Any] | None = None

    @property
    def id(self) -> str:
        """The id of the record."""
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


@dataclass(frozen=True, slots=True)
class _NextPage:
    """Where the next page begins, of which question, behind which hits, and when the first was asked for."""

    question: _Asked
    version: tuple[int, int]
    shown: list[str]
    now_us: int

    def cursor(self) -> str:
        """Return all of it in letters."""
        packed = canonical_json(
            [
                _PACKING,
                self.question.digest(),
                list(self.version),
                len(self.shown),
                _digest(self.shown),
                self.now_us,
            ]
        )
        return base64.urlsafe_b64encode(packed).decode("ascii").rstrip("=")


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question, and who asks it."""

    wanted: Mapping[str, Any]
    asker: tuple[bool, tuple[str | None, ...] | None]

    def digest(self) -> str:
        """Tell it from others, however long its pages are."""
        vector, tokens = self.wanted["vector"], self.wanted["query_tokens"]
        condition = self.wanted["condition"]
        sees_wider, names = self.asker
        question = {
            **self.wanted,
            "vector": None if vector is None else vector.tobytes().hex(),
            "query_tokens": None if tokens is None else tokens.tobytes().hex(),
            "condition": None if condition is None else condition.decode(),
            "asker": [sees_wider, list(names or ["everyone"])],
            "limit": None,
        }
        return hashlib.sha256(canonical_json(question)).hexdigest()[:_DIGEST_LETTERS]


class Hits(Answer[Hit]):
    """Hits, best first; ``cursor`` is where to go on, None at the end."""

    __slots__ = ("_next",)

    def __init__(
        self,
        hits: Iterable[Hit] = (),
        next_page: _NextPage | None = None,
        *,
        scope: Scope | None = None,
        known: bool = True,
    ) -> None:
        super().__init__(hits, scope=scope, known=known)
        self._next = next_page

    @property
    def cursor(self) -> str | None:
        """Where to go on; None at the end. Few ask, so it is spelled when they do."""
        return None if self._next is None else self._next.cursor()


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

    A ``Filter`` selects the records that may be found; it never changes what a word is worth. Every write
    before the call is seen, those of other processes too. Infrastructure records are found only if their
    kind is given. With ``context`` linked records and those of the same group raise each other's score, and
    so does a time or a speaker that the text names (``now`` is what "yesterday" is counted from). Hits below
    ``min_score`` are left out; scores of words, of vectors and of both are of different sizes.

    The answer has a ``cursor`` if there is more; it is ``after`` for the next page. A page continues the one
    before only while nothing has changed that is seen here: else ``StaleCursor`` is raised.

    A vector is compared, exactly, with the embeddings of a ``space`` (the default one unless named) whose
    records pass all filters. ``query_tokens`` has a vector for each token of the question, and is compared
    with those of a ``token_space`` (``"tokens"`` unless named): of all records that may be found where these
    are few, or else of those that words and vectors put forward. Embeddings are those of now: ``as_of`` with
    a vector or tokens is refused. An ``embedder`` reads the text: it gives the vector if the space holds
    vectors of its model, and the tokens if the token space does, so that neither has to be given.
    """
    if embedder is not None:
        vector, query_tokens = _read(
            store, embedder, string("text", text), vector, query_tokens, space, token_space or TOKEN_SPACE
        )
    if text is None and vector is None and query_tokens is None:
        raise refuse("a search needs a text or a vector, or tokens", "text")
    limit = count("limit", limit)
    terms = filter_terms("search", given)
    kind = terms.pop("kind")
    any_kind = not kind and not isinstance(kind, list)
    kinds = [] if any_kind else [kind] if isinstance(kind, str) else kind
    wanted: dict[str, Any] = {
        **terms,
        "text": string_or_none("text", text),
        "vector": None if vector is None else float_rows(vector, (1,))[0],
        "space": string_or_none("space", space),
        "query_tokens": None if query_tokens is None else floats("query_tokens", query_tokens, (2,)),
        "token_space": string_or_none("token_space", token_space),
        "kinds": kinds,
        "without_kinds": sorted(INFRASTRUCTURE_KINDS),
        # For the engine an empty list of kinds means all kinds.
        "limit": limit if kinds or any_kind else 0,
        "context": flag("context", context),
        "now_us": None if now is None else micros("now", now),
    }
    for name in ("since", "until"):
        if (moment := wanted[f"{name}_us"]) is not None:
            warn_of_stamps(name, store.engine, moment, stacklevel=3)
    asked: Engine | EngineView = store.engine if as_of is None else view_of(store.engine, as_of)
    explain = flag("explain", explain)
    version = store.engine.seen_version() if isinstance(asked, Engine) else (asked.seq, 0)
    least = None if min_score is None else number("min_score", min_score)
    names = asked.scope_names()
    question = _Asked(
        {**wanted} if least is None else {**wanted, "min_score": least}, (asked.sees_wider(), names)
    )
    if after is not None:
        start, shown, wanted["now_us"] = _position(string("after", after), question.digest(), version)
    else:
        start, shown = 0, ""
        if now is None:
            wanted["now_us"] = time.time_ns() // 1000
    # One more than is wanted tells whether there is more.
    wanted["limit"] = start + wanted["limit"] + 1 if wanted["limit"] else 0
    with timed("a search"):
        found = asked.search(wanted, explain=explain)
    if least is not None:
        found = [hit for hit in found if hit[1] >= least]
    # Embeddings belong to nobody, so no version tells of them: what was shown before does.
    if start and _digest([record.id for record, _, _ in found[:start]]) != shown:
        raise _stale()
    hits = [Hit(record, score, why) for record, score, why in found[start : start + limit]]
    has_more = bool(hits) and len(found) > start + limit
    before = [record.id for record, _, _ in found[: start + limit]] if has_more else []
    next_page = _NextPage(question, version, before, wanted["now_us"]) if has_more else None
    scope = None if names is None else Scope(*names)
    return Hits(hits, next_page, scope=scope, known=asked.is_known())


def _read(
    store: HasEngine,
    embedder: QuestionReader,
    text: str,
    vector: npt.ArrayLike | None,
    tokens: npt.ArrayLike | None,
    space: str | None,
    token_space: str,
) -> tuple[npt.ArrayLike | None, npt.ArrayLike | None]:
    """Return the vector and the tokens of a question, as far as a space can be asked for them."""
    known_spaces = [Space(**known) for known in store.engine.spaces()]
    own = [known for known in known_spaces if known.model == embedder.model_name]
    embed, embed_tokens = (getattr(embedder, name, None) for name in ("embed", "embed_query_tokens"))
    if vector is None and embed is not None:
        plain = [known for known in own if not known.tokens]
        if any(known.is_default if space is None else known.name == space for known in plain):
            vector = embed(text)
    has_tokens = any(known.name == token_space for known in own if known.tokens)
    if tokens is None and embed_tokens is not None and has_tokens:
        tokens = embed_tokens(text)
    if vector is None and tokens is None:
        raise refuse(f"nothing that is asked was embedded by {embedder.model_name!r}", "embedder")
    return vector, tokens


def _digest(ids: list[str]) -> str:
    return hashlib.sha256(canonical_json(ids)).hexdigest()[:_DIGEST_LETTERS]


def _stale() -> StaleCursor:
    return StaleCursor("after: what is seen here has changed since that page; search again", field="after")


def _position(cursor: str, question: str, version: tuple[int, int]) -> tuple[int, str, int]:
    """Return where the next page begins, behind which hits, and when the first was asked for."""
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        unpacked = parse_json(base64.b64decode(padded, altchars=b"-_", validate=True))
        packing, asked, seen, start, shown, now_us = unpacked
    except (ValueError, TypeError):
        raise must("after", "be the cursor of a search", cursor) from None
    is_number = type(start) is int and type(now_us) is int and -LAST_SEQ <= now_us <= LAST_SEQ
    if packing != _PACKING or not is_number or type(shown) is not str or not 0 <= start <= LAST_SEQ:
        raise must("after", "be the cursor of a search", cursor)
    if asked != question:
        raise refuse("the cursor belongs to another question; ask as for the page that it came with", "after")
    if seen != list(version):
        raise _stale()
    return start, shown, now_us


@contents
def set_search_fields(
    store: HasEngine, text: Mapping[str, int] | None, named: Mapping[str, Iterable[str] | None]
) -> None:
    """Write the record that says which fields are searched; see ``Upkeep.set_search_fields``."""
    data: dict[str, Any] = {}
    if text is not None:
        if not isinstance(text, Mapping):
            raise must("text", "be a mapping of paths to weights", text)
        for path, weight in text.items():
            if isinstance(weight, bool) or not isinstance(weight, int) or not 1 <= weight <= 100:
                raise refuse(
                    f"the weight of {path!r} is a whole number from 1 to 100, not {weight!r}", "text"
                )
        data["text"] = dict(zip(_paths("text", text), text.values(), strict=True))
    data |= {name: _paths(name, paths) for name, paths in named.items() if paths is not None}
    choice = ChronoRecord(id=_CHOICE_ID, kind="search_fields", label="", confidence=1.0, data=data)
    store.engine.upsert(choice, _FACE)


def _paths(field: str, given: Iterable[str]) -> list[str]:
    paths = strings(field, given)
    if "" in paths:
        raise must(field, "not have an empty path", "")
    return paths
