"""Recovery believes only what is proved, and loses nothing that is there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoRecord, ChronoStore, DepGraph
from chronomemory.errors import LogCorrupted
from recovering import labels, only, quiet


def repair(project: Path, **options: Any) -> dict[str, Any]:
    with quiet(), ChronoStore(project) as store:
        return store.upkeep.repair(**options)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / ".chronomemory"


@pytest.fixture
def compacted(tmp_path: Path) -> dict[str, str]:
    """A store of a base, an archive and a few lines; what it holds."""
    with ChronoStore(tmp_path) as store:
        store.upsert_many([{"id": f"R-{n}", "label": f"value {n}"} for n in range(2)])
        store.upsert({"id": "dose", "label": "give 10 mg"})
        store.compact()
        store.upsert({"id": "late", "label": "after"})
    return labels(tmp_path)


def flip(path: Path, old: bytes, new: bytes) -> None:
    data = path.read_bytes()
    assert data.count(old) >= 1
    path.write_bytes(data.replace(old, new, 1))


# The base.


@pytest.mark.parametrize("how", ["altered", "missing"])
@pytest.mark.damaged_before_opening
def test_a_store_with_a_damaged_base_opens_read_only(
    tmp_path: Path, home: Path, compacted: dict[str, str], how: str
) -> None:
    base = only(home / "base")
    if how == "missing":
        base.unlink()
    else:
        flip(base, b"give 10 mg", b"give 90 mg")
    with pytest.warns(RuntimeWarning, match=f"base-{how}"), ChronoStore(tmp_path) as store:
        assert store.get("dose") is None, "an altered value is not served"
        assert store.get("late") is not None
        assert store.health().damaged_places == 1
        with pytest.raises(LogCorrupted, match=r"repair\(\)"):
            store.upsert({"id": "new"})
        assert store.upkeep.repair()["lost"] == []
        store.upsert({"id": "new"})
    assert labels(tmp_path) == compacted | {"new": ""}


@pytest.mark.parametrize("how", ["altered", "broken", "missing"])
def test_repair_rebuilds_the_base_and_keeps_history(
    tmp_path: Path, home: Path, compacted: dict[str, str], how: str
) -> None:
    base = only(home / "base")
    if how == "missing":
        base.unlink()
    else:
        flip(base, b"give 10 mg", b"give 90 mg" if how == "altered" else b'give" 0 mg')
    told = repair(tmp_path)
    assert (told["lost"], told["unproven"], told["history_kept"]) == ([], [], True)
    assert labels(tmp_path) == compacted
    with ChronoStore(tmp_path) as store:
        assert store.chain_valid()
        assert [event.record["label"] for event in store.history("dose") if event.record] == ["give 10 mg"]
        assert any("repaired at event" in note for note in store.verify().notes)


def test_a_base_is_read_from_a_backup_when_the_archive_is_gone(tmp_path: Path, home: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "A", "label": "original"})
        store.compact(keep_history=False)
        store.backup()
    flip(only(home / "base"), b"original", b"forgery!")
    repair(tmp_path)
    assert labels(tmp_path) == {"A": "original"}


def test_what_nothing_proves_is_refused_or_marked(tmp_path: Path, home: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert_many([{"id": "A", "label": "original"}, {"id": "B", "label": "other"}])
        store.compact(keep_history=False)
        store.upsert({"id": "C", "label": "proved"})
    (home / "snapshot.json").unlink()
    flip(only(home / "base"), b"original", b"forgery!")
    with pytest.raises(LogCorrupted) as caught:
        repair(tmp_path)
    assert "unproven=True" in caught.value.recovery
    told = repair(tmp_path, unproven=True)
    assert told["unproven"] == ["A", "B"]
    with ChronoStore(tmp_path) as store:
        marked = {record.id for record in store.query(status="") if "@unproven" in record.data}
        assert marked == {"A", "B"}
        assert store.chain_valid()


# The first line.


@pytest.mark.parametrize("damage", [b"a flip", b"zeros"])
def test_a_lost_first_line_hides_nothing(
    tmp_path: Path, home: Path, compacted: dict[str, str], damage: bytes
) -> None:
    log = home / "events.wal"
    lines = log.read_bytes().split(b"\n")
    if damage == b"a flip":
        lines[0] = lines[0].replace(b"Compacted", b"Cimpacted")
    else:
        lines[0] = b"0" * len(lines[0])
    log.write_bytes(b"\n".join(lines))
    if damage == b"zeros":
        with pytest.raises(LogCorrupted, match="the line that names the base is lost"):
            repair(tmp_path)
    told = repair(tmp_path, unproven=damage == b"zeros")
    assert labels(tmp_path) == compacted
    assert told["healed"] == (damage == b"a flip")
    assert ("dose" in told["unproven"]) == (damage == b"zeros")
    with ChronoStore(tmp_path) as store:
        assert store.chain_valid()
        assert (store.history("dose") != []) == (damage == b"a flip")


def test_what_a_repair_sets_aside_can_be_brought_back(
    tmp_path: Path, home: Path, compacted: dict[str, str]
) -> None:
    log = home / "events.wal"
    whole = log.read_bytes()
    lines = whole.split(b"\n")
    lines[0] = b"0" * len(lines[0])
    log.write_bytes(b"\n".join(lines))
    told = repair(tmp_path, unproven=True)
    aside = home / told["kept"]
    assert {"events.wal", "base", "archive"} <= {path.name for path in aside.iterdir()}
    (aside / "events.wal").write_bytes(whole)  # somebody found the lost line elsewhere
    with ChronoStore(tmp_path) as store:
        store.upkeep.restore(aside)
        assert [event.record["label"] for event in store.history("dose") if event.record] == ["give 10 mg"]
    assert labels(tmp_path) == compacted


def test_a_damaged_copy_comes_back_only_when_asked_for(tmp_path: Path, home: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert_many([{"id": "A", "label": "one"}, {"id": "B", "label": "two"}])
    flip(home / "events.wal", b'"label":"one"', b'"label":"111"')
    told = repair(tmp_path)
    assert told["lost"]
    with quiet(), ChronoStore(tmp_path) as store:
        with pytest.raises(LogCorrupted):
            store.upkeep.restore(home / told["kept"])
        store.upkeep.restore(home / told["kept"], damaged=True)
        assert not store.chain_valid()


# Lines.


def test_one_altered_byte_of_a_line_is_found_again(tmp_path: Path, home: Path) -> None:
    with ChronoStore(tmp_path) as store:
        for number in range(5):
            store.upsert({"id": f"R-{number}", "label": f"value {number}"})
    before = labels(tmp_path)
    for place in (b"value 0", b"value 2", b"value 4"):
        flip(home / "events.wal", place, place.replace(b"value", b"valve"))
    assert repair(tmp_path)["healed"] == 3
    assert labels(tmp_path) == before


def test_lines_are_taken_from_a_backup(tmp_path: Path, home: Path) -> None:
    with ChronoStore(tmp_path) as store:
        for number in range(9):
            store.upsert({"id": f"R-{number}", "label": f"value {number}"})
        store.backup()
        store.upsert({"id": "late", "label": "after"})
    before = labels(tmp_path)
    log = home / "events.wal"
    lines = log.read_bytes().split(b"\n")
    log.write_bytes(b"\n".join([*lines[:2], b"rubbish", *lines[5:]]))
    told = repair(tmp_path)
    assert (told["healed"], told["lost"]) == (1, [])
    assert labels(tmp_path) == before


def withdrawn(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "F", "label": "fact"})
        store.upsert({"id": "D", "label": "decision", "confidence": 0.9})
        graph = DepGraph()
        graph.add_edge("D", "F", "depends_on")
        store.invalidate("F", "fact was wrong", graph)
        store.upsert({"id": "later", "label": "goes on"})


@pytest.mark.parametrize("letters", [b"fact wAs wrong", b"FACT WAS WRONG"])
def test_a_belief_that_a_damaged_batch_withdrew_does_not_come_back(
    tmp_path: Path, home: Path, letters: bytes
) -> None:
    withdrawn(tmp_path)
    flip(home / "events.wal", b"fact was wrong", letters)
    told = repair(tmp_path)
    with ChronoStore(tmp_path) as store:
        fact, decision = store.get("F"), store.get("D")
        assert fact is not None
        assert decision is not None
        assert (fact.status, decision.status) == ("invalidated", "hypothesis")
    assert bool(told["lost"]) == (letters == b"FACT WAS WRONG")
    assert {"F", "D"} <= set(told["changed"])


def test_a_record_whose_last_event_is_lost_is_on_hold(tmp_path: Path, home: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "F", "label": "fact"})
        store.upsert({"id": "F", "label": "fact", "status": "invalidated", "data": {"why": "it was wrong"}})
        store.upsert({"id": "later", "label": "goes on"})
    flip(home / "events.wal", b"it was wrong", b"so it was...")
    told = repair(tmp_path)
    assert told["unsettled"] == ["F"]
    assert told["lost"][0].startswith("event 2 lost at byte")
    with ChronoStore(tmp_path) as store:
        record = store.get("F")
        assert record is not None
        assert record.status == "unsettled"
        assert record.data["@unsettled"]["status"] == "active"
        assert [found.id for found in store.query()] == ["later"]


def test_a_repaired_store_says_so_for_ever(tmp_path: Path, home: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert_many([{"id": "A", "label": "one"}, {"id": "B", "label": "two"}])
    flip(home / "events.wal", b'"label":"one"', b'"label":"111"')
    repair(tmp_path)
    with ChronoStore(tmp_path) as store:
        for round_ in range(3):
            store.upsert({"id": f"R-{round_}"})
            store.compact(keep_history=False)
            assert sum("repaired at event" in note for note in store.verify().notes) == 1


def test_sentinels_name_what_a_repair_could_not_bring_back(tmp_path: Path, home: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert_many([{"id": "A", "label": "one"}, {"id": "B", "label": "two"}])
    flip(home / "events.wal", b'"label":"one"', b'"label":"111"')
    repair(tmp_path)
    first = json.loads((home / "events.wal").read_text("utf-8").splitlines()[0])
    data = first["record"]["data"]
    assert len(data["repaired"]) == 2
    assert len(data["lost"]) == 2
    assert data["repairs"] == [
        {"findings": 2, "open": 2, "seq": first["seq"], "ts": data["repairs"][0]["ts"]},
    ]


def test_a_record_of_any_shape_survives_being_marked(tmp_path: Path, home: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert(ChronoRecord(id="odd", data={"deep": {"er": [1, 2.5, None]}}))
        store.upsert(ChronoRecord(id="odd", label="second", data={"deep": "changed to this"}))
        store.upsert({"id": "next"})
    flip(home / "events.wal", b"changed to this", b"CHANGED TO THIS")
    repair(tmp_path)
    with ChronoStore(tmp_path) as store:
        record = store.get("odd")
        assert record is not None
        assert record.data["deep"] == {"er": [1, 2.5, None]}
