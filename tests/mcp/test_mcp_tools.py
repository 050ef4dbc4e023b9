"""Every tool answers, in both eras, wholly in each of its two channels."""

from __future__ import annotations

import json
import re

import pytest
from assistants import ERAS, Talk, facts_in, with_served
from chronomemory import ChronoStore, Memory, Scope
from chronomemory.mcp.rendering import tokens_of
from chronomemory.mcp.served_store import ServedStore
from chronomemory.tools import short_id


@pytest.mark.parametrize("mode", ERAS)
def test_a_memory_is_added_found_corrected_withdrawn_and_explained(served: ServedStore, mode: str) -> None:
    async def work(talk: Talk) -> None:
        added = await talk.call(
            "add_memory", content="Deploys run from main", tags=["project/web"], source="user"
        )
        assert added["outcome"] == "added"
        assert added["scope"] == "user=ann"
        assert added["store"] == served.store.project_root.name
        [found] = (await talk.call("search_memories", query="where do deploys run?"))["memories"]
        assert found["text"] == "Deploys run from main"
        assert (found["source"], found["status"], found["tags"]) == ("user", "active", ["project/web"])
        other = await talk.call(
            "supersede_memory",
            memory_id=found["id"],
            content="Deploys run from trunk",
            reason="it was renamed",
        )
        assert other["superseded_id"] == found["id"]
        [now] = (await talk.call("search_memories", query="deploys"))["memories"]
        assert (now["id"], now["text"], now["tags"]) == (
            other["memory_id"],
            "Deploys run from trunk",
            ["project/web"],
        )
        old = await talk.call("explain", memory_id=found["id"])
        assert {each["relation"] for each in old["grounds"]} >= {"superseded by", "superseded because"}
        assert "it was renamed" in [each["text"] for each in old["grounds"]]
        gone = await talk.call("retract_memory", memory_id=now["id"], reason="nobody deploys any more")
        assert gone["outcome"] == "retracted"
        assert (await talk.call("search_memories", query="deploys"))["memories"] == []
        events = (await talk.call("history", memory_id=now["id"]))["events"]
        assert any("nobody deploys any more" in change for change in events[0]["changes"])
        assert (await talk.call("get_memory", memory_id=now["id"]))["memory"]["status"] == "archived"
        verdict = await talk.call("verify")
        assert verdict["valid"]
        assert verdict["head"] == served.store.health().head

    with_served(served, work, mode)


@pytest.mark.parametrize("mode", ERAS)
def test_both_channels_say_the_same(served: ServedStore, mode: str) -> None:
    """Some clients show a model only one of them."""

    async def work(talk: Talk) -> None:
        told = [await talk.both("add_memory", content="Tea at four", tags=["habit"], operation_id="1")]
        memory_id = told[0][0]["memory_id"]
        told.append(
            await talk.both("supersede_memory", memory_id=memory_id, content="Tea at five", reason="winter")
        )
        last = told[1][0]["memory_id"]
        told.append(await talk.both("search_memories", query="tea"))
        told.append(await talk.both("get_memory", memory_id=last))
        told.append(await talk.both("explain", memory_id=last))
        told.append(await talk.both("history", memory_id=last))
        told.append(await talk.both("verify"))
        told.append(await talk.both("retract_memory", memory_id=last, reason="coffee now"))
        for structured, text in told:
            # A change of a history is a line of its own; all else stands there as JSON spells it.
            plain = text.replace('\\"', '"')
            facts = [_as_in_text(fact) for fact in facts_in(structured)]
            missing = [fact for fact in facts if fact.replace('\\"', '"') not in plain]
            assert missing == [], text

    with_served(served, work, mode)


def _as_in_text(fact: str) -> str:
    """Ids of blocks are short in the text, moments are days, and what is usual is left out."""
    if fact in ("block", "active"):
        return ""
    short = short_id(fact)
    return short if short != fact else re.sub(r"T\d\d:\d\d:\d\dZ$", "", fact)


