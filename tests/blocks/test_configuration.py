"""A configuration says where a memory is and how it works, from a dict, a file or an object."""

from __future__ import annotations

import asyncio
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from chronomemory.blocks import ConfigError, Memory, MemorySystem, sync
from chronomemory.embedders import EndpointEmbedder, LexicalEmbedder
from pydantic import BaseModel

SETTINGS = {"memory": {"top_k": 2, "inbox_threshold": 3, "prune_threshold": 0.2}}


def check(memory: Memory) -> None:
    """It works offline, and the settings hold."""
    with memory:
        for number in range(3):
            assert not memory.should_dream
            memory.learn(f"Note {number} about the build")
        assert memory.should_dream
        memory.dream()
        assert len(memory.recall("the build")) == 2
        with memory.blocks.connect() as conn:
            assert memory._setting(conn, "prune_threshold") == 0.2


class TestWhereItIsWritten:
    def test_in_a_dict(self, tmp_path: Path) -> None:
        check(Memory.from_config(tmp_path, SETTINGS))

    def test_in_json(self, tmp_path: Path) -> None:
        file = tmp_path / "memory.json"
        file.write_text(json.dumps(SETTINGS), encoding="utf-8")
        check(Memory.from_config(tmp_path / "project", file))

    @pytest.mark.skipif(sys.version_info < (3, 11), reason="TOML came with Python 3.11")
    def test_in_toml(self, tmp_path: Path) -> None:
        file = tmp_path / "memory.toml"
        file.write_text("[memory]\ntop_k = 2\ninbox_threshold = 3\nprune_threshold = 0.2\n", encoding="utf-8")
        check(Memory.from_config(str(tmp_path / "project"), str(file)))

    def test_in_an_object(self, tmp_path: Path) -> None:
        class Inner(BaseModel):
            top_k: int = 9
            inbox_threshold: int = 9
            prune_threshold: float = 0.9
            something_else: int = 1

        class Outer(BaseModel):
            memory: Inner

        # What was not set is not meant.
        check(Memory.from_config(tmp_path, Outer(memory=Inner(**SETTINGS["memory"]))))

    def test_any_object_may_dump_it(self, tmp_path: Path) -> None:
        class Told:
            def __init__(self, **more: Any) -> None:
                self.more = more

            def model_dump(self) -> dict[str, Any]:
                return {**SETTINGS, **self.more}

        check(Memory.from_config(tmp_path / "one", Told()))
        with Memory.from_config(Told(path=str(tmp_path / "two"))) as memory:
            assert memory.remember("Fact").status == "created"
        assert (tmp_path / "two").is_dir()
        with pytest.raises(ConfigError):
            Memory.from_config(tmp_path, Told)

    def test_nowhere(self, tmp_path: Path) -> None:
        with Memory.from_config(tmp_path) as memory:
            assert memory.remember("Fact").status == "created"

    def test_it_is_awaited_by_the_system(self, tmp_path: Path) -> None:
        async def live() -> int:
            async with await MemorySystem.from_config(tmp_path, SETTINGS) as system:
                for number in range(3):
                    await system.remember(f"Note {number} about the build")
                return len(await system.recall("the build"))

        assert asyncio.run(live()) == 2

    def test_alone_it_says_where_the_memory_is(self, tmp_path: Path) -> None:
        with Memory.from_config({"path": str(tmp_path / "one")}) as memory:
            memory.learn("Fact")
        assert (tmp_path / "one" / ".chronomemory").is_dir()
        file = tmp_path / "memory.json"
        file.write_text(json.dumps({"project": {"db": "two"}}), encoding="utf-8")
        with Memory.from_config(file) as memory:
            memory.learn("Fact")
        assert (tmp_path / "two" / ".chronomemory").is_dir()


