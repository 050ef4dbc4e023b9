"""How does a space come over to another model?"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

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
from chronomemory.types import Progress
from chronomemory.updates import again_if_changed
from chronomemory.vectors import HasEngine, float_rows, spaces, use_space

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
else:
    from chronomemory import numpy_later as np

__all__ = ["reembed"]

#: How many records are embedded at a time, and how often those again that others change meanwhile.
_EMBED_AT_ONCE, _ROUNDS = 256, 8
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
    embed: Callable[[list[str]], npt.ArrayLike],
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
    """
    space, default = string_or_none("space", space), flag("default", default)
    function("embed", embed)
    function("text", text)
    if progress is not None:
        function("progress", progress)
    everyone = store.everyone()
    left = [name for name in everyone.engine.matrix(space=space)[3] if name is not None]
    _try_space(everyone, into, model)
    done = _owners(everyone, into)
    left = [name for name in left if name not in done]
    added = 0
    for start in range(0, len(left), _EMBED_AT_ONCE):
        names = left[start : start + _EMBED_AT_ONCE]
        for _ in range(_ROUNDS):
            texts = {record.id: text(record) for record in _living(everyone, names)}
            if not texts:
                break
            with contents:
                rows = float_rows(embed(list(texts.values())), (2,))
            if len(rows) != len(texts):
                raise refuse(f"{len(texts)} texts and {len(rows)} vectors do not go together", "vector")
            made = _Made(texts, rows, text, into, model)
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


def _try_space(store: HasEngine, name: str, model: str) -> None:
    """Let the engine refuse a name or a model before a long work, rather than after a part of it.

    It looks at the space before it looks at the ids, and knows the names that were dropped as well.
    """
    dims = {known.name: known.dim for known in spaces(store)}
    row = np.zeros((1, dims.get(string("into", name), 1)), dtype=np.float32)
    try:
        store.engine.attach([_NOBODY], row, space=name, model=string("model", model))
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
    rows: Floats
    text: Callable[[ChronoRecord], str]
    space: str
    model: str

    def attached_in_time(self, store: HasEngine) -> tuple[int, list[str]]:
        """Attach what is still true and not there yet; return how many, and which were changed."""
        return again_if_changed(lambda: self._attached(store))

    def _attached(self, store: HasEngine) -> tuple[int, list[str]]:
        since = store.engine.bookmark()
        there = {record.id: self.text(record) for record in _living(store, self.texts)}
        changed = [name for name, said in there.items() if said != self.texts[name]]
        kept = [
            place
            for place, name in enumerate(self.texts)
            if there.get(name) == self.texts[name] and not self._has_one(store, name)
        ]
        if kept:
            names = list(self.texts)
            written = store.engine.attach(
                [names[place] for place in kept],
                self.rows[kept],
                space=self.space,
                model=self.model,
                since=since,
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
