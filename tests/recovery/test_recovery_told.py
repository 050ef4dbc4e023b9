"""A line is spelled again if what it lost is told elsewhere, and it is said where nobody can tell."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chronomemory import ChronoStore, Memory
from chronomemory.errors import ChronoError
from recovering import quiet

#: The characters that careless readers take for line ends; our lines have them escaped.
SEPARATORS = ("", "\u2028", "\u2029", "\x85")

Strike = Callable[[bytes], bytes]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / ".chronomemory"


def repaired(project: Path) -> dict[str, Any]:
    with quiet(), ChronoStore(project) as store:
        return store.upkeep.repair()


def between(line: bytes, key: bytes, length: int, fill: bytes) -> bytes:
    """What stands behind a key, so much of it replaced."""
    at = line.index(key) + len(key)
    return line[:at] + fill + line[at + length :]


STRIKES: dict[str, Strike] = {
    "the link": lambda line: between(line, b'"prev_hash":"', 64, b"\0" * 64),
    "part of the link": lambda line: between(line, b'"prev_hash":"', 20, b"0" * 20),
    "less of the link": lambda line: between(line, b'"prev_hash":"', 20, b""),
    "the operation": lambda line: line.replace(b'"op":"upsert"', b'"op":"######"'),
    "the name": lambda line: between(line, b',"record_id"', 12, b"\0" * 12),
    "all between record and moment": lambda line: (
        line[: line.index(b',"record_id"')] + b"\0" * 9 + line[line.index(b'"ts"') :]
    ),
    "all before the record": lambda line: b"\0" * 30 + line[line.index(b'"record":') :],
    "the end": lambda line: line[:-5],
}


@pytest.mark.parametrize("strike", STRIKES.values(), ids=list(STRIKES))
@pytest.mark.parametrize("separator", SEPARATORS[:2], ids=["plain", "separator"])
def test_a_line_is_spelled_again_if_what_it_lost_is_told_elsewhere(
    tmp_path: Path, home: Path, separator: str, strike: Strike
) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "DOSE", "label": "give 90 mg"})
        store.upsert({"id": "DOSE", "label": f"give 10 mg{separator}"})
        store.upsert({"id": "C", "label": "third"})
    log = home / "events.wal"
    whole = log.read_bytes()
    lines = whole.split(b"\n")
    lines[1] = strike(lines[1])
    log.write_bytes(b"\n".join(lines))
    told = repaired(tmp_path)
    assert told["lost"] == [] and told["unsettled"] == []
    with ChronoStore(tmp_path) as store:
        record = store.get("DOSE")
        assert record is not None and record.label == f"give 10 mg{separator}"


@pytest.mark.parametrize("before", SEPARATORS)
@pytest.mark.parametrize("behind", SEPARATORS)
def test_lines_with_separators_count_like_all_others(
    tmp_path: Path, home: Path, before: str, behind: str
) -> None:
    with ChronoStore(tmp_path) as store:
        for name in "ABC":
            store.upsert({"id": name, "label": "old"})
        store.upsert({"id": "X", "label": f"before{before}"})
        for name in "ABC":
            store.upsert({"id": name, "label": "new"})
        store.upsert({"id": "Y", "label": f"behind{behind}"})
    log = home / "events.wal"
    lines = log.read_bytes().split(b"\n")
    # From the end of the fifth line into the seventh: the sixth is swallowed whole.
    struck = [*lines[:4], lines[4][:-40] + b"\0" * 300 + lines[6][150:], *lines[7:]]
    log.write_bytes(b"\n".join(struck))
    told = repaired(tmp_path)
    assert any("events 5 to 7 are lost here" in said for said in told["lost"]), told["lost"]


def test_what_is_swallowed_with_the_beginning_is_not_passed_over_in_silence(
    tmp_path: Path, home: Path
) -> None:
    with ChronoStore(tmp_path) as store:
        for number in range(4):
            store.upsert({"id": f"F-{number}", "label": "old"})
        store.compact()
        for number in range(4):
            store.upsert({"id": f"F-{number}", "label": "withdrawn", "status": "invalidated"})
    log = home / "events.wal"
    lines = log.read_bytes().split(b"\n")
    log.write_bytes(b"\n".join([lines[0][:430] + b"\0" * 400 + lines[2][300:], *lines[3:]]))
    told = repaired(tmp_path)
    assert any("it is not known how many events are lost here" in said for said in told["lost"]), told["lost"]


def test_an_act_that_lost_its_list_does_not_seem_to_be_of_the_clock_alone(tmp_path: Path, home: Path) -> None:
    with Memory(tmp_path) as memory:
        ids = [memory.remember(text).block_id for text in ("Tea is served at four", "Keys are in the vault")]
        memory.consolidate()
        memory.outcome(ids, 0.0)
    log = home / "events.wal"
    lines = log.read_bytes().split(b"\n")
    at = max(number for number, line in enumerate(lines) if b'"op":"act"' in line)
    assert json.loads(lines[at])["record"]["act"].startswith("outcome")
    lines[at] = lines[at][: lines[at].index(b'"ids"')]
    log.write_bytes(b"\n".join(lines))
    told = repaired(tmp_path)
    assert any("it is not known which other records it spoke of" in said for said in told["lost"]), told[
        "lost"
    ]


@pytest.mark.parametrize("lost", [b'"ids":', b'"R1","R2"', b'eneration":0,"i'])
def test_whose_embeddings_are_lost_is_named_or_said_to_be_unknown(
    tmp_path: Path, home: Path, lost: bytes
) -> None:
    rows = np.eye(4, dtype=np.float32)
    with ChronoStore(tmp_path) as store:
        store.upsert_many([{"id": "R1"}, {"id": "R2"}])
        store.vectors.attach("R1", rows[0], model="eye")
        store.vectors.attach("R1", rows[1], model="eye")
        store.vectors.attach_many(["R1", "R2"], rows[2:], model="eye")
        store.upsert({"id": "Z"})
    log = home / "events.wal"
    data = log.read_bytes()
    at = data.rindex(lost, 0, data.rindex(b'"sha256"'))
    log.write_bytes(data[:at] + b"\0" * len(lost) + data[at + len(lost) :])
    told = repaired(tmp_path)
    assert any("it is not known whose embeddings it spoke of" in said for said in told["lost"]), told["lost"]


@pytest.mark.filterwarnings("ignore:.*synced is damaged:RuntimeWarning")
@pytest.mark.parametrize("other", ["synced", "lock", "care.lock"])
def test_a_log_that_was_swapped_with_a_small_file_is_never_written_over(
    tmp_path: Path, home: Path, other: str
) -> None:
    with ChronoStore(tmp_path) as store:
        for number in range(20):
            store.upsert({"id": f"R-{number}", "label": f"precious {number}"})
        store.compact(keep_history=False)
        store.upsert({"id": "R-0", "label": "precious again"})
    swap(home / "events.wal", home / other)
    with quiet(), ChronoStore(tmp_path) as store:
        assert not store.verify().valid
        for act in (store.upkeep.repair, lambda: store.upsert({"id": "NEW"})):
            with pytest.raises((ChronoError, OSError)):
                act()
    assert b"precious again" in (home / other).read_bytes()
    swap(home / "events.wal", home / other)
    with ChronoStore(tmp_path) as store:
        assert store.verify().valid and store.record_count() == 20


@pytest.mark.filterwarnings("ignore:.*synced is damaged:RuntimeWarning")
@pytest.mark.parametrize("other", ["archive", "snapshot.json", "synced"])
def test_a_base_is_found_wherever_it_lies(tmp_path: Path, home: Path, other: str) -> None:
    with ChronoStore(tmp_path) as store:
        for number in range(5):
            store.upsert({"id": f"R-{number}", "label": f"{number}"})
        store.compact(keep_history=other == "archive")
        store.upsert({"id": "R-0", "label": "new"})
        expected = [record.to_dict() for record in store.query()]
    (base,) = (home / "base").iterdir()
    swap(base, next((home / other).iterdir()) if other == "archive" else home / other)
    told = repaired(tmp_path)
    assert told["unproven"] == []
    with ChronoStore(tmp_path) as store:
        assert [record.to_dict() for record in store.query()] == expected


def swap(one: Path, other: Path) -> None:
    aside = one.with_name("aside")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)
