"""Facts do not depend on when a runner ran, its name, or what became of the log in between."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoStore
from chronomemory.episodes import AddDelta, ConsolidationRule, Episode, FactPattern, Facts
from chronomemory.episodes.runner import Runner
from chronomemory.episodes.stores import ChronoFactStore, ChronoMemoryStore
from conversing import START, episode, put, rule
from hypothesis import example, given, settings
from hypothesis import strategies as st

RULES = [rule(name="all", then_emits=["all"]), rule("metadata.predicate = 'x'", name="some")]

#: Where a delta comes from.
PROVENANCE = {"source_episode_ids", "promotion_ts", "rule_id", "confidence"}

subjects = st.sampled_from(["s", 1, 1.0, True, ["s"], {"s": 1}, None])
topics = st.just({"subject": "s", "predicate": "x"}) | st.fixed_dictionaries(
    {}, optional={"subject": subjects, "predicate": st.sampled_from("xy"), "object": st.integers(0, 3)}
)


@st.composite
def conversations(draw: st.DrawFn, *, intents: bool, ahead: bool = True) -> list[Episode]:
    """Turns in the order of their time; an intent names turns of its user, with ``ahead`` also later ones."""
    count = draw(st.integers(1, 9))
    users = [draw(st.sampled_from(["ann", "ann", "bob"])) for _ in range(count)]
    said = []
    for number, user in enumerate(users):
        metadata = dict(draw(topics))
        intent = draw(st.sampled_from(["", "", "update", "delete", "noop"])) if intents else ""
        if intent:
            own = [f"e{other}" for other in range(count if ahead else number + 1) if users[other] == user]
            metadata |= {"intent": intent, "replaces": draw(st.lists(st.sampled_from(own), max_size=2))}
        agent = draw(st.sampled_from(["helper", "helper", "other"]))
        said.append(episode(f"e{number}", user=user, agent=agent, minute=number, **metadata))
    return said


def believed(facts: Facts) -> dict[str, Any]:
    """What is believed, and of which turns; when it was promoted differs."""
    return {
        fact.id: (fact.payload, fact.confidence, [step["source_episode_ids"] for step in fact.lineage])
        for fact in facts.query(FactPattern())
    }


class Place:
    """Episodes and facts, in one store or in two, and runners of any name."""

    def __init__(self, folder: Path, rules: list[ConsolidationRule], *, apart: bool = False) -> None:
        self.store = ChronoStore(folder / "episodes", durability="off")
        self.other = ChronoStore(folder / "facts", durability="off") if apart else self.store
        self.memory, self.kept = ChronoMemoryStore(self.store), ChronoFactStore(self.other)
        self.rules = rules
        self.hours = 0

    def run(self, name: str = "default") -> None:
        self.hours += 1
        now = START + timedelta(hours=self.hours)
        Runner(self.memory, self.kept, self.rules, name=name, clock=lambda: now).run()

    def put(self, *turns: Episode) -> None:
        put(self.memory.episodes, *turns)

    def believed(self) -> dict[str, Any]:
        return believed(self.kept.facts)

    def __enter__(self) -> Place:
        return self

    def __exit__(self, *_: object) -> None:
        self.store.close()
        self.other.close()


def once(folder: Path, rules: list[ConsolidationRule], said: list[Episode]) -> dict[str, Any]:
    """What one run over all makes."""
    with Place(folder, rules) as place:
        place.put(*said)
        place.run()
        return place.believed()


#: What happens after each turn.
between = st.sampled_from(["", "", "run", "run", "compact", "drop", "other"])
#: Two runners take turns, and the one that comes late finds what the other made since.
AHEAD = [
    episode("e0", subject="s", predicate="x"),
    episode("e1", minute=1, subject="s", predicate="x", intent="delete", replaces=["e2"]),
    episode("e2", minute=2, subject="s", predicate="x"),
    episode("e3", minute=3, agent="other", subject="s", predicate="x"),
    episode("e4", minute=4, subject="s", predicate="x"),
    episode("e5", minute=5, subject="s", predicate="x"),
]


@settings(max_examples=15, deadline=None)
@given(said=conversations(intents=True), apart=st.booleans(), after=st.lists(between, min_size=9, max_size=9))
@example(said=AHEAD, apart=False, after=["other", "", "", "run", "", "other"])
@example(said=AHEAD, apart=True, after=["other", "", "", "run", "compact", "other"])
@example(said=AHEAD[:3], apart=False, after=["other", "", "run"])
def test_any_division_into_runs_makes_the_same_facts(
    said: list[Episode], apart: bool, after: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("divided")
    wanted = once(folder / "once", RULES[:1], said)
    with Place(folder / "divided", RULES[:1], apart=apart) as place:
        for turn, step in zip(said, after, strict=False):
            place.put(turn)
            match step:
                case "run":
                    place.run()
                case "other":
                    place.run("other")
                case "compact" | "drop" as how:
                    for store in {place.store, place.other}:
                        store.compact(keep_history=how == "compact")
        for name in ("default", "other", "of another name"):
            place.run(name)
            assert place.believed() == wanted


@settings(max_examples=10, deadline=None)
@given(said=conversations(intents=False), data=st.data())
def test_so_does_any_order_in_which_turns_are_heard(
    said: list[Episode], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("heard")
    wanted = once(folder / "once", RULES[:1], said)
    with Place(folder / "divided", RULES[:1]) as place:
        for turn in data.draw(st.permutations(said)):
            place.put(turn)
            if data.draw(st.booleans()):
                place.run()
        place.run()
        assert {name: told[:2] for name, told in place.believed().items()} == {
            name: told[:2] for name, told in wanted.items()
        }


@settings(max_examples=10, deadline=None)
@given(said=conversations(intents=True, ahead=False), data=st.data())
def test_several_rules_believe_the_same_however_they_are_run(
    said: list[Episode], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("several")
    wanted = once(folder / "once", RULES, said)
    with Place(folder / "divided", RULES) as place:
        for turn in said:
            place.put(turn)
            if data.draw(st.booleans()):
                place.run()
        place.run()
        assert set(place.believed()) == set(wanted)


LIVES = {"subject": "ann", "predicate": "lives in"}
ROME = episode("rome", minute=1, **LIVES, object="Rome")
OSLO = episode("oslo", minute=2, **LIVES, object="Oslo")
BY_HAND = {"rule_id": "hand", "source_episode_ids": [], "promotion_ts": START.isoformat()}
CAT = episode("cat", minute=9, subject="cat", predicate="is", object="black")


def names(place: Place) -> list[str]:
    return sorted(place.believed())


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("name", ["default", "of another name", "who ran before"])
@pytest.mark.parametrize("drop", [False, True])
class TestTurnsThatWereTakenIn:
    """However they are gone through once more, an unrelated turn changes nothing else."""

    @pytest.fixture
    def place(self, tmp_path: Path, apart: bool) -> Iterator[Place]:
        with Place(tmp_path, RULES[:1], apart=apart) as place:
            place.put(episode("first", intent="noop"))
            place.run("who ran before")
            for turn in (ROME, OSLO):
                place.put(turn)
                place.run()
            assert names(place) == ["oslo"]
            yield place

    def later(self, place: Place, name: str, drop: bool) -> list[str]:
        if drop:
            place.put(episode("chatter", minute=8, intent="noop"))
            place.store.compact(keep_history=False)
        place.put(CAT)
        place.run(name)
        left = names(place)
        assert "cat" in left
        return left

    def test_nothing_is_taken_away_or_made_twice(self, place: Place, name: str, drop: bool) -> None:
        before = place.believed()["oslo"]
        assert self.later(place, name, drop) == ["cat", "oslo"]
        assert place.believed()["oslo"] == before

    def test_what_was_pinned_again_by_hand_stays(self, place: Place, name: str, drop: bool) -> None:
        facts = place.kept.facts
        facts.pin(facts.query(FactPattern())[0].model_copy(update={"id": "rome"}))
        assert self.later(place, name, drop) == ["cat", "oslo", "rome"]

    def test_what_was_corrected_by_hand_stays_so(self, place: Place, name: str, drop: bool) -> None:
        facts = place.kept.facts
        (oslo,) = facts.query(FactPattern())
        facts.pin(oslo.model_copy(update={"payload": {**oslo.payload, "object": "Bergen"}}))
        self.later(place, name, drop)
        assert facts.query(FactPattern(object="Bergen"))

    def test_what_was_corrected_with_a_step_of_its_own_stays_so(
        self, place: Place, name: str, drop: bool
    ) -> None:
        facts = place.kept.facts
        (oslo,) = facts.query(FactPattern())
        by_hand = {"payload": {**oslo.payload, "object": "Bergen"}, "lineage": [*oslo.lineage, BY_HAND]}
        facts.pin(oslo.model_copy(update=by_hand))
        before = place.believed()["oslo"]
        self.later(place, name, drop)
        assert place.believed()["oslo"] == before

    def test_what_was_unpinned_by_hand_stays_away(self, place: Place, name: str, drop: bool) -> None:
        place.kept.facts.unpin("oslo")
        assert self.later(place, name, drop) == ["cat"]

    def test_what_was_deleted_and_pinned_again_stays(self, place: Place, name: str, drop: bool) -> None:
        facts = place.kept.facts
        (oslo,) = facts.query(FactPattern())
        place.put(episode("no", minute=3, intent="delete", replaces="oslo"))
        place.run()
        assert names(place) == []
        facts.pin(oslo)
        assert self.later(place, name, drop) == ["cat", "oslo"]

    def test_what_is_put_again_is_taken_in_again(self, place: Place, name: str, drop: bool) -> None:
        place.put(episode("oslo", minute=2, **LIVES, object="Bergen"))
        assert self.later(place, name, drop) == ["cat", "oslo"]
        assert place.believed()["oslo"][0]["object"] == "Bergen"


def test_what_an_earlier_version_left_is_not_taken_away_by_chance(tmp_path: Path) -> None:
    """It knew only the turns of one run, and left both homes."""
    with Place(tmp_path, RULES[:1]) as place:
        place.put(ROME, OSLO)
        for delta in place.memory.episodes.consolidate(RULES[0]):
            payload = delta.fact_payload  # type: ignore[union-attr]
            added = AddDelta(kind="add", fact_payload=payload, **delta.model_dump(include=PROVENANCE))
            place.kept.facts.apply_delta(added)
        assert names(place) == ["oslo", "rome"]
        place.put(CAT)
        place.run()
        assert names(place) == ["cat", "oslo", "rome"]
        place.put(episode("bonn", minute=3, **LIVES, object="Bonn"))
        place.run()
        assert names(place) == ["bonn", "cat", "rome"]


def test_late_news_do_not_take_the_place_of_what_was_said_since(tmp_path: Path) -> None:
    with Place(tmp_path, RULES[:1]) as place:
        place.put(OSLO)
        place.run()
        place.put(ROME)
        place.run()
        assert place.believed()["oslo"][2] == [["rome"], ["oslo"], ["oslo"]]
        place.put(episode("bonn", minute=3, **LIVES, object="Bonn"))
        place.run()
        place.put(episode("between", minute=1.5, **LIVES, object="Bergen"))
        place.run()
        assert names(place) == ["bonn"]


@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize("between", ["a late", "a b late", "a late drop", "drop late"])
def test_who_goes_over_all_again_lets_late_news_be_replaced(
    tmp_path: Path, between: str, apart: bool
) -> None:
    with Place(tmp_path, RULES[:1], apart=apart) as place:
        place.put(OSLO)
        for step in between.split():
            if step == "late":
                place.put(ROME)
            elif step == "drop":
                place.store.compact(keep_history=False)
            else:
                place.run(step)
        for name in ("b", "a"):
            place.run(name)
            assert names(place) == ["oslo"]


def test_who_names_a_later_turn_is_not_asked_again_when_it_comes(tmp_path: Path) -> None:
    with Place(tmp_path, RULES[:1]) as place:
        place.put(episode("oslo", minute=1, **LIVES, intent="update", replaces="rome"))
        place.run()
        place.put(episode("rome", minute=2, **LIVES))
        place.run()
        assert place.believed()["rome"][2] == [["oslo"], ["rome"]]


@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize("name", ["default", "other"])
def test_a_delete_that_is_heard_while_a_rule_runs_is_for_the_next_run(
    tmp_path: Path, name: str, apart: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fact is written after the delete, and nobody has run that."""
    with Place(tmp_path, RULES[:1], apart=apart) as place:
        place.put(CAT)
        for one in ("default", "other"):
            place.run(one)
        place.put(OSLO)
        episodes = place.memory.episodes
        sort = episodes.sort

        def sort_and_hear(*args: Any, **more: Any) -> Any:
            told = sort(*args, **more)
            place.put(episode("no", minute=3, intent="delete", replaces="oslo"))
            return told

        with monkeypatch.context() as patched:
            patched.setattr(episodes, "sort", sort_and_hear)
            place.run()
        assert names(place) == ["cat", "oslo"]
        run_elsewhere(tmp_path / "elsewhere", place)
        place.run(name)
        assert names(place) == ["cat"]


