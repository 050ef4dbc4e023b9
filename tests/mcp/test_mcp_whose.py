"""A scope that nobody knows is a clear error, and nothing tells of what another scope holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from assistants import ERAS, Talk, process, talk, with_served
from chronomemory import ChronoStore, Memory, Scope
from chronomemory.mcp.served_store import ServedStore

ASKED = (
    "user",
    "user_id",
    "userId",
    "agent",
    "agent_id",
    "session_id",
    "run_id",
    "scope",
    "group_id",
    "store",
)


def test_names_that_nobody_wrote_for_are_refused_on_the_wire(tmp_path: Path) -> None:
    """Started with --must-exist, for a name is misspelled: every call says so, and none begins the scope."""
    with Memory(tmp_path, user="ann") as memory:
        memory.remember("Tea at four")

    async def work(talk: Talk) -> None:
        for tool, asked in (
            ("search_memories", {"query": "tea"}),
            ("add_memory", {"content": "Tea at five"}),
            ("get_memory", {"memory_id": "x"}),
            ("verify", {}),
            ("list_memories", {}),
        ):
            told = await talk.refusal(tool, **asked)
            assert f"nothing was ever written for user=anm in {tmp_path.name}" in told
            assert told.endswith(
                "Check --user, --agent, --session and --project, with which the server was started."
            )
        with pytest.raises(Exception, match="nothing was ever written for user=anm"):
            await talk.client.read_resource("memory://record/x")

    talk(process(tmp_path, "--user", "anm", "--must-exist"), work, "legacy")
    with ChronoStore(tmp_path) as store:
        assert not store.scoped(user="anm").known
        reader = ServedStore(store, Scope(user="ann"), must_exist=True)
        assert with_served(reader, lambda talk: talk.call("search_memories", query="tea"))["memories"]


def test_who_only_reads_cannot_begin_a_scope(served: ServedStore) -> None:
    """Who may write can: a new user's memory is empty, which is a note and no error."""
    bob = ServedStore(served.store, Scope(user="bob"), read_only=True)

    async def look(talk: Talk) -> None:
        assert "nothing was ever written for user=bob" in await talk.refusal("search_memories", query="tea")

    with_served(bob, look)
    Memory(served.store).remember("Tea for all")
    # What is shared is seen by all names, also by those that have nothing of their own.
    assert with_served(bob, lambda talk: talk.call("search_memories", query="tea"))["memories"]

    async def begin(talk: Talk) -> None:
        assert (await talk.call("search_memories", query="coffee"))["notes"]
        told = await talk.refusal("get_memory", memory_id="x")
        assert "Nothing was ever written for user=ann. Check --user" in told
        await talk.call("add_memory", content="Coffee at five")
        assert (await talk.call("search_memories", query="coffee"))["notes"] == []
        assert (await talk.refusal("get_memory", memory_id="x")).endswith("Look the id up with a search.")

    with_served(served, begin)


@pytest.mark.parametrize("mode", ERAS)
def test_no_call_chooses_a_scope(served: ServedStore, mode: str) -> None:
    async def work(talk: Talk) -> None:
        for name in ASKED:
            told = await talk.refusal("search_memories", query="tea", **{name: "bob"})
            assert f"{name}: there is no such argument; whose memories are used was fixed by" in told
            assert "no such argument" in await talk.refusal("add_memory", content="Tea", **{name: "bob"})
        assert "was fixed" not in await talk.refusal("search_memories", query="tea", limt=1)

    with_served(served, work, mode)
    assert served.store.wal_seq() == 0


def test_an_id_of_another_user_is_answered_as_one_that_was_never_there(tmp_path: Path) -> None:
    """Word for word: whether somebody else knows something is nobody's business."""
    with ChronoStore(tmp_path) as store:
        theirs = Memory(store, user="ann").remember("Ann's secret tea").block_id
        plain = f"FACT@{Scope(user='ann').digits}"
        store.scoped(user="ann").upsert({"id": plain, "label": "Ann's plain secret"})
        Memory(store, user="bob").remember("Coffee")

    async def work(talk: Talk) -> None:
        async def said(tool: str, name: str, **more: str) -> str:
            return (await talk.refusal(tool, memory_id=name, **more)).replace(name, "ID")

        async def read(address: str) -> str:
            with pytest.raises(Exception, match="there is no memory") as refused:
                await talk.client.read_resource(address)
            return str(refused.value).replace(address.rpartition("/")[2], "ID")

        for name in (f"block:{theirs}", theirs, plain):
            never = name[:-4] + "0123"
            for tool, more in (
                ("get_memory", {}),
                ("history", {}),
                ("explain", {}),
                ("supersede_memory", {"content": "Mine"}),
                ("retract_memory", {"reason": "Mine"}),
            ):
                assert await said(tool, name, **more) == await said(tool, never, **more)
            assert await said("get_memory", name, as_of="3") == await said("get_memory", never, as_of="3")
            for kind in ("record", "history"):
                assert await read(f"memory://{kind}/{name}") == await read(f"memory://{kind}/{never}")
        for query in ("secret tea", "plain secret"):
            found = await talk.call("search_memories", query=query, status="any", limit=100)
            assert (found["memories"], found["left_out"], found["left_out_is_exact"]) == ([], 0, True)

    talk(process(tmp_path, "--user", "bob"), work)


def test_a_cursor_leads_nowhere_else(served: ServedStore) -> None:
    """One of another scope, of another question, or one that somebody made up."""
    for user in ("ann", "bob"):
        memory = Memory(served.store, user=user)
        for number in range(5):
            memory.remember(f"{user} says {number} about tea")

    async def first(talk: Talk) -> str:
        return str((await talk.call("search_memories", query="tea", limit=2))["next_cursor"])

    of_ann = with_served(served, first)
    bob = ServedStore(served.store, Scope(user="bob"))

    async def work(talk: Talk) -> None:
        own = await first(talk)
        for cursor in (of_ann, own[:-3] + "AAA", own[::-1], "A" * 900, "../..", "\0"):
            told = await talk.refusal("search_memories", query="tea", limit=2, cursor=cursor)
            assert "cursor" in told
            assert "ann" not in told
        assert "cursor" in await talk.refusal("search_memories", query="coffee", limit=2, cursor=own)
        found = await talk.call("search_memories", query="tea", limit=2, cursor=own)
        assert all(each["text"].startswith("bob") for each in found["memories"])

    with_served(bob, work)
