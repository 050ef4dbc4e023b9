"""Whole events come back that stand in one line with others, because newlines were lost."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoStore
from recovering import labels, quiet

LOG = "events.wal"


def written(project: Path, *, is_compacted: bool, has_backup: bool) -> None:
    """A log with single events, a batch in its middle, and perhaps a copy of its first half."""
    with ChronoStore(project) as store:
        for number in range(3):
            store.upsert({"id": f"old-{number}", "label": f"old {number}"})
        if is_compacted:
            store.compact()
        for number in range(3):
            store.upsert({"id": f"R{number}", "label": f"value {number}"})
        if has_backup:
            store.backup()
        store.upsert_many([{"id": f"B{number}", "label": f"of a batch {number}"} for number in range(3)])
        store.upsert({"id": "R1", "label": "later"})
        store.delete("R2")


def repaired(project: Path, damaged: bytes) -> dict[str, Any]:
    (project / ".chronomemory" / LOG).write_bytes(damaged)
    with quiet(), ChronoStore(project) as store:
        return store.upkeep.repair()


def bounds(lines: list[bytes]) -> Iterator[int]:
    """Where the newlines stand."""
    at = 0
    for line in lines:
        at += len(line)
        yield at - 1


@pytest.fixture(params=[False, True], ids=["plain", "compacted"])
def is_compacted(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(params=[False, True], ids=["alone", "with a copy"])
def has_backup(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def test_a_newline_that_is_lost_or_altered_costs_nothing(
    tmp_path: Path, is_compacted: bool, has_backup: bool
) -> None:
    written(tmp_path / "whole", is_compacted=is_compacted, has_backup=has_backup)
    truth = labels(tmp_path / "whole")
    log = (tmp_path / "whole" / ".chronomemory" / LOG).read_bytes()
    project = tmp_path / "broken"
    for at in bounds(log.splitlines(keepends=True)):
        for instead in (b"", b"J", b"\r", b","):
            shutil.rmtree(project, ignore_errors=True)
            shutil.copytree(tmp_path / "whole", project)
            told = repaired(project, log[:at] + instead + log[at + 1 :])
            assert told["lost"] == [], (at, instead)
            assert labels(project) == truth, (at, instead)
            with quiet(), ChronoStore(project) as store:
                assert store.verify().valid


@pytest.mark.parametrize("has_hint", [True, False])
@pytest.mark.parametrize("instead", [b"", b"\0\0\0\0\0"])
@pytest.mark.parametrize(("before", "behind"), [(1, 0), (30, 0), (0, 1), (0, 70)])
def test_the_neighbour_of_a_torn_line_is_whole(
    tmp_path: Path, is_compacted: bool, has_hint: bool, instead: bytes, before: int, behind: int
) -> None:
    """Some bytes of one line are lost with its newline: the other line comes back, and the first is named."""
    written(tmp_path, is_compacted=is_compacted, has_backup=False)
    home = tmp_path / ".chronomemory"
    lines = (home / LOG).read_bytes().splitlines(keepends=True)
    if not has_hint:
        (home / "synced").unlink()
    (number,) = [number for number, line in enumerate(lines) if b'"id":"B1"' in line]
    log, at = b"".join(lines), list(bounds(lines))[number]
    told = repaired(tmp_path, log[: at - before] + instead + log[at + 1 + behind :])
    found = labels(tmp_path)
    if before:
        assert found["B2"] == "of a batch 2"
    else:
        assert found["B1"] == "of a batch 1"
        assert found["B2"] == "of a batch 2", "its payload is whole, and the line behind it names its hash"
    assert (found["R1"], found["B0"]) == ("later", "of a batch 0")
    if "B1" not in found:
        assert told["lost"], "nothing is lost in silence"
    else:
        assert found["B1"] == "of a batch 1"
        assert told["lost"] == []


@pytest.mark.parametrize("instead", [b"", b"\0"])
@pytest.mark.parametrize("last", [2, 5, None])
def test_several_lines_that_grew_together_come_apart(
    tmp_path: Path, is_compacted: bool, instead: bytes, last: int | None
) -> None:
    """All of a log may be one line: it holds whole events all the same."""
    written(tmp_path, is_compacted=is_compacted, has_backup=True)
    truth = labels(tmp_path)
    lines = (tmp_path / ".chronomemory" / LOG).read_bytes().splitlines(keepends=True)
    joined = b"".join(lines[:last]).replace(b"\n", instead)
    told = repaired(tmp_path, joined + b"".join(lines[len(lines[:last]) :]))
    assert told["lost"] == []
    assert labels(tmp_path) == truth


@pytest.mark.parametrize("instead", [b"", b"J"])
@pytest.mark.parametrize("events", [0, 1, 2])
def test_a_log_of_a_few_lines_is_not_given_up_for_a_copy(
    tmp_path: Path, is_compacted: bool, instead: bytes, events: int
) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "first", "label": "true"})
        if is_compacted:
            store.compact()
        store.backup()
        for number in range(events):
            store.upsert({"id": f"R{number}", "label": "true"})
    truth = labels(tmp_path)
    log = (tmp_path / ".chronomemory" / LOG).read_bytes()
    assert repaired(tmp_path, log.replace(b"\n", instead, 1))["lost"] == []
    assert labels(tmp_path) == truth


def test_an_event_that_a_record_quotes_is_no_line(tmp_path: Path) -> None:
    """What stands inside a record was never an event of this log, however right its hash is."""
    with ChronoStore(tmp_path / "other") as other:
        other.upsert({"id": "quoted", "label": "not ours"})
    quoted = (tmp_path / "other" / ".chronomemory" / LOG).read_text().strip()
    project = tmp_path / "own"
    with ChronoStore(project) as store:
        store.upsert({"id": "first", "label": "true"})
        store.upsert({"id": "quoting", "label": "says", "data": {"event": json.loads(quoted)}})
        store.upsert({"id": "last", "label": "true"})
    log = (project / ".chronomemory" / LOG).read_bytes()
    told = repaired(project, log.replace(b'"label":"says"', b'"lab\0\0\0\0says"'))
    assert told["lost"]
    assert labels(project) == {"first": "true", "last": "true"}


@pytest.mark.parametrize("lost", [1, 3, 29, 30, 31, 36])
def test_the_last_line_is_whole_wherever_the_one_before_it_was_cut(tmp_path: Path, lost: int) -> None:
    """What is left of a line may end where a value begins: what stands there is no quote if it follows."""
    with ChronoStore(tmp_path) as store:
        for name in ("first", "torn", "last"):
            store.upsert({"id": name, "label": "true"})
    home = tmp_path / ".chronomemory"
    (home / "synced").unlink()
    lines = (home / LOG).read_bytes().splitlines(keepends=True)
    told = repaired(tmp_path, lines[0] + lines[1][: -1 - lost] + lines[2])
    found = labels(tmp_path)
    assert (found["first"], found["last"]) == ("true", "true")
    assert bool(told["lost"]) == ("torn" not in found)
