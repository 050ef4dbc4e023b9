"""An assistant cannot write a page or a name through MCP that harms whoever reads it."""

from __future__ import annotations

import pytest
from assistants import Talk, with_served
from chronomemory.mcp.served_store import ServedStore

BOMB = (
    "---\na0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n"
    + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 6))
    + "description: *a5\n---\n# Lol\n"
)


def test_an_alias_bomb_is_refused_as_a_file_and_writes_nothing(served: ServedStore) -> None:
    seq = served.store.wal_seq()

    async def work(talk: Talk) -> None:
        reason = await talk.refusal("create", path="/memories/topic-lol.md", file_text=BOMB)
        assert "anchors (&) and aliases (*) are not read" in reason
        reason = await talk.refusal("create", path="/memories/topic-a\u202eb.md", file_text="# Tea\n")
        assert "U+202E" in reason

    with_served(served, work, profile="files")
    assert served.store.wal_seq() == seq


def test_two_unicode_forms_of_an_entity_name_are_one_entity(served: ServedStore) -> None:
    async def work(talk: Talk) -> None:
        cafe = {"name": "cafe\u0301", "entityType": "place", "observations": ["open"]}
        await talk.call("create_entities", entities=[cafe])
        again = await talk.call("create_entities", entities=[{**cafe, "name": "caf\u00e9"}])
        assert again["entities"] == []
        found = await talk.call("open_nodes", names=["cafe\u0301"])
        assert [entity["name"] for entity in found["entities"]] == ["caf\u00e9"]

    with_served(served, work, profile="reference")


@pytest.mark.parametrize("sign", ["\x00", "\n", "\u202e", "\u2028", "\u200f"])
def test_an_entity_name_with_an_invisible_control_is_refused(served: ServedStore, sign: str) -> None:
    async def work(talk: Talk) -> None:
        entity = {"name": f"a{sign}b", "entityType": "place", "observations": []}
        assert "invisible character" in await talk.refusal("create_entities", entities=[entity])

    with_served(served, work, profile="reference")
