"""When a store may be used from where it is being used already."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoRecord, ChronoStore
from chronomemory.errors import StoreClosed


def test_closing_in_a_callback_is_refused(store: ChronoStore, tmp_path: Path) -> None:
    rows = tmp_path / "rows.ndjson"
    rows.write_text('{"id": "A"}\n')
    with pytest.raises(RuntimeError, match="progress callback"):
        store.ingest(rows, progress=lambda done, total: store.close())
    assert store.get("A") is not None


class _Masked(list[Any]):
    """A list that shows its records in another way."""

    def __iter__(self) -> Any:
        for record in super().__iter__():
            yield ChronoRecord(id=record.id, label="masked")


def test_a_list_of_another_class_is_read_as_it_wants(store: ChronoStore) -> None:
    store.upsert_many(_Masked(ChronoRecord(id=f"R-{number}", label="secret") for number in range(700)))
    assert {record.label for record in store.query()} == {"masked"}


def test_a_child_forked_while_a_thread_opens_can_open(tmp_path: Path) -> None:
    store = ChronoStore(tmp_path)
    store.upsert({"id": "A"})
    store.close()
    with store._opening:  # as a thread in the middle of open() has it
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            os._exit(0 if store.get("A") else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


class _Meddling(Mapping[str, Any]):
    """A record that does something while it is being read."""

    def __init__(self, record_id: str, meddle: Callable[[], object]) -> None:
        self._fields, self._meddle = {"id": record_id}, meddle

    def __getitem__(self, key: str) -> Any:
        self._meddle()
        return self._fields[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)


def _batch(prefix: str, *last: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*({"id": f"{prefix}-{number}"} for number in range(900)), *last]


def test_a_large_batch_may_come_from_within_another(store: ChronoStore) -> None:
    store.upsert_many(_batch("outer", _Meddling("M", lambda: store.upsert_many(_batch("inner")))))
    assert store.record_count() == 900 + 1 + 900
    store.upsert_many(_batch("next"))
    assert store.record_count() == 900 + 1 + 900 + 900
    assert store.chain_valid()


def test_a_store_may_be_closed_from_within_a_large_batch(store: ChronoStore) -> None:
    store.upsert({"id": "A"})
    with pytest.raises(StoreClosed):
        store.upsert_many(_batch("outer", _Meddling("M", store.close)))
    assert [record.id for record in store.query()] == ["A"]


def _count_in_backup(store: ChronoStore) -> int:
    with ChronoStore(store.backup()) as copy:
        return copy.record_count()


_QUESTIONS: dict[str, Callable[[ChronoStore], object]] = {
    "record_count": lambda store: store.record_count() == 901,
    "get": lambda store: store.get("B-899") is not None,
    "query": lambda store: len(store.query()) == 901,
    "record_counts": lambda store: store.count(by="kind") == {"fact": 901},
    "export_records": lambda store: len(store.export_records()) == 901,
    "history": lambda store: len(store.history("B-899")) == 1,
    "changed_since": lambda store: len(store.changed_since(2)) == 900,
    "as_of": lambda store: store.as_of(store.wal_seq()).record_count() == 901,
    "compact": lambda store: store.compact() == 902 and store.record_count() == 901,
    "backup": lambda store: _count_in_backup(store) == 901,
}


@pytest.mark.parametrize("question", _QUESTIONS)
def test_whoever_looks_sees_the_large_batch_before(store: ChronoStore, question: str) -> None:
    """The state takes a large batch in when it is looked at: nobody may be able to tell."""
    store.upsert({"id": "A"})
    store.upsert_many(_batch("B"))
    assert _QUESTIONS[question](store)
