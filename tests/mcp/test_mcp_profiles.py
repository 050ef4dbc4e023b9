"""The other profiles answer in the shapes that their clients know."""

from __future__ import annotations

import json
from typing import Any

import pytest
from assistants import ERAS, Talk, with_served
from chronomemory import Scope
from chronomemory.mcp.rendering import tokens_of
from chronomemory.mcp.served_store import ServedStore

ANN = {"name": "Ann", "entityType": "person", "observations": ["likes tea", "lives in Bern"]}
BERN = {"name": "Bern", "entityType": "city", "observations": ["has a river"]}
LIVES = {"from": "Ann", "to": "Bern", "relationType": "lives in"}


def bare(answer: dict[str, Any]) -> dict[str, Any]:
    """Without what we say beside the shapes of the reference."""
    return {name: value for name, value in answer.items() if name not in ("store", "scope", "left_out")}


@pytest.mark.parametrize("mode", ERAS)
def test_the_nine_tools_of_the_reference(served: ServedStore, mode: str) -> None:
    async def work(talk: Talk) -> None:
        made = await talk.call("create_entities", entities=[ANN, BERN, ANN])
        assert bare(made) == {"entities": [ANN, BERN]}
        assert made["scope"] == "user=ann"
        assert bare(await talk.call("create_entities", entities=[ANN])) == {"entities": []}
        assert bare(await talk.call("create_relations", relations=[LIVES, LIVES])) == {"relations": [LIVES]}
        assert bare(await talk.call("create_relations", relations=[LIVES])) == {"relations": []}
        added = await talk.call(
            "add_observations", observations=[{"entityName": "Ann", "contents": ["likes tea", "plays chess"]}]
        )
        assert bare(added) == {"results": [{"entityName": "Ann", "addedObservations": ["plays chess"]}]}
        ann = {**ANN, "observations": ["likes tea", "lives in Bern", "plays chess"]}
        assert bare(await talk.call("read_graph")) == {"entities": [ann, BERN], "relations": [LIVES]}
        # Relations come along if one end matches.
        assert bare(await talk.call("search_nodes", query="chess")) == {
            "entities": [ann],
            "relations": [LIVES],
        }
        assert bare(await talk.call("search_nodes", query="iver")) == {
            "entities": [BERN],
            "relations": [LIVES],
        }
        assert bare(await talk.call("search_nodes", query="zebra")) == {"entities": [], "relations": []}
        assert bare(await talk.call("open_nodes", names=["Bern", "Nobody"])) == {
            "entities": [BERN],
            "relations": [LIVES],
        }
        told = await talk.call(
            "delete_observations", deletions=[{"entityName": "Ann", "observations": ["likes tea", "x"]}]
        )
        assert bare(told) == {"success": True, "message": "1 observations deleted"}
        assert (await talk.call("delete_relations", relations=[LIVES]))["success"] is True
        assert (await talk.call("read_graph"))["relations"] == []
        await talk.call("create_relations", relations=[LIVES])
        assert (await talk.call("delete_entities", entityNames=["Ann", "Nobody"]))["success"] is True
        assert bare(await talk.call("read_graph")) == {"entities": [BERN], "relations": []}
        # What was deleted can come again.
        assert bare(await talk.call("create_entities", entities=[ANN])) == {"entities": [ANN]}

    with_served(served, work, mode, "reference")


def test_rows_of_one_entity_go_on_from_each_other(served: ServedStore) -> None:
    async def work(talk: Talk) -> None:
        await talk.call("create_entities", entities=[ANN, {**ANN, "observations": ["not this one"]}])
        await talk.call(
            "add_observations",
            observations=[{"entityName": "Ann", "contents": [said]} for said in ("a", "b", "a")],
        )
        told = await talk.call(
            "delete_observations",
            deletions=[
                {"entityName": "Ann", "observations": [said]}
                for said in ("likes tea", "nothing", "b", "likes tea")
            ],
        )
        assert told["message"] == "2 observations deleted"
        (left,) = (await talk.call("open_nodes", names=["Ann"]))["entities"]
        assert left["observations"] == ["lives in Bern", "a"]
        assert bare(await talk.call("search_nodes", query="tea"))["entities"] == []
        await talk.call("create_relations", relations=[LIVES])
        told = await talk.call("delete_relations", relations=[LIVES, LIVES])
        assert told["message"] == "1 of 2 relations deleted"
        told = await talk.call("delete_entities", entityNames=["Ann", "Ann"])
        assert told["message"] == "1 of 2 entities deleted"

    with_served(served, work, profile="reference")


def test_relations_go_with_the_name_though_it_is_no_entity(served: ServedStore) -> None:
    other = {"from": "Bern", "to": "Aare", "relationType": "lies on"}

    async def make(talk: Talk) -> None:
        await talk.call("create_entities", entities=[BERN])

    async def work(talk: Talk) -> None:
        await talk.call("create_relations", relations=[LIVES, other])
        for _ in range(2):
            told = await talk.call("delete_entities", entityNames=["Ann"])
            assert told["message"] == "0 of 1 entities deleted"
            assert (await talk.call("read_graph"))["relations"] == [other]
        # What is shared stays, and so does what one says of it.
        await talk.call("delete_entities", entityNames=["Bern"])
        assert bare(await talk.call("read_graph")) == {"entities": [BERN], "relations": [other]}

    with_served(ServedStore(served.store, Scope()), make, profile="reference")
    with_served(served, work, profile="reference")