def test_what_was_added_is_what_every_other_door_shows(served: ServedStore) -> None:
    async def work(talk: Talk) -> str:
        return str((await talk.call("add_memory", content="The vault key is in the safe"))["memory_id"])

    memory_id = with_served(served, work)
    with Memory(served.store.project_root, user="ann") as memory:
        assert [block.content for block in memory.recall("vault key")] == ["The vault key is in the safe"]
        assert "vault key" in memory.frame("attention", "vault key").text
        assert memory.status().unusable == ()
    record = served.door.get(memory_id)
    assert record is not None
    assert (record.kind, record.scope) == ("block", Scope(user="ann"))


def test_near_texts_stay_two_memories(served: ServedStore) -> None:
    """A consolidation on its own would take the second for a better wording of the first."""
    text = "The staging server of the billing team runs on port {} behind the proxy"

    async def work(talk: Talk) -> int:
        for port in range(8080, 8090):
            assert (await talk.call("add_memory", content=text.format(port)))["outcome"] == "added"
        return len((await talk.call("search_memories", query="staging port", limit=20))["memories"])

    assert with_served(served, work) == 10


def test_the_same_words_are_the_same_memory_with_the_tags_of_both(served: ServedStore) -> None:
    async def work(talk: Talk) -> None:
        first = await talk.call("add_memory", content="Tea at four", tags=["a"])
        again = await talk.call("add_memory", content="  Tea at four ", tags=["b"])
        assert (again["outcome"], again["memory_id"]) == ("known already", first["memory_id"])
        [found] = (await talk.call("search_memories", query="tea"))["memories"]
        assert sorted(found["tags"]) == ["a", "b"]
        await talk.call("retract_memory", memory_id=first["memory_id"], reason="no more tea")
        back = await talk.call("add_memory", content="Tea at four")
        assert back["outcome"] == "brought back"
        told = await talk.call("explain", memory_id=first["memory_id"])
        assert [each["relation"] for each in told["grounds"]] == []

    with_served(served, work)


def test_plain_records_are_memories_too(served: ServedStore) -> None:
    door = served.door
    door.upsert(
        {"id": door.engine.scope_digits() and "FACT@" + door.engine.scope_digits(), "label": "Water is wet"}
    )
    fact = "FACT@" + door.engine.scope_digits()
    rests = "RESTS@" + door.engine.scope_digits()
    door.upsert({"id": rests, "label": "Fish are wet", "evidence": [fact], "confidence": 0.8})
    door.upsert(
        {
            "id": "EDGE@" + door.engine.scope_digits(),
            "kind": "edge",
            "data": {"from_id": rests, "to_id": fact, "edge_type": "depends_on"},
        }
    )

    async def work(talk: Talk) -> None:
        told = await talk.call("explain", memory_id=rests)
        assert [(each["relation"], each["id"]) for each in told["grounds"]] == [
            ("evidence, depends on", fact)
        ]
        gone = await talk.call("retract_memory", memory_id=fact, reason="only sometimes", operation_id="r")
        assert gone["doubted"] == [rests]
        again = await talk.call("retract_memory", memory_id=fact, reason="only sometimes", operation_id="r")
        assert (again["doubted"], again["repeated"]) == ([rests], True)
        new = await talk.call("supersede_memory", memory_id=rests, content="Fish swim", operation_id="s")
        assert (await talk.call("get_memory", memory_id=rests))["memory"]["status"] == "superseded"
        told = await talk.call("explain", memory_id=new["memory_id"])
        assert ("supersedes", rests) in [(each["relation"], each["id"]) for each in told["grounds"]]

    with_served(served, work)
    assert [each.reason for each in door.rollbacks(fact)] == ["only sometimes"]


