"""Records whose later events cannot be read are marked wherever they are handed out."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from chronomemory import ChronoStore
from chronomemory.errors import LogCorrupted

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def change_line(log: Path, number: int, change: Callable[[bytes], bytes]) -> None:
    lines = log.read_bytes().splitlines(keepends=True)
    lines[number] = change(lines[number])
    log.write_bytes(b"".join(lines))


def altered(line: bytes) -> bytes:
    """The line with another status and the hash that it had: its ids are still readable."""
    assert b"invalidated" in line
    return line.replace(b"invalidated", b"invalidateX")


def unreadable(line: bytes) -> bytes:
    return b"#" * (len(line) - 1) + b"\n"


def removed(line: bytes) -> bytes:
    return b""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A belief and its withdrawal in line 3; before and after it records that have nothing to do with it."""
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "BEFORE", "label": "written before"})
        store.upsert({"id": "BELIEF", "label": "the bridge holds"})
        store.upsert({"id": "BELIEF", "label": "the bridge holds", "status": "invalidated"})
        store.upsert({"id": "AFTER", "label": "written after", "evidence": ["BELIEF"]})
    return tmp_path


def test_a_record_that_a_damaged_line_names_is_in_doubt(project: Path, log: Path) -> None:
    change_line(log, 2, altered)
    with ChronoStore(project) as store:
        belief = store.get("BELIEF")
        assert belief is not None and belief.status == "active"
        assert belief.in_doubt is not None and "names this record" in belief.in_doubt
        found = {record.id: record.in_doubt is not None for record in store.query()}
        assert found == {"BEFORE": False, "BELIEF": True, "AFTER": False}
        assert [hit.record.in_doubt for hit in store.search("bridge")] == [belief.in_doubt]
        assert [record and record.in_doubt for record in store.get_many(["BELIEF"])] == [belief.in_doubt]
        seen = store.as_of(store.wal_seq()).get("BELIEF")
        assert seen is not None and (seen, seen.in_doubt) == (belief, belief.in_doubt)
        health = store.health()
        assert (health.ok, health.records_in_doubt, health.ids_in_doubt) == (False, 1, ("BELIEF",))
        assert json.loads(json.dumps(health.to_dict()))["ids_in_doubt"] == ["BELIEF"]


def test_the_mark_is_no_field_of_the_record(project: Path, log: Path) -> None:
    with ChronoStore(project) as store:
        sound = store.as_of(2).get("BELIEF")
        assert sound.in_doubt is None
    change_line(log, 2, altered)
    with ChronoStore(project) as store:
        belief = store.get("BELIEF")
        assert belief is not None
        assert belief == sound and belief.to_dict() == sound.to_dict() and belief.version == sound.version
        assert pickle.loads(pickle.dumps(belief)).in_doubt == belief.in_doubt
        with pytest.raises(AttributeError):
            belief.in_doubt = None  # type: ignore[misc]


def test_why_tells_which_reasons_are_in_doubt(project: Path, log: Path) -> None:
    change_line(log, 2, altered)
    with ChronoStore(project) as store:
        told = store.why("AFTER")
        assert told.root.record is not None and told.root.record.in_doubt is None
        ground = told.to_dict()["grounds"][0]
        assert ground["id"] == "BELIEF" and "names this record" in ground["in_doubt"]


@pytest.mark.parametrize("damage", [unreadable, removed])
@pytest.mark.damaged_before_opening
def test_a_line_that_names_no_record_puts_all_before_it_in_doubt(
    project: Path, log: Path, damage: Callable[[bytes], bytes]
) -> None:
    change_line(log, 2, damage)
    with ChronoStore(project) as store:
        found = {record.id: record.in_doubt for record in store.query()}
        assert found["AFTER"] is None
        assert found["BELIEF"] is not None and found["BELIEF"] == found["BEFORE"]
        assert "may have changed this record" in found["BELIEF"]
        health = store.health()
        assert (health.records_in_doubt, health.ids_in_doubt) == (2, ())


@pytest.mark.damaged_before_opening
def test_an_id_that_was_itself_altered_is_not_taken_for_another(project: Path, log: Path) -> None:
    change_line(log, 2, lambda line: line.replace(b'"record_id":"BELIEF"', b'"record_id":"BEFORE"'))
    with ChronoStore(project) as store:
        assert store.health().ids_in_doubt == ()
        assert all(record.in_doubt for record in store.query() if record.id != "AFTER")


def test_a_damaged_line_about_a_record_that_is_not_there_puts_no_other_in_doubt(
    project: Path, log: Path
) -> None:
    change_line(log, 0, lambda line: line.replace(b"written before", b"written Before"))
    with ChronoStore(project) as store:
        assert store.get("BEFORE") is None
        assert store.health().records_in_doubt == 0 and not store.health().ok


