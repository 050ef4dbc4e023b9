"""Looking at a memory leaves the folder as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from chronomemory.blocks import FrameError, Memory, sync
from chronomemory.cli import app
from typer.testing import CliRunner

FRAMES = ["attention", "self", "simulate", "task"]


def look_around(memory: Memory) -> None:
    assert memory.recall("anything") == memory.recall() == []
    assert [memory.frame(name, "anything").text for name in FRAMES] == [""] * 4
    assert memory.list(status=None) == []
    assert memory.status().active == 0
    assert (memory.should_dream, memory.status().active_hours, memory.history("nobody")) == (False, 0.0, [])
    assert not memory.dream()
    assert memory.curate().archived == ()
    assert memory.outcome(["nobody"], 1.0).unknown == ("nobody",)


def test_an_empty_folder_stays_empty(tmp_path: Path) -> None:
    with Memory(tmp_path) as memory:
        look_around(memory)
        assert memory.end_session() == 0.0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "command",
    [["recall", "x"], ["frame", "self"], ["dream"], ["curate"], ["blocks", "ls"], ["blocks", "status"]],
    ids=" ".join,
)
def test_so_it_does_from_the_shell(tmp_path: Path, command: list[str]) -> None:
    told = CliRunner().invoke(app, [*command, "--project", str(tmp_path)])
    assert told.exit_code == 0
    assert list(tmp_path.iterdir()) == []


def test_a_drawn_graph_is_all_that_is_written(tmp_path: Path) -> None:
    page, project = tmp_path / "graph.html", tmp_path / "project"
    project.mkdir()
    told = CliRunner().invoke(app, ["blocks", "graph", "--html", str(page), "--project", str(project)])
    assert (told.exit_code, page.is_file(), list(project.iterdir())) == (0, True, [])


def test_a_log_of_others_is_not_written_to(tmp_path: Path) -> None:
    with Memory(tmp_path) as memory:
        memory.learn("Only this")
        before = memory.blocks.store.wal_seq()
        assert before == 1
    with Memory(tmp_path) as memory:
        memory.recall("anything")
        memory.frame("attention", "anything")
        assert (memory.status().inbox, memory.blocks.store.wal_seq()) == (1, before)


def test_the_first_batch_writes_down_what_a_memory_begins_with(tmp_path: Path) -> None:
    with Memory(tmp_path) as memory:
        memory.remember("Fact")
        with memory.blocks.connect() as conn:
            assert [frame["name"] for frame in sync.list_frames(conn)] == FRAMES
            assert (sync.get_config(conn, "top_k"), sync.get_config(conn, "prune_threshold")) == (
                "10",
                "0.05",
            )
        seq = memory.blocks.store.wal_seq()
    with Memory(tmp_path) as memory:
        memory.connect(memory.list()[0]["id"], memory.learn("Another").block_id)
        # The other block and the link: nothing is written down twice.
        assert memory.blocks.store.wal_seq() == seq + 2


def test_a_frame_of_the_store_goes_before_the_built_in_one(tmp_path: Path) -> None:
    with Memory(tmp_path) as memory:
        memory.learn("Fact")
        with memory.blocks.begin() as conn:
            sync.upsert_frame(
                conn,
                name="self",
                weights_json='{"similarity":0,"confidence":1,"recency":0,"centrality":0,"reinforcement":0}',
                filters_json="{}",
                guarantees_json="[]",
                template="Mine: {blocks}",
                token_budget=10,
                cache_json=None,
                source="user",
            )
        memory.consolidate()
        assert memory.frame("self").text == "Mine: - Fact"


def test_an_unknown_frame_names_the_built_in_ones(tmp_path: Path) -> None:
    with Memory(tmp_path) as memory, pytest.raises(FrameError) as told:
        memory.recall("x", frame="nobody")
    assert told.value.recovery == "There are: attention, self, simulate, task."