class TestWhatItSays:
    @pytest.mark.parametrize("section", ["embeddings", "embedding"])
    def test_a_server_for_embeddings_that_is_not_asked_yet(self, tmp_path: Path, section: str) -> None:
        told = {"model": "small", "base_url": "http://localhost:9/v1", "dimensions": 64, "timeout": 3}
        with Memory.from_config(tmp_path, {section: told}) as memory:
            assert isinstance(memory.embedder, EndpointEmbedder)
            assert memory.embedder.model_name == "small-64"
            memory.learn("Fact")

    def test_words_alone(self, tmp_path: Path) -> None:
        with Memory.from_config(tmp_path, {"embeddings": {"model": "lexical", "dimensions": 32}}) as memory:
            assert isinstance(memory.embedder, LexicalEmbedder)
            assert memory.embedder.dim == 32

    def test_what_is_given_goes_before_it(self, tmp_path: Path) -> None:
        mine = LexicalEmbedder(16)
        told = {"embeddings": {"model": "small"}}
        with Memory.from_config(tmp_path, told, embedder=mine, analyser=lambda _: {"tags": ["x"]}) as memory:
            assert memory.embedder is mine
            memory.remember("Fact")
            assert memory.list(tag="x")

    def test_the_store_keeps_its_own_settings(self, tmp_path: Path) -> None:
        with Memory(tmp_path) as memory:
            for number in range(4):
                memory.remember(f"Note {number} about the build")
            with memory.blocks.begin() as conn:
                sync.set_config(conn, "top_k", "3")
        with Memory.from_config(tmp_path, {"memory": {"top_k": 1}}) as memory:
            assert len(memory.recall("the build")) == 1
        with Memory.from_config(tmp_path, {}) as memory:
            assert len(memory.recall("the build")) == 3

    def test_what_means_nothing_here_is_told(self, tmp_path: Path) -> None:
        told = {"llm": {"model": "some"}, "memory": {"edge_degree_cap": 5, "top_k": 2}, "logging": {}}
        with (
            pytest.warns(UserWarning, match="not used: llm, logging, memory.edge_degree_cap"),
            Memory.from_config(tmp_path, told) as memory,
        ):
            assert memory._settings == {"top_k": 2}

    def test_nothing_is_told_of_what_is_used(self, tmp_path: Path) -> None:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            Memory.from_config(tmp_path, SETTINGS).close()
        assert [str(one.message) for one in told] == []


WRONG: dict[str, tuple[Any, str]] = {
    "an unknown section": ({"memroy": {}}, "memroy: there is no such setting"),
    "an unknown setting": ({"memory": {"topk": 3}}, "memory.topk: there is no such setting"),
    "a number out of reach": ({"memory": {"top_k": 0}}, "memory.top_k"),
    "a section that is none": ({"memory": 3}, "memory"),
    "a server without a model": ({"embeddings": {"base_url": "http://x"}}, "embeddings.base_url"),
    "a list": ([1], "config: a list"),
    "a file of another kind": ("memory.yaml", "neither .json nor .toml"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_it_cannot_say_is_refused_by_name(tmp_path: Path, name: str) -> None:
    config, message = WRONG[name]
    with pytest.raises(ConfigError, match=message) as told:
        Memory.from_config(tmp_path, config)
    assert told.value.recovery
    assert isinstance(told.value, ValueError)
    assert list(tmp_path.iterdir()) == []


def test_a_key_is_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as told:
        Memory.from_config(tmp_path, {"embeddings": {"model": "m", "api_key": "sk-secret"}})
    assert "api_key" in str(told.value)
    assert "sk-secret" not in str(told.value)


@pytest.mark.parametrize("text", ["{", "[]", "\ufeff{}"])
def test_a_broken_file_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "memory.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"memory\.json"):
        Memory.from_config(tmp_path / "project", file)


def test_a_missing_file_is_an_io_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Memory.from_config(tmp_path / "project", tmp_path / "nothing.json")


def test_without_a_place_it_asks_for_one() -> None:
    with pytest.raises(ConfigError, match="path") as told:
        Memory.from_config({"memory": {}})
    assert "folder" in told.value.recovery


@pytest.mark.parametrize(
    "wrong", [{"top_k": 0}, {"inbox_threshold": 0}, {"prune_threshold": 2.0}, {"exploration": -1.0}]
)
def test_a_memory_that_is_refused_leaves_nothing_open(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Memory(tmp_path, **wrong)
    assert list(tmp_path.iterdir()) == []
