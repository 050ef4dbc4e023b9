"""What one scope holds changes no answer in another: blocks, links, frames, kept frames and clocks.

Random memories of several scopes learn, consolidate, show, hear, link, edit, forget and let time pass. Then
only the steps of those are taken again, in another store, whose blocks one of them sees; what every step
answered, and all that can be asked in the end, is the same to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoStore, Scope
from chronomemory.blocks import Frame, Memory, ScoringWeights, sync
from chronomemory.errors import ChronoError, OutOfScope
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from living import REFERENCE_RULES
from scopes_seen import Names, seen
from shares import share

#: Who sees one of these sees all that it sees: so its steps can be taken again without the others.
SCOPES: list[Names] = [
    {},
    {"user": "ann"},
    {"user": "ann", "session": "s1"},
    {"user": "bob"},
    {"agent": "sup"},
]
WORDS = ("green", "tea", "river", "stone", "lamp", "music")
TAGS = ("self/value", "work", "self/constitutional")

actors = st.sampled_from(range(len(SCOPES)))
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
asked = st.sampled_from([None, "tea", "green river"])
places = st.integers(0, 5)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("learn"), actors, texts, st.sampled_from(TAGS)),
        st.tuples(st.just("remember"), actors, texts, st.sampled_from(TAGS)),
        st.tuples(st.just("remember"), actors, texts, st.sampled_from(TAGS)),
        st.tuples(st.just("frame"), actors, st.sampled_from(["attention", "self", "mine"]), asked),
        # Kept frames are given out again while others write.
        st.tuples(st.just("look"), actors),
        st.tuples(st.just("outcome"), actors, places, places, st.sampled_from([0.0, 0.3, 1.0])),
        st.tuples(st.just("connect"), actors, places, places),
        st.tuples(st.just("edit"), actors, places, texts),
        st.tuples(st.just("forget"), actors, places),
        st.tuples(st.just("pass"), actors, st.integers(1, 400)),
        st.tuples(st.just("curate"), actors),
        st.tuples(st.just("define"), actors, st.integers(1, 9)),
        st.tuples(st.just("compact")),
    ),
    min_size=6,
    max_size=40,
)


@dataclass
class World:
    """A store and a memory of each scope in it, each with its own hands of a clock."""

    project: Path
    seconds: list[float] = field(default_factory=lambda: [0.0] * len(SCOPES))

    def __post_init__(self) -> None:
        self.store = ChronoStore(self.project, durability="off")
        self.memories = [self._memory(number) for number in range(len(SCOPES))]
        # An embedding that all see: spaces and their models belong to the store.
        self.memories[0].remember("a seed", ["seed"])

    def _memory(self, number: int) -> Memory:
        return Memory(self.store, **REFERENCE_RULES, seconds=lambda: self.seconds[number], **SCOPES[number])  # type: ignore[arg-type]

    def __enter__(self) -> World:
        return self

    def __exit__(self, *_: object) -> None:
        self.store.close()

    def take(self, step: tuple[Any, ...]) -> Any:
        """Take a step and return what it answered; a refusal is an answer."""
        verb, *rest = step
        if verb == "compact":
            self.store.compact(keep_history=True)
            return None
        number, *said = rest
        memory = self.memories[number]
        try:
            return getattr(self, f"_{verb}")(memory, number, *said)
        except ChronoError as refused:
            return type(refused).__name__, str(refused)

    def _learn(self, memory: Memory, _: int, text: str, tag: str) -> Any:
        return memory.learn(text, [tag]).to_dict()

    def _remember(self, memory: Memory, _: int, text: str, tag: str) -> Any:
        return memory.remember(text, [tag]).to_dict(), memory.last_learned_block_id

    def _frame(self, memory: Memory, _: int, name: str, text: str | None) -> Any:
        with memory.session():
            first, again = memory.frame(name, text), memory.frame(name, text)
        return shown(first), shown(again), first.cached, again.cached, first.text

    def _look(self, memory: Memory, _: int) -> Any:
        found = memory.frame("self")
        return shown(found), found.cached

    def _outcome(self, memory: Memory, _: int, one: int, other: int, signal: float) -> Any:
        return memory.outcome(some(memory, one, other), signal).to_dict()

    def _connect(self, memory: Memory, _: int, one: int, other: int) -> Any:
        ids = some(memory, one, other)
        return memory.connect(*ids).to_dict() if len(ids) == 2 else None

    def _edit(self, memory: Memory, _: int, one: int, text: str) -> Any:
        return [memory.edit(block_id, text).to_dict() for block_id in some(memory, one)]

    def _forget(self, memory: Memory, _: int, one: int) -> Any:
        return [memory.forget(block_id).to_dict() for block_id in some(memory, one)]

    def _pass(self, memory: Memory, number: int, hours: int) -> Any:
        with memory.session():
            self.seconds[number] += 3600.0 * hours
        return memory.status().active_hours.hex()

    def _curate(self, memory: Memory, _: int) -> Any:
        return memory.dream().to_dict()

    def _define(self, memory: Memory, _: int, k: int) -> Any:
        weights = ScoringWeights(
            similarity=0.4, confidence=0.2, recency=0.2, centrality=0.1, reinforcement=0.1
        )
        memory.define_frame(Frame(name="mine", weights=weights, template=f"## {k}\n{{blocks}}"))
        with memory.blocks.begin() as conn:
            sync.set_config(conn, "top_k", str(k))
        return None


def some(memory: Memory, *places: int) -> list[str]:
    """Return the ids of blocks by their places, each once."""
    blocks = memory.list(status=None)
    return list(dict.fromkeys(blocks[place % len(blocks)]["id"] for place in places)) if blocks else []


def shown(result: Any) -> Any:
    blocks = [(block.id, block.score.hex(), tuple(map(repr, block.components))) for block in result.blocks]
    return blocks, result.guaranteed, [(one.id, one.reason) for one in result.dropped], result.warnings


def answers(memory: Memory) -> dict[str, Any]:
    """Return all that can be asked without writing anything; moments are left out."""
    told: dict[str, Any] = {"ls": [without_moments(block.to_dict()) for block in memory.list(status=None)]}
    status = memory.status().to_dict()
    told["status"] = {name: value for name, value in status.items() if name != "session"}
    for query in (None, "tea", "green river", "stone lamp music tea"):
        for options in ({}, {"top_k": 20}, {"tags": ["self/%"]}, {"window": 100.0}, {"diversify": True}):
            found = memory.recall(query, **options)
            told[f"{query} {options}"] = [
                (one.id, one.score.hex(), tuple(map(repr, one.components)), one.was_expanded) for one in found
            ]
    with memory.blocks.connect() as conn:
        ids = [block["id"] for block in told["ls"]]
        told["degrees"] = {name: value.hex() for name, value in sync.get_weighted_degree(conn, ids).items()}
        told["edges"] = [without_moments(edge) for one in ids for edge in sync.get_edges_for_block(conn, one)]
        told["frames"] = [without_moments(frame) for frame in sync.list_frames(conn)]
        told["top_k"] = sync.get_config(conn, "top_k")
    return told


def without_moments(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in row.items()
        if name not in ("created_at", "updated_at", "time", "last_session_id")
    }


def is_seen(step: tuple[Any, ...], names: Names) -> bool:
    return step[0] == "compact" or seen(SCOPES[step[1]], names) is not None


def test_the_first_record_of_somebody_else_lets_a_kept_frame_be(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        assert world.take(("look", 0)) == (([], (), [], ()), False)
        world.take(("remember", 1, "green", "self/value"))
        assert world.take(("look", 0)) == (([], (), [], ()), True)


def test_a_link_of_two_other_sessions_is_nothing_to_curate(tmp_path: Path) -> None:
    with (
        Memory(tmp_path, user="ann") as ann,
        Memory(tmp_path, user="ann", session="s1") as one,
        Memory(tmp_path, user="ann", session="s2") as other,
        Memory(tmp_path, user="ann", session="s3") as third,
    ):
        green = one.remember("green tea in the morning").block_id
        black = other.remember("black tea at night").block_id
        with ann.session("x"):
            # As it was said before events told scopes apart.
            ann._write(lambda conn: ann._reinforce(conn, [[green, black]]))
        assert ann.status().forming == 1
        assert third.curate().forming_pruned == 0
        assert ann.status().forming == 1


@settings(max_examples=share(5, 100), deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=steps)
def test_a_memory_without_the_others_answers_alike(
    steps: list[tuple[Any, ...]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    with World(tmp_path_factory.mktemp("all")) as world:
        told = [world.take(step) for step in steps]
        for number, names in enumerate(SCOPES):
            with World(tmp_path_factory.mktemp("alone")) as alone:
                for step, answer in zip(steps, told, strict=True):
                    if is_seen(step, names):
                        assert alone.take(step) == answer, (names, step)
                assert answers(alone.memories[number]) == answers(world.memories[number]), names


class TestFrictions:
    """The first two of what a new user met, as it was met."""

    def test_users_do_not_see_each_other(self, tmp_path: Path) -> None:
        with ChronoStore(tmp_path, durability="off") as store:
            memories = [Memory(store, user=f"u{number}") for number in range(40)]
            for number, memory in enumerate(memories):
                for thing in range(5):
                    memory.learn(f"User {number} says thing {thing} number {number * 7 + thing}")
                memory.consolidate()
            for number, memory in enumerate(memories):
                found = memory.recall("what thing?", top_k=100)
                assert found
                assert all(block.content.startswith(f"User {number} ") for block in found)

    def test_the_same_sentence_is_anyones(self, tmp_path: Path) -> None:
        with Memory(tmp_path, user="alice") as alice, Memory(tmp_path, user="bob") as bob:
            one, other = alice.remember("Likes green tea"), bob.remember("Likes green tea")
            assert (one.status, other.status) == ("created", "created")
            assert one.block_id != other.block_id
            assert [block.id for block in bob.recall("tea")] == [other.block_id]
            assert bob.remember(" Likes green tea").status == "duplicate_rejected"


class TestWhatIsSeenAlone:
    """Each of these would be other if it went by the whole store."""

    def test_a_kept_frame_is_good_until_something_changes_that_is_seen(self, tmp_path: Path) -> None:
        with ChronoStore(tmp_path, durability="off") as store:
            shared, ann, bob = (Memory(store, **names) for names in ({}, {"user": "ann"}, {"user": "bob"}))
            ann.remember("Be brief", ["self/value"])
            assert not ann.frame("self").cached
            bob.remember("Be long", ["self/value"])
            assert ann.frame("self").cached
            bob.frame("self")
            assert ann.frame("self").cached
            shared.remember("Be kind", ["self/value"])
            told = ann.frame("self")
            assert not told.cached
            assert "Be kind" in told.text
            assert "Be long" not in told.text

    def test_hours_pass_for_those_who_are_at_work(self, tmp_path: Path) -> None:
        hours = 0.0
        with ChronoStore(tmp_path, durability="off") as store:
            shared = Memory(store)
            ann = Memory(store, user="ann", seconds=lambda: hours * 3600)
            bob, later = Memory(store, user="bob"), Memory(store, user="ann", session="s")
            for memory in (shared, ann, bob):
                memory.remember("Tea is green")
            with ann.session():
                hours = 100.0
            fresh = {block.scope: block.recency for block in ann.recall("tea")}
            assert fresh.keys() == {Scope(), Scope(user="ann")}
            assert fresh[Scope()] == shared.recall("tea")[0].recency == 1.0
            assert fresh[Scope(user="ann")] < 1.0
            assert {block.recency for block in bob.recall("tea")} == {1.0}
            assert (ann.status().active_hours, bob.status().active_hours, later.status().active_hours) == (
                100.0,
                0.0,
                100.0,
            )

    def test_what_is_shared_does_not_follow_who_uses_it(self, tmp_path: Path) -> None:
        with ChronoStore(tmp_path, durability="off") as store:
            shared, ann = Memory(store), Memory(store, user="ann")
            block_id = shared.remember("Tea is green").block_id
            before = store.get(f"block:{block_id}")
            for _ in range(3):
                ann.frame("attention", "tea")
                assert ann.outcome([block_id], 1.0).wider == (block_id,)
            assert store.get(f"block:{block_id}") == before

    def test_settings_and_frames_of_ones_own_come_first(self, tmp_path: Path) -> None:
        with ChronoStore(tmp_path, durability="off") as store:
            shared, ann = Memory(store), Memory(store, user="ann")
            for number in range(8):
                shared.learn(f"Tea number {number} is green and {number * 13}")
            shared.consolidate()
            for memory, value in ((shared, "3"), (ann, "2")):
                with memory.blocks.begin() as conn:
                    sync.set_config(conn, "top_k", value)
            assert (len(shared.recall("tea")), len(ann.recall("tea"))) == (3, 2)
            now = Memory(store, user="ann", session="s")
            assert len(now.recall("tea")) == 2
            with pytest.raises(ValueError, match="digits of a scope"), ann.blocks.begin() as conn:
                sync.set_config(conn, f"{'0' * 16}:top_k", "2")

    def test_two_shared_blocks_are_not_ones_own_to_join(self, tmp_path: Path) -> None:
        with ChronoStore(tmp_path, durability="off") as store:
            shared, ann = Memory(store), Memory(store, user="ann")
            one, other = (shared.remember(text).block_id for text in ("Tea is green", "Rain falls in May"))
            own = ann.remember("Ann walks to work").block_id
            with pytest.raises(OutOfScope):
                ann.connect(one, other)
            assert ann.connect(one, own)
            assert shared.status().edges == 0
            assert ann.status().edges == 1
            shared.connect(one, other)
            assert ann.status().edges == 2
