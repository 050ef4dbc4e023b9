"""Every record comes exactly once, in every order, page by page or one by one, whatever others write."""

from __future__ import annotations

import base64
import gc
import hashlib
import json
import random
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from operator import length_hint
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoRecord, ChronoStore, Memory
from chronomemory.errors import InvalidArgument
from chronomemory.selection import Page

ORDERS = ["created", "updated", "happened", "confidence", "id"]
BOTH = [sign + name for name in ORDERS for sign in ("", "-")]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ChronoStore]:
    with ChronoStore(tmp_path) as store:
        yield store


def filled(store: ChronoStore, number: int, seed: int = 1) -> ChronoStore:
    """Fill a store with records whose keys are anything but in order, with ties and gaps."""
    chance = random.Random(seed)
    names = [f"R{n}" for n in range(number)] + ['quote"d', "back\\slash", "ä", "line\nend", "~", "A" * 40]
    chance.shuffle(names)
    start = datetime(2026, 1, 1, tzinfo=timezone.utc)
    for part in range(0, len(names), 7):
        store.upsert_many(
            ChronoRecord(
                id=name,
                kind=chance.choice(["fact", "note"]),
                confidence=chance.choice([0.0, 0.25, 0.5, 0.7, 1.0]),
                data={"time": (start + timedelta(hours=chance.randrange(20))).isoformat()}
                if chance.random() < 0.6
                else {},
            )
            for name in names[part : part + 7]
        )
    for name in chance.sample(names, len(names) // 3):
        record = store.get(name)
        assert record is not None
        store.upsert(record)
    return store


def key(record: ChronoRecord, order: str) -> Any:
    """Return what plain Python sorts by; records made by one event keep their place."""
    assert record.created_at is not None and record.updated_at is not None
    if order == "happened":
        told = record.data.get("time")
        return datetime.fromisoformat(told) if told else record.updated_at
    return {"created": 0, "updated": 0, "confidence": record.confidence, "id": record.id}[order]


def pages(store: Any, limit: int, **terms: Any) -> Iterator[Page]:
    page = store.query(limit=limit, **terms)
    while True:
        yield page
        if page.cursor is None:
            return
        page = store.query(limit=limit, after=page.cursor, **terms)


@pytest.mark.parametrize("order", BOTH)
@pytest.mark.parametrize("limit", [1, 4, 1_000])
def test_pages_together_are_the_whole(store: ChronoStore, order: str, limit: int) -> None:
    filled(store, 40)
    whole = store.query(order_by=order)
    assert isinstance(whole, Page) and whole.cursor is None
    assert [record for page in pages(store, limit, order_by=order) for record in page] == whole
    name, reverse = order.removeprefix("-"), order.startswith("-")
    inserted = store.query()
    if name == "created":
        assert whole == (inserted[::-1] if reverse else inserted)
    elif name == "updated":
        last = [store.history(record.id)[-1].seq for record in whole]
        assert last == sorted(last, reverse=reverse)
    else:
        expected = sorted(inserted, key=lambda record: key(record, name), reverse=reverse)
        keys = [key(record, name) for record in whole]
        assert keys == [key(record, name) for record in expected]
        # Of equal keys, those come first that were made first, either way round.
        place = {record.id: n for n, record in enumerate(inserted)}
        runs = [(a, b) for a, b in pairwise(whole) if key(a, name) == key(b, name)]
        assert all(place[a.id] < place[b.id] for a, b in runs)
    assert [r.id for r in store.as_of(store.wal_seq()).query(order_by=order)] == [r.id for r in whole]
    assert [r.id for r in store.stream(order_by=order)] == [r.id for r in whole]


@pytest.mark.parametrize("order", BOTH)
def test_what_does_not_change_comes_exactly_once_beside_writers(tmp_path: Path, order: str) -> None:
    chance = random.Random(7)
    with ChronoStore(tmp_path) as store:
        filled(store, 120)
        # Records whose key stays: never written again, and with a time of their own.
        still = {r.id for r in store.query() if chance.random() < 0.6 and "time" in r.data}
        moving = [r.id for r in store.query() if r.id not in still]
        seen: list[str] = []
        cursor, turn = None, 0
        while True:
            page = store.query(order_by=order, limit=9, after=cursor)
            seen += [record.id for record in page]
            cursor, turn = page.cursor, turn + 1
            if cursor is None:
                break
            for name in chance.sample(moving, 5):
                record = store.get(name)
                assert record is not None
                record.confidence = chance.random()
                record.data = {"time": f"2026-01-01T{chance.randrange(20):02}:00:00Z"}
                store.upsert(record)
            store.upsert(ChronoRecord(id=f"new-{turn}", confidence=chance.random()))
            store.delete(chance.choice(moving))
            if turn % 4 == 1:
                store.compact(keep_history=turn % 8 == 1)
            if turn % 4 == 2:
                store.close()
            if turn % 4 == 3:
                with ChronoStore(tmp_path) as other:
                    other.upsert(ChronoRecord(id=f"other-{turn}"))
        assert turn > 8
        assert sorted(name for name in seen if name in still) == sorted(still)
        if order.removeprefix("-") in ("created", "id"):
            assert len(seen) == len(set(seen))


def test_a_cursor_works_after_a_restore_that_took_its_record_away(store: ChronoStore) -> None:
    filled(store, 30)
    kept = store.backup()
    before = [record.id for record in store.query()]
    store.upsert_many([ChronoRecord(id=f"later-{n}") for n in range(10)])
    for order in ("created", "updated", "confidence", "id"):
        page = store.query(order_by=order, limit=len(before) + 4 if order != "id" else 10)
        cursor = page.cursor
        assert cursor is not None
        store.upkeep.restore(kept)
        seen = {record.id for record in page}
        rest = store.query(order_by=order, limit=100, after=cursor)
        assert [r.id for r in rest if r.id in seen] == []
        assert seen.union(r.id for r in rest) >= set(before)
        store.upsert_many([ChronoRecord(id=f"later-{n}") for n in range(10)])


def test_a_cursor_belongs_to_its_question(store: ChronoStore) -> None:
    filled(store, 20)
    cursor = store.query(kind="fact", limit=3).cursor
    assert cursor is not None
    assert store.query(kind="fact", limit=5, after=cursor, order_by="created")
    for other in (
        {"kind": "note"},
        {"kind": "fact", "status": ""},
        {"kind": "fact", "min_confidence": 0.5},
        {"kind": "fact", "rag_filter": True},
        {"kind": "fact", "faces": True},
        {"kind": "fact", "order_by": "-created"},
        {"kind": "fact", "order_by": "id"},
    ):
        with pytest.raises(InvalidArgument, match="after: the cursor belongs to another question"):
            store.query(limit=3, after=cursor, **other)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "given",
    [
        "",
        "x",
        "äö",
        "e30",
        "bnVsbA",
        base64.urlsafe_b64encode(json.dumps([1, "x", 2**70, 1, "a"]).encode()).decode(),
    ],
)
def test_what_is_no_cursor_is_refused(store: ChronoStore, given: str) -> None:
    with pytest.raises(InvalidArgument, match="after"):
        store.query(limit=3, after=given)


