"""A memory gets on beside others: busy readers do not starve it, and nobody waits for its models."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from chronomemory.blocks import BatchConflict, Memory, MemorySystem, sync
from chronomemory.embedders import CallableEmbedder, LexicalEmbedder
from chronomemory.face import batch as connection
from living import Time

KNOWN = "Deploys run from the main branch"
NEWS = [f"Deploys of day {number} run from the branch of release {number * 7}" for number in range(6)]

READER = """
import sys
from chronomemory.blocks import Memory
with Memory(sys.argv[1]) as memory, memory.session():
    print("reading", flush=True)
    while True:
        memory.frame("attention", "deploys run from the branch of a release", top_k=10)
"""


class TestABusyReader:
    @pytest.fixture
    def always_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], int]]:
        """Before every commit of others, but that of the hour alone, a reader is shown what is known."""
        time = Time()
        with Memory(tmp_path, seconds=time) as reader:
            reader.remember(KNOWN)
            reader.begin_session()
            commit, reads = connection.Connection.commit, [0]

            def read_first(conn: connection.Connection) -> None:
                if conn.store is not reader.blocks.store and conn.events() > 1:
                    time.pass_hours(0.01)
                    reads[0] += len(reader.frame("attention", KNOWN, top_k=1).blocks)
                commit(conn)

            monkeypatch.setattr(connection.Connection, "commit", read_first)
            yield lambda: reads[0]

    def test_it_does_not_stop_a_consolidation(self, tmp_path: Path, always_read: Callable[[], int]) -> None:
        asked: list[str] = []

        def analyse(content: str) -> dict[str, Any]:
            asked.append(content)
            return {}

        def judge(one: str, other: str) -> float:
            asked.append(f"{one} / {other}")
            return 0.0

        with Memory(tmp_path, analyser=analyse, judge=judge) as writer:
            for content in NEWS:
                writer.learn(content)
            assert len(writer.consolidate().promoted) == len(NEWS)
            assert writer.status().edges >= len(NEWS)
        assert always_read() >= 1
        assert set(NEWS) <= set(asked)
        assert len(asked) == len(set(asked))

    def test_a_consolidation_that_lost_a_race_is_run_again_as_a_whole(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sizes, commit = [], connection.Connection.commit

        def refuse_once(conn: connection.Connection) -> None:
            sizes.append(sum(record.status == "active" for record in conn.pending("block")))
            if sizes.count(len(NEWS)) == 1:
                raise BatchConflict("another writer")
            commit(conn)

        with Memory(tmp_path) as memory:
            for content in NEWS:
                memory.learn(content)
            monkeypatch.setattr(connection.Connection, "commit", refuse_once)
            assert len(memory.consolidate().promoted) == len(NEWS)
            assert sizes.count(len(NEWS)) == 2

    def test_it_does_not_stop_a_curation(self, tmp_path: Path, always_read: Callable[[], int]) -> None:
        time = Time()
        with Memory(tmp_path, seconds=time) as writer, writer.session():
            ids = [writer.remember(word, category="observation").block_id for word in ("apple", "bridge")]
            writer.connect(*ids, 0.9)
            with writer.blocks.connect() as conn:
                deploys = sync.get_active_blocks(conn)[0]["id"]
            writer.connect(ids[0], deploys, 0.9)
            time.pass_hours(61.0)
            before = always_read()
            curated = writer.curate()
            assert curated.archived == (ids[1],)
            assert curated.edges_decayed == 2
            assert always_read() > before

    def test_nor_does_another_process(self, tmp_path: Path) -> None:
        with Memory(tmp_path) as writer:
            for content in NEWS:
                writer.remember(content)
            command = [sys.executable, "-c", READER, str(tmp_path)]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reader:
                assert reader.stdout is not None
                assert reader.stdout.readline() == "reading\n"
                try:
                    for number in range(100):
                        writer.learn(f"Deploys of week {number} run from branch {number * 13} of the release")
                    result = writer.consolidate()
                    writer.dream()
                finally:
                    reader.kill()
            assert result.processed == 100
            assert writer.status().inbox == 0


TELLER = """
import sys
from chronomemory.blocks import Memory
with Memory(sys.argv[1]) as memory, memory.session():
    for _ in range(25):
        memory.outcome(sys.argv[2:], 0.9)
        memory.frame("attention", top_k=3)
