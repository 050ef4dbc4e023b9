"""Every record knows when it was made and spoken of last, whatever happened to the files meanwhile."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import json
import pickle
import shutil
import struct
import sys
import tempfile
import warnings
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoRecord, ChronoStore
from chronomemory._core import canonical_json
from chronomemory.blocks import Memory
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from shares import share

SCRIPTS = Path(__file__).parents[2] / "python" / "chronomemory" / "verify_log"
sys.path.insert(0, str(SCRIPTS))
import verify_log  # noqa: E402

EARLIER = Path(__file__).parents[1] / "data" / "november"
Row = tuple[int, int, int, int]
UNKNOWN = (-1, -(2**63))


def row(record: ChronoRecord | None) -> Row | None:
    """Return created seq, created µs, updated seq, updated µs as the engine told them."""
    if record is None:
        return None
    a, b, c, d = struct.unpack_from("<4q", record._packed() or b"")
    return a, b, c, d


def rows(store: Any) -> dict[str, Row | None]:
    return {record.id: row(record) for record in store.query(status=None, faces=True)}


def moment(ts: str) -> int:
    then = datetime.fromisoformat(ts.replace("Z", "+00:00"))
    return (then - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(microseconds=1)


class Model:
    """What plain Python makes of the events of a log."""

    def __init__(self) -> None:
        self.known: dict[str, Row] = {}

    def hear(self, event: Any) -> None:
        seq, at = event.seq, moment(event.ts)
        names = {
            "upsert": [event.record_id],
            "patch": [event.record_id],
            "delete": [event.record_id] if event.record_id in self.known else [],
        }.get(event.op, [])
        for name in names:
            created = self.known.get(name, (seq, at))[:2]
            self.known[name] = (*created, seq, at)


def judged(root: Path) -> bool:
    return bool(verify_log.verify_folder(root)["valid"])


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ChronoStore]:
    with ChronoStore(tmp_path) as store:
        yield store


def test_a_record_tells_when_it_was_made_and_spoken_of_last(store: ChronoStore) -> None:
    before = datetime.now(timezone.utc)
    made = store.upsert(ChronoRecord(id="R", label="one"))
    first = store.get("R")
    assert first is not None and first.created_at is not None
    assert first.created_at == first.updated_at
    assert before <= first.created_at <= datetime.now(timezone.utc)
    assert row(first) == (made.seq, moment(made.ts), made.seq, moment(made.ts))
    again = store.upsert(ChronoRecord(id="R", label="two"))
    second = store.get("R")
    assert row(second) == (made.seq, moment(made.ts), again.seq, moment(again.ts))
    gone = store.delete("R")
    assert row(store.get("R")) == (made.seq, moment(made.ts), gone.seq, moment(gone.ts))
    back = store.upsert(ChronoRecord(id="R"))
    assert row(store.get("R")) == (made.seq, moment(made.ts), back.seq, moment(back.ts))
    assert row(store.as_of(again.seq).get("R")) == row(second)
    assert [row(hit.record) for hit in store.search("nothing")] == []


def test_events_of_an_unknown_id_do_not_make_a_record(store: ChronoStore) -> None:
    store.delete("R")
    made = store.upsert(ChronoRecord(id="R", label="fern"))
    found = row(store.get("R"))
    assert found == (made.seq, moment(made.ts), made.seq, moment(made.ts))
    (hit,) = store.search("fern")
    assert row(hit.record) == found
    assert (hit.created_at, hit.updated_at) == (hit.record.created_at, hit.record.updated_at)
    assert hit.version == hit.record.version


def test_what_is_told_is_no_field(store: ChronoStore) -> None:
    by_hand = ChronoRecord(id="R", label="one")
    assert (by_hand.created_at, by_hand.updated_at, by_hand.version) == (None, None, None)
    store.upsert(by_hand)
    told = store.get("R")
    assert told is not None and told == by_hand and repr(told) == repr(by_hand)
    assert told.to_dict() == by_hand.to_dict() == dataclasses.asdict(told)
    assert len(dataclasses.fields(told)) == 12
    for name in ("created_at", "updated_at", "version"):
        with pytest.raises(AttributeError):
            setattr(told, name, None)
    for twin in (copy.copy(told), copy.deepcopy(told), pickle.loads(pickle.dumps(told))):
        assert (twin, twin.version, twin.created_at) == (told, told.version, told.created_at)
    assert dataclasses.replace(told, label="two").version is None
    assert ChronoRecord.from_dict(told.to_dict()).version is None


@pytest.mark.parametrize("length", [0, 700, 5_000])
def test_a_version_is_of_the_stored_record(store: ChronoStore, length: int) -> None:
    store.upsert(ChronoRecord(id="R", label="x" * length))
    record = store.get("R")
    assert record is not None
    digest = hashlib.sha256(canonical_json(record.to_dict())).hexdigest()
    record.label = "changed in memory"
    assert record.version == digest[:16]
    assert store.query()[0].version == digest[:16]
    store.upsert(record)
    changed = store.get("R")
    assert changed is not None and changed.version != digest[:16]
    store.upsert(ChronoRecord(id="R", label="x" * length))
    store.compact()
    back = store.get("R")
    assert back is not None and back.version == digest[:16]


def test_moments_survive_compaction_and_what_comes_behind(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store, ChronoStore(tmp_path) as other:
        store.upsert_many([ChronoRecord(id=f"R{n}") for n in range(600)])
        store.upsert(ChronoRecord(id="R7", label="again"))
        other.delete("R599")
        for keep in (True, False):
            before = rows(store)
            assert all(value and value[0] <= value[2] for value in before.values())
            store.compact(keep_history=keep)
            assert rows(store) == rows(other) == before
            with ChronoStore(tmp_path) as third:
                assert rows(third) == before
            assert store.chain_valid() and judged(tmp_path)
            event = store.upsert(ChronoRecord(id="R8", label=str(keep)))
            expected = {**before, "R8": (*before["R8"][:2], event.seq, moment(event.ts))}  # type: ignore[index]
            assert rows(store) == rows(other) == expected
    with ChronoStore(tmp_path) as store:
        assert rows(store) == expected


def test_what_is_written_while_a_base_is_written_is_in_it(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store, ChronoStore(tmp_path) as writer:
        store.upsert_many([ChronoRecord(id=f"R{n}", label="x" * 300) for n in range(5_000)])
        rounds = 0

        def meanwhile(done: int, _: int) -> None:
            nonlocal rounds
            if rounds < 3:
                rounds += 1
                records = [ChronoRecord(id=f"R{n}", label="later " * 60) for n in range(rounds, 900, 7)]
                fresh = [ChronoRecord(id=f"N{rounds}-{n}", label="new " * 60) for n in range(200)]
                writer.upsert_many(records + fresh)

        store.compact(progress=meanwhile)
        assert rounds == 3
        known = rows(store)
        assert known == rows(writer)
        base = json.loads(next((tmp_path / ".chronomemory" / "base").glob("*.json")).read_bytes())
        assert len(base["later_moments"]) >= 200
        assert len(base["moments"]) + len(base["later_moments"]) == len(base["records"])
    with ChronoStore(tmp_path) as store:
        assert rows(store) == known and store.chain_valid()
    assert judged(tmp_path)


def test_an_act_speaks_of_all_its_records(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store, Memory(store) as memory:
        one = memory.learn("the lantern hangs in the harbour").block_id
        two = memory.learn("the harbour has two lanterns").block_id
        memory.consolidate()
        memory.outcome([one, two], 0.9)
        event = store.replay()[-1]
        assert event.op == "act"
        known = rows(store)
        for block in (one, two):
            told = known[f"block:{block}"]
            assert told is not None and told[0] < event.seq and told[2:] == (event.seq, moment(event.ts))
        links = [told for name, told in known.items() if name.startswith("bedge:")]
        assert (event.seq, moment(event.ts)) in [told[2:] for told in links if told]
        store.compact()
        assert rows(store) == known
    with ChronoStore(tmp_path) as store:
        assert rows(store) == known


def test_a_base_that_is_lost_is_rebuilt_with_its_moments(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert_many([ChronoRecord(id=f"R{n}", label=f"number {n}") for n in range(50)])
        store.compact()
        store.upsert(ChronoRecord(id="R3", label="again"))
        store.compact()
        known = rows(store)
    bases = sorted((tmp_path / ".chronomemory" / "base").glob("*.json"))
    for base in bases:
        base.unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with ChronoStore(tmp_path) as store:
            assert rows(store) == {}
            store.upkeep.repair()
            assert rows(store) == known
    with ChronoStore(tmp_path) as store:
        assert rows(store) == known and store.chain_valid()


def test_one_altered_byte_of_a_base_is_mended_with_its_moments(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert_many([ChronoRecord(id=f"R{n}", label=f"number {n}") for n in range(5)])
        store.upsert(ChronoRecord(id="R3", label="again"))
        store.compact(keep_history=False)
        known, answers = rows(store), store.query()
    base = next((tmp_path / ".chronomemory" / "base").glob("*.json"))
    base.write_bytes(base.read_bytes().replace(b"number 2", b"number 9"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with ChronoStore(tmp_path) as store:
            store.upkeep.repair()
            assert (rows(store), store.query()) == (known, answers)


@pytest.mark.parametrize(
    ("old", "new"),
    [(b"[1,", b"[0,"), (b"null", b"1"), (b"],\n[", b"]\n["), (b'"later_moments"', b'"later_momemts"')],
)
def test_damage_in_moments_is_damage_of_the_base(tmp_path: Path, old: bytes, new: bytes) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert(ChronoRecord(id="R1"))
        store.upsert(ChronoRecord(id="R2"))
        store.compact()
    base = next((tmp_path / ".chronomemory" / "base").glob("*.json"))
    content = base.read_bytes()
    base.write_bytes(content.replace(old, new) if old in content else content.replace(b"[2,", b"[3,"))
    assert base.read_bytes() != content
    found = ChronoStore(tmp_path).verify()
    assert [damage.kind for damage in found.damage] == ["base-altered"]
    assert [damage["kind"] for damage in verify_log.verify_folder(tmp_path)["damage"]] == ["base-altered"]


def test_an_earlier_store_learns_moments_from_then_on(tmp_path: Path) -> None:
    folder = tmp_path / ".chronomemory"
    shutil.copytree(EARLIER, folder, ignore=shutil.ignore_patterns("expected.json"))
    sentinel = json.loads((folder / "events.wal").read_bytes().split(b"\n")[0])
    with ChronoStore(tmp_path) as store:
        known = rows(store)
        in_base = [told for told in known.values() if told and told[:2] == UNKNOWN]
        assert in_base, "the log of this store starts from a base without moments"
        since = [told for told in known.values() if told and told[0] > sentinel["seq"]]
        assert since, "and goes on behind it"
        untouched = next(n for n, told in known.items() if told and told == (*UNKNOWN, *UNKNOWN))
        old = store.get(untouched)
        assert old is not None and (old.created_at, old.updated_at) == (None, None)
        assert old.version == hashlib.sha256(canonical_json(old.to_dict())).hexdigest()[:16]
        store.compact()
        assert rows(store) == known
    assert judged(tmp_path)
    with ChronoStore(tmp_path) as store:
        assert rows(store) == known and store.chain_valid()
        event = store.upsert({**old.to_dict(), "label": "spoken of again"}) if ":" not in old.id else None
        if event is not None:
            assert row(store.get(old.id)) == (*UNKNOWN, event.seq, moment(event.ts))


class Moments(RuleBasedStateMachine):
    """Two handles on one store, and a model that hears every event once."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        self.stores = [ChronoStore(self.root), ChronoStore(self.root)]
        self.model = Model()
        self.heard = 0
        self.backups: list[tuple[Path, dict[str, Row], int]] = []
        self.then: dict[int, dict[str, Row]] = {}

    def catch_up(self) -> None:
        for event in self.stores[0].replay(from_seq=self.heard + 1):
            if event.seq > self.heard:
                self.model.hear(event)
        self.heard = self.stores[0].wal_seq()
        self.then[self.heard] = dict(self.model.known)

    @rule(which=st.integers(0, 1), name=st.sampled_from("ABCDE"), label=st.text(max_size=3))
    def upsert(self, which: int, name: str, label: str) -> None:
        self.stores[which].upsert(ChronoRecord(id=name, label=label))
        self.catch_up()

    @rule(which=st.integers(0, 1), name=st.sampled_from("ABCDEF"))
    def delete(self, which: int, name: str) -> None:
        self.stores[which].delete(name)
        self.catch_up()

    @rule(which=st.integers(0, 1), names=st.lists(st.sampled_from("ABCDEGH"), min_size=1, max_size=5))
    def batch(self, which: int, names: list[str]) -> None:
        changes = [
            ("upsert", ChronoRecord(id=name)) if n % 3 else ("delete", name) for n, name in enumerate(names)
        ]
        self.stores[which].engine.write(changes)
        self.catch_up()

    @rule(which=st.integers(0, 1), label=st.text(max_size=3))
    def patch(self, which: int, label: str) -> None:
        engine = self.stores[which].engine
        if engine.get("block:x") is None:
            engine.upsert(ChronoRecord(id="block:x", kind="block", data={"content": "x"}), "blocks")
        engine.write([("patch", ("block:x", {"label": label}))], "blocks")
        self.catch_up()

    @rule(which=st.integers(0, 1), keep=st.booleans())
    def compact(self, which: int, keep: bool) -> None:
        if self.stores[which].compact(keep_history=keep) and not keep:
            self.then = {self.heard: dict(self.model.known)}
        self.catch_up()

    @rule(which=st.integers(0, 1))
    def reopen(self, which: int) -> None:
        self.stores[which].close()

    @rule()
    def backup(self) -> None:
        if self.heard:
            self.backups.append((self.stores[0].backup(), dict(self.model.known), self.heard))

    @rule()
    def restore(self) -> None:
        if self.backups:
            folder, known, heard = self.backups[-1]
            self.stores[1].upkeep.restore(folder)
            self.model.known, self.heard = dict(known), heard
            self.then = {self.heard: dict(known)}
            self.catch_up()

    @invariant()
    def both_know(self) -> None:
        for store in self.stores:
            assert rows(store) == self.model.known
        assert all(row(self.stores[1].get(name)) == told for name, told in self.model.known.items())

    @invariant()
    def the_past_knows_too(self) -> None:
        for seq in list(self.then)[-3:]:
            assert rows(self.stores[0].as_of(seq)) == self.then[seq]

    def teardown(self) -> None:
        for store in self.stores:
            assert store.chain_valid()
            store.close()
        assert judged(self.root)
        shutil.rmtree(self.root)


Moments.TestCase.settings = settings(
    max_examples=share(10, 200),
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestMoments = Moments.TestCase