def test_questions_are_checked(store: ChronoStore) -> None:
    for wrong in ("", "-", "label", "--id", "Created", 3):
        with pytest.raises(InvalidArgument, match="order_by"):
            store.query(order_by=wrong)  # type: ignore[arg-type]
        with pytest.raises(InvalidArgument, match="order_by"):
            store.stream(order_by=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="after"):
        store.query(after=3)  # type: ignore[arg-type]
    assert store.query(limit=0) == [] and store.query(limit=0).cursor is None
    assert list(store.stream()) == []


@pytest.mark.parametrize("order", [None, *BOTH])
def test_a_walk_shows_the_moment_of_its_start(tmp_path: Path, order: str | None) -> None:
    chance = random.Random(3)
    with ChronoStore(tmp_path) as store, ChronoStore(tmp_path) as other:
        filled(store, 60)
        store.upsert(ChronoRecord(id="big", label="x" * 100_000))
        walk, head = store.stream(order_by=order, status=None), store.wal_seq()
        then = store.as_of(head).query(order_by=order, status=None)
        assert length_hint(walk) == len(then)
        seen = []
        for number, record in enumerate(walk):
            seen.append((record, record.created_at, record.updated_at, record.version))
            other.upsert(ChronoRecord(id=chance.choice(then).id, label="other " * 40))
            store.upsert(ChronoRecord(id=f"new-{number}"))
            if number == 20:
                store.compact()
            if number == 30:
                store.close()
        assert seen == [(r, r.created_at, r.updated_at, r.version) for r in then]
        assert next(walk, None) is None


