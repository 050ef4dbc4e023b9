"""Memories can be listed without a query, newest first and page by page."""

from __future__ import annotations

from pathlib import Path

import pytest
from assistants import ERAS, Talk, with_served
from chronomemory import ChronoStore, Scope
from chronomemory.blocks import Memory
from chronomemory.mcp.served_store import ServedStore
from chronomemory.pages import Pages

STATEMENTS = [f"Statement {number} about the harbour" for number in range(5)]


async def add_all(talk: Talk) -> None:
    for statement in STATEMENTS:
        await talk.call("add_memory", content=statement)


@pytest.mark.parametrize("mode", ERAS)
def test_an_empty_query_lists_memories_newest_first(served: ServedStore, mode: str) -> None:
    async def work(talk: Talk) -> None:
        await add_all(talk)
        for asked in ({}, {"query": ""}):
            listed, text = await talk.both("search_memories", **asked)
            assert [each["text"] for each in listed["memories"]] == STATEMENTS[::-1]
            assert "5 of the memories, newest first, 0 left out" in text

    with_served(served, work, mode)


def test_a_list_goes_on_where_it_stopped(served: ServedStore) -> None:
    async def work(talk: Talk) -> list[str]:
        await add_all(talk)
        texts, cursor = [], ""
        for left_out in (3, 1, 0):
            listed = await talk.call("search_memories", limit=2, cursor=cursor)
            texts += [each["text"] for each in listed["memories"]]
            assert listed["left_out"] == left_out
            cursor = listed["next_cursor"]
        assert cursor == ""
        return texts

    assert with_served(served, work) == STATEMENTS[::-1]


def test_a_list_takes_the_filters_of_a_search(served: ServedStore) -> None:
    async def work(talk: Talk) -> None:
        before = await talk.call("add_memory", content="Old", tags=["a"])
        seq = (await talk.call("verify"))["last_seq"]
        await talk.call("supersede_memory", memory_id=before["memory_id"], content="New")
        await talk.call("add_memory", content="Other", confidence=0.9)

        async def texts(**asked: object) -> list[str]:
            return [each["text"] for each in (await talk.call("search_memories", **asked))["memories"]]

        assert await texts() == ["Other", "New"]
        assert await texts(status="archived") == ["Old"]
        assert await texts(status="any", tags=["a"]) == ["New", "Old"]
        assert await texts(min_confidence=0.8) == ["Other"]
        assert await texts(where={"data.content": "New"}, kinds="block") == ["New"]
        assert await texts(kinds=["nothing"]) == []
        assert await texts(as_of=str(seq)) == ["Old"]
        assert await texts(until="2020-01-01") == []

    with_served(served, work)


def test_a_list_shows_what_the_scope_sees_and_no_bookkeeping(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "SHARED", "label": "Tea is hot"})
        with Memory(store, user="bob") as memory:
            memory.remember("Bob drinks coffee")
        with Memory(store, user="ann") as memory:
            ids = [memory.remember(text).block_id for text in ("Ann drinks tea", "Ann swims")]
            memory.connect(*ids, 0.9)

        async def work(talk: Talk) -> list[str]:
            return [each["text"] for each in (await talk.call("search_memories"))["memories"]]

        assert with_served(ServedStore(store, Scope(user="ann")), work) == [
            "Ann swims",
            "Ann drinks tea",
            "Tea is hot",
        ]


def test_a_question_that_matches_nothing_says_how_to_list(served: ServedStore) -> None:
    async def work(talk: Talk) -> None:
        await add_all(talk)
        listed, text = await talk.both("search_memories", query="what do you know about me?")
        assert listed["memories"] == []
        assert "no memory matched; an empty query lists the memories, newest first" in text
        assert "no memory matched" in listed["notes"][0]

    with_served(served, work)


@pytest.mark.parametrize("tool", ["list_memories", "recent_activity"])
def test_without_pages_the_tools_for_pages_list_memories(served: ServedStore, tool: str) -> None:
    async def work(talk: Talk) -> None:
        await add_all(talk)
        listed, text = await talk.both(tool)
        assert [each["text"] for each in listed["memories"]] == STATEMENTS[::-1]
        assert "5 of the memories, newest first" in text
        assert "there are no pages for user=ann" in text
        if tool == "recent_activity":
            assert (await talk.call(tool, since="2999-01-01T10:00"))["memories"] == []
            assert len((await talk.call(tool, limit=2))["memories"]) == 2

    with_served(served, work)


@pytest.mark.parametrize("tool", ["list_memories", "recent_activity"])
def test_with_pages_they_say_how_memories_are_listed(served: ServedStore, tool: str) -> None:
    with Pages(served.store, user="ann") as pages:
        pages.append("user-preferences", "Ann drinks green tea.", ["drinks"])

    async def work(talk: Talk) -> None:
        hint = "search_memories with an empty query lists them"
        assert hint not in (await talk.both(tool))[1]
        await add_all(talk)
        listed, text = await talk.both(tool)
        assert listed.get("pages") or listed.get("entries")
        assert hint in text

    with_served(served, work)


def test_the_profile_chatgpt_lists_the_newest(served: ServedStore) -> None:
    with Memory(served.store, user="ann") as memory:
        for statement in STATEMENTS:
            memory.remember(statement)

    async def work(talk: Talk) -> None:
        listed = await talk.call("search", query="")
        assert [each["title"] for each in listed["results"]] == STATEMENTS[::-1]
        refusal = await talk.refusal("fetch", id="nope")
        assert "Look the id up with a search." in refusal

    with_served(served, work, profile="chatgpt")


@pytest.mark.parametrize("tool", ["search_memories", "search_pages"])
def test_an_unknown_status_is_refused_with_those_there_are(served: ServedStore, tool: str) -> None:
    served.store.scoped(user="ann").upsert({"id": "R", "label": "Tea", "status": "draft"})

    async def work(talk: Talk) -> None:
        refusal = await talk.refusal(tool, query="tea", status="nonsense")
        assert "status must be one of active, " in refusal
        assert "got 'nonsense'" in refusal
        if tool == "search_memories":
            assert [each["id"] for each in (await talk.call(tool, query="tea", status="draft"))["memories"]]

    with_served(served, work)
