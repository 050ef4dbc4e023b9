"""A record says which rollback touched it and why, and a rollback can be taken back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoRecord, ChronoStore, DepGraph, InvalidArgument, UnknownRecord
from chronomemory.errors import OutOfScope
from chronomemory.rollback import LeftAlone, reinstate


@pytest.fixture
def beliefs(store: ChronoStore) -> ChronoStore:
    """DEC-2 stands on DEC-1, that on HYP-1, that on OBS-1."""
    store.upsert_many(
        [
            ChronoRecord(id="OBS-1", confidence=0.9, label="The gauge reads 5"),
            ChronoRecord(id="HYP-1", confidence=0.8, is_hypothesis=True, kind="hypothesis"),
            ChronoRecord(id="DEC-1", confidence=0.8, kind="decision", data={"kept": True}),
            ChronoRecord(id="DEC-2", confidence=0.7, kind="decision"),
        ]
    )
    graph = DepGraph(store)
    graph.add_edge("HYP-1", "OBS-1", "derived_from")
    graph.add_edge("DEC-1", "HYP-1", "depends_on")
    graph.add_edge("DEC-2", "DEC-1", "depends_on")
    return store


def everything(store: ChronoStore) -> dict[str, dict[str, Any]]:
    return {record.id: record.to_dict() for record in store.query(status=None)}


def test_a_record_tells_which_rollback_touched_it_and_why(beliefs: ChronoStore) -> None:
    beliefs.invalidate("OBS-1", "the gauge was broken")
    for record_id in ("OBS-1", "HYP-1", "DEC-1", "DEC-2"):
        (told,) = beliefs.rollbacks(record_id)
        assert (told.rollback_id, told.target_id) == ("ROLLBACK-OBS-1", "OBS-1")
        assert told.reason == "the gauge was broken"
        assert told.change.record_id == record_id
        last = beliefs.history(record_id)[-1]
        assert told.seq == last.seq
        assert told.at is not None
        assert told.at.isoformat()[:19] == last.ts[:19]
        assert told.reinstated is None
    assert beliefs.rollbacks("NOBODY") == []


def test_every_rollback_has_a_report_of_its_own(beliefs: ChronoStore) -> None:
    beliefs.invalidate("OBS-1", "broken")
    beliefs.invalidate("OBS-1", "and of another model")
    assert [told.rollback_id for told in beliefs.rollbacks("DEC-1")] == ["ROLLBACK-OBS-1", "ROLLBACK-OBS-1-2"]
    assert [told.reason for told in beliefs.rollbacks("DEC-1")] == ["broken", "and of another model"]


def test_a_rollback_is_taken_back_in_one_batch(beliefs: ChronoStore) -> None:
    before = everything(beliefs)
    beliefs.invalidate("OBS-1", "the gauge was broken")
    seq = beliefs.wal_seq()
    report = beliefs.reinstate("ROLLBACK-OBS-1", "it was the cable")
    assert [change.record_id for change in report.restored] == ["OBS-1", "HYP-1", "DEC-1", "DEC-2"]
    assert report.left == ()
    after = everything(beliefs)
    kept = after.pop("ROLLBACK-OBS-1")
    assert after == before
    assert kept["status"] == "reinstated"
    assert kept["data"]["reinstated"][0]["reason"] == "it was the cable"
    assert [event.op for event in beliefs.replay(from_seq=seq + 1)] == ["begin", *["upsert"] * 5]
    assert beliefs.chain_valid()


def test_what_was_taken_back_is_told_too(beliefs: ChronoStore) -> None:
    beliefs.invalidate("OBS-1", "broken")
    beliefs.reinstate("ROLLBACK-OBS-1", "it was the cable")
    (told,) = beliefs.rollbacks("DEC-2")
    assert told.reinstated == "it was the cable"
    assert told.reinstated_seq == beliefs.history("DEC-2")[-1].seq
    assert told.seq == beliefs.history("DEC-2")[-2].seq


def test_what_changed_since_is_left_alone_and_named(beliefs: ChronoStore) -> None:
    beliefs.invalidate("OBS-1", "broken")
    changed = beliefs.update("DEC-1", label="corrected")
    deleted = beliefs.delete("DEC-2")
    report = beliefs.reinstate("ROLLBACK-OBS-1", "it was the cable")
    assert [change.record_id for change in report.restored] == ["OBS-1", "HYP-1"]
    assert report.left == (
        LeftAlone("DEC-1", f"it changed since, with event {changed.seq if changed else None}"),
        LeftAlone("DEC-2", f"it changed since, with event {deleted.seq}"),
    )
    now = everything(beliefs)
    assert now["DEC-1"]["status"] == "hypothesis"
    assert now["DEC-2"]["status"] == "tombstone"
    assert beliefs.rollbacks("DEC-1")[0].reinstated is None
    assert beliefs.rollbacks("HYP-1")[0].reinstated == "it was the cable"


def test_of_two_rollbacks_the_later_one_is_taken_back_first(beliefs: ChronoStore) -> None:
    before = everything(beliefs)
    beliefs.invalidate("OBS-1", "broken")
    beliefs.invalidate("DEC-1", "nobody wants it")
    early = beliefs.reinstate("ROLLBACK-OBS-1", "too early").left
    assert [left.record_id for left in early] == ["DEC-1", "DEC-2"]
    assert all(left.why.endswith("by ROLLBACK-DEC-1: take that back first") for left in early)
    other = beliefs.reinstate("ROLLBACK-DEC-1", "they do")
    assert [change.record_id for change in other.restored] == ["DEC-1", "DEC-2"]
    rest = beliefs.reinstate("ROLLBACK-OBS-1", "now the rest")
    assert [change.record_id for change in rest.restored] == ["DEC-1", "DEC-2"]
    now = everything(beliefs)
    assert {name: now[name] for name in before} == before
    assert [told.reinstated for told in beliefs.rollbacks("DEC-2")] == ["now the rest", "they do"]
    assert [told.reinstated for told in beliefs.rollbacks("OBS-1")] == ["too early"]
    seqs = [event.seq for event in beliefs.history("DEC-2")]
    assert [told.reinstated_seq for told in beliefs.rollbacks("DEC-2")] == [seqs[-1], seqs[-2]]
    with pytest.raises(InvalidArgument, match="taken back already"):
        beliefs.reinstate("ROLLBACK-OBS-1", "again")


def test_in_the_right_order_all_is_as_it_was(beliefs: ChronoStore) -> None:
    before = everything(beliefs)
    beliefs.invalidate("OBS-1", "broken")
    beliefs.invalidate("DEC-1", "nobody wants it")
    beliefs.reinstate("ROLLBACK-DEC-1", "they do")
    report = beliefs.reinstate("ROLLBACK-OBS-1", "cable")
    now = everything(beliefs)
    assert report.left == ()
    assert {name: now[name] for name in before} == before


def test_where_nothing_can_be_put_back_nothing_is_written(beliefs: ChronoStore) -> None:
    beliefs.invalidate("DEC-2", "late")
    beliefs.update("DEC-2", label="new words")
    head = beliefs.health().head
    report = beliefs.reinstate("ROLLBACK-DEC-2", "not late")
    assert report.restored == ()
    assert [left.record_id for left in report.left] == ["DEC-2"]
    assert beliefs.health().head == head


def test_what_is_no_report_cannot_be_taken_back(beliefs: ChronoStore) -> None:
    with pytest.raises(UnknownRecord, match="no rollback 'NOTHING'"):
        beliefs.reinstate("NOTHING", "why not")
    with pytest.raises(InvalidArgument, match="does not tell what a rollback changed"):
        beliefs.reinstate("OBS-1", "why not")
    beliefs.upsert(
        ChronoRecord(id="ODD", kind="rollback_event", data={"affected": ["OBS-1"], "changes": [3]})
    )
    with pytest.raises(InvalidArgument, match="does not tell"):
        beliefs.reinstate("ODD", "why not")
    assert beliefs.rollbacks("OBS-1") == []


def test_a_report_of_an_earlier_version_is_taken_back_by_history(beliefs: ChronoStore) -> None:
    before = everything(beliefs)
    beliefs.invalidate("OBS-1", "broken")
    # Until now reports did not say what was marked as a hypothesis before.
    events = beliefs.replay()
    batch = [event.record for event in events if event.op != "begin"][-5:]
    old = ChronoStore(beliefs.project_root / "old")
    for event in events[:-6]:
        if event.op == "upsert":
            old.upsert(event.record or {})
    for change in (batch[-1] or {})["data"]["changes"]:
        del change["was_hypothesis"]
    old.upsert_many([record or {} for record in batch])
    with old:
        assert reinstate(old, "ROLLBACK-OBS-1", "cable").left == ()
        now = everything(old)
        assert {name: now[name] for name in before} == before


def test_it_holds_after_a_compaction_and_in_another_process(beliefs: ChronoStore, tmp_path: Path) -> None:
    before = everything(beliefs)
    beliefs.invalidate("OBS-1", "broken")
    beliefs.compact(keep_history=False)
    beliefs.close()
    assert beliefs.rollbacks("DEC-1")[0].reason == "broken"
    assert beliefs.reinstate("ROLLBACK-OBS-1", "cable").left == ()
    now = everything(beliefs)
    assert {name: now[name] for name in before} == before


def test_a_handle_sees_only_its_own_rollbacks(store: ChronoStore) -> None:
    ann, bob = store.scoped(user="ann"), store.scoped(user="bob")
    store.upsert(ChronoRecord(id="F", confidence=0.9))
    ann.upsert({"id": ann.id("D"), "evidence": ["F"]})
    store.invalidate("F", "wrong")
    assert ann.rollbacks("F")[0].reason == "wrong"
    with pytest.raises(OutOfScope):
        bob.reinstate("ROLLBACK-F", "no")
    assert store.reinstate("ROLLBACK-F", "right after all").restored


@pytest.mark.parametrize("others", [0, 1, 2])
def test_what_an_import_brought_is_left_alone(beliefs: ChronoStore, tmp_path: Path, others: int) -> None:
    beliefs.invalidate("DEC-1", "the source was wrong")
    changed = everything(beliefs)
    with ChronoStore(tmp_path / "elsewhere") as there:
        # By chance the records may lie where the report says that its changes are.
        there.upsert_many([{"id": f"other-{number}"} for number in range(others)])
        for name in ("DEC-1", "DEC-2", "ROLLBACK-DEC-1"):
            there.upsert(changed[name])
        before = everything(there)
        told = there.reinstate("ROLLBACK-DEC-1", "no")
        assert told.restored == () and everything(there) == before
        assert all("without its events" in each.why for each in told.left)
