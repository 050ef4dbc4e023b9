"""Brings a space over to another model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from chronomemory.embedders.protocol import as_tokens
from chronomemory.errors import (
    EmbeddingMismatch,
    InvalidArgument,
    InvalidRecord,
    LogCorrupted,
    UnknownSpace,
    WriteConflict,
)
from chronomemory.face.arguments import Floats, contents, flag, function, refuse, string, string_or_none
from chronomemory.record import ChronoRecord
from chronomemory.tokens import CODE_BYTES, coded
from chronomemory.types import Progress
from chronomemory.updates import retry_in_turn
from chronomemory.vectors import HasEngine, Space, float_rows, spaces, use_space

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
else:
    from chronomemory import numpy_later as np

__all__ = ["reembed"]

#: How many records are embedded at a time, and how often those again that others change meanwhile.
_EMBED_AT_ONCE, _ROUNDS = 256, 8
_FLOAT_BYTES = 4
#: An id that can never have an embedding: it keeps the books of this face.
_NOBODY = "vector::default"


class Store(Protocol):
    """What is embedded again: all of a store, whosever it is."""

    def everyone(self) -> HasEngine:
        """Return a handle that sees every record."""


def reembed(
    store: Store,
    space: str | None,
    *,
    model: str,
    embed: Callable[[list[str]], npt.ArrayLike | Iterable[npt.ArrayLike]],
    into: str,
    text: Callable[[ChronoRecord], str] = lambda record: record.label,
    default: bool = False,
    progress: Progress | None = None,
) -> int:
    """Embed every record of a space again, with another model, into another space; return how many.

    The old space stays as it is and can be searched meanwhile. What is in the new one already is left
    alone, so that an interrupted run goes on where it stopped. With ``default=True`` searches that name
    no space go to the new one afterwards; if no record could be embedded, so that there is none, that is
    refused. A name or a model that the new space cannot have is refused before anything is embedded.

    If the space holds codes of tokens, so does the new one: then ``embed`` returns an array for each text,
    with a row for each of its tokens, as the ``embed_tokens`` of an embedder does.
    """
    space, default = string_or_none("space", space), flag("default", default)
    function("embed", embed)
    function("text", text)
    if progress is not None:
        function("progress", progress)
    everyone = store.everyone()
    left = [name for name in everyone.engine.matrix(space=space)[3] if name is not None]
    is_old = [
        known for known in spaces(everyone) if (known.is_default if space is None else known.name == space)
    ]
    old = is_old[0]
    if default and old.tokens:
        raise refuse("a space of tokens is none that vectors are asked of; name it as token_space", "default")
    _try_space(everyone, into, model, old)
    done = _owners(everyone, into)
    left = [name for name in left if name not in done]
    added = 0
    for start in range(0, len(left), _EMBED_AT_ONCE):
        names = left[start : start + _EMBED_AT_ONCE]
        for _ in range(_ROUNDS):
            texts = {record.id: text(record) for record in _living(everyone, names)}
            if not texts:
                break
            made = _Made(texts, text, into, model, *_rows(everyone, texts, embed, into, old))
            new, names = made.attached_in_time(everyone)
            added += new
            if not names:
                break
        else:
            raise _conflict()
        if progress is not None:
            progress(min(start + _EMBED_AT_ONCE, len(left)), len(left))
    if default:
        try:
            use_space(everyone, into)
        except UnknownSpace as error:
            raise InvalidArgument(
                f"default: no record was there to be embedded, so there is no space {into!r} to ask",
                field="default",
                recovery="Attach the first embedding to the new space, then choose it with use_space().",
            ) from error
    return added


def _rows(
    store: HasEngine,
    texts: dict[str, str],
    embed: Callable[[list[str]], npt.ArrayLike | Iterable[npt.ArrayLike]],
    into: str,
    old: Space,
) -> tuple[dict[str, Floats], int]:
    """Return what a model makes of texts, by the ids of their records, and the length of token vectors."""
    made = embed(list(texts.values()))
    with contents:
        if not old.tokens:
            rows = float_rows(made, (2,))
            if len(rows) != len(texts):
                raise refuse(f"{len(texts)} texts and {len(rows)} vectors do not go together", "vector")
            return dict(zip(texts, rows, strict=True)), 0
        tokens = dict(zip(texts, as_tokens(made, len(texts)), strict=True))
        told = {name: rows for name, rows in tokens.items() if len(rows)}
        if not told:
            return {}, 0
        is_new = into not in {known.name for known in spaces(store)}
        room = old.dim * _FLOAT_BYTES // CODE_BYTES if is_new else None
        codes = coded(store, list(told.values()), into, room)
        return dict(zip(told, codes, strict=True)), next(iter(told.values())).shape[1]


def _try_space(store: HasEngine, name: str, model: str, old: Space) -> None:
    """Let the engine refuse a name or a model before a long work, rather than after a part of it.

    It looks at the space before it looks at the ids, and knows the names that were dropped as well.
    """
    dims = {known.name: known.dim for known in spaces(store)}
    tokens = {known.name: known.tokens for known in spaces(store)}.get(string("into", name), old.tokens)
    row = np.zeros((1, dims.get(name, old.dim if old.tokens else 1)), dtype=np.float32)
    if bool(tokens) != bool(old.tokens):
        raise refuse(
            f"{name!r} holds {'codes of tokens' if tokens else 'vectors'}, and the old one not", "into"
        )
    try:
        store.engine.attach([_NOBODY], row, space=name, model=string("model", model), tokens=tokens)
    except EmbeddingMismatch as bound:
        # Bound a moment ago, by another process with the same model: how long its vectors are was a guess.
        if bound.model != model or bound.space in dims:
            raise
    except InvalidRecord as refused:
        if refused.field != "id":
            raise


def _living(store: HasEngine, names: Iterable[str]) -> list[ChronoRecord]:
    found = (store.get(name) for name in names)
    return [record for record in found if record is not None and record.status != "tombstone"]


@dataclass(frozen=True, slots=True)
class _Made:
    """Vectors that a model has made of texts; making them takes long, and others may go on meanwhile."""

    texts: dict[str, str]
    text: Callable[[ChronoRecord], str]
    space: str
    model: str
    #: By the ids of their records; a text without tokens has none.
    rows: dict[str, Floats]
    #: The length of the token vectors if the rows are codes of them.
    tokens: int

    def attached_in_time(self, store: HasEngine) -> tuple[int, list[str]]:
        """Attach what is still true and not there yet; return how many, and which were changed."""
        return retry_in_turn(store, lambda: self._attached(store))

    def _attached(self, store: HasEngine) -> tuple[int, list[str]]:
        since = store.engine.bookmark()
        there = {record.id: self.text(record) for record in _living(store, self.texts)}
        changed = [name for name, said in there.items() if said != self.texts[name]]
        kept = [
            name
            for name in self.rows
            if there.get(name) == self.texts[name] and not self._has_one(store, name)
        ]
        if kept:
            written = store.engine.attach(
                kept,
                np.stack([self.rows[name] for name in kept]),
                space=self.space,
                model=self.model,
                since=since,
                tokens=self.tokens,
            )
            if written is None:
                raise _conflict()
        return len(kept), changed

    def _has_one(self, store: HasEngine, name: str) -> bool:
        try:
            return store.engine.embedding(name, space=self.space) is not None
        except UnknownSpace:
            return False
        except LogCorrupted:  # a row that is damaged is replaced by nobody unasked
            return True


def _conflict() -> WriteConflict:
    return WriteConflict(
        "other writers kept changing the records that were embedded; nothing was written of the last of them",
        recovery="Run it again: it goes on where it stopped.",
    )


def _owners(store: HasEngine, space: str) -> set[str | None]:
    try:
        return set(store.engine.matrix(space=space)[3])
    except UnknownSpace:
        return set()
