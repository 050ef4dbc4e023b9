"""The harness of lived stores would find what it looks for.

Each rule of its judge is handed a world that is false: among them those that repairs once left behind, a
private block that became everybody's, a withdrawn one that came back, a deletion that nobody missed, and what
acts made of a clock that was wrong.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import harness
import lived
import lives
import pytest
import wounds
from chronomemory import ChronoStore
from chronomemory.blocks import Memory

SECRET = {
    "id": "ann-R1",
    "label": "annwhisper of tea",
    "status": "active",
    "data": {"@scope": {"user": "ann"}},
}
SHARED = {"id": "R1", "label": "90 mg", "status": "tombstone", "data": {}}
BLOCK = {"id": "block:a", "label": "", "status": "archived", "data": {}}
LINK = {"id": "bedge:a:b", "label": "", "status": "active", "data": {}}
OWNERS = {"ann-R1": "ann", "R1": None}
UNKNOWN = ["event 3 lost at byte 7: the lines are missing"]


def truth(*records: dict[str, Any]) -> lives.Truth:
    known = lives.Truth()
    known.note({record["id"]: record for record in records})
    return known


def judged(
    was: dict[str, Any],
    now: dict[str, Any] | None,
    *,
    lost: list[str] | None = None,
    named: set[str] | None = None,
    reached: set[str] | None = None,
) -> list[str]:
    records = {} if now is None else {now["id"]: now}
    return lived.judge(truth(was), records, lived.Told(lost or [], named or set()), reached)


def marked(record: dict[str, Any]) -> dict[str, Any]:
    return record | {"data": {**record["data"], "@unsettled": {"status": "active"}}}


class TestTheJudge:
    """What a repair leaves is judged by what was there."""

    BACK = SHARED | {"status": "active"}

    def test_what_is_true_or_marked_is_right(self) -> None:
        assert judged(SHARED, SHARED) == []
        assert judged(SHARED, marked(self.BACK)) == []

    def test_what_comes_back_unmarked_is_found(self) -> None:
        assert "neither marked nor named" in judged(SHARED, self.BACK)[0]

    def test_a_name_is_not_a_mark(self) -> None:
        """What is there and other than it was is used by whoever does not read the report."""
        named = ['byte 9, event 3, it seems of "R1": altered']
        assert "neither marked nor named" in judged(SHARED, self.BACK, lost=named, named={"R1"})[0]

    def test_what_is_gone_is_named(self) -> None:
        assert "neither marked nor named" in judged(SHARED, None)[0]
        assert judged(SHARED, None, lost=['"R1": the event that made it is lost']) == []

    def test_another_name_is_none(self) -> None:
        assert judged(SHARED, None, lost=['"R12": the event that made it is lost']) != []

    def test_that_it_is_not_known_which_excuses_what_a_lost_line_spoke_of(self) -> None:
        assert judged(SHARED, self.BACK, lost=UNKNOWN, reached={"R1"}) == []
        assert "no lost line spoke of it" in judged(SHARED, self.BACK, lost=UNKNOWN, reached={"R2"})[0]
        assert judged(SHARED, self.BACK, lost=UNKNOWN, reached=None) == []

    def test_what_is_not_known_of_one_event_excuses_no_other(self) -> None:
        several = lived.Told(["events 3–5 lost at byte 1: the lines are missing"])
        assert [seq for seq in range(8) if several.may_mean(seq)] == [3, 4, 5]
        assert [seq for seq in range(8) if lived.Told(UNKNOWN).may_mean(seq)] == [3]
        assert not lived.Told(['the embedding of "R1" in space "default"']).may_mean(3)

    def test_an_act_reaches_every_block(self) -> None:
        back = BLOCK | {"status": "active"}
        assert judged(BLOCK, back, lost=UNKNOWN, reached={"act:blocks"}) == []
        assert judged(BLOCK, back, lost=UNKNOWN, reached={"R1"}) != []

    def test_a_link_is_told_by_its_blocks(self) -> None:
        told = lived.Told()
        known = truth(LINK, BLOCK)
        assert "bedge:a:b is None" in lived.judge(known, {"block:a": BLOCK}, told, set())[0]
        assert lived.judge(known, {"block:a": marked(BLOCK)}, told, set()) == []

    def test_what_never_was_is_found(self) -> None:
        made_up = marked(SHARED) | {"id": "R9"}
        found = lived.judge(truth(SHARED), {"R1": SHARED, "R9": made_up}, lived.Told(UNKNOWN), None)
        assert [one[:12] for one in found] == ["R9 never was"]
        assert judged(SHARED, SHARED, named={"R9"}) == ["R9 is named, and never was"]

    def test_who_loses_his_name_is_found_even_if_marked(self) -> None:
        found = judged(SECRET, marked(SECRET | {"data": {}}), lost=UNKNOWN)
        assert found == ["ann-R1 was of ann and is of None"]


class TestTheLook:
    """What somebody sees is his own, or everybody's."""

    def test_own_and_shared_is_seen(self) -> None:
        assert lived.leaks("ann", "ann", {"ann-R1": "annwhisper", "R1": "90 mg"}, OWNERS) == []

    @pytest.mark.parametrize("user", [None, "bob"])
    def test_another_s_record_and_another_s_words_are_found(self, user: str | None) -> None:
        assert "sees ann-R1 of ann" in lived.leaks("x", user, {"ann-R1": "{}"}, OWNERS)[0]
        assert "hears ann in R1" in lived.leaks("x", user, {"R1": "has annwhisper"}, OWNERS)[0]

    def test_every_door_is_looked_through(self, tmp_path: Path) -> None:
        """A record of hers that lost its name is seen by everybody, whichever way they ask."""
        with ChronoStore(tmp_path) as store:
            store.upsert(SECRET | {"data": {}})
            store.upsert({"id": "later"})
            found = lived.seen_by_all(store, truth(SECRET))
        for who in ("everybody", "bob"):
            for how in ("query", "get", "history", "search", "changed_since", "as_of"):
                assert any(one.startswith(f"{who} by {how} sees ann-R1") for one in found), (who, how)
        assert not [one for one in found if one.startswith("ann ")]

    def test_what_somebody_remembers_is_looked_through(self, tmp_path: Path) -> None:
        with Memory(tmp_path) as memory:
            memory.remember("annwhisper likes tea and rain")
        with ChronoStore(tmp_path) as store:
            found = lived.remembered_by_all(store, lives.Truth(), goes_on=True)
            assert len(lived.remembered_by_all(store, lives.Truth(), goes_on=False)) == 2
        for who in ("everybody", "bob"):
            assert [one.split(":")[0] for one in found if one.startswith(f"the memory of {who}")] == [
                f"the memory of {who} hears ann in block",
                f"the memory of {who} hears ann in a frame",
            ]
        assert len(found) == 4

    def test_a_silent_change_is_found_before_the_repair(self, tmp_path: Path) -> None:
        outcome = harness.Outcome("x")
        with ChronoStore(tmp_path) as store:
            store.upsert({"id": "R1", "label": "90 mg"})
            known = lives.Truth()
            known.note(lives.rows(store))
            assert lived.looked_at(tmp_path, known, outcome) == []
            store.upsert({"id": "R1", "label": "10 mg"})
        assert "verify() says that all is well" in lived.looked_at(tmp_path, known, outcome)[0]


