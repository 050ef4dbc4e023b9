"""Declares the face of blocks, and opens a store of it."""

from __future__ import annotations

import os
from typing import Any

from chronomemory._core import Engine
from chronomemory.blocks.errors import BatchConflict, IntegrityError
from chronomemory.blocks.ids import FACE
from chronomemory.face.batch import Face, PrefixReader
from chronomemory.face.handle import Handle, open_handle, open_test_handle
from chronomemory.face.spaces import Reader, Spaces
from chronomemory.record import ChronoRecord
from chronomemory.scope import NOT_GIVEN, Scope
from chronomemory.store import ChronoStore


class _Reader(PrefixReader):
    """Reads what this face would have written: the engine leaves out what another hand put there."""

    def record(self, engine: Engine, record_id: str) -> ChronoRecord | None:
        return engine.blocks.get(record_id)

    def records(
        self, engine: Engine, kind: str, status: str | None, limit: int | None, *, own: bool = False
    ) -> list[ChronoRecord]:
        return engine.blocks.records(kind, status, limit, own=own)

    def count(self, engine: Engine, kind: str, status: str, *, own: bool = False) -> int:
        return engine.blocks.count(kind, status, own=own)


BLOCKS = Face(
    name=FACE,
    reader=_Reader(),
    conflict=BatchConflict,
    missing=IntegrityError,
)

SPACES = Spaces(FACE)
#: The codes of tokens have spaces of their own: none of another name can be one of these.
READER = Reader(SPACES, Spaces(f"{FACE}-tokens"))


class Blocks(Handle):
    """The blocks of one project. ``begin`` and ``connect`` work with ``with`` and with ``async with``.

    >>> from chronomemory.blocks import sync
    >>> with open_test_blocks() as blocks:
    ...     with blocks.begin() as conn:
    ...         sync.insert_block(conn, block_id="a", content="Ice is cold", category="fact", source="me")
    ...     with blocks.connect() as conn:
    ...         sync.get_block(conn, "a")["status"]
    'inbox'
    """

    face = BLOCKS


def open_blocks(
    place: str | os.PathLike[str] | ChronoStore,
    *,
    echo: bool = False,
    user: str = NOT_GIVEN,
    agent: str = NOT_GIVEN,
    session: str = NOT_GIVEN,
    shared: bool = True,
    **options: Any,
) -> Blocks:
    """Open the blocks of a project folder or of a store; the options are those of ``ChronoStore``.

    Names are those of ``ChronoStore.scoped``: what is theirs is seen and what is wider, and what is made is
    theirs.
    """
    scope = Scope.of(user=user, agent=agent, session=session)
    return open_handle(Blocks, place, echo=echo, scope=scope, shared=shared, **options)


def open_test_blocks() -> Blocks:
    """Open blocks that are gone when they are closed, in memory where the system has a folder for that."""
    return open_test_handle(Blocks)


async def create_engine(db_path: str | os.PathLike[str], *, echo: bool = False) -> Blocks:
    """Open the blocks of a project folder; with ``echo`` every change is logged."""
    return open_blocks(db_path, echo=echo)


async def create_test_engine() -> Blocks:
    """Open blocks in memory, without any built-in data."""
    return open_test_blocks()
