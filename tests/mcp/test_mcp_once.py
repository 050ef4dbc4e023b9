"""A repeated write answers with the first result, whoever repeats it and whatever came in between."""

from __future__ import annotations

import asyncio
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Literal

import pytest
from assistants import ERAS, Talk, with_served
from chronomemory import ChronoStore, Scope
from chronomemory.errors import InvalidArgument
from chronomemory.mcp import remembering
from chronomemory.mcp.served_store import ServedStore
from chronomemory.mcp.server import make_server
from mcp import Client

MORE: dict[str, Any] = {"tags": ["a"], "category": "knowledge", "source": "user", "confidence": 0.5}


def first_of(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer, without whether it was said before."""
    return {name: value for name, value in answer.items() if name != "repeated"}


@pytest.mark.parametrize("mode", ERAS)
def test_a_repeated_call_writes_nothing_and_answers_the_same(served: ServedStore, mode: str) -> None:
    async def work(talk: Talk) -> None:
        async def twice(tool: str, **arguments: Any) -> dict[str, Any]:
            told = await talk.call(tool, **arguments)
            before = served.store.wal_seq()
            again = await talk.call(tool, **arguments)
            assert served.store.wal_seq() == before
            assert (told["repeated"], again["repeated"]) == (False, True)
            assert first_of(told) == first_of(again)
            return told

        added = await twice("add_memory", content="Tea at four", operation_id="a")
        known = await twice("add_memory", content=" Tea at four", operation_id="b")
        assert known["outcome"] == "known already"
        other = await twice(
            "supersede_memory", memory_id=added["memory_id"], content="Tea at five", operation_id="c"
        )
        await twice("retract_memory", memory_id=other["memory_id"], reason="coffee", operation_id="d")
        # Also once something else has become of it.
        again = await talk.call("add_memory", content="Tea at four", operation_id="a")
        assert (again["outcome"], again["repeated"]) == ("added", True)
        assert (await talk.call("search_memories", query="tea"))["memories"] == []

    with_served(served, work, mode)


def test_an_operation_id_stands_for_one_call(served: ServedStore) -> None:
    door, digits = served.door, served.scope.digits
    door.upsert({"id": f"FACT@{digits}", "label": "Water is wet"})
    remembering.add(served, "Tea", operation_id="a", **MORE)
    before = served.store.wal_seq()
    for work in (
        lambda: remembering.add(served, "Coffee", operation_id="a", **MORE),
        lambda: remembering.retract(served, f"FACT@{digits}", reason="r", operation_id="a"),
        lambda: remembering.supersede_with(
            served, f"FACT@{digits}", "Ice is hard", reason="", source="user", operation_id="a"
        ),
    ):
        with pytest.raises(InvalidArgument, match="used for another call, of add_memory"):
            work()
    assert served.store.wal_seq() == before
    # In another scope it is another operation.
    bob = ServedStore(served.store, Scope(user="bob"))
    assert remembering.add(bob, "Coffee", operation_id="a", **MORE)["repeated"] is False


def test_of_two_different_calls_under_one_id_one_is_written(served: ServedStore) -> None:
    """One is about a block, the other about a plain record, so that they are batches of two faces."""
    digits = served.scope.digits
    for number in range(20):
        fact = f"FACT-{number}@{digits}"
        served.door.upsert({"id": fact, "label": "Water is wet"})
        start = threading.Barrier(2)
        stores = [ChronoStore(served.store.project_root, own_engine=True).open() for _ in range(2)]

        def add(store: ChronoStore, name: str = f"op {number}", start: threading.Barrier = start) -> None:
            start.wait()
            remembering.add(ServedStore(store, served.scope), f"Tea {name}", operation_id=name, **MORE)

        def retract(
            store: ChronoStore, name: str = f"op {number}", start: threading.Barrier = start, fact: str = fact
        ) -> None:
            start.wait()
            remembering.retract(ServedStore(store, served.scope), fact, reason="wrong", operation_id=name)

        with ThreadPoolExecutor(2) as pool:
            done = [pool.submit(add, stores[0]), pool.submit(retract, stores[1])]
            failed = [each.exception() for each in done]
        for store in stores:
            store.close()
        assert [type(error) for error in failed if error is not None] == [InvalidArgument]
        withdrawn = served.door.get(fact)
        assert withdrawn is not None
        added = [
            hit
            for hit in served.door.search(f"Tea op {number}")
            if f"op {number}" == hit.record.data["content"][4:]
        ]
        assert (withdrawn.status == "invalidated") != bool(added)


def test_it_outlives_the_process_and_a_compaction(served: ServedStore) -> None:
    told = remembering.add(served, "Tea at four", operation_id="a", **MORE)
    served.store.compact(keep_history=False)
    served.store.close()
    with ChronoStore(served.store.project_root) as store:
        again = remembering.add(ServedStore(store, served.scope), "Tea at four", operation_id="a", **MORE)
    assert again == {**told, "repeated": True}


@pytest.mark.parametrize("history", ["redact", "drop"])
def test_it_goes_with_what_it_wrote(served: ServedStore, history: Literal["redact", "drop"]) -> None:
    first = remembering.add(served, "Tea at four", operation_id="a", **MORE)["memory_id"]
    second = remembering.add(served, "Cake at five", operation_id="b", **MORE)["memory_id"]
    more = {"reason": "", "source": "", "operation_id": "c"}
    third = remembering.supersede_with(served, second, "Cake at six", **more)["memory_id"]
    served.store.erase(ids=[first], reason="asked for", history=history)
    assert first[6:] not in str([record.to_dict() for record in served.store.everyone().query(faces=True)])
    # Of another call nothing is forgotten: it is known, and answers.
    again = remembering.supersede_with(served, second, "Cake at six", **more)
    assert (again["memory_id"], again["repeated"]) == (third, True)
    assert remembering.add(served, "Tea at four", operation_id="a", **MORE)["repeated"] is False


def test_of_many_at_once_one_writes(served: ServedStore) -> None:
    """Eight stores of their own, as eight processes would be, repeat one call at the same moment."""
    stores = [ChronoStore(served.store.project_root, own_engine=True).open() for _ in range(8)]
    start = threading.Barrier(8)
    seen: dict[str, list[dict[str, Any]]] = {}
    first = remembering.add(served, "Old", operation_id="", **MORE)["memory_id"]
    digits = served.scope.digits
    served.door.upsert({"id": f"FACT@{digits}", "label": "Water is wet"})

    def repeat(store: ChronoStore) -> None:
        mine = ServedStore(store, served.scope)
        start.wait()
        told = remembering.add(mine, "Tea at four", operation_id="a", **MORE)
        seen.setdefault("add", []).append(told)
        told = remembering.supersede_with(
            mine, first, "New", reason="it changed", source="user", operation_id="b"
        )
        seen.setdefault("supersede", []).append(told)
        told = remembering.retract(mine, f"FACT@{digits}", reason="wrong", operation_id="c")
        seen.setdefault("retract", []).append(told)

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(repeat, store) for store in stores]:
            done.result()
    for store in stores:
        store.close()
    for name, answers in seen.items():
        assert sorted(each["repeated"] for each in answers) == [False, *[True] * 7], name
        assert all(first_of(each) == first_of(answers[0]) for each in answers), name
    assert len(served.door.rollbacks(f"FACT@{digits}")) == 1
    assert sum(event.op == "upsert" for event in served.door.history(seen["add"][0]["memory_id"])) == 1
    assert served.store.verify().valid


@pytest.mark.parametrize("mode", ERAS)
def test_a_call_that_was_given_up_and_repeated_writes_once(served: ServedStore, mode: str) -> None:
    """The thread of a cancelled call finishes: the write is in the log although nobody heard of it."""
    entered, go_on = threading.Event(), threading.Event()
    usual = remembering.add

    def slow(*args: Any, **named: Any) -> Any:
        entered.set()
        go_on.wait(10)
        return usual(*args, **named)

    async def run() -> tuple[dict[str, Any], int]:
        call = {"content": "Tea at four", "operation_id": "a"}
        async with Client(make_server(replace(served, structured=True)), mode=mode) as client:
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(remembering, "add", slow)
                given_up = asyncio.ensure_future(client.call_tool("add_memory", call))
                assert await asyncio.to_thread(entered.wait, 10)
                given_up.cancel()
                go_on.set()
                with pytest.raises(asyncio.CancelledError):
                    await given_up
            again = await Talk(client).call("add_memory", **call)
            found = await Talk(client).call("search_memories", query="tea")
            return again, len(found["memories"])

    again, number = asyncio.run(run())
    assert number == 1
    record = served.door.get(again["memory_id"])
    assert record is not None
    assert sum(event.op == "upsert" for event in served.door.history(record.id)) == 1


def test_an_add_with_an_operation_id_takes_four_engine_calls(served: ServedStore) -> None:
    for number in range(5):
        remembering.add(served, f"Order {number} was shipped", operation_id=f"op {number}", **MORE)
    calls: list[str] = []

    def note(_frame: object, event: str, called: Any) -> None:
        owner = type(getattr(called, "__self__", None))
        # A record that is read for the first time sets its fields: the engine is not called.
        is_ours = event == "c_call" and "chronomemory._core" in (owner.__module__, called.__module__)
        if is_ours and called.__name__ != "unset_attribute":
            calls.append(called.__name__)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        added = remembering.add(served, "Order 77 was shipped", operation_id="op 77", **MORE)
    finally:
        sys.setprofile(before)
    assert added["outcome"] == "added"
    # The digest of the call, and what is kept of its result.
    assert calls == ["canonical_json", "arrival", "canonical_json", "write_unless_changed"]