class TestALife:
    """Lives must hold what is to be found, and wounds must hurt it."""

    @pytest.fixture
    def several(self, tmp_path: Path) -> list[tuple[Path, lives.Truth]]:
        return [
            (tmp_path / str(number), lives.live(tmp_path / str(number), f"test-{number}"))
            for number in range(8)
        ]

    def test_it_has_all_kinds_of_records_of_all(self, several: list[tuple[Path, lives.Truth]]) -> None:
        names = {name for _, known in several for name in known.owners}
        assert {"ann", "bob", None} <= {owner for _, known in several for owner in known.owners.values()}
        for prefix in ("block:", "bedge:", "config:", "session:", "episode:", "node:", "theirs ", "ann-R"):
            assert any(name.startswith(prefix) for name in names), prefix
        found = [record for _, known in several for record in known.records.values()]
        assert {"active", "archived", "inbox", "tombstone"} <= {record["status"] for record in found}

    def test_nothing_is_found_in_a_whole_one(self, several: list[tuple[Path, lives.Truth]]) -> None:
        for folder, known in several:
            assert lived.looked_at(folder, known, harness.Outcome("x")) == []

    def test_a_wound_tells_which_lines_are_gone(self, several: list[tuple[Path, lives.Truth]]) -> None:
        for number, (folder, known) in enumerate(several):
            path = folder / lives.FOLDER / lives.LOG
            whole = path.read_bytes()
            for turn in range(20):
                wound = wounds.wound(path, random.Random(f"{number} {turn}"))
                left = path.read_bytes().splitlines()
                assert set(wound.gone) == set(whole.splitlines()) - set(left), wound.what
                reached = lived.reach(whole.splitlines(), wound, lived.Told(["it is not known which"]))
                assert reached is None or {json.loads(line)["record_id"] for line in wound.gone} <= reached
                path.write_bytes(whole)
            assert known.records