def test_a_plain_record_may_call_itself_a_block_or_have_a_colon(served: ServedStore) -> None:
    shared = ServedStore(served.store, Scope())
    served.store.upsert({"id": "B1", "kind": "block", "label": "No block"})
    served.store.upsert({"id": "team:42", "kind": "team", "label": "A team"})

    async def work(talk: Talk) -> None:
        assert (await talk.call("explain", memory_id="B1"))["grounds"] == []
        assert (await talk.call("retract_memory", memory_id="B1", reason="r"))["outcome"] == "retracted"
        new = await talk.call("supersede_memory", memory_id="team:42", content="Another team", reason="grew")
        told = await talk.call("explain", memory_id="team:42")
        assert ("superseded because", "grew") in [
            (each["relation"], each["text"]) for each in told["grounds"]
        ]
        assert new["memory_id"] in [each["id"] for each in told["grounds"]]

    with_served(shared, work)


def test_pages_follow_each_other_and_count_what_they_leave_out(served: ServedStore) -> None:
    async def work(talk: Talk) -> None:
        for number in range(25):
            await talk.call("add_memory", content=f"Note {number} about bread")
        seen: list[str] = []
        cursor, left = "", []
        while True:
            page = await talk.call("search_memories", query="bread", limit=10, cursor=cursor)
            seen += [each["id"] for each in page["memories"]]
            left.append((page["left_out"], page["left_out_is_exact"]))
            cursor = page["next_cursor"]
            if not cursor:
                break
        assert len(seen) == len(set(seen)) == 25
        assert left == [(15, True), (5, True), (0, True)]
        text = (await talk.both("search_memories", query="bread"))[1]
        assert "10 memories, best first; 15 left out, next_cursor=" in text.splitlines()[0]
        first = (await talk.call("search_memories", query="bread"))["next_cursor"]
        await talk.call("add_memory", content="One more about bread")
        stale = await talk.refusal("search_memories", query="bread", cursor=first)
        assert "cursor: what is seen here has changed since that page" in stale
        other = await talk.refusal("search_memories", query="butter", cursor=first)
        assert "the cursor belongs to another question" in other

    with_served(served, work)


@pytest.mark.parametrize("tokens", [300, 1_000, 4_000])
def test_an_answer_keeps_within_its_tokens(served: ServedStore, tokens: int) -> None:
    """Both channels together: some clients hand both to the model."""

    async def work(talk: Talk) -> None:
        for number in range(30):
            await talk.call("add_memory", content=f"Note {number}: " + "bread and butter " * 20)
        seen, cursor = [], ""
        while True:
            found, text = await talk.both(
                "search_memories", query="bread", limit=10, cursor=cursor, max_tokens=tokens
            )
            assert tokens_of(json.dumps(found, ensure_ascii=False), text) <= tokens
            assert found["memories"], text
            seen += [each["id"] for each in found["memories"]]
            cursor = found["next_cursor"]
            if not cursor:
                break
        assert len(seen) == len(set(seen)) == 30

    with_served(served, work)


def test_a_long_memory_is_read_piece_by_piece(served: ServedStore) -> None:
    long = "".join(f"sentence {number}. " for number in range(3_000))

    async def work(talk: Talk) -> None:
        memory_id = (await talk.call("add_memory", content=long))["memory_id"]
        [found] = (await talk.call("search_memories", query="sentence"))["memories"]
        assert found["cut"]
        read, offset = "", 0
        while True:
            piece, text = await talk.both("get_memory", memory_id=memory_id, offset=offset)
            assert tokens_of(json.dumps(piece, ensure_ascii=False), text) <= 4_000
            read += piece["memory"]["text"]
            offset = piece["next_offset"]
            if not offset:
                break
        assert read == long

    with_served(served, work)


