"""A record that an erasure writes again without a reference keeps its creation time and its place."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

import pytest
from chronomemory import ChronoStore, DepGraph
from chronomemory.blocks import Memory
from test_erase import holding, is_valid_for_both

NAMES = [f"R{number}" for number in range(12)]


def filled(root: Path) -> ChronoStore:
    """Return a store in which every third record has R4 as its evidence."""
    store = ChronoStore(root)
    for place, name in enumerate(NAMES):
        store.upsert({"id": name, "evidence": ["R4"] if place % 3 == 0 else [], "kind": f"k{place % 2}"})
        if place == 5:
            store.compact()
    return store


def listed(store: ChronoStore, **asked: str) -> list[tuple[str, object, object]]:
    """Return what identifies the records of a query in order."""
    return [(one.id, one.created_at, one.created_seq) for one in store.query(**asked)]


@pytest.mark.parametrize("history", ["redact", "drop"])
def test_order_and_creation_time_of_neighbours_stay(tmp_path: Path, history: str) -> None:
    store = filled(tmp_path)
    orders: list[dict[str, str]] = [{}, {"order_by": "-created"}, {"kind": "k1"}, {"order_by": "created"}]
    before = [[row for row in listed(store, **asked) if row[0] != "R4"] for asked in orders]
    moment = max(str(one.updated_at) for one in store.query())
    told = store.erase(ids=["R4"], reason="asked for", history=history)
    assert told.mentions == ("R0", "R3", "R6", "R9")

    def check() -> None:
        assert [listed(store, **asked) for asked in orders] == before
        assert [record.id for record in store.stream()] == [row[0] for row in before[0]]
        assert is_valid_for_both(store)

    steps: list[Callable[[], object]] = [
        store.close,
        store.compact,
        store.close,
        lambda: store.erase(ids=["R1"], reason="asked for"),
        lambda: [rows.remove(row) for rows in before for row in list(rows) if row[0] == "R1"],
        store.compact,
        store.close,
    ]
    check()
    for step in steps:
        step()
        if step is not steps[3]:
            check()
    kept = store.get("R0")
    assert kept is not None
    assert str(kept.updated_at) > moment
    store.upsert({"id": "NEW"})
    assert store.query()[-1].id == "NEW"
    store.close()


@pytest.mark.parametrize("reverse", ["", "-"])
@pytest.mark.parametrize("at", range(1, 11))
def test_a_cursor_from_before_the_erasure_repeats_and_skips_nothing(
    tmp_path: Path, reverse: str, at: int
) -> None:
    with filled(tmp_path) as store:
        order = f"{reverse}created"
        page = store.query(order_by=order, limit=at)
        store.erase(ids=["R4"], reason="asked for")
        rest = [record.id for record in store.query(order_by=order, after=page.cursor)]
        names = NAMES[::-1] if reverse else NAMES
        assert rest == [name for name in names[at:] if name != "R4"]
        second = store.query(order_by=order, after=page.cursor, limit=2)
        third = store.query(order_by=order, after=second.cursor, limit=20) if second.cursor else []
        assert [record.id for record in (*second, *third)] == rest


def test_a_scope_lists_its_neighbours_in_their_places(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        ann = store.scoped(user="ann")
        for name in ("a", "b", "c", "d"):
            ann.upsert({"id": name, "evidence": ["gone"] if name in "ac" else []})
            store.upsert({"id": f"all-{name}"})
        store.upsert({"id": "gone"})
        before = [record.id for record in ann.query() if record.id != "gone"]
        store.erase(ids=["gone"], reason="asked for")
        assert [record.id for record in ann.query()] == before
        pages = [record.id for record in ann.query(limit=3)]
        assert pages == before[:3]


def test_a_reinstatement_does_not_take_other_events_for_its_own(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert_many([{"id": name, "label": name} for name in ("tea", "zqmia", "tom")])
        for name in ("zqmia", "tom"):
            DepGraph(store).add_edge(name, "tea", "depends_on")
        store.invalidate("tea", "cold")
        store.reinstate("ROLLBACK-tea", "warm")
        store.erase(ids=["zqmia"], reason="asked for")
        (rollback,) = store.rollbacks("tom")
        assert rollback.reinstated == "warm"
        assert rollback.reinstated_seq is None


def test_the_copy_of_a_block_that_was_kept_is_mentioned(tmp_path: Path) -> None:
    with Memory(tmp_path, user="ann", session="s") as memory:
        block = memory.remember("The pin is zq4711").block_id
        (copy,) = memory.keep([block]).kept.values()
    with ChronoStore(tmp_path) as store:
        planned = store.erase(ids=[f"block:{block}"], reason="asked for", dry_run=True)
        told = store.erase(ids=[f"block:{block}"], reason="asked for")
        assert planned.mentions == told.mentions == (f"block:{copy}",)
        assert holding(tmp_path, block) == []


def test_a_cursor_holds_no_content(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upkeep.create_index("data.email")
        for number in range(6):
            store.upsert({"id": f"p{number}", "data": {"email": f"zq{number}@example.org"}})
        page = store.query(order_by="data.email", limit=2)
        assert page.cursor is not None
        packed = base64.urlsafe_b64decode(page.cursor + "==")
        assert b"zq1".hex().encode() not in packed and b"zq1" not in packed
        rest = ["p2", "p3", "p4", "p5"]
        assert [record.id for record in store.query(order_by="data.email", after=page.cursor)] == rest
        store.erase(ids=["p1"], reason="asked for")
        assert [record.id for record in store.query(order_by="data.email", after=page.cursor)] == rest
        store.update("p2", data={"email": "zzz"})
        with pytest.raises(ValueError, match="from the start"):
            store.query(order_by="data.email", after=page.cursor)
