"""What has expired is left out of every answer, and nothing else; and a sweep takes just that."""

from __future__ import annotations

import json
import time
from datetime import datetime, timedelta, timezone
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chronomemory import ChronoStore, DepGraph
from chronomemory.blocks import Memory
from chronomemory.cli.transfer import bring_records
from chronomemory.errors import ChronoError, Conflict, InvalidRecord
from chronomemory.pages import Pages
from chronomemory.store import Records
from verdicts import verify_log

START = datetime(2030, 1, 1, tzinfo=timezone.utc)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def spelled(seconds: float) -> str:
    return at(seconds).isoformat()


def put(store: Records, name: str, seconds: float | None = None, label: str = "green tea") -> None:
    data = {} if seconds is None else {"expires_at": spelled(seconds)}
    store.upsert({"id": name, "label": label, "data": data})


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with ChronoStore(tmp_path) as store:
        store.upkeep.set_now(START)
        yield store


def test_it_is_left_out_of_every_answer(store: ChronoStore) -> None:
    put(store, "stays")
    put(store, "goes", 10)
    store.vectors.attach("stays", np.array([1, 0], dtype=np.float32), model="m")
    store.vectors.attach("goes", np.array([0, 1], dtype=np.float32), model="m")
    store.upkeep.create_index("data.expires_at")
    seq = store.wal_seq()

    def answers() -> dict[str, list[str]]:
        near = store.vectors.nearest(np.array([0, 1], dtype=np.float32), k=5)
        view = store.as_of(seq)
        return {
            "get": [name for name in ("goes", "stays") if store.get(name) is not None],
            "get_many": [record.id for record in store.get_many(["goes", "stays"]) if record is not None],
            "query": [record.id for record in store.query()],
            "limited": [record.id for record in store.query(limit=5, order_by="-created")],
            "where": [record.id for record in store.query(where={"label": "green tea"})],
            "indexed": [record.id for record in store.query(where={"data.expires_at": {"exists": True}})],
            "iter": [record.id for record in store.stream()],
            "search": [hit.record.id for hit in store.search("tea")],
            "both": [hit.record.id for hit in store.search("tea", vector=np.array([0, 1], dtype=np.float32))],
            "nearest": [neighbour.record_id for neighbour in near],
            "everyone": [record.id for record in store.everyone().query()],
            "changed": store.changed_since(1),
            "then": [record.id for record in view.query()],
        }

    living = answers()
    assert all("goes" in found for found in living.values()), living
    assert (store.record_count(), store.count(by="kind")) == (2, {"fact": 2})
    store.upkeep.set_now(at(10))
    over = answers()
    then = over.pop("then")
    assert then == living["then"], "a view shows what was living then"
    assert over.pop("indexed") == []
    assert all(sorted(found) == ["stays"] for found in over.values()), over
    assert (store.record_count(), store.count(by="kind")) == (1, {"fact": 1})
    # It is there for who asks, and comes back if the clock does.
    assert store.get("goes", expired=True).label == "green tea"
    assert [record.id for record in store.query(expired=True)] == ["stays", "goes"]
    assert [record.id for record in store.stream(expired=True)] == ["stays", "goes"]
    assert store.record_count(expired=True) == 2
    assert [row["id"] for row in store.export_records()] == ["stays", "goes"]
    assert len(store.history("goes")) == 1, "what was said is still in the log"
    store.upkeep.set_now(at(9.999))
    assert answers() == living


def test_a_view_shows_what_was_living_then(store: ChronoStore) -> None:
    put(store, "R", 10)
    # Events carry the time of the machine's clock, which is before all of these expiries.
    assert store.as_of(store.wal_seq()).get("R") is not None
    store.upkeep.set_now(at(11))
    assert store.get("R") is None
    past = "2001-01-01T00:00:00Z"
    store.upsert({"id": "old", "data": {"expires_at": past}})
    assert store.as_of(store.wal_seq()).get("old") is None
    assert store.as_of(datetime.now(timezone.utc)).get("R") is not None