def test_an_entity_that_another_tool_wrote_otherwise_is_none(served: ServedStore) -> None:
    async def make(talk: Talk) -> None:
        await talk.call("create_entities", entities=[ANN, BERN])

    async def work(talk: Talk) -> None:
        await talk.call("create_relations", relations=[LIVES])
        added = [{"entityName": "Ann", "contents": ["sings"]}]
        assert "not found" in await talk.refusal("add_observations", observations=added)
        await talk.call("add_observations", observations=[{"entityName": "Bern", "contents": ["old"]}])
        (bern,) = (await talk.call("open_nodes", names=["Bern"]))["entities"]
        assert bern == {"name": "Bern", "entityType": "", "observations": [*BERN["observations"], "old"]}

    with_served(served, make, profile="reference")
    for record in served.door.query(kind="entity"):
        lost = "observations" if record.label == "Ann" else "entityType"
        served.door.update(record.id, data={lost: None})
    with_served(served, work, profile="reference")


def test_the_reference_has_limits_and_says_what_it_left_out(served: ServedStore) -> None:
    many = [{"name": f"E{n}", "entityType": "thing", "observations": ["word " * 50]} for n in range(100)]

    async def work(talk: Talk) -> None:
        await talk.call("create_entities", entities=many)
        graph, text = await talk.both("read_graph")
        assert tokens_of(json.dumps(graph), text) <= 4_000
        assert len(graph["entities"]) + graph["left_out"] == 100
        assert f"{graph['left_out']} left out" in text
        refused = await talk.refusal(
            "add_observations", observations=[{"entityName": "Nobody", "contents": ["x"]}]
        )
        assert "Entity with name Nobody not found. Make it with create_entities" in refused
        assert "no such argument" in await talk.refusal(
            "create_entities", entities=[{**ANN, "observation": ["x"]}]
        )
        assert "limt: there is no such argument" in await talk.refusal("read_graph", limt=1)

    with_served(served, work, profile="reference")


def test_entities_of_two_users_are_apart(served: ServedStore) -> None:
    bob = ServedStore(served.store, Scope(user="bob"))

    async def make(talk: Talk) -> None:
        await talk.call("create_entities", entities=[ANN])

    async def read(talk: Talk) -> list[Any]:
        found: list[Any] = (await talk.call("read_graph"))["entities"]
        return found

    with_served(served, make, profile="reference")
    assert with_served(bob, read, profile="reference") == []
    with_served(bob, make, profile="reference")
    assert with_served(bob, read, profile="reference") == [ANN]


def test_what_is_shared_is_read_and_not_changed(served: ServedStore) -> None:
    shared = ServedStore(served.store, Scope())

    async def make(talk: Talk) -> None:
        await talk.call("create_entities", entities=[ANN, BERN])
        await talk.call("create_relations", relations=[LIVES])

    async def use(talk: Talk) -> None:
        assert bare(await talk.call("create_entities", entities=[ANN])) == {"entities": []}
        assert bare(await talk.call("read_graph")) == {"entities": [ANN, BERN], "relations": [LIVES]}
        added = [{"entityName": "Ann", "contents": ["sings"]}]
        assert "scope" in await talk.refusal("add_observations", observations=added)
        assert (await talk.call("delete_entities", entityNames=["Ann"]))[
            "message"
        ] == "0 of 1 entities deleted"
        assert bare(await talk.call("read_graph")) == {"entities": [ANN, BERN], "relations": [LIVES]}

    with_served(shared, make, profile="reference")
    with_served(served, use, profile="reference")


def test_entities_are_memories_like_any_other(served: ServedStore) -> None:
    async def make(talk: Talk) -> None:
        await talk.call("create_entities", entities=[ANN])

    async def find(talk: Talk) -> list[str]:
        found = await talk.call("search_memories", query="tea")
        return [f"{each['kind']}: {each['text']}" for each in found["memories"]]

    with_served(served, make, profile="reference")
    assert with_served(served, find) == ["entity: Ann"]


@pytest.mark.parametrize("mode", ERAS)
def test_search_and_fetch_for_chatgpt(served: ServedStore, mode: str) -> None:
    async def add(talk: Talk) -> str:
        return str((await talk.call("add_memory", content="Tea at four", source="user"))["memory_id"])

    memory_id = with_served(served, add)

    async def work(talk: Talk) -> None:
        found, text = await talk.both("search", query="tea")
        assert found["results"] == [
            {"id": memory_id, "title": "Tea at four", "url": f"memory://record/{memory_id}"}
        ]
        assert found["metadata"]["scope"] == "user=ann"
        assert json.loads(text) == found
        document, text = await talk.both("fetch", id=memory_id)
        assert (document["text"], document["metadata"]["source"]) == ("Tea at four", "user")
        assert json.loads(text) == document
        assert "Look the id up" in await talk.refusal("fetch", id="nobody")
        empty = await talk.call("search", query="zebra")
        assert empty["results"] == []

    with_served(served, work, mode, "chatgpt")
