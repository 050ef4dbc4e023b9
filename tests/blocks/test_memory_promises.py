"""What a memory promises: nothing is merged by accident, only what is relevant is shown, budgets hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest
from chronomemory import ChronoStore, Memory, MemorySystem
from chronomemory.blocks import IntegrityError, open_test_blocks
from chronomemory.blocks.life.asking import estimated_tokens
from chronomemory.blocks.life.differences import differ
from chronomemory.conversation import Conversation
from chronomemory.embedders import CallableEmbedder, Embedder, LexicalEmbedder
from chronomemory.errors import InvalidArgument, UnknownRecord
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shares import share

from benches.relevance import facts, unanswered

#: An embedder to which all texts are the same: whatever is kept apart is kept apart by the guard.
BLIND = CallableEmbedder("blind", lambda texts: [[1.0, 0.0]] * len(texts))
NAMES = ("Anna", "Bob", "Carla", "Dmitri", "Eve", "Farid")
UNITS = ("mg", "ml", "km", "mW", "MW", "hours")


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory(open_test_blocks()) as opened:
        yield opened


def contents(memory: Memory) -> set[str]:
    return {item.content for item in memory.list()}


statements = st.builds(
    "{} {}takes {} {} on {} May".format,
    st.sampled_from(NAMES),
    st.sampled_from(("", "never ", "always ")),
    st.integers(0, 10_000),
    st.sampled_from(UNITS),
    st.integers(1, 31),
)


class TestNothingIsMergedByAccident:
    @pytest.mark.parametrize("embedder", [LexicalEmbedder(), BLIND], ids=["lexical", "blind"])
    @settings(max_examples=share(15, 300), deadline=None, suppress_health_check=list(HealthCheck))
    @given(texts=st.lists(statements, min_size=2, max_size=12, unique_by=str.lower))
    def test_texts_that_differ_all_stay(self, embedder: Embedder, texts: list[str]) -> None:
        with Memory(open_test_blocks(), embedder=embedder) as memory:
            for text in texts:
                assert memory.remember(text).merged_into is None
            memory.dream()
            assert contents(memory) == set(texts)

    @pytest.mark.parametrize(
        ("template", "values"),
        [
            ("Order {} was shipped to the customer in Hamburg by express mail", range(1000, 1200)),
            ("Invoice {} over 40 euros is due on Friday", range(200)),
            ("Patient 7 takes {} mg of the drug in the morning", range(200)),
            ("The appointment is on day {} at nine", range(200)),
        ],
        ids=["orders", "invoices", "doses", "appointments"],
    )
    def test_rows_of_numbers_all_stay_and_are_found(
        self, memory: Memory, template: str, values: range
    ) -> None:
        texts = [template.format(value) for value in values]
        for text in texts:
            memory.learn(text)
        memory.dream()
        assert contents(memory) == set(texts)
        for text in texts[::10]:
            assert memory.recall(text)[0].content == text

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("The door is open", "The door is closed"),
            ("The lamp is on", "The lamp is off"),
            ("Bob owes Anna money", "Anna owes Bob money"),
            ('The button says "yes"', 'The button says "Yes"'),
            ("The laser has 5 mW", "The laser has 5 MW"),
            ("Anna likes C", "Anna likes C++"),
            ("It costs $5", "It costs €5"),
            ("It was -5 degrees", "It was 5 degrees"),
            ("Anna eats meat", "Anna doesn't eat meat"),
            ("The password is Hunter2", "The password is hunter2"),
            ("5 G", "5 g"),
            ("if x:\n  a()\nb()", "if x:\n  a()\n  b()"),
        ],
    )
    def test_opposites_stay(self, tmp_path: Path, one: str, other: str) -> None:
        with Memory(tmp_path, embedder=BLIND) as memory:
            memory.remember(one)
            memory.remember(other)
            assert contents(memory) == {one, other}

    def test_a_merge_is_reported_and_can_be_undone(self, memory: Memory) -> None:
        first = memory.remember("The deploy key is in the vault", tags=["ops"])
        again = memory.remember("The deploy key  is in the vault.", tags=["keys"])
        assert (again.status, again.merged_into) == ("merged", first.block_id)
        assert memory.list()[0].tags == ("keys", "ops")
        assert memory.get(again.block_id).superseded_by == first.block_id
        back = memory.restore(again.block_id)
        assert (back.status, back.merged_into) == ("restored", None)
        assert contents(memory) == {"The deploy key is in the vault", "The deploy key  is in the vault."}

    def test_it_can_be_switched_off_or_decided(self, tmp_path: Path) -> None:
        asked: list[tuple[str, str]] = []

        def decide(old: str, new: str) -> bool:
            asked.append((old, new))
            return "tea" in new

        with Memory(tmp_path / "never", merge="never") as memory:
            memory.remember("It is in the vault")
            assert memory.remember("It is in the vault.").merged_into is None
        with Memory(tmp_path / "decided", merge=decide, embedder=BLIND) as memory:
            memory.remember("Anna drinks something")
            assert memory.remember("Anna drinks tea").merged_into is not None
            assert memory.remember("Anna drinks coffee").merged_into is None
        assert ("Anna drinks something", "Anna drinks tea") in asked
        with pytest.raises(InvalidArgument, match="merge"):
            Memory(tmp_path / "wrong", merge="sometimes")  # type: ignore[arg-type]

    @given(text=st.text(min_size=1, max_size=60))
    def test_a_text_never_differs_from_itself(self, text: str) -> None:
        assert not differ(text, text)
        assert not differ(text, f"  {text} ")


class TestNewerValues:
    def test_the_new_address_comes_first_however_often_the_old_one_was_praised(self, memory: Memory) -> None:
        old = memory.remember("Anna lives in Paris")
        for _ in range(10):
            memory.frame("attention", "where does Anna live?")
            memory.outcome([old.block_id], 1.0)
        memory.remember("Anna lives in Berlin")
        first, second = memory.recall("where does Anna live?")[:2]
        assert (first.content, first.newer_than) == ("Anna lives in Berlin", old.block_id)
        assert second.content == "Anna lives in Paris"
        text = memory.frame("attention", "where does Anna live?", explain=True)
        assert text.text.index("Berlin") < text.text.index("Paris")
        assert f"newer than {old.block_id}" in text.explanation

    def test_the_time_that_is_given_decides(self, memory: Memory) -> None:
        now = datetime.now(timezone.utc)
        memory.remember("Anna lives in Berlin", time=now - timedelta(days=1))
        memory.remember("Anna lives in Paris", time=now - timedelta(days=900))
        assert memory.recall("where does Anna live?")[0].content == "Anna lives in Berlin"

    def test_who_asks_for_the_old_value_gets_it(self, memory: Memory) -> None:
        memory.remember("Anna lives in Paris")
        memory.remember("Anna lives in Berlin")
        assert memory.recall("did Anna live in Paris?")[0].content == "Anna lives in Paris"

    def test_other_speakers_have_other_values(self, memory: Memory) -> None:
        memory.remember("I live in Paris", speaker="Anna")
        memory.remember("I live in Berlin", speaker="Bob")
        assert memory.recall("where does Anna live?")[0].content == "I live in Paris"


class TestRelevance:
    def test_right_answers_stay_and_questions_without_an_answer_get_none(self, memory: Memory) -> None:
        known = list(facts())
        for fact, _ in known:
            memory.learn(fact)
        memory.consolidate()
        kept = [
            fact in [block.content for block in memory.recall(question, top_k=10)] for fact, question in known
        ]
        empty = [not memory.recall(question) for question, _ in unanswered()]
        assert sum(kept) >= 0.98 * len(kept)
        assert sum(empty) >= 0.90 * len(empty)

    def test_praising_one_topic_changes_no_belief_outside_it(self, memory: Memory) -> None:
        memory.remember("My cat is called Minka")
        law = memory.remember("Never reveal passwords", tags=["self/goal"]).block_id
        others = [
            memory.remember(text).block_id
            for text in ("The deploy key is in the vault", "Rent is 940 euros", "The train leaves at nine")
        ]
        before = {name: memory.get(name).confidence for name in (*others, law)}
        for _ in range(1000):
            shown = memory.frame("task", "what is my cat called?")
            memory.outcome([block.id for block in shown.blocks], 0.95)
        assert {name: memory.get(name).confidence for name in before} == before
        assert memory.outcome([law], 0.95).not_relevant == (law,)

    def test_what_is_shown_below_the_floor_gets_no_credit(self, memory: Memory) -> None:
        for text in ("My cat is called Minka", "The cat eats tuna", "The car needs new tyres"):
            memory.remember(text)
        for _ in range(50):
            memory.outcome(memory.frame("attention", "what does my cat eat?"), 0.95)
        believed = {item.content: item.confidence for item in memory.list()}
        assert believed["The car needs new tyres"] == 0.5 < believed["The cat eats tuna"]

    def test_an_empty_answer_is_an_answer(self, memory: Memory) -> None:
        memory.remember("My cat is called Minka")
        assert memory.recall("stock market crash of 1929") == []
        assert memory.frame("attention", "stock market crash of 1929").text == ""

    def test_recency_follows_the_wall_clock_without_sessions(self, memory: Memory) -> None:
        memory.remember("Tea is in the blue tin")
        later = datetime.now(timezone.utc) + timedelta(days=30)
        now, then = (memory.recall("tea tin", now=moment)[0].recency for moment in (None, later))
        assert now == 1.0
        assert then == pytest.approx(np.exp(-0.01 * 30 * 24 / 10), rel=1e-3)


COUNTERS: dict[str, Callable[[str], int]] = {
    "estimate": estimated_tokens,
    "characters": len,
    "words": lambda text: len(text.split()),
}


class TestBudget:
    @pytest.mark.parametrize("counter", COUNTERS)
    @settings(max_examples=share(12, 300), deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        texts=st.lists(st.text(min_size=1, max_size=200).filter(str.strip), min_size=1, max_size=8),
        budget=st.integers(0, 120),
        dates=st.booleans(),
    )
    def test_a_frame_never_exceeds_it(self, counter: str, texts: list[str], budget: int, dates: bool) -> None:
        with Memory(open_test_blocks()) as memory:
            for text in texts:
                memory.learn(text)
            memory.consolidate()
            count = COUNTERS[counter]
            for name in ("attention", "task", "self"):
                frame = memory.frame(name, token_budget=budget, token_counter=count, dates=dates)
                assert frame.tokens == count(frame.text) <= budget

    def test_so_does_a_context(self, memory: Memory) -> None:
        for number in range(50):
            memory.remember(f"Fact {number} about the harbour is that it has {number} cranes. It is large.")
        for budget in (0, 5, 20, 60, 200):
            context = memory.context("how many cranes has the harbour?", budget)
            assert estimated_tokens(context.text) <= context.tokens <= budget

    def test_a_context_counts_its_whole_text(self, tmp_path: Path) -> None:
        with Memory(tmp_path, user="ann", token_counter=lambda text: len(text) // 4) as memory:
            for number in range(20):
                memory.remember(f"Fact {number} on tea: it is in cup {number}")
            for budget in range(5, 200, 3):
                context = memory.context("tea cup", budget)
                assert len(context.text) // 4 == context.tokens <= budget


class TestErasing:
    def test_a_statement_goes_with_the_turn_that_says_it(self, tmp_path: Path) -> None:
        for number in range(2):
            with Memory(tmp_path / str(number), user="ann") as memory:
                added = memory.add([{"role": "user", "content": "My phone is 5550107"}])
                chosen = (added.learned[0].block_id, added.turns[0])[number]
                erased = memory.erase([chosen], reason="asked")
                assert {*erased.ids, *erased.belonging} == {
                    f"block:{added.learned[0].block_id}",
                    added.turns[0],
                }
                assert memory.context("what is my phone?").text == ""
            files = (path for path in tmp_path.rglob("*") if path.is_file())
            assert not [path for path in files if b"5550107" in path.read_bytes()]

    def test_it_changes_and_names_nothing_of_others(self, tmp_path: Path) -> None:
        with Memory(tmp_path, user="ann") as ann, ChronoStore(tmp_path) as store:
            known = ann.remember("Ann's phone").block_id
            bob = store.scoped(user="bob")
            bob.upsert({"id": "EDGE", "kind": "edge", "data": {"from_id": f"block:{known}", "to_id": "q"}})
            bob.upsert({"id": "DIARY", "label": "v1", "evidence": [f"block:{known}"]})
            erased = ann.erase([known], reason="asked")
            assert (erased.belonging, erased.mentions) == ((), ())
            assert bob.get("EDGE") is not None
            assert len(bob.history("DIARY")) == 1

    def test_an_agent_erases_no_turns_of_its_users(self, tmp_path: Path) -> None:
        with Memory(tmp_path, user="ann") as ann, Memory(tmp_path, agent="assistant") as agent:
            ann.add("I live in Oslo")
            agent.remember("The agent's own note")
            agent.erase(everything=True, reason="reset")
            assert agent.list() == []
            assert [one.kind for one in ann.context("where do I live?").citations] == ["block", "turn"]


class TestWholeLife:
    def test_a_general_question_is_answered_with_a_profile(self, memory: Memory) -> None:
        memory.remember("Anna plays the harp")
        for query in ("", "What do you know about me?", "tell me what you know about me"):
            assert [cited.content for cited in memory.context(query).citations] == ["Anna plays the harp"]

    def test_ids_of_turns_and_blocks_are_accepted_everywhere(self, tmp_path: Path) -> None:
        with Memory(tmp_path, user="ann") as memory:
            (turn,) = memory.add("I live in Oslo").turns
            assert memory.get(turn).content == "I live in Oslo"
            assert len(memory.history(turn)) == 1
            one, other = (memory.remember(text).block_id for text in ("Tea is hot", "Ice is cold"))
            assert memory.connect(f"block:{one}", f"block:{other}")
            assert memory.disconnect(one, f"block:{other}")

    def test_a_replaced_memory_is_not_forgotten_in_place_of_its_successor(self, memory: Memory) -> None:
        old = memory.remember("The meeting is on Monday").block_id
        new = memory.edit(old, "The meeting is on Tuesday").block_id
        with pytest.raises(IntegrityError, match="was replaced") as refused:
            memory.forget(old)
        assert new in str(refused.value.recovery)

    def test_a_merge_rule_that_fails_fails_alone(self, tmp_path: Path) -> None:
        def fails(old: str, new: str) -> bool:
            raise TimeoutError("the model is down")

        with Memory(tmp_path, merge=fails) as memory:
            memory.remember("The key is in the vault")
            with pytest.raises(TimeoutError):
                memory.remember("The key is in the vault.")
            assert memory.remember("Rent is 900 euros").status == "created"
            assert memory.status().inbox == 1

    def test_lines_and_questions_are_told_apart(self, tmp_path: Path) -> None:
        said = "I like tea\nCan you help me?\n- I hate rain\n- 你住在哪里？"
        call = {"role": "assistant", "tool_calls": [{"id": "1"}]}
        with Memory(tmp_path, user="ann") as memory:
            memory.add([{"role": "user", "content": said}, call])
            assert contents(memory) == {"I like tea\n- I hate rain"}

    def test_an_edit_is_found_at_once(self, memory: Memory) -> None:
        old = memory.remember("The meeting is on Monday").block_id
        new = memory.edit(f"block:{old}", "The workshop is on Tuesday")
        assert memory.recall("when is the workshop?")[0].id == new.block_id
        assert memory.get(old).status == "archived"

    def test_metadata_time_and_expiry(self, memory: Memory) -> None:
        now = datetime.now(timezone.utc)
        memory.remember("It rains", metadata={"page": 3}, time=now - timedelta(days=400), speaker="Eve")
        zone = timezone(timedelta(hours=5))
        memory.remember("It snows", expires_at=(now - timedelta(seconds=1)).astimezone(zone))
        (found,) = memory.recall("does it rain?")
        assert (found.metadata, found.speaker, found.source) == ({"page": 3}, "Eve", "api")
        assert found.time == now - timedelta(days=400)
        dated = memory.frame("attention", "does it rain?", dates=True).text
        assert f"({found.time:%Y-%m-%d}) It rains" in dated
        assert contents(memory) == {"It rains"}

    def test_messages_become_turns_and_memories_of_one_user(self, tmp_path: Path) -> None:
        with Memory(tmp_path, user="ann") as ann, Memory(tmp_path, user="bob") as bob:
            added = ann.add(
                [
                    {"role": "user", "content": "My dog is called Rex"},
                    {"role": "assistant", "content": "What a name!"},
                    {"role": "user", "content": "What do dogs eat?"},
                ]
            )
            assert (len(added.turns), len(added.learned)) == (3, 1)
            context = ann.context("what is my dog called?")
            assert [one.kind for one in context.citations] == ["block", "turn", "turn", "turn"]
            assert context.citations[0].id == added.learned[0].block_id
            assert bob.context("what is my dog called?").text == ""
            with pytest.raises(UnknownRecord):
                bob.erase([added.learned[0].block_id], reason="asked")
            ann.erase(everything=True, reason="asked")
            assert ann.export() == []
        assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"Rex" in path.read_bytes()]

    def test_an_extractor_says_what_is_remembered(self, tmp_path: Path) -> None:
        with Memory(tmp_path, user="ann") as memory:
            memory.add("I moved to Oslo", extractor=lambda messages: ["Ann lives in Oslo"])
            assert contents(memory) == {"Ann lives in Oslo"}
        with Memory(tmp_path) as shared, pytest.raises(InvalidArgument, match="user"):
            shared.add("I moved to Oslo")

    def test_tools_dispatch_to_the_memory(self, tmp_path: Path) -> None:
        with Memory(tmp_path, user="ann") as memory:
            tools = memory.tools()
            assert {schema["function"]["name"] for schema in tools.schemas("openai")} >= {
                "remember",
                "recall",
            }
            tools.call("remember", {"content": "Ann plays the harp"})
            assert contents(memory) == {"Ann plays the harp"}


def test_a_document_is_never_cut_inside_a_code_fence(memory: Memory) -> None:
    code = "```python\na = 1\n\n\nb = 2\n```"
    memory.learn_document(f"# Setup\n\nRun this:\n\n{code}\n\nDone.")
    assert any(code in item.content for item in memory.list(status="inbox"))


def test_a_conversation_refuses_an_asynchronous_memory() -> None:
    with pytest.raises(InvalidArgument, match="must be a Memory"):
        Conversation(MemorySystem(open_test_blocks()), "s", agent="a")  # type: ignore[arg-type]
