"""Any sequence of operations leaves the store as a plain dict and a list would have it."""

from __future__ import annotations

import copy
import json
import shutil
import tempfile
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chronomemory import ChronoRecord, ChronoStore
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from shares import share

State = dict[str, ChronoRecord]
#: One change: the id, and the record it becomes, or None for a tombstone.
Change = tuple[str, ChronoRecord | None]

PLAIN_IDS = st.sampled_from(["A", "B", "C", "D", "ä\u2028"])
BLOCK_IDS = st.sampled_from(["block:1", "block:2"])
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
)
DATA = st.dictionaries(
    st.text(max_size=4),
    st.recursive(
        LEAVES,
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
        max_leaves=4,
    ),
    max_size=3,
)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "kind": st.sampled_from(["fact", "decision"]),
    "status": st.sampled_from(["active", "deprecated"]),
    "label": st.text(max_size=12),
    "confidence": st.floats(0, 1),
    "evidence": st.lists(st.text(max_size=4), max_size=2),
    "is_hypothesis": st.booleans(),
    "data": DATA,
}
RECORDS = st.builds(ChronoRecord, id=PLAIN_IDS, **FIELDS)
BLOCKS = st.builds(ChronoRecord, id=BLOCK_IDS, **{**FIELDS, "kind": st.just("block")})
PATCHES = st.fixed_dictionaries(
    {},
    optional={"label": st.text(max_size=6), "data": st.dictionaries(st.text(max_size=2), LEAVES)},
)


def apply(state: State, change: Change) -> None:
    record_id, record = change
    if record is not None:
        state[record_id] = copy.deepcopy(record)
    elif record_id in state:
        state[record_id].status = "tombstone"


@dataclass
class Model:
    """What the store should hold, and the events of its log since the last compaction."""

    base: State = field(default_factory=dict)
    events: list[list[Change]] = field(default_factory=list)
    seq: int = 0
    compacted: bool = False
    archived: bool = False

    def write(self, *changes: Change) -> None:
        self.events.append(list(changes))
        self.seq += len(changes) + (len(changes) > 1)

    def state(self, without: int | None = None) -> State:
        """Fold the events into the base, leaving one of them out if asked."""
        folded = copy.deepcopy(self.base)
        for place, changes in enumerate(self.events):
            if place != without:
                for change in changes:
                    apply(folded, change)
        return folded

    def lost_with_line(self, line: int) -> int | None:
        """Say which event is lost with a line of the log.

        A batch of several changes is one event, lost as a whole with any of its lines but its
        first: without its ``begin`` it is a row of changes that are all still there.
        """
        before = int(self.compacted)
        for place, changes in enumerate(self.events):
            begin = len(changes) > 1
            if begin and line == before:
                return None
            before += len(changes) + begin
            if line < before:
                return place
        raise AssertionError("the log has more lines than the model")


def _says_the_same(one: bytes | bytearray, other: bytes) -> bool:
    try:
        return bool(json.loads(one) == json.loads(other))
    except ValueError:
        return False


