"""An act comes to the records that many events came to, live and in every replay."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import step_by_step
from chronomemory import ChronoStore
from chronomemory.blocks import Memory, OutcomeResult, open_blocks, sync
from chronomemory.face.batch import Connection
from chronomemory.record import ChronoRecord
from hypothesis import given, settings
from hypothesis import strategies as st
from living import Time
from shares import share

#: More than a frame links, and with names that have to be escaped in the name of a link.
IDS = [f"{'%:x'[number % 3]}{number:02}" for number in range(26)]
SESSIONS = ["one", "two", "three", "four", "five"]
ACTS = Path(__file__).parent / "data" / "acts"
MEMORY_FOLDER = "/dev/shm" if Path("/dev/shm").is_dir() else None


class StepByStep(Memory):
    """A memory that writes an event for each record that it changes."""

    def _reinforce(self, conn: Connection, shown: list[list[str]], frame: str = "") -> int:
        step_by_step.shown(conn, shown[0], self._session, self._clock.tick(conn))
        return conn.events()

    def outcome(
        self, block_ids: Sequence[str], signal: float, weight: float = 1.0, *, source: str = ""
    ) -> OutcomeResult:
        def tell(conn: Connection) -> dict[str, float]:
            if not any(is_active(conn, block_id) for block_id in block_ids):
                return {}
            hours = self._clock.tick(conn)
            return step_by_step.outcome(conn, block_ids, signal, weight, source=source, hours=hours)

        heard = self._write(tell)
        return OutcomeResult(heard, tuple(name for name in dict.fromkeys(block_ids) if name not in heard))


def is_active(conn: Connection, block_id: str) -> bool:
    found = sync.get_block(conn, block_id)
    return found is not None and found["status"] == "active"


def told(record: ChronoRecord) -> dict[str, Any]:
    """What a record says, without the moment of writing and the list that only acts keep."""
    said = record.to_dict()
    for name in ("created_at", "forming"):
        said["data"].pop(name, None)
    return said


def records(store: ChronoStore) -> list[dict[str, Any]]:
    kinds = ("block", "bedge", "config", "session")
    return [told(record) for kind in kinds for record in store.engine.query(kind=kind, status=None)]


def exactly(store: Any) -> list[dict[str, Any]]:
    return [
        record.to_dict()
        for kind in ("block", "bedge", "config")
        for record in store.query(kind=kind, status=None)
    ]


def settle(memory: Memory, ids: Sequence[str] = IDS) -> None:
    with memory.blocks.begin() as conn:
        for number, name in enumerate(ids):
            sync.insert_block(
                conn,
                block_id=name,
                content=f"Block {name}",
                category="knowledge",
                source="t",
                status=["active", "active", "active", "inbox"][number % 4] if number > 20 else "active",
                confidence=(number % 9 + 1) / 10,
            )
        sync.add_tags(conn, ids[3], ["self/constitutional"])


# Each of these does one thing to a memory.


def show(ids: list[str], session: str | None, hours: float) -> Callable[[Memory, Time], None]:
    def act(memory: Memory, time: Time) -> None:
        memory._session = session
        memory._clock.start()
        time.pass_hours(hours)
        memory._write(lambda conn: memory._reinforce(conn, [ids]))
        memory._session = None

    return act


def tell(ids: list[str], signal: float, weight: float, source: str) -> Callable[[Memory, Time], None]:
    def act(memory: Memory, time: Time) -> None:
        memory.outcome(ids, signal, weight, source=source)

    return act


def move(block_id: str, status: str) -> Callable[[Memory, Time], None]:
    def act(memory: Memory, time: Time) -> None:
        with memory.blocks.begin() as conn:
            sync.update_block_status(conn, block_id, status)

    return act


def curate(hours: float) -> Callable[[Memory, Time], None]:
    def act(memory: Memory, time: Time) -> None:
        memory._clock.start()
        time.pass_hours(hours)
        memory.curate()

    return act


def part(one: str, other: str) -> Callable[[Memory, Time], None]:
    return lambda memory, time: memory.disconnect(one, other) and None


def some(most: int) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(IDS), min_size=1, max_size=most, unique=True)


hours = st.sampled_from([0.0, 0.0005, 0.1, 3.25])
acts = st.one_of(
    st.builds(show, some(26), st.sampled_from([*SESSIONS, None]), hours),
    st.builds(show, some(5), st.sampled_from(SESSIONS), hours),
    st.builds(
        tell,
        some(24),
        st.floats(0.0, 1.0),
        st.floats(0.001, 1e6),
        st.sampled_from(["", "tests passed"]),
    ),
    st.builds(move, st.sampled_from(IDS), st.sampled_from(["active", "archived", "inbox"])),
    st.builds(curate, st.sampled_from([0.0, 20.0, 210.0])),
    st.builds(part, st.sampled_from(IDS[:5]), st.sampled_from(IDS[5:9])),
)


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="acts-", dir=MEMORY_FOLDER) as made:
        yield Path(made)


def opened(kind: type[Memory], root: Path, time: Time) -> Memory:
    return kind(open_blocks(root, durability="off", head_file=root / "head"), seconds=time)


def found(memory: Memory) -> list[tuple[float, float, str]]:
    """What is recalled, best first: by steps links come in another order, and sums differ in the last bit."""
    best = memory.recall("block", top_k=40)
    rounded = [(-round(block.score, 9), round(block.centrality, 9), block.id) for block in best]
    return sorted(rounded)[:5]


class TestARule:
    @settings(max_examples=share(15, 300), deadline=None)
    @given(st.lists(acts, max_size=25))
    def test_comes_to_what_many_events_came_to(self, life: list[Callable[[Memory, Time], None]]) -> None:
        with tempfile.TemporaryDirectory(prefix="acts-", dir=MEMORY_FOLDER) as made:
            times, root = (Time(), Time()), Path(made)
            with (
                opened(Memory, root / "acts", times[0]) as memory,
                opened(StepByStep, root / "steps", times[1]) as model,
            ):
                settle(memory)
                settle(model)
                for step in life:
                    step(memory, times[0])
                    step(model, times[1])
                    assert records(memory.blocks.store) == records(model.blocks.store)
                assert found(memory) == found(model)

    def test_makes_room_as_it_was_made(self, folder: Path) -> None:
        """Session after session of other blocks: what was seen least, and longest ago, gives way."""
        times = (Time(), Time())
        ids = [f"{number:03}" for number in range(60)]
        with (
            opened(Memory, folder / "acts", times[0]) as memory,
            opened(StepByStep, folder / "steps", times[1]) as model,
        ):
            settle(memory, ids)
            settle(model, ids)
            for number in range(33):
                first = 1 + number % 11 * 5
                shown = [ids[0], *ids[first : first + 7]]
                for one, time in zip((memory, model), times, strict=True):
                    show(shown, f"session {number}", 0.1)(one, time)
                assert records(memory.blocks.store) == records(model.blocks.store)
                if number == 10:
                    listed = memory.blocks.store.engine.get("block:000").data["forming"]
                    assert len(listed) == step_by_step.MOST_OF_A_BLOCK
            assert memory.status().edges > 0

    def test_hears_of_an_outcome_as_before(self, folder: Path) -> None:
        times = (Time(), Time())
        with (
            opened(Memory, folder / "acts", times[0]) as memory,
            opened(StepByStep, folder / "steps", times[1]) as model,
        ):
            for one in (memory, model):
                settle(one)
                one.forget(IDS[2])
            asked = [*IDS[:5], "nobody", IDS[0]]
            for signal, source in ((1.0, "a"), (0.1, ""), (0.7, "b"), (0.0, "c")):
                heard = memory.outcome(asked, signal, 2.5, source=source)
                assert heard == model.outcome(asked, signal, 2.5, source=source)
                assert heard.unknown == (IDS[2], "nobody")


class TestAReplay:
    @settings(max_examples=share(5, 100), deadline=None)
    @given(st.lists(acts, max_size=15))
    def test_is_equal_to_the_live_system(self, life: list[Callable[[Memory, Time], None]]) -> None:
        with tempfile.TemporaryDirectory(prefix="acts-", dir=MEMORY_FOLDER) as made:
            time, root = Time(), Path(made)
            moments: dict[int, list[dict[str, Any]]] = {}
            with opened(Memory, root, time) as memory:
                settle(memory)
                for step in life:
                    step(memory, time)
                    store = memory.blocks.store
                    moments[store.wal_seq()] = exactly(store.engine)
                live, known = exactly(store.engine) if life else [], list(moments)
                histories = {name: history(store, name) for name in names(store)} if life else {}
            if not life:
                return

            def look(store: ChronoStore) -> None:
                assert exactly(store.engine) == live
                assert {name: history(store, name) for name in histories} == histories
                for seq in known:
                    assert exactly(store.engine.as_of(seq)) == moments[seq]

            with ChronoStore(root, head_file=root / "head") as store:
                look(store)
                assert store.verify().valid
            for snapshot in root.rglob("snapshot.json"):
                snapshot.unlink()
            with ChronoStore(root, head_file=root / "head") as store:
                look(store)
                store.compact()
                look(store)
            with ChronoStore(root, head_file=root / "head") as store:
                look(store)
                assert store.verify().valid


def names(store: ChronoStore) -> list[str]:
    return [
        record.id
        for kind in ("block", "bedge", "config")
        for record in store.engine.query(kind=kind, status=None)
    ]


def history(store: ChronoStore, name: str) -> list[int]:
    return [event.seq for event in store.history(name)]


class TestWhatItCosts:
    def test_a_showing_and_its_outcome_are_two_short_events(self, folder: Path) -> None:
        time = Time()
        with opened(Memory, folder, time) as memory:
            for number in range(5):
                memory.remember(f"Fresh fact number {number} of {number * 17}")
            with memory.session():
                time.pass_hours(0.5)
                store = memory.blocks.store
                before = store.wal_seq()
                shown = memory.frame("attention", top_k=5)
                assert len(shown.blocks) == 5
                memory.outcome([block.id for block in shown.blocks], 1.0, source="tests passed")
                written = store.replay(from_seq=before + 1)
                assert [event.op for event in written] == ["act", "act"]
                assert sum(len(event.to_json_line()) + 1 for event in written) <= 2000
                assert memory.status().edges == 10

    def test_a_frame_is_written_without_a_begin(self, folder: Path) -> None:
        with opened(Memory, folder, Time()) as memory:
            memory.remember("Tea is warm")
            memory.remember("Ice is cold")
            seq = memory.blocks.store.wal_seq()
            memory.frame("attention")
            (event,) = memory.blocks.store.replay(from_seq=seq + 1)
            assert (event.op, event.record_id) == ("act", "act:blocks")
            assert set(event.record) == {"act", "at", "frame", "ids"}
            assert event.record["frame"] == "attention"


def test_a_rule_stays_as_it_was_released(tmp_path: Path) -> None:
    """The log in ``data/acts`` and what it came to when the rules were new: all else is another rule."""
    (tmp_path / ".chronomemory").mkdir()
    shutil.copy(ACTS / "events.wal", tmp_path / ".chronomemory")
    wanted = [json.loads(line) for line in (ACTS / "expected.ndjson").read_text("utf-8").splitlines()]
    with ChronoStore(tmp_path, head_file=tmp_path / "head") as store:
        found = exactly(store.engine)
        assert [{name: record[name] for name in wanted[0]} for record in found] == wanted
        assert {event.record["act"] for event in store.replay() if event.op == "act"} == {
            "shown/1",
            "outcome/1",
        }
    assert {record["status"] for record in wanted} >= {"active", "archived", "forming", "tombstone"}