def test_a_walk_can_be_left(store: ChronoStore) -> None:
    filled(store, 10)
    walk = store.stream(limit=5)
    assert length_hint(walk) == 5 and next(walk).id == store.query()[0].id
    walk.close()
    assert list(walk) == [] and length_hint(walk) == 0
    left = store.stream()
    next(left)
    del left
    gc.collect()
    assert len(list(store.stream(kind="note"))) == len(store.query(kind="note"))


def test_records_of_an_earlier_base_come_first(tmp_path: Path) -> None:
    """What was made before anything is known of it was made before all else, and keeps its order."""
    fields = {"record_id": "__compact__", "recursion_depth": 0, "seq": 5, "ts": "2026-01-01T00:00:00Z"}
    first = {"op": "compact", "prev_hash": "", "record": {"data": {}, "id": "__compact__"}, **fields}
    payload = json.dumps(first, sort_keys=True, separators=(",", ":"))
    line = {"hash": hashlib.sha256(payload.encode()).hexdigest(), **first}
    state = {"seq": 4, "last_hash": "", "records": [ChronoRecord(id=name).to_dict() for name in "CADB"]}
    # As another tool leaves it: a first line that names no base, and a snapshot beside it.
    folder = tmp_path / ".chronomemory"
    folder.mkdir()
    (folder / "events.wal").write_text(json.dumps(line) + "\n", encoding="utf-8")
    (folder / "snapshot.json").write_text(json.dumps(state), encoding="utf-8")
    with ChronoStore(tmp_path) as store:
        store.upsert_many([ChronoRecord(id=name) for name in "ZEY"])
        store.upsert(ChronoRecord(id="A", label="again"))
        for _ in range(2):
            assert [r.id for r in store.query(order_by="created")] == list("CADBZEY")
            seen = [r.id for page in pages(store, 2, order_by="created") for r in page]
            assert seen == list("CADBZEY")
            assert [r.id for page in pages(store, 2, order_by="-created") for r in page] == seen[::-1]
            # Of three nothing is known at all: they come last, either way round.
            assert [r.id for page in pages(store, 2, order_by="updated") for r in page] == list("ZEYACDB")
            assert [r.id for page in pages(store, 2, order_by="-updated") for r in page] == list("AYEZCDB")
            store.compact()


@pytest.mark.parametrize("name", ["created", "updated", "happened"])
def test_order_by_takes_the_names_that_where_takes(store: ChronoStore, name: str) -> None:
    store.upsert_many({"id": f"R-{n}"} for n in range(4))
    store.upsert({"id": "R-1", "label": "again"})
    for sign in ("", "-"):
        short, full = f"{sign}{name}", f"{sign}{name}_at"
        assert [r.id for r in store.query(order_by=full)] == [r.id for r in store.query(order_by=short)]
        cursor = store.query(order_by=short, limit=2).cursor
        assert len(store.query(order_by=full, limit=2, after=cursor)) == 2, "both are one order"
    assert len(store.query(where={f"{name}_at": {"exists": True}})) == 4