def test_blocks_expire_too(store: ChronoStore, tmp_path: Path) -> None:
    put(store, "something else")
    with Memory(store) as memory:
        memory.learn("Ann drinks green tea in the morning")
        memory.learn("Ann drinks black coffee at night")
        memory.dream()
        names = {record.id: record for record in store.query(kind="block")}
        assert len(names) == 2
        tea = next(name for name, record in names.items() if "tea" in json.dumps(record.data))
        assert len(memory.recall("what does Ann drink")) == 2
        assert "green tea" in memory.frame("attention", "what does Ann drink").text
        store.engine.write([("patch", (tea, {"data": {"expires_at": spelled(5)}}))], face="blocks")
        assert len(memory.recall("what does Ann drink")) == 2
        store.upkeep.set_now(at(5))
        found = memory.recall("what does Ann drink")
        assert len(found) == 1 and "coffee" in repr(found)
        assert "green tea" not in memory.frame("attention", "what does Ann drink").text
        assert store.get(tea) is None and [record.id for record in store.query(kind="block")] != [tea]
        assert store.sweep().ids == (tea,)
        assert store.get(tea).status == "tombstone"


def test_what_is_no_moment_in_utc_is_refused(store: ChronoStore, tmp_path: Path) -> None:
    for bad in (
        "tomorrow",
        7,
        True,
        "2030-01-01",
        "2030-01-01T00:00:00",
        "2030-01-01T00:00:00+01:00",
        [],
        {},
    ):
        row = {"id": "bad", "data": {"expires_at": bad}}
        with pytest.raises(InvalidRecord, match=r"data.expires_at.*UTC"):
            store.upsert(row)
        with pytest.raises(InvalidRecord, match=r"data.expires_at.*UTC"):
            store.upsert_many([{"id": "good"}, row])
        with pytest.raises(ChronoError, match=r"data.expires_at.*UTC"):
            store.ingest([row])
        put(store, "there")
        with pytest.raises(ChronoError, match=r"data.expires_at.*UTC"):
            store.update("there", data={"expires_at": bad})
    assert store.get("bad") is None and store.get("good") is None
    for good in ("2030-01-01T00:00:00Z", "2030-01-01T00:00:00.5+00:00", None):
        store.upsert({"id": "fine", "data": {"expires_at": good}})


