"""Attaches the token vectors of records.

A model that gives a vector for each token of a text finds more than one that gives one for all of it. Of each
token a code of 16 bytes is kept, in a *space* of its own. These functions stand below the store, which
offers them as methods.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from chronomemory._core import token_rows
from chronomemory.face.arguments import (
    Floats,
    contents,
    count,
    floats,
    many,
    must,
    refuse,
    string,
    string_or_none,
    strings,
)
from chronomemory.vectors import HasEngine, spaces

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
else:
    from chronomemory import numpy_later as np

__all__ = ["CODE_BYTES", "TOKEN_SPACE", "attach_tokens", "attach_tokens_many", "coded"]

#: The space of tokens when none is named, and how many codes a row of a new one has room for.
TOKEN_SPACE, MOST_CODES = "tokens", 48
#: What a code takes.
CODE_BYTES = 16
_CODE_FLOATS = 4


def attach_tokens(
    store: HasEngine,
    record_id: str,
    tokens: npt.ArrayLike,
    *,
    space: str = TOKEN_SPACE,
    model: str | None = None,
    most: int | None = None,
) -> range:
    """Give a record the vectors of its tokens, in place of those it had; return the seqs that took.

    ``tokens`` has a row for each token. Of each a code of 16 bytes is kept; the vectors themselves are
    not. The first tokens bind the ``space`` to their ``model``, to the length of a row, and to how many
    codes a record has room for, ``most`` of them, by default 48. Where a record has more tokens,
    neighbours share a code.
    """
    with contents:
        rows = [_tokens(tokens)]
    return _attach(store, [string("id", record_id)], rows, space, model, most)


def attach_tokens_many(
    store: HasEngine,
    record_ids: Iterable[str],
    tokens: Iterable[npt.ArrayLike],
    *,
    space: str = TOKEN_SPACE,
    model: str | None = None,
    most: int | None = None,
) -> range:
    """Give records the vectors of their tokens as one atomic batch: the i-th array is for the i-th id."""
    if isinstance(record_ids, str):
        raise must("ids", "be a list of ids", record_ids)
    ids = strings("ids", record_ids)
    with contents:
        rows = [_tokens(one) for one in many("tokens", tokens)]
    if len(ids) != len(rows):
        raise refuse(f"{len(ids)} ids and {len(rows)} arrays of tokens do not go together", "tokens")
    return _attach(store, ids, rows, space, model, most)


def _tokens(given: object) -> Floats:
    rows = floats("tokens", given, (2,))
    if not rows.size:
        raise must("tokens", "have at least one row and one column", rows.shape)
    return rows


def _attach(
    store: HasEngine, ids: list[str], rows: list[Floats], space: str, model: str | None, most: int | None
) -> range:
    space, model = string("space", space), string_or_none("model", model)
    if not rows:
        raise refuse("there must be at least one", "ids")
    codes = coded(store, rows, space, most)
    attached = store.engine.attach(ids, codes, space=space, model=model, tokens=rows[0].shape[1])
    # Without a bookmark nothing can be in its way.
    return range(*(attached or (0, 0)))


def coded(store: HasEngine, rows: list[Floats], space: str, most: int | None = None) -> Floats:
    """Return a row of codes for the token vectors of each record, as a space has room for them."""
    room = {known.name: known.dim // _CODE_FLOATS for known in spaces(store) if known.tokens}.get(space)
    if most is not None and count("most", most, 1) != (room or most):
        raise refuse(f"a record of {space!r} has room for {room} codes", "most")
    lengths = {one.shape[1] for one in rows}
    if len(lengths) > 1:
        raise refuse(
            f"rows of {' and '.join(map(str, sorted(lengths)))} numbers are of several models", "tokens"
        )
    together = np.concatenate(rows)
    if not np.isfinite(together).all():
        raise refuse("a number is not finite", "tokens")
    return token_rows(together, [len(one) for one in rows], room or most or MOST_CODES)
