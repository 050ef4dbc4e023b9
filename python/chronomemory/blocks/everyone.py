"""The memories of all who share a store, one after the other: for upkeep that nobody asks for himself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chronomemory.blocks.engine import Blocks
from chronomemory.blocks.ids import BLOCK, EDGE
from chronomemory.blocks.memory import Memory
from chronomemory.blocks.storage.forming import FORMING
from chronomemory.face.handle import open_handle
from chronomemory.scope import Scope
from chronomemory.store import ChronoStore

__all__ = ["each_memory"]

#: What upkeep is for. Links may be of someone who has no block: of shared ones that he used together.
_KEPT_UP = ((BLOCK, "inbox"), (BLOCK, "active"), (EDGE, "active"), (EDGE, FORMING))
#: How many scopes are asked for at once.
_AT_ONCE = 1000


def each_memory(store: ChronoStore, **options: Any) -> Iterator[tuple[Scope, Memory]]:
    """Walk through the memories that hold something of their own: what is shared, then scope by scope.

    The options are those of ``Memory``. Each sees and changes what it would if its names had been given, so a
    dream for all is the dreams of each:

    >>> import tempfile
    >>> from chronomemory import ChronoStore, Memory
    >>> with ChronoStore(tempfile.mkdtemp()) as store:
    ...     for name in "anna", "ben":
    ...         _ = Memory(store, user=name).learn("The lift is out of order")
    ...     for scope, memory in each_memory(store):
    ...         print(scope, len(memory.dream().consolidated.promoted))
    user=anna 1
    user=ben 1
    """
    for scope in _scopes(store):
        blocks = open_handle(Blocks, store, scope=scope)
        with blocks.connect() as conn:
            has_own = any(conn.count(kind, status, own=True) for kind, status in _KEPT_UP)
        if has_own:
            yield scope, Memory(blocks, **options)


def _scopes(store: ChronoStore) -> Iterator[Scope]:
    yield Scope()
    after: Scope | None = None
    while some := store.scopes(after=after, limit=_AT_ONCE):
        yield from (one.scope for one in some if one.scope != Scope())
        after = some[-1].scope