def test_records_of_a_broken_batch_are_in_doubt(tmp_path: Path, log: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert_many([{"id": name, "label": "first"} for name in "ABC"])
        store.upsert_many([{"id": name, "label": "second"} for name in "AB"])
    change_line(log, 6, lambda line: line.replace(b"second", b"sEcond"))
    with ChronoStore(tmp_path) as store:
        assert {record.id: bool(record.in_doubt) for record in store.query()} == {
            "A": True,
            "B": True,
            "C": False,
        }
        assert store.get("A").label == "first"  # type: ignore[union-attr]


@pytest.mark.damaged_before_opening
def test_writing_all_of_a_record_ends_the_doubt_and_a_part_does_not(project: Path, log: Path) -> None:
    with ChronoStore(project) as store:
        store.engine.upsert({"id": "page:1", "kind": "page"}, "pages")
        store.upsert({"id": "GONE"})
        store.upsert({"id": "LAST"})
    change_line(log, 5, unreadable)
    with ChronoStore(project) as store:
        assert store.health().records_in_doubt == 4
        store.engine.write([("patch", ("page:1", {"label": "changed in part"}))], "pages")
        store.upsert({"id": "BEFORE", "label": "said again"})
    for _ in range(2):
        with ChronoStore(project) as store:
            found = {name: bool(store.get(name).in_doubt) for name in ("page:1", "BEFORE", "BELIEF")}  # type: ignore[union-attr]
            assert found == {"page:1": True, "BEFORE": False, "BELIEF": True}
            assert store.health().ids_in_doubt == ("page:1",)
    with ChronoStore(project) as store:
        store.engine.delete("page:1", "pages")
        store.delete("BELIEF")
        assert store.health().records_in_doubt == 1, (
            "AFTER is left, which was written before the damaged line"
        )


def test_a_repair_ends_the_doubt(project: Path, log: Path) -> None:
    change_line(log, 2, altered)
    with ChronoStore(project) as store:
        store.upkeep.repair()
        belief = store.get("BELIEF")
        assert belief is not None and belief.status != "active" and belief.in_doubt is None
        assert store.health().records_in_doubt == 0


def test_an_interrupted_write_puts_nothing_in_doubt(project: Path, log: Path) -> None:
    with log.open("ab") as stream:
        stream.write(b'{"hash":"half a line')
    with pytest.warns(RuntimeWarning, match="uncommitted"), ChronoStore(project) as store:
        assert store.health().records_in_doubt == 0


def test_a_strict_store_refuses_to_open(project: Path, log: Path) -> None:
    change_line(log, 2, altered)
    with pytest.raises(LogCorrupted, match="altered"):
        ChronoStore(project, strict=True).open()


def test_a_handle_is_told_only_of_what_it_sees(tmp_path: Path, log: Path) -> None:
    with ChronoStore(tmp_path) as store:
        ann, bob = store.scoped(user="ann"), store.scoped(user="bob")
        ann.upsert({"id": "ANN-1", "label": "likes tea"})
        bob.upsert({"id": "BOB-1", "label": "likes coffee"})
        ann.upsert({"id": "ANN-1", "label": "likes tea", "status": "invalidated"})
    change_line(log, 2, altered)
    with pytest.warns(RuntimeWarning, match="damage in") as warned, ChronoStore(tmp_path) as store:
        ann, bob, everyone = store.scoped(user="ann"), store.scoped(user="bob"), store.everyone()
        assert ann.get("ANN-1").in_doubt and everyone.get("ANN-1").in_doubt  # type: ignore[union-attr]
        assert bob.get("ANN-1") is None and bob.get("BOB-1").in_doubt is None  # type: ignore[union-attr]
        assert ann.engine.upkeep.in_doubt() == (1, ["ANN-1"]) == everyone.engine.upkeep.in_doubt()
        assert bob.engine.upkeep.in_doubt() == (0, [])
        health = store.health()
        assert (health.records_in_doubt, health.ids_in_doubt) == (1, ())
    assert not any("ANN-1" in str(one.message) for one in warned)


def test_whoever_catches_up_with_damage_sees_it_too(project: Path, log: Path) -> None:
    with ChronoStore(project) as store:
        assert store.get("BELIEF").in_doubt is None  # type: ignore[union-attr]
        kept = log.read_bytes()
        change_line(log, 2, altered)
        with log.open("ab") as stream:
            stream.write(b"garbage\n")
        (log.parent / "synced").unlink()
        assert store.get("BELIEF").in_doubt  # type: ignore[union-attr]
        log.write_bytes(kept)


def test_a_copy_of_a_damaged_store_is_in_doubt_as_well(
    project: Path, log: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    change_line(log, 2, altered)
    copy = tmp_path_factory.mktemp("copy") / "project"
    shutil.copytree(project, copy)
    with ChronoStore(copy) as store:
        assert store.get("BELIEF").in_doubt  # type: ignore[union-attr]
