"""A model can use a memory through function calling: schemas for each provider, and a safe dispatcher."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from chronomemory import ChronoStore, Memory
from chronomemory.blocks import MemorySystem
from chronomemory.errors import InvalidArgument, StoreLocked
from chronomemory.tools import Tools, memory_tools

NAMES = ["remember", "recall", "list_memories", "correct_memory", "forget_memory"]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory(tmp_path, user="ann") as opened:
        yield opened


@pytest.fixture
def tools(memory: Memory) -> Tools:
    return memory_tools(memory)


def test_schemas_have_the_form_of_each_provider(tools: Tools) -> None:
    plain, openai, anthropic = (tools.schemas(name) for name in ("plain", "openai", "anthropic"))
    assert [each["name"] for each in plain] == NAMES
    assert openai == [{"type": "function", "function": each} for each in plain]
    for tool, other in zip(plain, anthropic, strict=True):
        assert other == {
            "name": tool["name"],
            "description": tool["description"],
            "input_schema": tool["parameters"],
        }
        assert tool["parameters"]["type"] == "object"
        assert tool["parameters"]["additionalProperties"] is False
        assert tool["description"]
    # Characters by 3.5 is about a fifth more than common tokenizers count in such JSON.
    assert len(json.dumps(openai, separators=(",", ":"))) / 3.5 <= 1_000
    with pytest.raises(InvalidArgument, match="openai, anthropic, plain"):
        tools.schemas("nobody")  # type: ignore[arg-type]


def test_a_memory_is_remembered_recalled_corrected_and_forgotten(tools: Tools) -> None:
    home = tools.call("remember", {"content": "Ann lives in Porto", "tags": "home"})
    assert home["outcome"] == "created"
    tools.call("remember", {"content": "Ann drinks green tea", "source": "user"})
    [found] = tools.call("recall", '{"query": "where does Ann live?", "limit": "1"}')["memories"]
    assert (found["id"], found["text"], found["tags"]) == (home["id"], "Ann lives in Porto", ["home"])
    corrected = tools.call("correct_memory", {"memory_id": found["id"], "content": "Ann lives in Lisbon"})
    assert corrected["replaced"] == home["id"]
    [found] = tools.call("recall", {"query": "where does Ann live?", "limit": 1})["memories"]
    assert (found["id"], found["text"]) == (corrected["id"], "Ann lives in Lisbon")
    assert tools.call("forget_memory", {"id": found["id"]}) == {"id": found["id"], "outcome": "archived"}
    listed = tools.call("list_memories")["memories"]
    assert [each["text"] for each in listed] == ["Ann drinks green tea"]
    again = tools.call("forget_memory", {"memory_id": found["id"]})
    assert "there is no memory" in again["error"]


def test_a_general_question_is_answered_with_a_profile(memory: Memory, tools: Tools) -> None:
    memory.remember("Answer in short sentences", ["self/constitutional"])
    used = memory.remember("Ann drinks tea").block_id
    memory.outcome([used], 0.9)
    memory.remember("Ann swims")
    for query in ("", "What do you know about me?"):
        known = tools.call("recall", {"query": query})
        assert {name: [each["text"] for each in items] for name, items in known.items()} == {
            "constitution": ["Answer in short sentences"],
            "most_used": ["Ann drinks tea"],
            "newest": ["Ann swims"],
        }


def test_a_list_goes_on_where_it_stopped(memory: Memory, tools: Tools) -> None:
    for number in range(5):
        memory.remember(f"Fact {number} about the harbour", ["odd" if number % 2 else "even"])
    texts, cursor = [], ""
    while True:
        page = tools.call("list_memories", {"limit": 2, "cursor": cursor})
        texts += [each["text"] for each in page["memories"]]
        cursor = page["next_cursor"]
        if not cursor:
            break
    assert texts == [f"Fact {number} about the harbour" for number in (4, 3, 2, 1, 0)]
    odd = tools.call("list_memories", {"tags": ["odd"]})["memories"]
    assert [each["text"] for each in odd] == [f"Fact {number} about the harbour" for number in (3, 1)]


@pytest.mark.parametrize(
    ("name", "arguments", "error", "fix"),
    [
        ("erase", {}, "there is no tool 'erase'", "Call one of: remember, recall"),
        ("recall", {"limt": 3}, "limt: there is no such argument", "query, limit"),
        ("recall", {"user_id": "bob"}, "whose memories are used was fixed", "query, limit"),
        ("recall", {"limit": 0}, "limit: Input should be greater than or equal to 1", "query, limit"),
        ("recall", "no JSON", "a JSON object expected", "Pass an object"),
        ("recall", "[1]", "a JSON object expected", "Pass an object"),
        ("remember", None, "content: it is required", "content, tags, source"),
        ("remember", {"content": " "}, "content must be a text with something in it", ""),
        ("correct_memory", {"memory_id": "x", "content": "y"}, 'there is no memory "x"', "recall"),
        ("list_memories", {"cursor": "!!"}, "cursor", ""),
    ],
)
def test_a_wrong_call_is_answered_with_how_to_fix_it(
    tools: Tools, name: str, arguments: object, error: str, fix: str
) -> None:
    answer = tools.call(name, arguments)  # type: ignore[arg-type]
    assert set(answer) == {"error", "fix"}
    assert error in answer["error"]
    assert fix in answer["fix"]


def test_errors_of_the_store_are_results(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(*_: object, **__: object) -> None:
        raise StoreLocked("another process writes", recovery="Try again.")

    monkeypatch.setattr(Memory, "remember", locked)
    assert tools.call("remember", {"content": "Tea"}) == {
        "error": "another process writes",
        "fix": "Try again.",
    }

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", "/secret/path")

    monkeypatch.setattr(Memory, "remember", full)
    answer = tools.call("remember", {"content": "Tea"})
    assert answer["error"] == "No space left on device"
    assert "/secret" not in str(answer)


def test_no_call_reaches_the_memories_of_another_user(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        ann, bob = Memory(store, user="ann"), Memory(store, user="bob")
        secret = memory_tools(ann).call("remember", {"content": "Ann hides the key under the mat"})["id"]
        [whole] = [record.id.removeprefix("block:") for record in ann.blocks.store.query(kind="block")]
        tools = memory_tools(bob)
        for name in (secret, whole, f"block:{whole}"):
            for tool, more in (("correct_memory", {"content": "Mine"}), ("forget_memory", {})):
                answer = tools.call(tool, {"memory_id": name, **more})
                never = tools.call(tool, {"memory_id": name[:-4] + "0000", **more})
                assert str(answer).replace(name, "ID") == str(never).replace(name[:-4] + "0000", "ID")
        shown = [tools.call("recall", {"query": query}) for query in ("", "where is the key?")]
        assert "key" not in str([*shown, tools.call("list_memories")])
        assert len(memory_tools(ann).call("list_memories")["memories"]) == 1


def test_an_asynchronous_program_awaits_the_same_calls(tmp_path: Path) -> None:
    async def live() -> list[str]:
        async with MemorySystem(tmp_path, user="ann") as system:
            tools = memory_tools(system)
            await asyncio.gather(
                *(tools.acall("remember", {"content": f"Ship {n} is red"}) for n in range(4))
            )
            return [each["text"] for each in (await tools.acall("list_memories"))["memories"]]

    assert sorted(asyncio.run(live())) == [f"Ship {n} is red" for n in range(4)]
