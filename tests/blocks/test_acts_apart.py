"""Nothing that blocks were part of names a block that not everyone sees who sees them."""

from __future__ import annotations

import json
from pathlib import Path

from chronomemory import ChronoStore, Memory


def shown_together(place: Path) -> dict[str, str]:
    """Show blocks of a user, of two of its agents and of a session in one frame each; return their ids."""
    ids = {}
    with Memory(place, user="ann") as ann:
        ids["ann"] = ann.remember("I live in Oslo").block_id
        ids["also"] = ann.remember("I live by the sea").block_id
        for names in ({"agent": "doctor"}, {"agent": "shop"}, {"session": "s1"}):
            (name,) = names.values()
            with Memory(place, user="ann", **names) as memory:
                ids[name] = memory.remember(f"I live with {name}").block_id
                with memory.session("work"):
                    assert len(memory.frame("attention", "live").blocks) >= 3
                memory.outcome([ids["ann"], ids[name]], 1.0)
        with ann.session("work"):
            assert len(ann.frame("attention", "live").blocks) == 5
        ann.outcome(list(ids.values()), 0.9)
    return ids


def test_no_record_and_no_history_names_a_block_that_is_not_seen(tmp_path: Path) -> None:
    ids = shown_together(tmp_path)
    with ChronoStore(tmp_path) as store:
        for names in ({}, {"agent": "doctor"}, {"agent": "shop"}, {"session": "s1"}, {"session": "s2"}):
            handle = store.scoped(user="ann", **names)
            seen = {name for name, block_id in ids.items() if handle.get(f"block:{block_id}") is not None}
            assert {"ann", "also"} <= seen
            told = []
            for name in seen:
                key = f"block:{ids[name]}"
                told.append(json.dumps(handle.get(key).to_dict()))
                told += [json.dumps(event.record) for event in handle.history(key)]
            for name in ids.keys() - seen:
                assert not any(ids[name] in text for text in told), (names, name)


def test_blocks_of_one_scope_that_are_shown_together_still_become_linked(tmp_path: Path) -> None:
    with Memory(tmp_path, user="ann", agent="doctor") as doctor, Memory(tmp_path, user="ann") as ann:
        ann.remember("I live in Oslo")
        pair = [doctor.remember(f"I live with {what}").block_id for what in ("an illness", "a dog")]
        for name in ("one", "two", "three"):
            with doctor.session(name):
                assert len(doctor.frame("attention", "live").blocks) == 3
        assert [tuple(sorted(pair))] == [
            (link.data["from_id"], link.data["to_id"])
            for link in doctor.blocks.store.query(kind="bedge", faces=True)
        ]
        assert (doctor.status().edges, doctor.status().forming) == (1, 0)


def test_the_clock_goes_on_once_however_many_scopes_were_shown(tmp_path: Path) -> None:
    seconds = [0.0]
    with Memory(tmp_path, user="ann", seconds=lambda: seconds[0]) as ann:
        ann.remember("I live in Oslo")
        for agent in ("doctor", "shop"):
            with Memory(tmp_path, user="ann", agent=agent) as memory:
                memory.remember(f"I live with {agent}")
        with ann.session("work"):
            before = ann.status().active_hours
            seconds[0] += 2 * 3600.0
            assert len(ann.frame("attention", "live").blocks) == 3
            assert ann.status().active_hours - before == 2.0
        assert ann.status().active_hours - before == 2.0


def test_status_counts_links_whose_ends_are_both_seen(tmp_path: Path) -> None:
    with (
        Memory(tmp_path, user="ann") as ann,
        Memory(tmp_path, user="ann", session="s1") as one,
        Memory(tmp_path, user="ann", session="s2") as two,
        Memory(tmp_path, user="ann", session="s3") as three,
        Memory(tmp_path, user="ann", session="s1", shared=False) as alone,
    ):
        wide = ann.remember("harbour violin stairs").block_id
        tea = one.remember("green tea in the morning").block_id
        coffee = two.remember("black coffee at night").block_id
        one.connect(wide, tea, weight=1.0)
        ann.connect(tea, coffee)
        assert [memory.status().edges for memory in (ann, one, two, three, alone)] == [2, 1, 0, 0, 0]
        ann.forget(tea)
        assert [memory.status().edges for memory in (ann, one, two, three, alone)] == [0, 0, 0, 0, 0]


def test_status_says_what_lies_in_sessions(tmp_path: Path) -> None:
    with Memory(tmp_path, user="ann") as ann, Memory(tmp_path, user="ann", session="s1") as one:
        ann.remember("harbour violin stairs")
        assert ann.status().in_sessions == 0
        assert "in sessions" not in ann.status().summary
        one.remember("green tea in the morning")
        one.learn("black coffee at night")
        for memory in (ann, one):
            assert memory.status().in_sessions == 2
            assert "(2 in sessions, known there alone)" in memory.status().summary
        with Memory(tmp_path, user="ann", session="s2") as two, Memory(tmp_path, user="bob") as bob:
            assert (two.status().in_sessions, bob.status().in_sessions) == (0, 0)
        one.dream()
        one.keep(where={})
        assert ann.status().in_sessions == 0
