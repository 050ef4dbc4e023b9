"""No tool, resource or prompt of ann's server tells whether others use the same store, nor what they hold."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from assistants import Talk, with_served
from chronomemory import Scope
from chronomemory.mcp.served_store import ServedStore
from chronomemory.mcp.server import PROFILES
from chronomemory.pages import Pages
from mcp import MCPError
from twin_worlds import ANN, OTHERS, SECRET, WORDS, World, told_in_both

NOBODY = "0" * 32
ENTITY = {"name": "Ann", "entityType": "person", "observations": ["likes tea"]}
TEA = {"name": "Tea", "entityType": "drink", "observations": ["is green"]}
LIKES = {"from": "Ann", "to": "Tea", "relationType": "likes"}
CALLS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "memories": [
        *(("add_memory", {"content": words, "tags": ["tea"]}) for words in WORDS),
        ("add_memory", {"content": WORDS[0]}),
        ("search_memories", {"query": "green tea", "limit": 2}),
        ("search_memories", {"query": "tea", "status": "any", "where": {"kind": "block"}}),
        ("search_memories", {"query": SECRET[:3]}),
        ("get_memory", {"memory_id": "FIRST"}),
        ("get_memory", {"memory_id": NOBODY}),
        ("history", {"memory_id": "FIRST"}),
        ("history", {"memory_id": NOBODY}),
        ("explain", {"memory_id": "FIRST"}),
        ("explain", {"memory_id": NOBODY}),
        ("supersede_memory", {"memory_id": "FIRST", "content": "white tea at four"}),
        ("supersede_memory", {"memory_id": NOBODY, "content": "white tea at four"}),
        ("retract_memory", {"memory_id": "FIRST", "reason": "it was not so"}),
        ("retract_memory", {"memory_id": NOBODY, "reason": "it was not so"}),
        ("verify", {}),
        ("list_memories", {}),
        ("search_memories", {}),
    ],
    "pages": [
        ("list_pages", {}),
        ("read_page", {"page": "user-profile"}),
        ("read_page", {"page": "topic-none"}),
        ("search_pages", {"query": "tea"}),
        ("recent_entries", {}),
        ("page_schema", {}),
    ],
    "reference": [
        ("create_entities", {"entities": [ENTITY, TEA]}),
        ("create_relations", {"relations": [LIKES, {**LIKES, "to": "Nobody"}]}),
        ("create_relations", {"relations": [LIKES]}),
        ("add_observations", {"observations": [{"entityName": "Ann", "contents": ["lives here"]}]}),
        ("add_observations", {"observations": [{"entityName": "Nobody", "contents": ["x"]}]}),
        ("read_graph", {}),
        ("search_nodes", {"query": "tea"}),
        ("open_nodes", {"names": ["Ann", "Nobody"]}),
        ("delete_observations", {"deletions": [{"entityName": "Ann", "observations": ["likes tea"]}]}),
        ("delete_relations", {"relations": [LIKES]}),
        ("delete_entities", {"entityNames": ["Tea", "Nobody"]}),
        ("read_graph", {}),
    ],
    "files": [
        ("view", {"path": "/memories"}),
        ("create", {"path": "/memories/tea.md", "file_text": "green tea\n"}),
        ("view", {"path": "/memories/tea.md"}),
        ("view", {"path": "/memories/none.md"}),
        ("str_replace", {"path": "/memories/tea.md", "old_str": "green", "new_str": "black"}),
        ("insert", {"path": "/memories/tea.md", "insert_line": 1, "insert_text": "more\n"}),
        ("rename", {"old_path": "/memories/tea.md", "new_path": "/memories/tee.md"}),
        ("delete", {"path": "/memories/tee.md"}),
        ("view", {"path": "/memories"}),
    ],
    "chatgpt": [("search", {"query": "tea"}), ("fetch", {"id": "FIRST"}), ("fetch", {"id": NOBODY})],
}


def served_in(world: World) -> ServedStore:
    return ServedStore(world.store, Scope(**ANN))


async def answer(talk: Talk, tool: str, arguments: dict[str, Any]) -> list[Any]:
    told = await talk.raw(tool, **arguments)
    text = [block.text for block in told.content if block.type == "text"]
    return [told.is_error, told.structured_content, text]


@pytest.mark.parametrize("profile", PROFILES)
def test_every_tool_tells_the_same_alone_and_among_others(tmp_path: Path, profile: str) -> None:
    def life(world: World) -> None:
        first = world.memory_of(ANN).remember("Ann likes green tea", ["tea"]).block_id
        with Pages(world.store, clock=world.now, **ANN) as pages:
            pages.append("user-profile", "Ann likes green tea.", ["tea"])
        served = served_in(world)
        if not world.alone:
            for names in OTHERS:
                strangers = ServedStore(world.store, Scope(**names))
                rows = [(tool, asked) for tool, asked in CALLS["reference"][:4] if profile == "reference"]
                for tool, asked in rows:
                    with_served(
                        strangers, lambda talk, t=tool, a=asked: answer(talk, t, a), profile="reference"
                    )
        for number, (tool, given) in enumerate(CALLS[profile]):
            arguments = {name: first if value == "FIRST" else value for name, value in given.items()}

            def work(tool: str = tool, arguments: dict[str, Any] = arguments) -> list[Any]:
                return with_served(served, lambda talk: answer(talk, tool, arguments), profile=profile)

            world.step(f"{number} {tool}", work)

    told = told_in_both(tmp_path, life)
    called = {name.split()[1] for name in told if name != "events"}
    called |= {tool for tool, _ in CALLS["memories"]} if profile == "pages" else set()
    assert called == {row.name for row in PROFILES[profile]}, "each tool is part of the comparison"


def test_resources_and_prompts_tell_the_same_alone_and_among_others(tmp_path: Path) -> None:
    def life(world: World) -> None:
        first = world.memory_of(ANN).remember("Ann likes green tea", ["tea"]).block_id
        with Pages(world.store, clock=world.now, **ANN) as pages:
            pages.append("user-profile", "Ann likes green tea.", ["tea"])

        def ask(name: str, work: Callable[[Talk], Awaitable[Any]]) -> None:
            world.step(name, lambda: with_served(served_in(world), work))

        async def read(talk: Talk, address: str) -> Any:
            try:
                return (await talk.client.read_resource(address)).model_dump(mode="json")
            except MCPError as refused:
                return str(refused)

        ask("resources", lambda talk: talk.client.list_resources())
        ask("templates", lambda talk: talk.client.list_resource_templates())
        ask("prompts", lambda talk: talk.client.list_prompts())
        ask("prompt", lambda talk: talk.client.get_prompt("recall", {"topic": "tea"}))
        for kind, name in (
            *(("record", name) for name in (f"block:{first}", first, NOBODY)),
            *(("history", name) for name in (f"block:{first}", NOBODY)),
            *(("page", name) for name in ("user-profile", "topic-none")),
        ):
            ask(f"read {kind} {name}", lambda talk, at=f"memory://{kind}/{name}": read(talk, at))

    told = told_in_both(tmp_path, life)
    assert "Ann likes green tea" in told["read page user-profile"]
