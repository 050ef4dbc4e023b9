"""One mistake is one error, whichever call meets it."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoError, ChronoStore, DepGraph, errors, open_store
from chronomemory.blocks import FrameError, Memory, MemorySystem, UnknownBlock, sync
from chronomemory.selection import StoreView

ONE = [1.0, 0.0]
NAN = [math.nan, 0.0]
LONE = "\ud800"
LARGE = "x" * 2**24
NAIVE = datetime(2026, 1, 1)


@dataclass(frozen=True)
class Doors:
    """Every way in: a store and a look back at it, the memory of blocks, and its awaited twin."""

    store: ChronoStore
    view: StoreView
    memory: Memory
    folder: Path
    block: str

    @property
    def any(self) -> Any:
        """The store, for calls that no type checker would let pass."""
        return self.store

    def awaited(self, ask: Callable[[Any], Any]) -> None:
        async def call() -> None:
            async with MemorySystem(self.memory.blocks) as system:
                await ask(system)

        asyncio.run(call())

    def batch(self, change: Callable[[Any], object]) -> None:
        with self.memory.blocks.begin() as conn:
            change(conn)


@pytest.fixture
def doors(tmp_path: Path) -> Iterator[Doors]:
    with ChronoStore(tmp_path / "records") as store, Memory(tmp_path / "blocks") as memory:
        store.upsert({"id": "A", "label": "a"})
        store.vectors.attach("A", ONE, model="m")
        block = memory.remember("Anna likes tea").block_id
        yield Doors(store, store.as_of(1), memory, tmp_path, block)


Call = Callable[[Doors], object]
#: The mistake: the error, what it says, and the calls that meet it.
MISTAKES: dict[str, tuple[type[ChronoError], str, list[Call]]] = {
    "a space that nobody made": (
        errors.UnknownSpace,
        r'^there is no embedding space "none"$',
        [
            lambda d: d.store.vectors.nearest(ONE, space="none"),
            lambda d: d.store.search("a", ONE, space="none"),
            lambda d: d.store.vectors.get("A", space="none"),
            lambda d: d.store.vectors.detach("A", space="none"),
            lambda d: d.store.vectors.matrix(space="none"),
            lambda d: d.store.vectors.use("none"),
            lambda d: d.store.vectors.drop("none"),
        ],
    ),
    "a space that is no name": (
        errors.InvalidArgument,
        r"^space must be a string, got 7$",
        [
            lambda d: d.any.vectors.nearest(ONE, space=7),
            lambda d: d.any.search("a", ONE, space=7),
            lambda d: d.any.vectors.get("A", space=7),
            lambda d: d.any.vectors.detach("A", space=7),
            lambda d: d.any.vectors.matrix(space=7),
            lambda d: d.any.vectors.use(7),
            lambda d: d.any.vectors.drop(7),
            lambda d: d.any.vectors.attach("A", ONE, space=7),
            lambda d: d.any.vectors.attach_many(["A"], [ONE], space=7),
        ],
    ),
    "less than nothing": (
        errors.InvalidArgument,
        r"^(limit|k) must be (a whole number of )?at least 0, got -1$",
        [
            lambda d: d.store.query(limit=-1),
            lambda d: d.view.query(limit=-1),
            lambda d: d.store.search("a", limit=-1),
            lambda d: d.store.vectors.nearest(ONE, k=-1),
            lambda d: d.store.engine.find("blocks.edges", ["a"], limit=-1),
            lambda d: d.memory.list(limit=-1),
            lambda d: d.memory.consolidate(-1),
            lambda d: d.awaited(lambda system: system.list(limit=-1)),
        ],
    ),
    "no result at all": (
        errors.InvalidArgument,
        r"^top_k must be at least 1, got 0$",
        [
            lambda d: d.memory.recall("a", top_k=0),
            lambda d: d.memory.frame("attention", "a", top_k=0),
            lambda d: Memory(d.memory.blocks, top_k=0),
            lambda d: d.awaited(lambda system: system.recall("a", top_k=0)),
        ],
    ),
    "a number for an id": (
        errors.InvalidArgument,
        r"^(id|block_id|source|ids) must be a string, got 7$",
        [
            lambda d: d.any.get(7),
            lambda d: d.view.get(7),  # type: ignore[arg-type]
            lambda d: d.any.delete(7),
            lambda d: d.any.history(7),
            lambda d: d.any.vectors.get(7),
            lambda d: d.any.vectors.attach(7, ONE),
            lambda d: d.any.vectors.attach_many([7], [ONE]),
            lambda d: d.any.vectors.detach(7),
            lambda d: d.any.invalidate(7, "wrong"),
            lambda d: d.any.update(7, lambda record: record),
            lambda d: d.memory.forget(7),  # type: ignore[arg-type]
            lambda d: d.memory.edit(7, "Anna"),  # type: ignore[arg-type]
            lambda d: d.memory.history(7),  # type: ignore[arg-type]
            lambda d: d.memory.connect(7, d.block),  # type: ignore[arg-type]
            lambda d: d.memory.disconnect(7, d.block),  # type: ignore[arg-type]
            lambda d: d.memory.outcome([7], 1.0),  # type: ignore[list-item]
            lambda d: d.batch(lambda conn: sync.add_tags(conn, 7, ["work"])),  # type: ignore[arg-type]
            lambda d: d.awaited(lambda system: system.forget(7)),
        ],
    ),
    "an id that is no text": (
        errors.InvalidArgument,
        r"^(id|block_id): the character at 0 is half of a surrogate pair$",
        [
            lambda d: d.store.get(LONE),
            lambda d: d.view.get(LONE),
            lambda d: d.store.delete(LONE),
            lambda d: d.store.history(LONE),
            lambda d: d.store.vectors.attach(LONE, ONE),
            lambda d: d.memory.forget(LONE),
            lambda d: d.memory.history(LONE),
        ],
    ),
    "no moment": (
        errors.InvalidArgument,
        r"^as_of must be a seq or a datetime, got 'noon'$",
        [lambda d: d.any.as_of("noon"), lambda d: d.any.search("a", as_of="noon")],
    ),
    "a moment without a time zone": (
        errors.InvalidArgument,
        r"^(as_of|since) must have a time zone",
        [
            lambda d: d.store.as_of(NAIVE),
            lambda d: d.store.search("a", as_of=NAIVE),
            lambda d: d.store.search("a", since=NAIVE),
        ],
    ),
    "a word for yes": (
        errors.InvalidArgument,
        r"^\w+ must be True or False, got 'yes'$",
        [
            lambda d: d.any.query(faces="yes"),
            lambda d: d.any.query(rag_filter="yes"),
            lambda d: d.any.export_records(faces="yes"),
            lambda d: d.any.count(by="kind", faces="yes"),
            lambda d: d.any.search("a", context="yes"),
            lambda d: d.any.vectors.drop("default", force="yes"),
            lambda d: d.any.compact(keep_history="yes"),
            lambda d: d.any.upkeep.restore(d.folder, damaged="yes"),
            lambda d: d.any.upkeep.repair(unproven="yes"),
            lambda d: ChronoStore(d.folder, exclusive="yes"),  # type: ignore[arg-type]
            lambda d: d.memory.recall("a", diversify="yes"),  # type: ignore[arg-type]
        ],
    ),
    "a word for a choice": (
        errors.InvalidArgument,
        r"^\w+ must be one of .+, got 'often'$",
        [
            lambda d: ChronoStore(d.folder, durability="often"),
            lambda d: open_store(d.folder, verify="often"),
            lambda d: d.memory.list(status="often"),
            lambda d: d.memory.connect("a", "b", if_exists="often"),  # type: ignore[arg-type]
        ],
    ),
    "a relation that nobody knows": (
        errors.InvalidArgument,
        r"^edge_type must be one of assumes, .+, got 'often'$",
        [
            lambda d: DepGraph().add_edge("A", "B", "often"),
            lambda d: DepGraph().remove_edge("A", "B", "often"),
            lambda d: DepGraph().successors("A", ["often"]),
        ],
    ),
    "no place": (
        errors.InvalidArgument,
        r"^\w+ must be a (path|list), got 7$",
        [
            lambda d: ChronoStore(7),  # type: ignore[arg-type]
            lambda d: Memory(7),  # type: ignore[arg-type]
            lambda d: d.any.upkeep.restore(7),
            lambda d: d.any.ingest(7),
        ],
    ),
    "nothing that can be called": (
        errors.InvalidArgument,
        r"^progress must be a function, got 7$",
        [
            lambda d: d.any.verify(progress=7),
            lambda d: d.any.compact(progress=7),
            lambda d: d.any.backup(progress=7),
            lambda d: d.any.upkeep.repair(progress=7),
            lambda d: d.any.ingest(d.folder / "rows", progress=7),
        ],
    ),
    "a vector to ask with that is not finite": (
        errors.InvalidArgument,
        r"^vector must be finite in all components, got NaN$",
        [
            lambda d: d.store.vectors.nearest(NAN),
            lambda d: d.any.vectors.nearest([NAN]),
            lambda d: d.store.search("a", NAN),
        ],
    ),
    "a vector to ask with of another length": (
        errors.InvalidArgument,
        r'^vector must have 2 components, as those of "default" have, got 1$',
        [lambda d: d.store.vectors.nearest([1.0]), lambda d: d.store.search("a", [1.0])],
    ),
    "a vector to keep that is not finite": (
        errors.InvalidRecord,
        r"finite",
        [
            lambda d: d.store.vectors.attach("A", NAN),
            lambda d: d.store.vectors.attach_many(["A"], [NAN]),
            lambda d: d.batch(lambda conn: sync.update_block_scoring(conn, d.block, embedding=NAN)),
        ],
    ),
    "a vector to keep of another length": (
        errors.EmbeddingMismatch,
        r"with \d+ dimensions, not to",
        [
            lambda d: d.store.vectors.attach("A", [1.0]),
            lambda d: d.store.vectors.attach_many(["A"], [[1.0]]),
            lambda d: d.batch(lambda conn: sync.update_block_scoring(conn, d.block, embedding=[1.0])),
        ],
    ),
    "an embedding for a record that is not there": (
        errors.InvalidRecord,
        r'there is no record "none"',
        [
            lambda d: d.store.vectors.attach("none", ONE),
            lambda d: d.store.vectors.attach_many(["none"], [ONE]),
        ],
    ),
    "a confidence beyond one": (
        errors.InvalidRecord,
        r"^confidence must be from 0 to 1, got 7(\.0)?$",
        [
            lambda d: d.store.upsert({"id": "B", "confidence": 7}),
            lambda d: d.store.upsert({"id": "B", "confidence": 7}, if_new=True),
            lambda d: d.store.upsert_many([{"id": "B", "confidence": 7}]),
            lambda d: d.store.update("A", lambda record: {"id": "A", "confidence": 7}),
            lambda d: d.batch(lambda conn: sync.update_block_scoring(conn, d.block, confidence=7)),
        ],
    ),
    "something else for a record": (
        errors.InvalidRecord,
        r"^record must be a ChronoRecord or a dict, got 7$",
        [
            lambda d: d.any.upsert(7),
            lambda d: d.any.upsert_many([7]),
        ],
    ),
    "more than a line holds": (
        errors.RecordTooLarge,
        r"16 MiB",
        [
            lambda d: d.store.upsert({"id": "B", "label": LARGE}),
            lambda d: d.store.upsert({"id": "B", "label": LARGE}, if_new=True),
            lambda d: d.store.upsert_many([{"id": "B", "label": LARGE}]),
            lambda d: d.store.ingest(_rows(d, {"id": "B", "label": LARGE})),
            lambda d: d.memory.learn(LARGE),
        ],
    ),
    "a block that is not there": (
        UnknownBlock,
        r"^there is no block 'none'$",
        [
            lambda d: d.memory.forget("none"),
            lambda d: d.memory.edit("none", "Anna"),
            lambda d: d.memory.connect("none", d.block),
            lambda d: d.batch(lambda conn: sync.add_tags(conn, "none", ["work"])),
            lambda d: d.awaited(lambda system: system.forget("none")),
        ],
    ),
    "a frame that is not there": (
        FrameError,
        r"^there is no frame 'none'$",
        [lambda d: d.memory.frame("none"), lambda d: d.memory.recall("a", frame="none")],
    ),
    "a store that is closed": (
        errors.StoreClosed,
        r"^the store is closed$",
        [
            lambda d: _closed(d).get("A"),
            lambda d: _closed(d).query(),
            lambda d: _closed(d).find("blocks.edges", ["a"], limit=1),
            lambda d: _closed(d).upsert({"id": "B"}),
            lambda d: _closed(d).delete("A"),
        ],
    ),
    "a lock that another writer keeps": (
        errors.StoreLocked,
        r"is held by",
        [
            lambda d: _second(d).upsert({"id": "B"}),
            lambda d: _second(d).vectors.attach("A", ONE),
            lambda d: _second(d).compact(),
        ],
    ),
}


def _rows(doors: Doors, record: dict[str, Any]) -> Path:
    rows = doors.folder / "rows.ndjson"
    rows.write_text(json.dumps(record) + "\n")
    return rows


def _closed(doors: Doors) -> Any:
    engine = doors.store.engine
    doors.store.close()
    return engine


def _second(doors: Doors) -> ChronoStore:
    doors.store.close()
    keeper = ChronoStore(doors.store.project_root, exclusive=True)
    keeper.upsert({"id": "KEPT"})
    second = ChronoStore(doors.store.project_root, lock_timeout=0.01)
    _OPENED.extend((keeper, second))
    return second


_OPENED: list[ChronoStore] = []


@pytest.fixture(autouse=True)
def _all_are_closed() -> Iterator[None]:
    yield
    while _OPENED:
        _OPENED.pop().close()


@pytest.mark.parametrize(
    ("kind", "says", "call"),
    [
        pytest.param(kind, says, call, id=f"{mistake} {number}")
        for mistake, (kind, says, calls) in MISTAKES.items()
        for number, call in enumerate(calls)
    ],
)
def test_every_call_says_the_same(doors: Doors, kind: type[ChronoError], says: str, call: Call) -> None:
    # Of a batch the row is named first.
    with pytest.raises(ChronoError, match=says.replace("^", r"^(row \d+( \(id [^)]*\))?, )?", 1)) as told:
        call(doors)
    assert type(told.value) is kind
    assert told.value.recovery.endswith(".")
    if isinstance(told.value, errors.InvalidArgument):
        assert told.value.field
        assert told.value.path