def test_a_log_of_another_tool_opens_and_what_it_says_never_expires(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "R", "data": {"expires_it": "2001-01-01T00:00:00 local"}})
        line = (tmp_path / ".chronomemory" / "events.wal").read_bytes()
    event = json.loads(line.replace(b"expires_it", b"expires_at"))
    payload = {key: value for key, value in event.items() if key != "hash"}
    text = json.dumps(payload, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    event["hash"] = sha256(text.encode()).hexdigest()
    log = tmp_path / "other" / ".chronomemory"
    log.mkdir(parents=True)
    spelling = json.dumps(event, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    (log / "events.wal").write_text(spelling + "\n")
    with ChronoStore(tmp_path / "other") as store:
        assert store.verify().valid
        assert store.get("R").data["expires_at"] == "2001-01-01T00:00:00 local"
        assert store.sweep().ids == ()


def test_a_sweep_deletes_what_is_due_and_keeps_its_past(store: ChronoStore) -> None:
    for number in range(5):
        put(store, f"R{number}", number)
    put(store, "stays")
    seen = store.sweep(now=lambda: at(2), dry_run=True)
    assert seen.ids == ("R0", "R1", "R2") and seen.dry_run
    before = store.wal_seq()
    assert store.sweep(now=lambda: at(2)).ids == seen.ids
    assert store.sweep(now=lambda: at(2)).ids == (), "once is enough"
    # One batch, all or none.
    assert [event.op for event in store.replay(from_seq=before + 1)] == [
        "begin",
        "delete",
        "delete",
        "delete",
    ]
    assert store.get("R0").status == "tombstone" and len(store.history("R0")) == 2
    assert [record.id for record in store.query()] == ["R3", "R4", "stays"]
    store.upkeep.set_now(at(100))
    assert store.get("R0").status == "tombstone", "what is deleted is deleted"
    assert store.sweep().ids == ("R3", "R4")


def test_a_sweep_erases_all_that_is_due_at_once(store: ChronoStore, tmp_path: Path) -> None:
    for number in range(4):
        put(store, f"R{number}", number, label=f"secret {number}")
    store.compact()
    store.upkeep.set_now(at(2))
    told = store.sweep(erase=True, reason="after two seconds")
    assert told.ids == ("R0", "R1", "R2") and told.erased.seq is not None and told.erased.lines == 3
    assert store.sweep(erase=True).erased is None
    assert store.get("R0", expired=True) is None and store.history("R1") == []
    assert [note for note in store.verify().notes if "after two seconds" in note]
    assert store.get("R3").label == "secret 3"
    second = verify_log.verify_folder(tmp_path)
    assert second["valid"]


def test_what_expires_in_one_scope_changes_nothing_in_another(store: ChronoStore) -> None:
    ann, bob = store.scoped(user="ann"), store.scoped(user="bob")
    for handle, name in ((store, "all"), (ann, "ann"), (bob, "bob")):
        put(handle, f"{name} stays")
        put(handle, f"{name} goes", 10)
    store.upkeep.set_now(at(9))
    before = [[hit.record.id for hit in handle.search("tea")] for handle in (store, bob)]
    put(ann, "ann goes", 1)
    assert [[hit.record.id for hit in handle.search("tea")] for handle in (store, bob)] == before
    assert ann.get("ann goes") is None and ann.get("ann goes", expired=True) is not None
    assert bob.get("ann goes", expired=True) is None, "to see what has expired is not to see what is others'"
    store.upkeep.set_now(at(10))
    assert store.sweep(dry_run=True).ids == ("all goes",)
    assert ann.sweep().ids == ("ann goes",)
    assert bob.get("bob goes", expired=True).status == "active"
    assert set(store.everyone().sweep().ids) == {"all goes", "bob goes"}
    assert store.everyone().sweep().ids == ()


def test_what_has_expired_may_be_written_anew(store: ChronoStore) -> None:
    put(store, "R", 1)
    ann = store.scoped(user="ann")
    put(ann, "A", 1)
    store.upkeep.set_now(at(2))
    assert store.get("R") is None
    put(store, "R", 5, label="again")
    put(ann, "A", None, label="again")
    assert store.get("R").label == ann.get("A").label == "again"
    with pytest.raises(ChronoError):
        put(store.scoped(user="bob"), "A")
    store.delete("R")
    assert store.get("R").status == "tombstone"


def test_another_process_writes_what_is_over_already(store: ChronoStore, tmp_path: Path) -> None:
    put(store, "mine", 5)
    store.upkeep.set_now(at(6))
    assert store.query() == []
    with ChronoStore(tmp_path, own_engine=True) as other:
        other.upkeep.set_now(at(6))
        put(other, "theirs", 5)
        put(other, "fresh", 50)
        other.compact()
        assert [record.id for record in other.query()] == ["fresh"]
    assert [record.id for record in store.query()] == ["fresh"]
    assert [hit.record.id for hit in store.search("tea")] == ["fresh"]


def test_what_is_written_anew_before_it_is_erased_lives(store: ChronoStore) -> None:
    put(store, "old", 1)
    put(store, "renewed", 1)
    store.upkeep.set_now(at(2))
    due = store.engine.due()
    assert due == ["old", "renewed"]
    # Somebody is quicker than the erasure.
    put(store, "renewed", 100, label="black tea")
    order = {"ids": due, "reason": "expired", "due_at": store.engine.clock(), "again": [], "dry_run": False}
    order |= {"drop_history": False, "derived": False, "new_backup": False}
    told = store.engine.upkeep.erase(order)
    assert told["ids"] == ["old"]
    record = store.get("renewed")
    assert record is not None and record.label == "black tea"
    assert len(store.history("renewed")) == 2


def test_many_go_over_at_once_and_come_back(store: ChronoStore) -> None:
    ann = store.scoped(user="ann")
    for number in range(60):
        put(ann, f"ann {number}", number % 3 + 1)
        put(store, f"all {number}", number % 2 + 1)
    for second, own, shared in ((0, 60, 60), (1, 40, 30), (2, 20, 0), (3, 0, 0), (1, 40, 30), (0, 60, 60)):
        store.upkeep.set_now(at(second))
        assert store.record_count() == shared
        assert len(ann.query()) == own + shared
        assert len(ann.query(expired=True)) == 120
        assert [record.id for record in store.query()] == [
            f"all {number}" for number in range(60) if number % 2 + 1 > second
        ]


def test_what_has_expired_is_there_for_whoever_changes_it(store: ChronoStore) -> None:
    put(store, "x", 1)
    put(store, "y", 1)
    put(store, "rests")
    DepGraph(store).add_edge("rests", "y", "depends_on")
    store.upkeep.set_now(at(2))
    with pytest.raises(Conflict):
        store.upsert({"id": "x", "label": "another"}, if_new=True)
    told = store.invalidate("y", "it was false")
    assert told.direct_change is not None and told.affected_ids == ["y", "rests"]
    # A clock that is put back brings it back as it is now.
    store.upkeep.set_now(at(0))
    assert store.get("y").status == "invalidated" and store.get("x").label == "green tea"


@pytest.mark.parametrize("user", [None, "ann"])
def test_what_has_expired_falls_with_its_ground_and_comes_back_with_it(
    store: ChronoStore, user: str | None
) -> None:
    own: Any = store.scoped(user=user) if user else store
    ground, plan, step = (own.id(name) if user else name for name in ("ground", "plan", "step"))
    put(own, ground)
    put(own, plan, 1)
    put(own, step)
    graph = DepGraph(own)
    graph.add_edge(plan, ground, "depends_on")
    graph.add_edge(step, plan, "depends_on")
    store.upkeep.set_now(at(2))
    told = own.invalidate(ground, "it was false")
    assert told.affected_ids == [ground, plan, step]
    store.upkeep.set_now(at(0))
    assert [own.get(name).status for name in (plan, step)] == ["hypothesis"] * 2
    (rollback,) = own.rollbacks(plan)
    back = own.reinstate(rollback.rollback_id, "it was right")
    assert {change.record_id for change in back.restored} == {ground, plan, step}
    assert own.get(plan).status == "active"


def test_a_compaction_does_not_change_what_was_living_at_an_event(tmp_path: Path) -> None:
    soon = datetime.now(timezone.utc) + timedelta(seconds=0.6)
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "code", "data": {"expires_at": soon.isoformat()}})
        before = [record.id for record in store.as_of(1).query()]
        time.sleep(0.8)
        assert store.get("code") is None
        assert [record.id for record in store.as_of(1).query()] == before == ["code"]
        store.compact()
        assert [record.id for record in store.as_of(1).query()] == before
        store.upsert({"id": "later"})
        assert [record.id for record in store.as_of(1).query()] == before
        assert [record.id for record in store.as_of(store.wal_seq()).query()] == ["later"]


