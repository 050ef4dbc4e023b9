"""A server with an embedder keeps vectors and codes of what it adds, and finds by them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from assistants import ERAS, Talk, process, talk, with_served
from chronomemory import ChronoStore, Memory, Scope
from chronomemory.mcp.served_store import ServedStore
from word_embedder import Floats, SynonymEmbedder

CAR, TEA = "Anns automobile stands outside", "Ann takes her beverage at four"


class Counting(SynonymEmbedder):
    """Counts how often it is asked about a question."""

    asked = 0

    def embed_query_tokens(self, text: str) -> Floats:
        self.asked += 1
        return super().embed_query_tokens(text)


@pytest.fixture
def embedder() -> Counting:
    return Counting()


@pytest.fixture
def reader(served: ServedStore, embedder: Counting) -> ServedStore:
    return ServedStore(served.store, served.scope, embedder=embedder)


async def texts(talk: Talk, query: str, **more: object) -> list[str]:
    told = await talk.call("search_memories", query=query, **more)
    return [memory["text"] for memory in told["memories"]]


async def add(talk: Talk, contents: Sequence[str]) -> None:
    for content in contents:
        await talk.call("add_memory", content=content)


@pytest.mark.parametrize("mode", ERAS)
def test_codes_are_kept_at_once_and_asked(reader: ServedStore, embedder: Counting, mode: str) -> None:
    async def work(talk: Talk) -> None:
        assert await texts(talk, "whose car") == []
        await add(talk, (CAR, TEA))
        living = {space.name: space.living for space in reader.store.everyone().vectors.spaces()}
        assert living == {"blocks.synonyms": 2, "blocks-tokens.synonyms": 2}
        before = embedder.asked
        assert (await texts(talk, "whose car"))[0] == CAR
        assert embedder.asked == before + 1
        # One page after the other: a cursor belongs to what the embedder made of the question.
        first = await talk.call("search_memories", query="car drink", limit=1)
        second = await talk.call("search_memories", query="car drink", limit=1, cursor=first["next_cursor"])
        found = {told["memories"][0]["text"] for told in (first, second)}
        assert found == {CAR, TEA}
        # The past has no embeddings.
        assert await texts(talk, "car", as_of=str((await talk.call("verify"))["last_seq"])) == []

    with_served(reader, work, mode)
    with Memory(reader.store, user="ann", embedder=SynonymEmbedder()) as memory:
        assert memory.recall("car")[0].content == CAR
        assert memory.status().not_embedded == 0


def test_what_takes_the_place_of_another_has_its_own(reader: ServedStore) -> None:
    async def work(talk: Talk) -> None:
        added = await talk.call("add_memory", content=TEA)
        await talk.call("supersede_memory", memory_id=added["memory_id"], content=CAR, reason="a mistake")
        assert await texts(talk, "car") == [CAR]

    with_served(reader, work)


def test_a_server_without_one_finds_words_and_others_leave_it_alone(reader: ServedStore) -> None:
    with_served(reader, lambda talk: add(talk, (CAR, TEA)))

    async def by_words(talk: Talk) -> None:
        assert await texts(talk, "car") == []
        assert await texts(talk, "automobile") == [CAR]

    with_served(ServedStore(reader.store, reader.scope), by_words)

    async def bobs(talk: Talk) -> list[dict[str, object]]:
        await add(talk, ("A pen", "A pen and a pencil"))
        told = await talk.call("search_memories", query="which pen")
        return [{"text": one["text"], "score": one["score"]} for one in told["memories"]]

    # What ann has embedded changes nothing for bob: not whom he finds, and not a score.
    with_ann = with_served(ServedStore(reader.store, Scope(user="bob")), bobs)
    with_one = with_served(
        ServedStore(reader.store, Scope(user="bob"), embedder=SynonymEmbedder("new")), bobs
    )
    assert with_ann == with_one


def test_it_is_named_at_the_start_and_says_nothing_on_the_wire(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "loud.py").write_text(
        "from word_embedder import SynonymEmbedder\n"
        "def make(model):\n    print('loading')\n    return SynonymEmbedder(model)\n"
    )
    folders = [str(tmp_path), str(Path(__file__).parents[1] / "support"), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(folders))
    project = tmp_path / "project"
    project.mkdir()

    async def work(talk: Talk) -> None:
        await add(talk, (CAR, TEA))
        assert (await texts(talk, "car"))[0] == CAR

    talk(process(project, "--embedder", "loud:make", "--model", "loud"), work)
    with ChronoStore(project) as store:
        assert [space.name for space in store.vectors.spaces()] == ["blocks-tokens.loud", "blocks.loud"]
