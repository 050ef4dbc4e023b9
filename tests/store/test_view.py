"""The past can be read as it was, through compactions too."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from chronomemory import ChronoRecord, ChronoStore, InvalidArgument, WalEvent
from chronomemory.errors import HistoryUnavailable


def ids(records: list[ChronoRecord]) -> list[str]:
    return [record.id for record in records]


def test_replay_gives_every_event_from_a_seq_on(store: ChronoStore) -> None:
    store.upsert(ChronoRecord(id="A"))
    store.upsert_many([{"id": "B"}, {"id": "C"}])
    store.delete("A")
    events = store.replay()
    assert [event.seq for event in events] == [1, 2, 3, 4, 5]
    assert all(isinstance(event, WalEvent) for event in events)
    assert [event.op for event in store.replay(from_seq=4)] == ["upsert", "delete"]
    assert store.replay(from_seq=6) == []
    assert [event.op for event in store.history("A")] == ["upsert", "delete"]
    assert store.history("nobody") == []


def test_the_past_can_be_looked_at_by_seq_and_by_time(store: ChronoStore) -> None:
    store.upsert(ChronoRecord(id="A", label="old"))
    event = store.upsert(ChronoRecord(id="B"))
    between = datetime.fromisoformat(event.ts.replace("Z", "+00:00"))
    while datetime.now(timezone.utc) <= between:
        pass
    store.upsert(ChronoRecord(id="A", label="new", confidence=0.2))
    store.delete("B")
    elsewhere = between.astimezone(timezone(timedelta(hours=-7)))
    for view in (store.as_of(2), store.as_of(between), store.as_of(elsewhere)):
        assert view.seq == 2
        assert "2" in repr(view)
        assert view.record_count() == 2
        assert view.get("A") == ChronoRecord(id="A", label="old")
        assert view.get("nobody") is None
        assert ids(view.query()) == ["A", "B"]
        assert ids(view.query(rag_filter=True, limit=1)) == ["A"]
    assert ids(store.as_of(4).query(status="")) == ["A", "B"]
    assert store.as_of(4).query(rag_filter=True) == []
    assert store.as_of(0).record_count() == 0


def test_a_view_does_not_move_when_the_store_does(store: ChronoStore) -> None:
    store.upsert(ChronoRecord(id="A"))
    view = store.as_of(1)
    store.delete("A")
    store.compact()
    assert view.record_count() == 1


def test_a_moment_needs_a_time_zone(store: ChronoStore) -> None:
    with pytest.raises(ValueError, match="time zone"):
        store.as_of(datetime(2026, 1, 1))
    for wrong in ("2026-01-01", True, 1.5, None):
        with pytest.raises(InvalidArgument, match="seq or a datetime"):
            store.as_of(wrong)  # type: ignore[arg-type]


def test_the_past_is_reachable_through_compactions(store: ChronoStore) -> None:
    store.upsert(ChronoRecord(id="A", label="one"))
    store.compact()
    store.upsert(ChronoRecord(id="A", label="two"))
    store.compact()
    for seq, label in ((1, "one"), (3, "two")):
        found = store.as_of(seq).get("A")
        assert found is not None
        assert found.label == label
    labels = [event.record["label"] for event in store.history("A") if event.record]
    assert labels == ["one", "two"]


def test_dropped_history_is_named(store: ChronoStore) -> None:
    for number in range(3):
        store.upsert(ChronoRecord(id="A", label=str(number)))
    store.compact(keep_history=False)
    with pytest.raises(HistoryUnavailable) as caught:
        store.as_of(1)
    first = caught.value.first_seq
    assert first is not None
    assert store.as_of(first).record_count() == 1
    assert store.chain_valid()