def test_a_query_takes_several_kinds(store: ChronoStore) -> None:
    rows = [{"id": f"{kind}-{n}", "kind": kind} for n in range(3) for kind in ("fact", "risk", "note")]
    store.upsert_many(rows)
    store.engine.upsert({"id": "block:1", "kind": "block"}, "blocks")
    wanted = [row["id"] for row in rows if row["kind"] != "note"]
    for ask in (store, store.as_of(store.wal_seq()), store.scoped(user="ann")):
        assert [r.id for r in ask.query(kind=["fact", "risk"])] == wanted
        assert [r.id for r in ask.query(kind=("fact",), where={"id": "fact-1"})] == ["fact-1"]
        assert ask.query(kind=[]) == [], "as in search, an empty list finds nothing"
        assert [r.id for r in ask.query(kind=["block", "none"])] == ["block:1"], "faces are found by kind"
    assert [r.id for r in store.stream(kind=iter(["fact", "risk"]))] == wanted
    seen = [r.id for page in pages(store, 2, kind=["fact", "risk"]) for r in page]
    assert seen == wanted
    with pytest.raises(InvalidArgument, match="kind"):
        store.query(kind=[3])  # type: ignore[list-item]


def unpacked(cursor: str) -> str:
    return base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()


@pytest.mark.parametrize("order", BOTH)
def test_a_cursor_reveals_no_id(store: ChronoStore, order: str) -> None:
    filled(store, 20)
    for page in pages(store, 1, order_by=order):
        if page.cursor is not None:
            digest = hashlib.sha256(page[0].id.encode()).hexdigest()
            assert page[0].id not in unpacked(page.cursor)
            assert digest[:8] not in page.cursor and digest[:8] not in unpacked(page.cursor)


@pytest.mark.parametrize("order", BOTH)
def test_a_cursor_works_after_its_record_was_erased(store: ChronoStore, order: str) -> None:
    filled(store, 20)
    whole = [record.id for record in store.query(order_by=order)]
    for at in (0, 7, 15):
        page = store.query(order_by=order, limit=at + 1)
        assert page.cursor is not None and page[-1].id == whole[at]
        store.erase(ids=[whole[at]], reason="it was asked for")
        assert [r.id for r in store.query(order_by=order, after=page.cursor)] == whole[at + 1 :]
        del whole[at]
        whole = [record.id for record in store.query(order_by=order)]


def test_a_cursor_by_id_whose_neighbours_were_both_erased_says_so(store: ChronoStore) -> None:
    filled(store, 20)
    whole = [record.id for record in store.query(order_by="id")]
    page = store.query(order_by="id", limit=5)
    store.erase(ids=whole[4:6], reason="it was asked for")
    with pytest.raises(InvalidArgument, match="after: the records at the end of that page were erased"):
        store.query(order_by="id", after=page.cursor)


@pytest.mark.parametrize("order", ["id", "-id"])
def test_a_cursor_is_not_led_astray_by_seqs_that_a_restored_log_uses_again(
    store: ChronoStore, order: str
) -> None:
    filled(store, 10)
    kept = store.backup()
    store.upsert_many([ChronoRecord(id=f"R5-{n}") for n in range(10)])
    page = store.query(order_by=order, limit=[r.id for r in store.query(order_by=order)].index("R5-4") + 1)
    assert page.cursor is not None and page[-1].id == "R5-4"
    store.upkeep.restore(kept)
    store.upsert_many([ChronoRecord(id=f"zz-{n}") for n in range(10)])
    with pytest.raises(InvalidArgument, match="ask again from the start"):
        store.query(order_by=order, after=page.cursor)


def test_records_of_one_event_are_listed_exactly_once(tmp_path: Path) -> None:
    """One act makes a block and its links; a page may end between them."""
    with Memory(tmp_path) as memory:
        for number in range(6):
            memory.remember(f"green tea number {number} in the garden", ["tea"])
        store = memory.blocks.project
        whole = [record.id for record in store.query(status=None, faces=True)]
        for order in ("created", "-created", "id", "confidence"):
            listed = [r.id for page in pages(store, 1, order_by=order, status=None, faces=True) for r in page]
            assert sorted(listed) == sorted(whole)


def test_a_cursor_of_an_earlier_version_is_refused(store: ChronoStore) -> None:
    filled(store, 5)
    earlier = base64.urlsafe_b64encode(b'[1,"0123456789abcdef",null,3,"R1"]').decode()
    with pytest.raises(InvalidArgument, match="of an earlier version; ask again from the start"):
        store.query(limit=2, after=earlier)
