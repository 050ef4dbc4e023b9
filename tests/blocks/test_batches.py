"""A batch is all or nothing and sees what it is about to write, for scripts, tasks and processes."""

from __future__ import annotations

import asyncio
import logging
import threading
from pathlib import Path

import chronomemory.blocks as face
import pytest
from chronomemory import ChronoError, ChronoStore, StoreLocked
from chronomemory.blocks import BatchConflict, Blocks, IntegrityError, open_blocks, sync
from chronomemory.face import batch as connection


def add(conn: connection.Connection, block_id: str) -> None:
    sync.insert_block(conn, block_id=block_id, content=block_id, category="c", source="s")


class TestOneBatch:
    def test_it_is_one_chain_of_events_or_none(self, blocks: Blocks) -> None:
        with pytest.raises(ZeroDivisionError), blocks.begin() as conn:
            add(conn, "a")
            _ = 1 / 0
        assert blocks.store.wal_seq() == 0
        with blocks.begin() as conn:
            add(conn, "a")
            add(conn, "b")
        assert [event.op for event in blocks.store.replay()] == ["begin", "upsert", "upsert"]
        assert blocks.store.chain_valid()

    def test_nobody_sees_it_before_it_ends(self, blocks: Blocks) -> None:
        with blocks.begin() as conn:
            add(conn, "a")
            with blocks.connect() as other:
                assert not sync.block_exists(other, "a")
            assert sync.block_exists(conn, "a")

    def test_a_look_cannot_write(self, blocks: Blocks) -> None:
        with blocks.connect() as conn, pytest.raises(ChronoError, match="only reads"):
            add(conn, "a")

    def test_it_is_over_when_it_is_over(self, blocks: Blocks) -> None:
        with blocks.begin() as conn:
            add(conn, "a")
        with pytest.raises(ChronoError):
            add(conn, "b")

    def test_one_is_open_at_a_time(self, blocks: Blocks, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(connection, "_PATIENCE_SECONDS", 0.01)
        with blocks.begin(), pytest.raises(StoreLocked), blocks.begin():
            pass

    def test_threads_take_turns(self, blocks: Blocks) -> None:
        with blocks.begin() as conn:
            add(conn, "a")

        def use() -> None:
            for _ in range(25):
                with blocks.begin() as conn:
                    sync.reinforce_blocks(conn, ["a"], 1.0)

        threads = [threading.Thread(target=use) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with blocks.connect() as conn:
            assert sync.get_block(conn, "a")["reinforcement_count"] == 100


class TestSeveralWriters:
    def test_what_was_read_must_still_be_true(self, tmp_path: Path) -> None:
        with open_blocks(tmp_path) as mine, open_blocks(tmp_path) as yours:
            with mine.begin() as conn:
                add(conn, "a")
            with pytest.raises(IntegrityError, match="another writer"), mine.begin() as conn:
                sync.reinforce_blocks(conn, ["a"], 1.0)
                with yours.begin() as other:
                    sync.reinforce_blocks(other, ["a"], 1.0)
            with mine.begin() as conn:
                sync.reinforce_blocks(conn, ["a"], 1.0)
                assert sync.get_block(conn, "a")["reinforcement_count"] == 2

    def test_what_was_not_read_may_change(self, tmp_path: Path) -> None:
        with open_blocks(tmp_path) as mine, open_blocks(tmp_path) as yours:
            with mine.begin() as conn:
                add(conn, "a")
                with yours.begin() as other:
                    add(other, "b")
            with yours.connect() as conn:
                assert sync.get_inbox_count(conn) == 2

    def test_a_compaction_hides_no_change(self, tmp_path: Path) -> None:
        with open_blocks(tmp_path) as mine, open_blocks(tmp_path) as yours:
            with mine.begin() as conn:
                add(conn, "a")
            with mine.begin() as conn:
                sync.reinforce_blocks(conn, ["a"], 1.0)
                yours.store.compact()
            with pytest.raises(IntegrityError), mine.begin() as conn:
                sync.reinforce_blocks(conn, ["a"], 1.0)
                with yours.begin() as other:
                    sync.reinforce_blocks(other, ["a"], 1.0)
                yours.store.compact()
            with mine.connect() as conn:
                assert sync.get_block(conn, "a")["reinforcement_count"] == 2

    def test_the_ids_of_the_face_are_its_own(self, tmp_path: Path) -> None:
        with ChronoStore(tmp_path) as store:
            with pytest.raises(ChronoError):
                store.upsert({"id": "block:a"})
            blocks = open_blocks(store)
            with blocks.begin() as conn:
                add(conn, "a")
            assert store.query() == []
            assert [record.id for record in store.query(kind="block", status=None)] == ["block:a"]
            blocks.close()
            assert store.get("block:a") is not None


class TestRunningAgain:
    @pytest.fixture
    def conflicts(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        """How often a commit is in conflict from now on."""
        left, commit = [0], connection.Connection.commit

        def refuse_at_first(conn: connection.Connection) -> None:
            if left[0] > 0:
                left[0] -= 1
                raise BatchConflict("another writer")
            commit(conn)

        monkeypatch.setattr(connection.Connection, "commit", refuse_at_first)
        return left

    def test_a_batch_that_lost_a_race_is_run_again(self, blocks: Blocks, conflicts: list[int]) -> None:
        conflicts[0] = 1
        blocks.run(lambda conn: add(conn, "a"))
        assert conflicts == [0]
        with blocks.connect() as conn:
            assert sync.get_inbox_count(conn) == 1

    def test_a_conflict_in_its_turn_is_raised(self, blocks: Blocks, conflicts: list[int]) -> None:
        conflicts[0] = 10
        with pytest.raises(BatchConflict):
            blocks.run(lambda conn: add(conn, "a"))
        assert conflicts == [8]


class TestTasks:
    def test_the_same_functions_can_be_awaited(self, tmp_path: Path) -> None:
        async def work() -> list[str]:
            engine = await face.create_engine(str(tmp_path / "deep" / "project"))
            async with engine.begin() as conn:
                await face.seed_builtin_data(conn)
                await face.insert_block(conn, block_id="a", content="A", category="c", source="s")
                await face.add_tags(conn, "a", ["x"])
            async with engine.connect() as conn:
                tags = await face.get_tags(conn, "a")
                assert [frame["name"] for frame in await face.list_frames(conn)] == [
                    "attention",
                    "self",
                    "task",
                ]
            await engine.dispose()
            return tags

        assert asyncio.run(work()) == ["x"]

    def test_a_test_engine_starts_empty_and_leaves_nothing(self) -> None:
        async def work() -> Path:
            engine = await face.create_test_engine()
            async with engine.connect() as conn:
                assert await face.list_frames(conn) == []
                assert await face.get_config(conn, "top_k") is None
            folder = engine.store.project_root
            await engine.dispose()
            return folder

        assert not asyncio.run(work()).exists()

    def test_tasks_wait_for_each_other_without_stopping_the_loop(self, blocks: Blocks) -> None:
        async def use() -> None:
            async with blocks.begin() as conn:
                await asyncio.sleep(0)
                await face.reinforce_blocks(conn, ["a"], 1.0)

        async def work() -> None:
            async with blocks.begin() as conn:
                await face.insert_block(conn, block_id="a", content="A", category="c", source="s")
            await asyncio.gather(*(use() for _ in range(10)))

        asyncio.run(work())
        with blocks.connect() as conn:
            assert sync.get_block(conn, "a")["reinforcement_count"] == 10

    def test_an_exception_discards_it(self, blocks: Blocks) -> None:
        async def work() -> None:
            async with blocks.begin() as conn:
                await face.insert_block(conn, block_id="a", content="A", category="c", source="s")
                raise KeyError

        with pytest.raises(KeyError):
            asyncio.run(work())
        assert blocks.store.wal_seq() == 0


def test_echo_logs_every_change(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "chronomemory.blocks")
    with open_blocks(tmp_path, echo=True) as blocks, blocks.begin() as conn:
        add(conn, "a")
    assert "block:a" in caplog.text


def test_every_change_survives_reopening(tmp_path: Path) -> None:
    with open_blocks(tmp_path) as blocks, blocks.begin() as conn:
        add(conn, "a")
        add(conn, "b")
        sync.insert_edge(conn, from_id="a", to_id="b", weight=0.5)
        sync.update_block_scoring(conn, "a", embedding=[1.0, 0.0])
    with open_blocks(tmp_path) as blocks, blocks.connect() as conn:
        assert sync.get_neighbours(conn, ["a"]) == ["b"]
        assert sync.get_block(conn, "a")["embedding"] == face.embedding_to_bytes([1.0, 0.0])
