"""A large batch, which two threads prepare, is the same as one that a single thread writes."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoRecord, ChronoStore, InvalidRecord
from chronomemory.errors import RecordTooLarge
from hypothesis import given, settings
from hypothesis import strategies as st
from shares import share

#: Enough for several parts, and one that is not full.
MANY = 1_234


def _records(first: int = 0, count: int = MANY) -> list[ChronoRecord]:
    return [
        ChronoRecord(
            id=f"R-{number}", label=f"née {number}", data={"b": number, "a": [number, {"z": 1.5, "y": None}]}
        )
        for number in range(first, first + count)
    ]


def _files(project: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (project / ".chronomemory").iterdir() if path.is_file()}


def _without_place(line: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in line.items() if key not in ("ts", "hash", "prev_hash")}


def test_both_ways_write_the_same_events(tmp_path: Path) -> None:
    said = []
    for name, records in (("list", _records()), ("generator", (record for record in _records()))):
        # A salt is another in each line of each log.
        with ChronoStore(tmp_path / name, salt=False) as store:
            assert store.upsert_many(records) == range(2, MANY + 2)
            assert store.chain_valid()
        lines = (tmp_path / name / ".chronomemory" / "events.wal").read_text().splitlines()
        said.append([_without_place(json.loads(line)) for line in lines])
    assert said[0] == said[1]


def test_a_bad_record_near_the_end_leaves_the_files_as_they_were(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert_many(_records())
        store.close()  # nothing is left to be written on the side
        before = _files(tmp_path)
        bad: list[ChronoRecord] = _records(MANY)
        bad[-2].confidence = 1.5
        with pytest.raises(InvalidRecord, match="confidence"):
            store.upsert_many(bad)
        assert _files(tmp_path) == before
        assert store.record_count() == MANY
        store.upsert_many(_records(MANY))
        assert store.record_count() == 2 * MANY


def test_a_guess_that_another_writer_spoils_is_made_good(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as one, ChronoStore(tmp_path) as two:
        for turn in range(4):
            one.upsert_many(_records(turn * MANY))
            two.upsert({"id": f"S-{turn}"})
            two.upsert_many(_records(turn * MANY, 600))
        assert one.record_count() == two.record_count() == 4 * MANY + 4
        assert one.chain_valid()


class _Shrinking(Mapping[str, Any]):
    """A record that takes the last one from its list when it is read."""

    def __init__(self, batch: list[Any]) -> None:
        self.batch = batch

    def __getitem__(self, key: str) -> Any:
        if len(self.batch) == MANY:
            self.batch.pop()
        return {"id": "shrinker"}[key]

    def __iter__(self) -> Iterator[str]:
        return iter(["id"])

    def __len__(self) -> int:
        return 1


def test_a_list_that_shrinks_while_it_is_read_is_written_as_it_was_read(tmp_path: Path) -> None:
    batch: list[Any] = list(_records(0, MANY - 1))
    batch.insert(700, _Shrinking(batch))
    with ChronoStore(tmp_path) as store:
        assert len(store.upsert_many(batch)) == MANY - 1
        assert store.record_count() == MANY - 1
        assert store.chain_valid()


_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from('abcdé\u2028"\\'), inner, max_size=5)
    ),
    max_leaves=8,
)


@given(
    st.lists(
        st.dictionaries(st.sampled_from(["one", "two", "three", "ä", ""]), _VALUES, max_size=5), max_size=40
    )
)
@settings(max_examples=share(20, 500), deadline=None)
def test_dicts_of_a_known_shape_are_written_as_if_they_were_new(dicts: list[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as project, ChronoStore(project, durability="off") as store:
        for number, data in enumerate(dicts):
            event = store.upsert({"id": str(number), "data": data})
            said = event.to_json_line()
            spelled = json.dumps(data, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
            escaped = (
                spelled.replace("\x85", "\\u0085").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
            )
            assert f'"data":{escaped},"epistemic_boundary"' in said
        assert store.chain_valid()


def test_a_line_is_measured_as_it_is_written(store: ChronoStore) -> None:
    separators = "\u0085\u2028\u2029"
    fits, too_many = 900_000, 933_334
    store.upsert({"id": "A", "label": separators * fits})
    with pytest.raises(RecordTooLarge):
        store.upsert({"id": "B", "label": separators * too_many})
    with pytest.raises(RecordTooLarge):
        store.upsert_many([{"id": "C"}, {"id": "D", "data": {"text": separators * too_many}}])
    store.close()
    assert store.verify().valid
    assert [record.id for record in store.query()] == ["A"]


def test_of_many_records_only_a_compaction_writes_a_snapshot(tmp_path: Path) -> None:
    snapshots = [tmp_path / name / ".chronomemory" / "snapshot.json" for name in ("many", "few")]
    with ChronoStore(tmp_path / "many") as many, ChronoStore(tmp_path / "few") as few:
        many.upsert_many(_records(count=10_001))
        few.upsert_many(_records(count=10_000))
        due = time.monotonic() + 60
        while not snapshots[1].exists() and time.monotonic() < due:
            time.sleep(0.05)
        assert [snapshot.exists() for snapshot in snapshots] == [False, True]
        many.compact()
        assert snapshots[0].exists()
