"""Every way of tampering gets the verdict it deserves, and verify() admits what it cannot tell."""

from __future__ import annotations

from pathlib import Path

import pytest
from chronomemory import ChronoStore
from tampering import NOT_BUILT, REMARKS, ROWS, SEEN, Row, build, verdict


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.attack)
def test_an_attack_gets_its_verdict(row: Row, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    folder = build(tmp_path)
    before = ChronoStore(tmp_path).verify()
    assert before.valid
    row.do(folder)
    report = ChronoStore(tmp_path).verify()
    found = verdict(report, row.rung)
    request.config.stash.setdefault(SEEN, []).append(
        (row.attack, row.rung, found, REMARKS.get(row.attack, ""))
    )
    assert found == row.expected
    if row.expected == NOT_BUILT:
        assert f"{row.rung}: cannot tell" in report.lines()


def test_an_edited_snapshot_changes_nothing(tmp_path: Path) -> None:
    row = next(row for row in ROWS if row.attack == "snapshot edited")
    folder = build(tmp_path)
    row.do(folder)
    with ChronoStore(tmp_path) as store:
        assert "forgery!" not in {record.label for record in store.query(status=None)}


def test_a_removed_archive_is_noted(tmp_path: Path) -> None:
    row = next(row for row in ROWS if row.attack == "archive removed")
    row.do(build(tmp_path))
    assert any("history" in note for note in ChronoStore(tmp_path).verify().notes)


def test_a_cut_tail_is_noted_while_the_hint_is_there(tmp_path: Path) -> None:
    row = next(row for row in ROWS if row.attack == "tail cut at a line boundary")
    row.do(build(tmp_path))
    assert any("last known sync" in note for note in ChronoStore(tmp_path).verify().notes)