"""


def test_what_everybody_changes_is_changed_by_all(tmp_path: Path) -> None:
    with Memory(tmp_path) as memory:
        ids = [
            memory.remember(content).block_id for content in (KNOWN, "Whales sing", "Red apples are sweet")
        ]
        command = [sys.executable, "-c", TELLER, str(tmp_path), *ids]
        tellers = [subprocess.Popen(command) for _ in range(4)]
        assert [teller.wait(timeout=120) for teller in tellers] == [0, 0, 0, 0]
        for block_id in ids:
            record = memory.blocks.store.get(f"block:{block_id}")
            assert (record.data["evidence"], record.data["reinforcement_count"]) == (100.0, 201)


class TestASlowModel:
    """While it thinks, every other verb goes on."""

    @pytest.mark.parametrize("role", ["analyser", "judge", "token_counter", "embedder"])
    def test_nobody_waits_for_it(self, tmp_path: Path, role: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(connection, "_PATIENCE_SECONDS", 0.2)
        asked, go = threading.Event(), threading.Event()

        def think() -> None:
            asked.set()
            assert go.wait(20)

        def embed(texts: list[str]) -> Any:
            if any("release" in text for text in texts):
                think()
            return LexicalEmbedder().embed_batch(texts)

        def slow(answer: Any) -> Callable[..., Any]:
            def say(*contents: str) -> Any:
                if any("release" in content for content in contents):
                    think()
                return answer

            return say

        models: dict[str, Any] = {
            "analyser": slow({}),
            "judge": slow(0.0),
            "token_counter": slow(3),
            "embedder": CallableEmbedder("slow", embed),
        }
        with Memory(tmp_path, **{role: models[role]}) as memory:
            known = memory.remember(KNOWN).block_id
            gone = memory.remember("Whales sing at night").block_id
            memory.forget(gone)
            memory.learn(NEWS[1])
            thinker = threading.Thread(target=memory.consolidate)
            thinker.start()
            try:
                assert asked.wait(20)
                with memory.session():
                    assert [block.id for block in memory.frame("attention", "deploys").blocks] == [known]
                    assert memory.outcome([known], 0.9).confidence
                assert memory.learn("Whales sing at night").status == "reactivated"
                assert not go.is_set()
            finally:
                go.set()
                thinker.join()
            assert NEWS[1] in {row["content"] for row in memory.list()}

    def test_a_model_that_fails_is_told_and_nothing_is_lost(self, tmp_path: Path) -> None:
        answers: list[Any] = [{"alignment": 2.0}, {"tags": "self/value"}, {"alignment": 0.9}]
        with Memory(tmp_path, analyser=lambda content: answers.pop(0)) as memory:
            memory.learn(KNOWN)
            for field in ("alignment", "tags"):
                with pytest.raises(ValueError, match=field):
                    memory.consolidate()
                assert memory.status().inbox == 1
            memory.consolidate()
            assert memory.list()[0]["confidence"] == 0.9


def test_a_task_that_learns_does_not_stop_the_loop(tmp_path: Path) -> None:
    """What was archived comes back by a batch, which waits for one that another task has open."""

    async def live() -> str:
        async with MemorySystem(tmp_path) as system:
            await system.forget((await system.remember(KNOWN)).block_id)
            async with system.blocks.begin():
                learner = asyncio.create_task(system.learn(KNOWN))
                await asyncio.sleep(0.05)
                assert not learner.done()
            return (await learner).status

    assert asyncio.run(live()) == "reactivated"