class StoreMachine(RuleBasedStateMachine):
    """Everything a caller can do to one store, and to a copy of it on a bad disk."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        self.store = ChronoStore(self.root / "project").open()
        self.model = Model()
        self.backups: list[tuple[Path, Model]] = []

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.root)

    @rule(record=RECORDS)
    def upsert(self, record: ChronoRecord) -> None:
        self.store.upsert(record)
        self.model.write((record.id, record))

    @rule(records=st.lists(RECORDS, min_size=1, max_size=4))
    def batch(self, records: list[ChronoRecord]) -> None:
        seqs = self.store.upsert_many(records)
        self.model.write(*((record.id, record) for record in records))
        assert seqs == range(self.model.seq - len(records) + 1, self.model.seq + 1)

    @rule(record_id=PLAIN_IDS)
    def delete(self, record_id: str) -> None:
        self.store.delete(record_id)
        self.model.write((record_id, None))

    @rule(record=BLOCKS)
    def upsert_block(self, record: ChronoRecord) -> None:
        self.store.engine.upsert(record, "blocks")
        self.model.write((record.id, record))

    @precondition(lambda self: any(name.startswith("block:") for name in self.model.state()))
    @rule(patch=PATCHES, data=st.data())
    def patch_block(self, patch: dict[str, Any], data: st.DataObject) -> None:
        blocks = {k: v for k, v in self.model.state().items() if k.startswith("block:")}
        record = copy.deepcopy(blocks[data.draw(st.sampled_from(sorted(blocks)))])
        self.store.engine.write([("patch", (record.id, patch))], "blocks")
        record.label = patch.get("label", record.label)
        for key, value in patch.get("data", {}).items():
            if value is None:
                record.data.pop(key, None)
            else:
                record.data[key] = value
        self.model.write((record.id, record))

    @rule(records=st.lists(RECORDS, max_size=2))
    def refused_batch(self, records: list[ChronoRecord]) -> None:
        try:
            self.store.upsert_many([*records, ChronoRecord(id="BAD", confidence=2.0)])
        except ValueError:
            return
        raise AssertionError("a bad record was accepted")

    @rule(keep_history=st.booleans())
    def compact(self, keep_history: bool) -> None:
        lines = sum(len(changes) + (len(changes) > 1) for changes in self.model.events)
        compacted = self.store.compact(keep_history=keep_history)
        if lines:
            assert compacted == lines + self.model.compacted
            self.model = Model(self.model.state(), [], self.model.seq + 1, True, archived=keep_history)
        elif self.model.archived and not keep_history:
            assert compacted == 1, "the sentinel alone is replaced by one that names no history"
            self.model = Model(self.model.state(), [], self.model.seq + 1, True, archived=False)
        else:
            assert compacted == 0

    @rule()
    def reopen(self) -> None:
        self.store.close()

    @precondition(lambda self: len(self.backups) < 3)
    @rule()
    def backup(self) -> None:
        if self.model.seq:
            self.backups.append((self.store.backup(), copy.deepcopy(self.model)))

    @precondition(lambda self: self.backups)
    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        folder, model = data.draw(st.sampled_from(self.backups))
        self.store.upkeep.restore(folder)
        self.model = copy.deepcopy(model)

    @precondition(lambda self: self.model.events)
    @rule(data=st.data())
    def damage(self, data: st.DataObject) -> None:
        """Change one byte of one line in a copy: that event is lost, named, and nothing else."""
        self.store.sync()
        with tempfile.TemporaryDirectory(dir=self.root) as folder:
            shutil.copytree(self.root / "project" / ".chronomemory", Path(folder, ".chronomemory"))
            log = Path(folder, ".chronomemory", "events.wal")
            lines = log.read_bytes().split(b"\n")[:-1]
            hit = data.draw(st.integers(int(self.model.compacted), len(lines) - 1), "line")
            at = data.draw(st.integers(0, len(lines[hit]) - 1), "byte")
            original = lines[hit]
            changed = bytearray(original)
            changed[at] ^= 0x01
            lines[hit] = bytes(changed)
            log.write_bytes(b"\n".join([*lines, b""]))
            copied = ChronoStore(folder, verify="full")
            report = copied.verify()
            if _says_the_same(changed, original):
                assert report.valid, "another spelling of the same number is a foreign line, not damage"
                return
            assert not report.valid
            assert hit + 1 in {item.line for item in report.damage}
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                found = copied.query(status=None)
                copied.close()
            assert any(issubclass(item.category, RuntimeWarning) for item in caught)
            expected = self.model.state(without=self.model.lost_with_line(hit))
            assert {record.id: record for record in found} == {
                name: record for name, record in expected.items() if ":" not in name
            }

    @invariant()
    def the_store_is_what_the_model_says(self) -> None:
        state = self.model.state()
        assert self.store.query(status=None, faces=True) == list(state.values())
        plain = [record for name, record in state.items() if ":" not in name]
        assert self.store.query() == [record for record in plain if record.status == "active"]
        assert self.store.record_count() == len(self.store.query())
        assert self.store.wal_seq() == self.model.seq
        assert self.store.get("nobody") is None

    @invariant()
    def the_chain_holds(self) -> None:
        report = self.store.verify()
        assert report.valid
        assert report.slow_lines <= report.events
        assert report.last_seq == self.model.seq


TestStoreAgainstAModel = StoreMachine.TestCase
TestStoreAgainstAModel.settings = settings(
    max_examples=share(12, 300),
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
