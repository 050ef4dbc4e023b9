"""Lines are found again that were damaged beside each other, or beside lines that are gone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoStore
from recovering import labels, quiet
from test_recovery_lines import COMPACT, SPACED, foreign

Lines = list[bytes]


def repair(project: Path) -> dict[str, Any]:
    with quiet(), ChronoStore(project) as store:
        return store.upkeep.repair()


@pytest.fixture
def guests(tmp_path: Path) -> dict[str, str]:
    """A store of twelve lines; what it holds."""
    with ChronoStore(tmp_path) as store:
        for word in ("coffee", "tea"):
            for n in range(6):
                store.upsert({"id": f"R-{n}", "label": f"guest {n} drinks {word}"})
    return labels(tmp_path)


def damage(project: Path, change: Callable[[Lines], Lines]) -> None:
    log = project / ".chronomemory" / "events.wal"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(change(lines)))


def replaced(word: bytes, *numbers: int) -> Callable[[Lines], Lines]:
    def change(lines: Lines) -> Lines:
        for number in numbers or range(len(lines)):
            lines[number] = lines[number].replace(b"drinks tea", b"drinks " + word)
        return lines

    return change


@pytest.mark.parametrize("synced", [True, False], ids=["synced", "unsynced"])
@pytest.mark.parametrize(
    ("numbers", "count"),
    [((8, 9), 2), ((7, 8, 9), 3), ((10, 11), 2), ((), 6)],
    ids=["two", "three", "the last two", "all"],
)
@pytest.mark.parametrize("word", [b"tee", b"te?"], ids=["one bit", "another byte"])
def test_neighbours_with_one_altered_byte_each_come_back(
    tmp_path: Path, guests: dict[str, str], word: bytes, numbers: tuple[int, ...], count: int, synced: bool
) -> None:
    if not synced:
        (tmp_path / ".chronomemory" / "synced").unlink()
    damage(tmp_path, replaced(word, *numbers))
    told = repair(tmp_path)
    assert (told["healed"], told["lost"], told["unsettled"], told["history_kept"]) == (count, [], [], True)
    assert labels(tmp_path) == guests


def test_what_somebody_replaced_in_a_whole_log_comes_back(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        for n in range(300):
            store.upsert({"id": f"R-{n}", "label": f"guest {n} drinks tea"})
    truth = labels(tmp_path)
    damage(tmp_path, replaced(b"te?"))
    told = repair(tmp_path)
    assert (told["healed"], told["lost"], told["history_kept"]) == (300, [], True)
    assert labels(tmp_path) == truth


@pytest.mark.parametrize("length", ["lost", "more"])
def test_neighbours_that_lost_or_got_a_byte_come_back(
    tmp_path: Path, guests: dict[str, str], length: str
) -> None:
    damage(tmp_path, replaced({"lost": b"te", "more": b"teas"}[length], 7, 8))
    told = repair(tmp_path)
    assert (told["healed"], told["lost"], told["history_kept"]) == (2, [], True)
    assert labels(tmp_path) == guests


def zeroed(lines: Lines, gone: int) -> Lines:
    return [*lines[:gone], b"\0" * (len(lines[gone]) - 1) + b"\n", *lines[gone + 1 :]]


def zeroed_to_its_end(lines: Lines, gone: int) -> Lines:
    return [*lines[:gone], b"\0" * len(lines[gone]), *lines[gone + 1 :]]


def cut(lines: Lines, gone: int) -> Lines:
    return [*lines[:gone], lines[gone][:120], *lines[gone + 1 :]]


def removed(lines: Lines, gone: int) -> Lines:
    return lines[:gone] + lines[gone + 1 :]


@pytest.mark.parametrize("side", [-1, 1], ids=["before", "behind"])
@pytest.mark.parametrize("how", [zeroed, zeroed_to_its_end, cut, removed])
def test_a_line_with_an_altered_byte_comes_back_beside_one_that_is_gone(
    tmp_path: Path, guests: dict[str, str], how: Callable[[Lines, int], Lines], side: int
) -> None:
    damage(tmp_path, lambda lines: how(replaced(b"tee", 8 + side)(lines), 8))
    told = repair(tmp_path)
    assert len(told["lost"]) == 1
    now = labels(tmp_path)
    assert now.pop("R-2") == "guest 2 drinks coffee"
    assert now == {name: label for name, label in guests.items() if name != "R-2"}
    # Of a line that is gone for good nobody can say of whom it spoke.
    assert set(told["unsettled"]) <= {"R-2"}


@pytest.mark.parametrize("payload", [SPACED, COMPACT], ids=["spaced", "compact"])
def test_neighbours_of_another_tool_come_back(tmp_path: Path, payload: tuple[str, str]) -> None:
    whole = foreign(tmp_path, payload)
    truth = labels(tmp_path)
    log = tmp_path / ".chronomemory" / "events.wal"
    log.write_bytes(whole.replace(b'"tea"', b'"tee"').replace("grün".encode(), "brün".encode()))
    assert repair(tmp_path)["lost"] == []
    assert labels(tmp_path) == truth


def test_a_line_altered_twice_is_lost_and_its_neighbours_are_not(
    tmp_path: Path, guests: dict[str, str]
) -> None:
    def change(lines: Lines) -> Lines:
        lines = replaced(b"tee", 7, 9)(lines)
        return replaced(b"mud", 8)(lines)

    damage(tmp_path, change)
    told = repair(tmp_path)
    assert told["healed"] == 2
    assert len(told["lost"]) == 1
    assert told["unsettled"] == ["R-2"]
    assert labels(tmp_path) == {**guests, "R-2": "guest 2 drinks coffee"}
