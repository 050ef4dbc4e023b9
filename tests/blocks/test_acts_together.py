"""Acts of several processes add up, a person can read them, and odd ones among them do no harm."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoStore, InvalidRecord
from chronomemory.blocks import Memory, content_hash, open_blocks, sync
from chronomemory.blocks.life.outcomes import in_words, note_shown
from chronomemory.cli.app import app
from living import Time
from typer.testing import CliRunner

FACTS = [f"Fact number {number} is about {word}" for number, word in enumerate(["tea", "ice", "rain"])]
IDS = [content_hash(fact) for fact in FACTS]

SHOWER = """
import sys
from chronomemory.blocks import Memory
with Memory(sys.argv[1]) as memory, memory.session():
    print("ready", flush=True)
    sys.stdin.readline()
    for _ in range(25):
        memory.frame("attention", top_k=3)
        memory.outcome(sys.argv[2:], 0.9)
"""


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory(tmp_path, seconds=Time()) as opened:
        for fact in FACTS:
            opened.remember(fact)
        yield opened


def known(memory: Memory) -> list[dict[str, Any]]:
    engine = memory.blocks.store.engine
    return [
        record.to_dict()
        for kind in ("block", "bedge", "config")
        for record in engine.query(kind=kind, status=None)
    ]


class TestTwoProcesses:
    def test_lose_no_count(self, memory: Memory) -> None:
        root = str(memory.blocks.store.project_root)
        before = [memory.blocks.store.get(f"block:{one}").data["reinforcement_count"] for one in IDS]
        with tempfile.TemporaryFile("w+") as told:
            others = [
                subprocess.Popen(
                    [sys.executable, "-c", SHOWER, root, *IDS],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=told,
                    text=True,
                )
                for _ in range(2)
            ]
            for other in others:
                assert other.stdout is not None
                assert other.stdout.readline() == "ready\n"
            for other in others:
                assert other.stdin is not None
                other.stdin.write("go\n")
                other.stdin.close()
            ended = [other.wait(timeout=120) for other in others]
            told.seek(0)
            assert ended == [0, 0], told.read()
            for other in others:
                assert other.stdout is not None
                other.stdout.close()
        store = memory.blocks.store
        blocks = [store.get(f"block:{one}").data for one in IDS]
        # Each process shows the three blocks 25 times, and tells them 25 times that it went well.
        assert [block["reinforcement_count"] for block in blocks] == [count + 100 for count in before]
        assert [block["evidence"] for block in blocks] == [50.0] * 3
        live = known(memory)
        with ChronoStore(root) as again:
            assert [again.engine.get(record["id"]).to_dict() for record in live] == live

    def test_an_act_is_no_conflict_with_what_was_read_before(self, memory: Memory) -> None:
        with (
            open_blocks(memory.blocks.store.project_root) as others,
            others.begin() as conn,
        ):
            note_shown(conn, [IDS], frame="task", session_id=None, passed=0.0)
            memory.frame("attention", top_k=3)
        for one in IDS:
            assert [event.op for event in memory.history(one)][-2:] == ["act", "act"]

    def test_who_has_read_a_block_hears_of_it(self, memory: Memory) -> None:
        attempts = []

        def work(conn: Any) -> None:
            block = sync.get_block(conn, IDS[0])
            attempts.append(block["reinforcement_count"])
            if len(attempts) == 1:
                with open_blocks(memory.blocks.store.project_root) as others, others.begin() as other:
                    note_shown(other, [IDS], frame="", session_id=None, passed=0.0)
            sync.update_block_scoring(conn, IDS[0], self_alignment=0.5)

        memory.blocks.run(work)
        assert len(attempts) == 2
        assert attempts[1] == attempts[0] + 1


class TestABatch:
    def test_ends_with_its_acts(self, memory: Memory) -> None:
        """Nothing in the batch sees what follows from an act, and what it writes itself comes first."""
        before = memory.blocks.store.get(f"block:{IDS[0]}").data["reinforcement_count"]
        with memory.blocks.begin() as conn:
            note_shown(conn, [IDS[:2]], frame="task", session_id=None, passed=1.5)
            sync.reinforce_blocks(conn, [IDS[0]], 0.0)
            assert sync.get_block(conn, IDS[0])["reinforcement_count"] == before + 1
            assert conn.events() == 3
        assert [event.op for event in memory.blocks.store.replay()][-3:] == ["begin", "patch", "act"]
        assert memory.blocks.store.get(f"block:{IDS[0]}").data["reinforcement_count"] == before + 2

    def test_that_fails_says_nothing(self, memory: Memory) -> None:
        before = memory.blocks.store.wal_seq()
        with pytest.raises(RuntimeError), memory.blocks.begin() as conn:
            note_shown(conn, [IDS], frame="", session_id=None, passed=0.0)
            raise RuntimeError
        assert memory.blocks.store.wal_seq() == before

    def test_records_that_come_about_have_the_depth_of_the_store(self, tmp_path: Path) -> None:
        with Memory(open_blocks(tmp_path, recursion_depth=2)) as memory:
            for fact in FACTS:
                memory.remember(fact)
            memory.outcome(IDS, 1.0)
            links = memory.blocks.store.engine.query(kind="bedge")
            assert {link.recursion_depth for link in links} == {2}


class TestWhatIsOdd:
    @pytest.mark.parametrize(
        "said",
        [
            {},
            {"act": "shown/2", "at": "t", "ids": IDS},
            {"act": "forgotten/1", "at": "t", "ids": IDS},
            {"act": "shown/1", "at": "t", "ids": []},
            {"act": "shown/1", "at": "t", "ids": [1, 2]},
            {"act": "shown/1", "at": "t", "ids": IDS, "passed": -1.0},
            {"act": "shown/1", "at": "t", "ids": IDS, "passed": 1e308, "again": 1e308},
            {"act": "outcome/1", "at": "t", "ids": IDS, "signal": 2.0, "weight": 1.0},
        ],
    )
    def test_changes_nothing_and_does_no_harm(self, memory: Memory, said: dict[str, Any]) -> None:
        store = memory.blocks.store
        if said.get("passed") == 1e308:
            with memory.blocks.begin() as conn:
                sync.set_total_active_hours(conn, 1.7e308)
        before = known(memory)
        store.engine.write([("act", said)], "blocks")
        assert known(memory) == before
        assert store.verify().valid
        with ChronoStore(store.project_root) as again:
            assert [again.engine.get(record["id"]).to_dict() for record in before] == before

    def test_only_a_face_that_has_acts_can_say_one(self, memory: Memory) -> None:
        for face in ("pages", "nobody", None):
            with pytest.raises(InvalidRecord, match="has no acts"):
                memory.blocks.store.engine.write([("act", {"act": "shown/1"})], face)

    def test_no_record_is_called_so(self, memory: Memory) -> None:
        for name in ("act:blocks", "act:anything"):
            with pytest.raises(InvalidRecord, match="act:"):
                memory.blocks.store.upsert({"id": name})


class TestAPerson:
    def test_can_read_what_changed_a_block(self, memory: Memory) -> None:
        with memory.session():
            memory.frame("task", top_k=3)
            memory.outcome(IDS, 1.0, 2.0, source="tests passed")
        memory.outcome(IDS[:1], 0.0)
        told = CliRunner().invoke(
            app, ["history", f"block:{IDS[0]}", "--project", str(memory.blocks.store.project_root)]
        )
        assert told.exit_code == 0, told.output
        text = " ".join(told.output.split())
        assert "act shown in frame task with 2 others" in text
        assert "act outcome 1.0 from tests passed, weight 2.0 with 2 others" in text
        assert "act outcome 0.0" in text

    def test_is_told_of_links_hours_and_what_is_not_known(self) -> None:
        shown = {"act": "shown/1", "ids": ["a", "b"], "passed": 0.5}
        assert in_words(shown, "block:a") == "shown with 1 other"
        assert in_words(shown, "bedge:a:b") == "both ends: shown"
        assert in_words(shown, "config:total_active_hours") == "0.5 hours passed"
        assert "does not know" in in_words({"act": "lost/7"}, "block:a")
        assert in_words({"act": "shown/1", "ids": 7}, "block:a") == "shown"