def test_filters_and_the_past(served: ServedStore) -> None:
    async def work(talk: Talk) -> None:
        await talk.call(
            "add_memory", content="Tea is green", tags=["drink"], category="taste", confidence=0.9
        )
        first = (await talk.call("verify"))["last_seq"]
        second = await talk.call("add_memory", content="Tea is black", tags=["drink", "dark"])

        async def texts(**more: object) -> list[str]:
            found = await talk.call("search_memories", query="tea", **more)
            return sorted(each["text"] for each in found["memories"])

        assert await texts(tags=["dark"]) == ["Tea is black"]
        assert await texts(min_confidence=0.8) == ["Tea is green"]
        assert await texts(where={"data.category": "taste"}) == ["Tea is green"]
        assert await texts(where=json.dumps({"data.category": "taste"})) == ["Tea is green"]
        assert await texts(kinds=["fact"]) == []
        assert await texts(since="2000-01-01") == ["Tea is black", "Tea is green"]
        assert await texts(until="2000-01-01T00:00:00Z") == []
        assert await texts(as_of=str(first)) == ["Tea is green"]
        await talk.call("retract_memory", memory_id=second["memory_id"], reason="it was coffee")
        assert await texts() == ["Tea is green"]
        assert await texts(status="any") == ["Tea is black", "Tea is green"]
        then = await talk.call("get_memory", memory_id=second["memory_id"], as_of=str(first + 8))
        assert then["memory"]["status"] == "active"
        assert "there was no memory" in await talk.refusal(
            "get_memory", memory_id=second["memory_id"], as_of=str(first)
        )

    with_served(served, work)


def test_an_empty_answer_names_the_scope_and_says_if_nobody_wrote_for_it(served: ServedStore) -> None:
    async def nothing(talk: Talk) -> tuple[dict[str, object], str]:
        return await talk.both("search_memories", query="tea")

    found, text = with_served(served, nothing)
    assert found["notes"] == ["nothing was ever written for user=ann"]
    assert ", user=ann: nothing found" in text
    Memory(served.store, user="ann").remember("Coffee")
    [note] = with_served(served, nothing)[0]["notes"]
    assert "no memory matched" in note


def test_scopes_are_apart_and_what_is_shared_is_read_only(served: ServedStore) -> None:
    shared, bob = ServedStore(served.store, Scope()), ServedStore(served.store, Scope(user="bob"))

    async def add(talk: Talk) -> str:
        return str((await talk.call("add_memory", content="Tea at four"))["memory_id"])

    for_all, of_ann = with_served(shared, add), with_served(served, add)
    assert for_all != of_ann

    async def look(talk: Talk) -> None:
        found = (await talk.call("search_memories", query="tea"))["memories"]
        assert [each["id"] for each in found] == [for_all]
        assert "no memory" in await talk.refusal("get_memory", memory_id=of_ann)
        assert "no memory" in await talk.refusal("history", memory_id=of_ann)
        refused = await talk.refusal("retract_memory", memory_id=for_all, reason="mine")
        assert "not of this scope" in refused or "wider" in refused or "scope" in refused
        assert "no such argument" in await talk.refusal("search_memories", query="tea", user="ann")

    with_served(bob, look)


def test_a_server_that_only_reads_writes_nothing(served: ServedStore) -> None:
    reader = ServedStore(served.store, Scope(), read_only=True)

    async def work(talk: Talk) -> str:
        assert (await talk.call("search_memories", query="tea"))["memories"] == []
        return await talk.refusal("add_memory", content="x")

    assert "only reads" in with_served(reader, work)
    assert not (served.store.project_root / ".chronomemory" / "events.wal").exists()


@pytest.mark.damaged_before_opening
def test_damage_is_told_with_every_answer(served: ServedStore) -> None:
    with Memory(served.store.project_root, user="ann") as memory:
        memory.remember("Tea at four")
        memory.remember("Coffee at five")
    served.store.close()
    log = served.store.project_root / ".chronomemory" / "events.wal"
    log.write_bytes(log.read_bytes().replace(b"Tea at four", b"Tea at five"))
    with pytest.warns(RuntimeWarning, match="damage"):
        damaged = ChronoStore(served.store.project_root).open()
    with damaged:

        async def work(talk: Talk) -> tuple[dict[str, object], dict[str, object]]:
            return await talk.call("search_memories", query="coffee"), await talk.call("verify")

        found, verdict = with_served(ServedStore(damaged, Scope(user="ann")), work)
        assert "damage in" in str(found["notes"])
        assert verdict["valid"] is False
        assert "repair" in str(verdict["advice"])
        assert verdict["damage"]
