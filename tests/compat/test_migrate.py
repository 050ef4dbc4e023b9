"""Requirements and test cases come over from JSON, once, whatever state the files are in."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoRecord, ChronoStore, DepGraph
from chronomemory import migrate as migrate_module
from chronomemory import store as store_module

Objects = list[dict[str, Any]]

REQUIREMENTS: Objects = [
    {"id": "REQ-1", "title": "First", "status": "implemented", "test_ids": ["TEST-1"]},
    {"id": "REQ-2", "title": "Second", "status": "Deprecated in 2.0", "confidence": 0.9},
    {"id": "REQ-3", "title": "Dritte, größer"},
]
TESTCASES: Objects = [{"id": "TEST-1", "title": "First", "confidence": 1}]


def folder(tmp_path: Path, requirements: Any = None, testcases: Any = None) -> Path:
    made = tmp_path / ".specsmith"
    made.mkdir(exist_ok=True)
    for name, objects in (("requirements", requirements), ("testcases", testcases)):
        if objects is not None:
            text = json.dumps(objects, ensure_ascii=False)
            (made / f"{name}.json").write_text(text, encoding="utf-8")
    return made


def test_objects_become_records(store: ChronoStore, tmp_path: Path) -> None:
    counts = store.migrate_from_json(folder(tmp_path, REQUIREMENTS, TESTCASES))
    assert counts == {"requirements": 3, "testcases": 1, "skipped": 0}
    assert store.query(status="") == [
        ChronoRecord(
            id="REQ-1",
            kind="requirement",
            label="First",
            evidence=["migrated from requirements.json"],
            data=REQUIREMENTS[0],
        ),
        ChronoRecord(
            id="REQ-2",
            kind="requirement",
            status="deprecated",
            label="Second",
            confidence=0.9,
            evidence=["migrated from requirements.json"],
            data=REQUIREMENTS[1],
        ),
        ChronoRecord(
            id="REQ-3",
            kind="requirement",
            label="Dritte, größer",
            evidence=["migrated from requirements.json"],
            data=REQUIREMENTS[2],
        ),
        ChronoRecord(
            id="TEST-1",
            kind="testcase",
            label="First",
            confidence=1.0,
            evidence=["migrated from testcases.json"],
            data=TESTCASES[0],
        ),
    ]
    assert store.chain_valid()


def test_a_second_run_changes_nothing(store: ChronoStore, tmp_path: Path) -> None:
    source = folder(tmp_path, REQUIREMENTS, TESTCASES)
    store.migrate_from_json(str(source))
    head = store.health().head
    assert store.migrate_from_json(source) == {"requirements": 0, "testcases": 0, "skipped": 4}
    assert store.health().head == head


def test_a_new_title_or_status_is_taken_over(store: ChronoStore, tmp_path: Path) -> None:
    store.migrate_from_json(folder(tmp_path, REQUIREMENTS))
    changed = [{**REQUIREMENTS[0], "title": "New"}, {**REQUIREMENTS[1], "status": "active"}]
    counts = store.migrate_from_json(folder(tmp_path, [*changed, REQUIREMENTS[2]]))
    assert counts == {"requirements": 2, "testcases": 0, "skipped": 1}
    assert [record.label for record in store.query()] == ["New", "Second", "Dritte, größer"]


def test_an_id_named_twice_is_stable(store: ChronoStore, tmp_path: Path) -> None:
    source = folder(
        tmp_path,
        [{"id": "X", "title": "one"}, {"id": "X", "title": "two"}],
        [{"id": "X", "title": "three"}],
    )
    assert store.migrate_from_json(source) == {"requirements": 0, "testcases": 1, "skipped": 2}
    head = store.health().head
    store.migrate_from_json(source)
    assert store.health().head == head
    assert [record.label for record in store.query()] == ["three"]


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1, 2", '{"id": "A"}', "null", '"text"', '[{"id": "A", "x": NaN}]', "[" * 100_000],
)
def test_a_file_that_is_no_list_of_objects_is_logged(
    store: ChronoStore, tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    source = folder(tmp_path, testcases=TESTCASES)
    (source / "requirements.json").write_text(text, encoding="utf-8")
    assert store.migrate_from_json(source) == {"requirements": 0, "testcases": 1, "skipped": 0}
    assert "requirements.json" in caplog.text


def test_bytes_that_are_no_text_are_logged(
    store: ChronoStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = folder(tmp_path)
    (source / "requirements.json").write_bytes(b"\xff\xfe\x00[")
    assert store.migrate_from_json(source)["requirements"] == 0
    assert "requirements.json" in caplog.text


def test_nothing_to_migrate_leaves_no_trace(
    store: ChronoStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    nothing = {"requirements": 0, "testcases": 0, "skipped": 0}
    assert store.migrate_from_json(tmp_path / "nowhere") == nothing
    assert store.migrate_from_json(folder(tmp_path)) == nothing
    assert "nothing to migrate" in caplog.text
    assert not (tmp_path / ".chronomemory").exists()


def test_unusable_entries_are_left_out_and_logged(
    store: ChronoStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    entries = [{"title": "no id"}, {"id": ""}, {"id": 7}, "text", None, {"id": "GOOD"}]
    counts = store.migrate_from_json(folder(tmp_path, entries))
    assert counts == {"requirements": 1, "testcases": 0, "skipped": 0}
    assert "5 entries without an id" in caplog.text
    assert [record.label for record in store.query()] == [""]


def test_an_entry_that_the_log_cannot_carry_does_not_stop_the_others(
    store: ChronoStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = folder(tmp_path)
    text = '[{"id": "A"}, {"id": "B", "title": "\\ud800"}, {"id": "block:1"}, {"id": "C"}]'
    (source / "requirements.json").write_text(text, encoding="utf-8")
    assert store.migrate_from_json(source)["requirements"] == 2
    assert [record.id for record in store.query()] == ["A", "C"]
    assert "'B' cannot be migrated" in caplog.text


@pytest.mark.parametrize("confidence", [-1, 2, "high", None, True, [1]])
def test_a_confidence_that_is_none_gets_the_default(
    store: ChronoStore, tmp_path: Path, confidence: object
) -> None:
    store.migrate_from_json(folder(tmp_path, [{"id": "A", "confidence": confidence}]))
    assert [record.confidence for record in store.query()] == [0.7]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("deprecated", "deprecated"),
        ("DEPRECATING", "deprecated"),
        ("to be deprecated", "deprecated"),
        ("implemented", "active"),
        ("retired", "active"),
        ("", "active"),
        (None, "active"),
        (7, "active"),
    ],
)
def test_only_deprecation_carries_over(status: object, expected: str) -> None:
    for home in (migrate_module, store_module, ChronoStore):
        assert home._governance_to_esdb_status(status) == expected  # type: ignore[attr-defined]


def test_what_was_withdrawn_comes_back_only_if_the_file_says_something_new(
    store: ChronoStore, tmp_path: Path
) -> None:
    source = folder(tmp_path, REQUIREMENTS, TESTCASES)
    store.migrate_from_json(source)
    store.delete("REQ-1")
    DepGraph(store).add_edge("TEST-1", "REQ-3", "depends_on")
    store.invalidate("REQ-3", "wrong")
    before = store.wal_seq()
    assert store.migrate_from_json(source) == {"requirements": 0, "testcases": 0, "skipped": 4}
    assert store.wal_seq() == before
    folder(tmp_path, [{**REQUIREMENTS[0], "title": "First, again"}, *REQUIREMENTS[1:]])
    assert store.migrate_from_json(source) == {"requirements": 1, "testcases": 0, "skipped": 3}
    assert [store.get(name).status for name in ("REQ-1", "REQ-3")] == ["active", "invalidated"]
    assert store.get("TEST-1").status == "hypothesis"


def test_true_is_another_word_than_one(store: ChronoStore, tmp_path: Path) -> None:
    said = {"id": "REQ-1", "title": "First", "done": 1}
    store.migrate_from_json(folder(tmp_path, [said]))
    store.delete("REQ-1")
    assert store.migrate_from_json(folder(tmp_path, [said]))["requirements"] == 0
    assert store.migrate_from_json(folder(tmp_path, [{**said, "done": True}]))["requirements"] == 1
