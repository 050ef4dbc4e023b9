"""May a store be used from where it is being used already?"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoRecord, ChronoStore


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
