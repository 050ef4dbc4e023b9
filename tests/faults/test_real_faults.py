"""Killed, failing, crowded, full: nothing that was acknowledged is ever lost on a real machine.

Each harness is a command of its own; here it runs for some seconds, `make soak` runs it for long.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import remembered
from chronomemory import ChronoStore
from chronomemory.blocks import Memory
from workload import Action, Ledger, check, perform, read

HERE = Path(__file__).parent


def run(script: str, *options: str) -> dict[str, Any]:
    """Run a harness and return its outcome; one that cannot work here says why."""
    command = [sys.executable, str(HERE / script), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.stdout, done.stderr
    outcome: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert "harness" in outcome, done.stderr
    if outcome["skipped"]:
        pytest.skip(outcome["skipped"])
    assert outcome["found"] == [], done.stderr
    return outcome


def test_a_killed_erasure_is_done_or_not_begun() -> None:
    outcome = run("erased.py", "--runs", "6")
    assert outcome["runs"] == 6
    assert outcome["counts"]["killed before"] + outcome["counts"]["erased"] == 6


def test_an_erasure_in_a_crowd_is_done_or_not_begun_and_nobody_brings_anything_back() -> None:
    outcome = run("crowded.py", "--runs", "2")
    assert outcome["counts"]["killed before"] + outcome["counts"]["erased"] == 2
    assert outcome["counts"]["acknowledged"] > 100


def test_a_store_is_as_if_something_else_had_been_said_in_place_of_what_went() -> None:
    outcome = run("twin.py", "--runs", "64")
    assert outcome["runs"] == 64
    assert outcome["counts"]["comparisons"] >= 6
    assert outcome["counts"]["looks for what went"] > 30


def test_a_store_with_all_faces_is_as_if_what_went_had_never_been_said() -> None:
    outcome = run("faced.py", "--runs", "24")
    assert outcome["runs"] == 24
    assert outcome["counts"]["comparisons"] >= 1
    assert outcome["counts"]["looks for what went"] > 8


def test_what_an_erased_block_taught_others_stays() -> None:
    outcome = run("taught.py", "--runs", "3")
    assert outcome["runs"] == 3
    assert outcome["counts"]["blocks erased"] > 3


def test_a_process_of_version_1_brings_nothing_back() -> None:
    outcome = run("elders.py", "--runs", "3")
    assert outcome["counts"]["lines erased"] > 5


def test_a_forger_who_erases_is_found_out_by_a_trail_that_was_noted() -> None:
    outcome = run("forged.py", "--runs", "36")
    assert outcome["counts"]["found by the note alone"] > 0


def test_what_was_salted_cannot_be_guessed_by_what_is_left() -> None:
    outcome = run("guessed.py")
    assert outcome["runs"] == 4
    assert outcome["counts"]["guesses at lines"] >= 40_000


def test_both_verifiers_judge_bent_erasures_alike() -> None:
    outcome = run("bent.py", "--runs", "40")
    assert outcome["counts"]["found"] > 5
    assert outcome["counts"]["opened beside erasing"] > 2


def test_hostile_files_cost_neither_time_nor_memory() -> None:
    outcome = run("hostile.py", "--runs", "10")
    assert outcome["runs"] == 10
    assert len(outcome["counts"]) > 3


def test_killed_writers_lose_nothing() -> None:
    outcome = run("killed.py", "--runs", "12")
    assert outcome["runs"] == 12
    assert outcome["counts"]["killed at work"] > 4
    assert outcome["counts"]["acknowledged"] > 60


def test_a_killed_memory_forgets_nothing() -> None:
    outcome = run("remembered.py", "--runs", "12")
    assert outcome["runs"] == 12
    assert outcome["counts"]["killed at work"] > 4
    assert outcome["counts"]["acknowledged"] > 60


def test_a_killed_runner_ends_in_the_same_facts() -> None:
    outcome = run("consolidated.py", "--runs", "4")
    assert outcome["runs"] == 4
    assert outcome["counts"]["killed at work"] > 0
    assert outcome["counts"]["applied"] > 50


def test_a_killed_restore_is_done_or_not_begun() -> None:
    outcome = run("restored.py", "--runs", "15")
    assert outcome["runs"] == 15
    assert outcome["counts"]["killed at work"] > 0


def test_a_killed_copy_is_whole_or_none_and_known() -> None:
    outcome = run("copied.py", "--runs", "8")
    assert outcome["runs"] == 8
    assert outcome["counts"]["killed at work"] > 0
    assert outcome["counts"]["copies there"] > 4


def test_a_failing_system_call_is_a_clear_error_and_costs_nothing() -> None:
    outcome = run("syscalls.py")
    met = outcome["counts"]
    assert {"pwrite64 EIO", "fdatasync EIO", "fsync EIO", "rename EIO", "openat EIO"} <= met.keys()
    assert {"pwrite64 ENOSPC", "pwrite64 EINTR", "flock EINTR", "fdatasync SIGKILL"} <= met.keys()


def test_in_a_crowd_every_write_is_there_once() -> None:
    outcome = run("crowd.py", "--runs", "150")
    assert outcome["counts"]["events"] == 1200


def test_of_all_who_change_what_they_have_read_nobody_is_overwritten() -> None:
    outcome = run("updates.py", "--runs", "40")
    assert outcome["counts"]["deeds acknowledged"] > 160


def test_every_verdict_beside_a_storm_is_true() -> None:
    outcome = run("judged.py", "--runs", "4")
    assert outcome["counts"]["verdicts, closed"] > 0
    assert outcome["counts"]["verdicts, opened"] > 0


def test_a_repair_brings_back_what_is_proved_and_names_the_rest() -> None:
    outcome = run("mended.py", "--runs", "28")
    assert outcome["runs"] == 28
    assert outcome["counts"]["healed"] > 2
    assert outcome["counts"]["with something lost"] > 0


def test_after_a_life_and_damage_all_is_true_or_told_and_nobody_sees_what_is_another_s() -> None:
    outcome = run("lived.py", "--runs", "10")
    assert outcome["runs"] == 10
    assert outcome["counts"]["said to be damaged"] > 6
    assert outcome["counts"]["with something lost"] > 1
    assert outcome["counts"]["marked"] > 3


def test_a_log_that_was_swapped_for_an_earlier_one_is_found_out() -> None:
    outcome = run("swapped.py", "--runs", "12")
    assert outcome["runs"] == 12
    assert outcome["counts"]["found out"] > 3


def test_a_log_that_goes_away_is_missed_by_those_who_have_it_open() -> None:
    outcome = run("vanished.py", "--runs", "30")
    assert outcome["runs"] == 30
    assert len(outcome["counts"]) > 3


def test_a_full_disk_is_told_and_left_behind() -> None:
    outcome = run("full.py")
    assert outcome["counts"]["refused for want of room"] > 5


def test_what_somebody_planted_is_neither_followed_nor_touched() -> None:
    outcome = run("planted.py")
    assert outcome["runs"] > 20
    assert outcome["counts"]["refused"] > 8
    assert outcome["counts"]["went on"] > 8


class TestTheLedger:
    """A harness that finds nothing is worth something only if it would find what is wrong."""

    ACTIONS = (
        Action("a0.0", "put", ("a1",)),
        Action("a0.1", "batch", ("a2", "a3")),
        Action("a0.2", "delete", ("a1",)),
    )

    def written(self, project: Path) -> Path:
        with ChronoStore(project) as store:
            for action in self.ACTIONS:
                perform(store, action)
        return project / ".chronomemory" / "events.wal"

    def ledger(self, acknowledged: int) -> Ledger:
        ledger = Ledger()
        for number, action in enumerate(self.ACTIONS[: acknowledged + 1]):
            ledger.note(action, acknowledged=number < acknowledged)
        return ledger

    @pytest.mark.parametrize("acknowledged", [2, 3])
    def test_what_was_acknowledged_or_under_way_may_be_there(self, tmp_path: Path, acknowledged: int) -> None:
        self.written(tmp_path)
        assert check(tmp_path, self.ledger(acknowledged), "c0.0") == []

    def test_a_lost_write_is_found(self, tmp_path: Path) -> None:
        log = self.written(tmp_path)
        log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-1]))
        (log.parent / "synced").unlink()
        seen, wrong = read(tmp_path)
        assert [line[:16] for line in wrong] == ["a head is missed"]
        assert self.ledger(2).judge(seen) == []
        assert self.ledger(3).judge(seen) == [
            "a1 is ('a0.0', 'active'), not one of [\"('a0.0', 'tombstone')\"]"
        ]

    def test_a_write_that_nobody_made_is_found(self, tmp_path: Path) -> None:
        self.written(tmp_path)
        assert "a2 is" in "; ".join(self.ledger(0).judge(read(tmp_path)[0]))

    def test_half_a_batch_is_found(self, tmp_path: Path) -> None:
        with ChronoStore(tmp_path) as store:
            perform(store, self.ACTIONS[0])
            perform(store, Action("a0.1", "put", ("a2",)))
        assert self.ledger(1).judge(read(tmp_path)[0]) == ["batch a0.1 is there by halves"]

    def test_damage_is_found(self, tmp_path: Path) -> None:
        log = self.written(tmp_path)
        log.write_bytes(log.read_bytes().replace(b'"a3"', b'"a4"', 1))
        assert "not valid" in read(tmp_path)[1][0]


class TestTheBooks:
    """So must the books of a memory find what was forgotten, halved or made up."""

    LEARNED = (
        remembered.Action("learn", ("red apples are sweet",)),
        remembered.Action("learn", ("whales sing at night",)),
        remembered.Action("consolidate"),
    )
    TOLD = remembered.Action("outcome", ("red apples are sweet", "whales sing at night"))

    def lived(self, project: Path, *actions: remembered.Action) -> remembered.Books:
        with Memory(project) as memory:
            for action in actions:
                action.perform(memory)
            return remembered.shown(memory)

    def books(self, *actions: remembered.Action) -> remembered.Books:
        books = remembered.Books()
        for action in actions:
            action.enter(books)
        return books

    def test_what_was_acknowledged_or_under_way_may_be_there(self, tmp_path: Path) -> None:
        seen = self.lived(tmp_path, *self.LEARNED, self.TOLD)
        assert remembered.compare(seen, self.books(*self.LEARNED, self.TOLD), None) == []
        assert remembered.compare(seen, self.books(*self.LEARNED), self.TOLD) == []

    def test_what_was_forgotten_is_found(self, tmp_path: Path) -> None:
        seen = self.lived(tmp_path, *self.LEARNED)
        wrong = remembered.compare(seen, self.books(*self.LEARNED, self.TOLD), None)
        assert [sentence[-14:] for sentence in wrong[-1:]] == ["links are lost"]
        assert len(wrong) == 3
        later = remembered.Action("learn", ("nobody wrote this down",))
        assert "nobody wrote" in remembered.compare(seen, self.books(*self.LEARNED, later), None)[0]

    def test_what_nobody_did_is_found(self, tmp_path: Path) -> None:
        seen = self.lived(tmp_path, *self.LEARNED, self.TOLD)
        wrong = "; ".join(remembered.compare(seen, self.books(*self.LEARNED), None))
        assert "uses=2" in wrong
        assert "never made" in wrong

    def test_half_an_outcome_is_found(self, tmp_path: Path) -> None:
        half = remembered.Action("outcome", self.TOLD.contents[:1])
        seen = self.lived(tmp_path, *self.LEARNED, half)
        wrong = remembered.compare(seen, self.books(*self.LEARNED), self.TOLD)
        assert "outcome is there by halves" in wrong

    def test_half_a_consolidation_is_not_wrong(self, tmp_path: Path) -> None:
        with Memory(tmp_path) as memory:
            for action in self.LEARNED[:2]:
                action.perform(memory)
            memory.consolidate(limit=1)
            seen = remembered.shown(memory)
        assert {known.status for known in seen.blocks.values()} == {"inbox", "active"}
        assert remembered.compare(seen, self.books(*self.LEARNED[:2]), self.LEARNED[2]) == []
