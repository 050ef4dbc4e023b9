"""Memories can be listed without a query, and a general question is answered with a profile."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from assistants import ERAS, Talk, with_served
from chronomemory import ChronoStore, Scope
from chronomemory.blocks import Memory
from chronomemory.mcp.served_store import ServedStore
from chronomemory.mcp.server import make_server
from chronomemory.pages import Pages
from chronomemory.tools import is_generic
from mcp import Client

STATEMENTS = [f"Statement {number} about the harbour" for number in range(5)]
GENERIC = [
    "",
    "  ",
    "?",
    "What do you know about me?",
    "what do you remember",
    "What have you learned about me so far?",
    "Tell me about myself.",
    "everything you know",
    "Please tell me everything you know about me",
    "Who am I?",
    "my profile",
]
SPECIFIC = [
    "tea",
    "What do you know about tea?",
    "who am i meeting",
    "everything about Lisbon",
    "tell me a joke",
]


async def add_all(talk: Talk) -> None:
    for statement in STATEMENTS:
        await talk.call("add_memory", content=statement)


@pytest.mark.parametrize("mode", ERAS)
def test_list_memories_lists_newest_first(served: ServedStore, mode: str) -> None:
    async def work(talk: Talk) -> None:
        await add_all(talk)
        listed, text = await talk.both("list_memories")
        assert [each["text"] for each in listed["memories"]] == STATEMENTS[::-1]
        assert "user=ann: 5 memories, newest first\n" in text

    with_served(served, work, mode)


def test_a_list_goes_on_where_it_stopped(served: ServedStore) -> None:
    async def work(talk: Talk) -> list[str]:
        await add_all(talk)
        texts, cursor = [], ""
        for left_out in (3, 1, 0):
            listed = await talk.call("list_memories", limit=2, cursor=cursor)
            texts += [each["text"] for each in listed["memories"]]
            assert listed["left_out"] == left_out
            cursor = listed["next_cursor"]
        assert cursor == ""
        return texts

    assert with_served(served, work) == STATEMENTS[::-1]


def test_a_search_without_a_query_lists_what_its_filters_select(served: ServedStore) -> None:
    async def work(talk: Talk) -> None:
        before = await talk.call("add_memory", content="Old", tags=["a"])
        seq = (await talk.call("verify"))["last_seq"]
        await talk.call("supersede_memory", memory_id=before["memory_id"], content="New")
        await talk.call("add_memory", content="Other", confidence=0.9)

        async def texts(tool: str = "search_memories", **asked: object) -> list[str]:
            return [each["text"] for each in (await talk.call(tool, **asked))["memories"]]

        assert await texts("list_memories") == ["Other", "New"]
        assert await texts("list_memories", tags="a") == ["New"]
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
            return [each["text"] for each in (await talk.call("list_memories"))["memories"]]

        assert with_served(ServedStore(store, Scope(user="ann")), work) == [
            "Ann swims",
            "Ann drinks tea",
            "Tea is hot",
        ]


@pytest.mark.parametrize("query", GENERIC)
def test_a_general_question_is_answered_with_a_profile(served: ServedStore, query: str) -> None:
    with Memory(served.store, user="bob") as memory:
        memory.remember("Bob drinks coffee", ["self/constitutional"])
    with Memory(served.store, user="ann") as memory:
        memory.remember("Answer in short sentences", ["self/constitutional"])
        used = memory.remember("Ann drinks tea").block_id
        memory.outcome([used], 0.9)
        memory.remember("Ann swims")
        memory.remember("Ann has a boat")

    async def work(talk: Talk) -> None:
        known, text = await talk.both("search_memories", query=query)
        sections = ("constitution", "most_used", "newest")
        assert [[each["text"] for each in known[name]] for name in sections] == [
            ["Answer in short sentences"],
            ["Ann drinks tea"],
            ["Ann has a boat", "Ann swims"],
        ]
        assert known["total"] == 4
        assert "Bob" not in text
        assert text.count('text="') == 4
        shorter = await talk.call("search_memories", query=query, limit=1)
        assert [len(shorter[name]) for name in sections] == [1, 1, 1]

    with_served(served, work)


@pytest.mark.parametrize("query", SPECIFIC)
def test_a_question_about_something_is_a_search(query: str) -> None:
    assert not is_generic(query)


def test_a_question_that_matches_nothing_says_how_to_see_what_is_known(served: ServedStore) -> None:
    async def work(talk: Talk) -> None:
        await add_all(talk)
        listed, text = await talk.both("search_memories", query="zebra")
        assert listed["memories"] == []
        assert "no memory matched; an empty query shows what is known" in text

    with_served(served, work)


def test_page_tools_are_offered_where_the_scope_has_pages(served: ServedStore) -> None:
    page_tools = {"list_pages", "read_page", "search_pages", "recent_entries", "page_schema"}

    async def offered(talk: Talk) -> set[str]:
        return {tool.name for tool in (await talk.client.list_tools()).tools} & page_tools

    assert with_served(served, offered) == set()
    assert with_served(served, offered, profile="pages") == page_tools
    with Pages(served.store, user="ann") as pages:
        pages.append("user-preferences", "Ann drinks green tea.", ["drinks"])
    assert with_served(served, offered) == page_tools
    assert with_served(ServedStore(served.store, Scope(user="bob")), offered) == set()


def test_answers_are_text_alone_without_paths(served: ServedStore) -> None:
    async def work(talk: Talk) -> None:
        calls = (
            ("add_memory", {"content": "Tea at four"}),
            ("search_memories", {"query": "tea"}),
            ("search_memories", {}),
            ("list_memories", {}),
            ("verify", {}),
        )
        for tool, arguments in calls:
            answer = await talk.raw(tool, **arguments)
            assert answer.structured_content is None
            assert str(served.store.project_root) not in answer.content[0].text

    async def run() -> None:
        async with Client(make_server(served)) as client:
            await work(Talk(client))

    asyncio.run(run())


def test_a_hit_of_twenty_words_takes_at_most_sixty_tokens(served: ServedStore) -> None:
    words = (
        "Ann drinks green tea every morning at eight "
        "before she walks the old dog along the river in town today"
    )
    assert len(words.split()) == 20

    async def work(talk: Talk) -> None:
        await talk.call("add_memory", content=words, tags=["habit"], source="user")
        _, line = (await talk.both("search_memories", query="tea"))[1].split("\n")
        # Three common tokenizers count 45 or 46 here, and characters by 3.5 are 46.
        assert len(line) / 3.5 <= 60, line

    with_served(served, work)


def test_a_short_id_is_accepted_until_it_is_ambiguous(served: ServedStore) -> None:
    async def work(talk: Talk) -> None:
        whole = (await talk.call("add_memory", content="Tea at four"))["memory_id"]
        digits = whole.removeprefix("block:")
        for name in (digits[:8], f"block:{digits[:12]}", digits, whole):
            assert (await talk.call("get_memory", memory_id=name))["memory"]["id"] == whole
        assert "there is no memory" in await talk.refusal("get_memory", memory_id=digits[:7])
        twin = digits[:10] + "0" * 22
        with Memory(served.store, user="ann") as memory, memory.blocks.begin() as conn:
            record = conn.record(whole)
            assert record is not None
            conn.put(type(record)(id=f"block:{twin}", kind="block", data=dict(record.data)))
        for tool, more in (("get_memory", {}), ("retract_memory", {"reason": "x"})):
            refusal = await talk.refusal(tool, memory_id=digits[:8], **more)
            assert f"several memories begin with {digits[:8]}" in refusal
            assert digits in refusal and twin in refusal
        assert (await talk.call("get_memory", memory_id=digits[:20]))["memory"]["id"] == whole

    with_served(served, work)


def test_the_profile_chatgpt_lists_the_newest(served: ServedStore) -> None:
    with Memory(served.store, user="ann") as memory:
        for statement in STATEMENTS:
            memory.remember(statement)

    async def work(talk: Talk) -> None:
        for query in ("", "what do you know about me?"):
            listed = await talk.call("search", query=query)
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

    with_served(served, work, profile="pages")