def test_embeddings_of_what_has_expired_are_left_out_whoever_else_there_is(store: ChronoStore) -> None:
    put(store, "CODE", 10)
    store.vectors.attach("CODE", [1.0, 0.0], model="m")
    for _ in range(2):
        store.upkeep.set_now(at(0))
        assert store.vectors.get("CODE") is not None and store.vectors.matrix()[0] == ["CODE"]
        store.upkeep.set_now(at(20))
        assert store.vectors.matrix()[0] == []
        for handle in (store, store.everyone()):
            assert handle.vectors.get("CODE") is None
        store.scoped(user="bob").upsert({"id": "B"})


@pytest.mark.parametrize("last", ["nobody", "a compaction"])
def test_the_last_event_before_a_base_keeps_its_moment(tmp_path: Path, last: str) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "OTHER"})
        soon = datetime.now(timezone.utc) + timedelta(milliseconds=50)
        store.upsert({"id": "CODE", "label": "door", "data": {"expires_at": soon.isoformat()}})
        time.sleep(0.1)
        store.upsert({"id": "X"})
        time.sleep(0.01)
        if last == "nobody":
            store.delete("NOBODY")
        else:
            store.compact()
        seq = store.wal_seq()
        before = [record.id for record in store.as_of(seq).query() if record.id != "X"]
        if last == "nobody":
            store.compact()
        else:
            store.erase(ids=["X"], reason="asked for")
        store.upsert({"id": "Z"})
        assert [record.id for record in store.as_of(seq).query() if record.id != "X"] == before == ["OTHER"]


def test_a_sweep_that_erases_removes_the_files_of_erased_pages(tmp_path: Path, store: ChronoStore) -> None:
    with Pages(store) as pages:
        pages.create("topic-tea", "drinks", ["tea"])
        pages.append("topic-tea", "The pin is zq4711.", ["tea"])
    rows = [record.to_dict() for record in store.query(faces=True, status=None)]
    for row in rows:
        if row["id"].rpartition(":")[2] != "topic-tea" and row["kind"] != "entry":
            continue
        row["data"]["expires_at"] = spelled(-1)
    file = tmp_path / "rows.ndjson"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    bring_records(store, file, None)
    page, index = tmp_path / "memory" / "topic-tea.md", tmp_path / "memory" / "index.md"
    foreseen = store.sweep(erase=True, dry_run=True).erased
    assert foreseen is not None and set(foreseen.removed_files) == {str(index), str(page)}
    assert page.exists()
    told = store.everyone().sweep(erase=True).erased
    assert told is not None and told.removed_files == foreseen.removed_files
    assert not page.exists() and not index.exists()