def run_elsewhere(folder: Path, place: Place) -> None:
    """Let the rule get as far in another log, of other episodes, as this one is long."""
    with ChronoStore(folder, durability="off") as store:
        memory = ChronoMemoryStore(store)
        length = place.store.engine.last_seq()
        for minute in range(length):
            put(memory.episodes, episode("elsewhere", minute=minute, intent="noop"))
        assert store.engine.last_seq() == length
        Runner(memory, place.kept, place.rules, name="elsewhere").run()


def test_an_intent_takes_what_is_there_when_it_is_heard(tmp_path: Path) -> None:
    """Whoever names a fact knows it, whatever the clocks say."""
    with Place(tmp_path, RULES[:1]) as place:
        place.put(OSLO)
        place.run()
        place.put(episode("no", minute=1, intent="delete", replaces="oslo"))
        place.run()
        assert names(place) == []


def test_many_users_are_asked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chronomemory.episodes.memory._MOST_DOORS", 2)
    users = ["ann", "bob", "cleo"]
    with Place(tmp_path, RULES[:1]) as place:
        for minute in range(3):
            for user in users:
                place.put(episode(f"{user}{minute}", user=user, minute=minute, subject="s", predicate="p"))
            place.run()
        assert names(place) == [f"{user}2" for user in users]


def test_more_than_a_where_can_name_is_all_gone_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chronomemory.episodes.memory._MOST_OPERANDS", 2)
    with Place(tmp_path, RULES[:1]) as place:
        for turn in (ROME, OSLO, CAT):
            place.put(turn)
            place.run()
        assert names(place) == ["cat", "oslo"]
