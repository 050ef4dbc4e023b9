"""What a store still tells of erased lines: folders of the corpus, opened and gone on with."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoStore, InvalidRecord, _core
from verdicts import CORPUS, FOLDERS, verify_log

sys.path.insert(0, str(CORPUS))
from cases_erased import in_three

VALID = sorted(
    name
    for name, verdict in FOLDERS.items()
    if name.startswith("erased_") and verdict["valid"] and "returned" not in verdict
)


def project(tmp_path: Path, name: str) -> Path:
    shutil.copytree(CORPUS / "folders" / name, tmp_path / ".chronomemory")
    return tmp_path


def redacted_in(inner: Path) -> list[str]:
    return sorted(path.name for path in (inner / "archive").glob("*.erased"))


class TestReading:
    def test_an_erased_record_was_never_there(self, tmp_path: Path) -> None:
        with ChronoStore(project(tmp_path, "erased_in_three")) as store:
            assert store.get("x") is None
            assert [*store.history("x")] == []
            assert "x" not in store.changed_since(1)
            for seq in range(1, store.wal_seq() + 1):
                assert store.as_of(seq).get("x") is None, seq

    def test_the_others_are_what_they_were_at_every_moment(self, tmp_path: Path) -> None:
        # The lines were x a / sentinel b x / sentinel x c: seqs 1 2, 3 4 5, 6 7 8.
        first = {"a": 2, "b": 4, "c": 8}
        with ChronoStore(project(tmp_path, "erased_in_three")) as store:
            for name, seq in first.items():
                assert [event.seq for event in store.history(name)] == [seq]
            for seq in range(1, store.wal_seq() + 1):
                view = store.as_of(seq)
                known = {name for name in first if view.get(name) is not None}
                assert known == {name for name, since in first.items() if since <= seq}, seq

    def test_an_erasure_is_remembered_and_no_record_of_the_users(self, tmp_path: Path) -> None:
        with ChronoStore(project(tmp_path, "erased_and_compacted")) as store:
            notes = " ".join(store.verify().notes)
            assert "erased at event 5" in notes
            assert "seq 2" in notes
            told = store.get("erasure:5")
            assert told is not None
            assert told.kind == "erasure"
            with pytest.raises(InvalidRecord, match="erasure"):
                store.upsert({"id": "erasure:99"})


def heads() -> Iterator[dict[str, Any]]:
    """What somebody could have noted at each line of `erased_in_three`, before anything was erased."""
    store = in_three()
    for lines in (*(one.lines for one in store.past), store.chain.lines):
        events, offset = [json.loads(line) for line in lines], 0
        for line, event in zip(lines, events, strict=True):
            offset += len(line)
            yield {
                "first": events[0]["hash"],
                "head": event["hash"],
                "offset": offset,
                "seq": event["seq"],
                "folder": "",
            }


class TestRememberedHeads:
    def standing(self, tmp_path: Path, head: dict[str, Any]) -> Any:
        note = tmp_path / "note"
        note.write_text(json.dumps(head))
        return _core.verify_path(str(tmp_path / ".chronomemory"), None, note)["remembered"]

    def test_a_head_is_found_by_its_seq_and_hash(self, tmp_path: Path) -> None:
        project(tmp_path, "erased_in_three")
        for head in heads():
            assert self.standing(tmp_path, head) == "kept", head["seq"]

    def test_another_hash_at_its_seq_is_a_loss(self, tmp_path: Path) -> None:
        project(tmp_path, "erased_in_three")
        for head in heads():
            assert self.standing(tmp_path, {**head, "head": "ab" * 32}) == "lost", head["seq"]


class TestGoingOn:
    @pytest.mark.parametrize("name", VALID)
    def test_it_can_be_written_to_compacted_and_copied(self, name: str, tmp_path: Path) -> None:
        inner = project(tmp_path, name) / ".chronomemory"
        before = redacted_in(inner)
        with ChronoStore(tmp_path) as store:
            store.upsert({"id": "new", "label": "after it"})
            store.compact()
            assert redacted_in(inner) == before
            copy = store.backup()
            assert redacted_in(copy) == before
            report = store.verify()
            assert report.valid, report.damage
            assert report.remembered == "kept"
        assert verify_log.verify_folder(tmp_path)["valid"]
        assert verify_log.verify_folder(copy)["valid"]

    def test_a_salt_is_no_part_of_a_record(self, tmp_path: Path) -> None:
        inner = project(tmp_path, "salt_in_base") / ".chronomemory"
        assert b'"~"' in b"".join(path.read_bytes() for path in (inner / "base").iterdir())
        with ChronoStore(tmp_path) as store:
            record = store.get("r1")
            assert record is not None
            assert "~" not in json.dumps(record.to_dict())
            store.upsert({"id": "new"})
            store.compact()
            assert store.verify().valid
        newest = max((inner / "base").iterdir(), key=lambda path: path.stat().st_mtime_ns)
        assert b'"~"' not in newest.read_bytes()

    def test_what_is_back_is_told(self, tmp_path: Path) -> None:
        report = ChronoStore(project(tmp_path, "erased_archive_back")).verify()
        assert report.valid
        assert [found.kind for found in report.returned] == ["erased-returned"]
        assert any("erased-returned" in line for line in report.lines())


@pytest.mark.parametrize("name", ["base_differs", "forged_before_hole"])
def test_history_that_is_not_what_it_says_is_set_aside_whole(name: str, tmp_path: Path) -> None:
    inner = project(tmp_path, name) / ".chronomemory"
    files = sorted(path.name for path in (inner / "archive").iterdir())
    with ChronoStore(tmp_path) as store:
        known = store.get("r1")
        store.upsert({"id": "before"})
        store.upkeep.repair()
        report = store.verify()
        assert report.valid, report.damage
        assert store.get("r1") == known
    kept = next((inner / "quarantine").glob("*-damaged"))
    assert sorted(path.name for path in (kept / "archive").iterdir())[: len(files)] == files
    assert verify_log.verify_folder(tmp_path)["valid"]


def test_what_was_erased_of_one_changes_no_answer_of_another(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        ann, cyd = store.scoped(user="ann"), store.scoped(user="cyd")
        for number in range(6):
            ann.upsert({"id": f"a{number}", "label": f"common text {number} tea cat"})
            cyd.upsert({"id": f"c{number}", "label": f"common text {number} tea"})
        before = [(hit.id, hit.score) for hit in ann.search("tea cat")]
        told = store.erase(scope={"user": "cyd"}, reason="a complaint of flat nine")
        assert [(hit.id, hit.score) for hit in ann.search("tea cat")] == before
        name = f"erasure:{told.seq}"
        for handle in (ann, store.scoped(user="bob"), store.shared()):
            assert handle.get(name) is None
            assert not handle.history(name)
            assert not handle.query(kind="erasure", status="")
            assert not handle.search("complaint flat nine")
        seen = store.everyone().get(name)
        assert seen is not None and seen.label == "a complaint of flat nine"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("line", [0, 1])
def test_a_line_that_tells_of_an_erasure_is_found_again_with_all_that_is_behind_it(
    tmp_path: Path, line: int
) -> None:
    log = tmp_path / ".chronomemory" / "events.wal"
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "R", "label": "one"})
        store.scoped(user="ann").upsert({"id": "A", "label": "secretzq"})
        store.upsert({"id": "R", "label": "two"})
        store.erase(ids=["A"], reason="asked for")
        store.upsert({"id": "Z"})
    lines = log.read_bytes().split(b"\n")
    middle = len(lines[line]) // 2
    lines[line] = lines[line][:middle] + bytes([lines[line][middle] ^ 1]) + lines[line][middle + 1 :]
    log.write_bytes(b"\n".join(lines))
    with ChronoStore(tmp_path) as store:
        told = store.upkeep.repair()
        assert (told["healed"], told["lost"], told["history_kept"]) == (1, [], True)
        assert [event.record["label"] for event in store.history("R")] == ["one", "two"]
        was = store.as_of(1).get("R")
        assert was is not None and was.label == "one"
        assert store.verify().valid
    assert verify_log.verify_folder(tmp_path)["valid"]
