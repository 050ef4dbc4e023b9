"""A search finds what brute force finds, as of every write before it."""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from bm25 import agrees, fits, scores
from chronomemory import ChronoRecord, ChronoStore
from chronomemory.errors import InvalidArgument, UnknownSpace
from chronomemory.search import Hit
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from shares import share

_TEXT = (
    "the cat sat running runs quickly über cafe café 東京 東京都 猫 naïve data log_timeout it's who was "
    "alpha beta gamma delta recipe recipes Đặng dang Łódź lodz ısparta Straße strasse "
    "ΟΔΟΣ οδός 🎉 party🎉 👍🏽 👍 🇩🇪 مُحَمَّد محمد co\xadoperate cooperate"
)
WORDS = _TEXT.split()
KINDS = ("fact", "note")
STATUSES = ("active", "hypothesis")
TAGS = ("red", "blue")
#: Every step opens files and syncs: shrinking a failure would take longer than reading it.
QUICK = (Phase.explicit, Phase.reuse, Phase.generate)

texts = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
records = st.builds(
    lambda number, label, content, tags, kind, status, confidence: ChronoRecord(
        id=f"R{number}",
        kind=kind,
        status=status,
        label=label,
        confidence=confidence,
        data={"content": content, "tags": tags, "other": "alpha"},
    ),
    st.integers(0, 25),
    texts,
    texts,
    st.lists(st.sampled_from(TAGS), unique=True),
    st.sampled_from(KINDS),
    st.sampled_from(STATUSES),
    st.sampled_from([0.2, 0.5, 0.9]),
)


def found(hits: list[Hit]) -> list[tuple[str, float]]:
    return [(hit.id, hit.score) for hit in hits]


class Searching(RuleBasedStateMachine):
    """Any sequence of writing, deleting, compacting and reopening, against a dict and brute force."""

    searches = 0

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(self.make_folder())
        self.stores = [ChronoStore(self.folder).open(), ChronoStore(self.folder).open()]
        self.known: dict[str, ChronoRecord] = {}
        self.chance = random.Random(1)

    @staticmethod
    def make_folder() -> str:
        raise NotImplementedError

    @rule(record=records, who=st.sampled_from([0, 1]))
    def upsert(self, record: ChronoRecord, who: int) -> None:
        self.stores[who].upsert(record)
        self.known[record.id] = record

    @rule(batch=st.lists(records, min_size=1, max_size=5))
    def upsert_many(self, batch: list[ChronoRecord]) -> None:
        self.stores[0].upsert_many(batch)
        self.known.update({record.id: record for record in batch})

    @rule(number=st.integers(0, 25))
    def delete(self, number: int) -> None:
        if f"R{number}" in self.known:
            self.stores[1].delete(f"R{number}")
            self.known[f"R{number}"].status = "tombstone"

    @rule(who=st.sampled_from([0, 1]))
    def reopen(self, who: int) -> None:
        self.stores[who].close()

    @rule(who=st.sampled_from([0, 1]))
    def compact(self, who: int) -> None:
        self.stores[who].compact()

    @rule(
        question=texts,
        who=st.sampled_from([0, 1]),
        kind=st.sampled_from([None, *KINDS]),
        status=st.sampled_from(["", *STATUSES]),
        least=st.sampled_from([0.0, 0.5]),
        tags=st.lists(st.sampled_from(TAGS), unique=True),
        limit=st.integers(1, 30),
    )
    def search(
        self,
        question: str,
        who: int,
        kind: str | None,
        status: str,
        least: float,
        tags: list[str],
        limit: int,
    ) -> None:
        hits = self.stores[who].search(
            question, kind=kind, status=status, min_confidence=least, tags=tags, limit=limit, context=False
        )
        everything = scores(self.known.values(), question)
        wanted = {
            name: score
            for name, score in everything.items()
            if fits(self.known[name], kind=kind, status=status, least=least, tags=tags)
        }
        Searching.searches += 1
        assert agrees(found(hits), wanted, limit), (found(hits), wanted)
        assert [hit.record for hit in hits] == [self.known[hit.id] for hit in hits]

    @invariant()
    def both_agree(self) -> None:
        question = " ".join(self.chance.sample(WORDS, 3))
        one, other = (found(store.search(question, status="")) for store in self.stores)
        assert one == other

    def teardown(self) -> None:
        for store in self.stores:
            store.close()


def test_any_sequence_of_writes_is_searched_as_brute_force_would(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    Searching.make_folder = staticmethod(lambda: str(tmp_path_factory.mktemp("searching")))  # type: ignore[method-assign]
    run_state_machine_as_test(
        Searching,
        settings=settings(max_examples=share(12, 300), stateful_step_count=30, deadline=None, phases=QUICK),
    )
    assert Searching.searches > 20


@settings(max_examples=20, deadline=None)
@given(batch=st.lists(records, max_size=40), question=texts, limit=st.integers(0, 50))
def test_a_random_corpus_is_ranked_as_brute_force_ranks_it(
    tmp_path_factory: pytest.TempPathFactory, batch: list[ChronoRecord], question: str, limit: int
) -> None:
    with ChronoStore(tmp_path_factory.mktemp("corpus")) as store:
        store.upsert_many(batch)
        known = {record.id: record for record in batch}
        hits = store.search(question, status="", limit=limit, context=False)
        assert agrees(found(hits), scores(known.values(), question), limit)


class TestWhatIsFound:
    def test_accents_case_and_endings_do_not_matter(self, store: ChronoStore) -> None:
        store.upsert(ChronoRecord(id="A", label="Running through the CAFÉ in München"))
        for question in ("cafe", "RUNS", "munchen", "Ｃａｆé"):
            assert [hit.id for hit in store.search(question)] == ["A"]

    def test_scripts_without_spaces_are_found_by_their_parts(self, store: ChronoStore) -> None:
        store.upsert(ChronoRecord(id="A", label="東京都へ行きました"))
        store.upsert(ChronoRecord(id="B", label="京都へ行きました"))
        assert [hit.id for hit in store.search("東京")] == ["A", "B"]
        assert {hit.id for hit in store.search("都")} == {"A", "B"}
        assert [hit.id for hit in store.search("猫")] == []

    def test_a_question_of_common_words_alone_is_still_a_question(self, store: ChronoStore) -> None:
        store.upsert(ChronoRecord(id="A", label="To be or not to be"))
        store.upsert(ChronoRecord(id="B", label="Something else"))
        assert [hit.id for hit in store.search("to be, or not?")] == ["A"]

    def test_of_equals_the_older_comes_first(self, store: ChronoStore) -> None:
        store.upsert_many([ChronoRecord(id=f"R{number}", label="the same") for number in range(20)])
        store.upsert(ChronoRecord(id="R3", label="the same", confidence=0.1))
        assert [hit.id for hit in store.search("same", limit=5)] == ["R0", "R1", "R2", "R3", "R4"]

    def test_what_keeps_the_books_is_found_only_by_name(self, store: ChronoStore) -> None:
        store.upsert(ChronoRecord(id="E", kind="edge", label="alpha"))
        assert store.search("alpha") == []
        assert [hit.id for hit in store.search("alpha", kind="edge")] == ["E"]

    def test_several_kinds_may_be_named(self, store: ChronoStore) -> None:
        store.upsert_many([ChronoRecord(id=kind, kind=kind, label="alpha") for kind in ("a", "b", "c")])
        assert {hit.id for hit in store.search("alpha", kind=["a", "c"])} == {"a", "c"}

    @pytest.mark.parametrize("none", [[], (), iter(())], ids=("list", "tuple", "iterator"))
    def test_of_no_kinds_there_is_nothing(self, store: ChronoStore, none: Iterable[str]) -> None:
        store.upsert(ChronoRecord(id="A", kind="note", label="alpha"))
        assert store.search("alpha", kind=none) == []
        with pytest.raises(UnknownSpace):
            store.search("alpha", [1.0], kind=[], space="nowhere")

    @pytest.mark.parametrize("asked", [{"kind": None}, {"kind": ""}, {"tags": []}, {"status": ""}], ids=str)
    def test_what_does_not_narrow_finds_all(self, store: ChronoStore, asked: dict[str, Any]) -> None:
        store.upsert(ChronoRecord(id="A", kind="note", label="alpha"))
        assert [hit.id for hit in store.search("alpha", **asked)] == ["A"]

    def test_all_faces_are_searched(self, store: ChronoStore) -> None:
        store.engine.upsert(ChronoRecord(id="page:x", kind="page", label="alpha"), "pages")
        assert [hit.id for hit in store.search("alpha")] == ["page:x"]

    def test_the_past_can_be_searched(self, store: ChronoStore) -> None:
        store.upsert(ChronoRecord(id="A", label="alpha"))
        store.upsert(ChronoRecord(id="A", label="beta"))
        assert [hit.record.label for hit in store.search("alpha", as_of=1)] == ["alpha"]
        assert store.search("alpha") == []
        store.compact()
        assert [hit.id for hit in store.search("alpha", as_of=1)] == ["A"]

    def test_nothing_is_written_for_a_search(self, store: ChronoStore, tmp_path: Path) -> None:
        assert store.search("alpha") == []
        assert list(tmp_path.iterdir()) == []


class TestTime:
    def test_a_record_happened_when_it_says(self, store: ChronoStore) -> None:
        day = datetime(2023, 5, 8, tzinfo=timezone.utc)
        for number in range(5):
            when = (day + timedelta(days=number)).isoformat()
            store.upsert(ChronoRecord(id=f"R{number}", label="alpha", data={"time": when}))
        store.upsert(ChronoRecord(id="EPOCH", label="alpha", data={"created_at": day.timestamp() + 86_400}))
        hits = store.search("alpha", since=day + timedelta(days=1), until=day + timedelta(days=2))
        assert {hit.id for hit in hits} == {"R1", "R2", "EPOCH"}

    def test_or_else_when_it_was_written(self, store: ChronoStore) -> None:
        for number in range(7):
            store.upsert(ChronoRecord(id=f"R{number}", label="alpha"))
        written = [datetime.fromisoformat(event.ts.replace("Z", "+00:00")) for event in store.replay()]
        for first in range(7):
            for last in range(first, 7):
                hits = store.search("alpha", since=written[first], until=written[last])
                wanted = {f"R{n}" for n in range(7) if written[first] <= written[n] <= written[last]}
                assert {hit.id for hit in hits} == wanted

    def test_a_compaction_changes_nothing_of_when_it_was_written(self, store: ChronoStore) -> None:
        store.upsert(ChronoRecord(id="OLD", label="alpha"))
        store.search("alpha")
        written = store.get("OLD").updated_at
        store.compact()
        store.upsert(ChronoRecord(id="NEW", label="alpha"))
        moment = timedelta(microseconds=1)
        with ChronoStore(store.project_root, own_engine=True) as other:
            for reader in (store, other):
                assert {hit.id for hit in reader.search("alpha", since=written)} == {"OLD", "NEW"}
                assert {hit.id for hit in reader.search("alpha", since=written + moment)} == {"NEW"}
                assert {hit.id for hit in reader.search("alpha", until=written)} == {"OLD"}
                assert not reader.search("alpha", until=written - moment)

    def test_a_moment_needs_a_zone(self, store: ChronoStore) -> None:
        with pytest.raises(ValueError, match="time zone"):
            store.search("alpha", since=datetime(2023, 5, 8))


class TestContext:
    @pytest.fixture
    def talk(self, store: ChronoStore) -> ChronoStore:
        lines = [
            ("T1", 1, "Where did you find the violin?"),
            ("T2", 1, "In a small shop behind the station."),
            ("T3", 2, "The weather was lovely."),
            ("T4", 2, "A shop sells umbrellas."),
        ]
        before: dict[int, str] = {}
        for name, session, label in lines:
            data = {"session": session, "conversation": "c"}
            if session in before:
                data["previous"] = before[session]
            before[session] = name
            store.upsert(ChronoRecord(id=name, kind="turn", label=label, data=data))
        return store

    def test_a_linked_record_lifts_its_neighbour(self, talk: ChronoStore) -> None:
        assert [hit.id for hit in talk.search("violin", context=False)] == ["T1"]
        assert [hit.id for hit in talk.search("violin")] == ["T1", "T2"]

    def test_every_part_of_a_score_is_told(self, talk: ChronoStore) -> None:
        first, second = talk.search("violin", explain=True)
        assert first.why is not None and second.why is not None
        assert second.why["linked_by"] == "T1"
        assert second.why["text"] == 0.0
        # Nothing lifts itself, and a group that is all there is tells nothing apart.
        assert first.why["score"] == first.why["alone"] and second.why["grouped"] == 0.0
        for hit in (first, second):
            why = hit.why or {}
            assert sum(why["words"].values()) == pytest.approx(why["text"])
            parts = ("alone", "linked", "second", "grouped", "timed", "spoken")
            assert sum(why[name] for name in parts) == pytest.approx(hit.score)

    def test_an_edge_joins_its_ends(self, store: ChronoStore) -> None:
        store.upsert(ChronoRecord(id="A", label="alpha"))
        store.upsert(ChronoRecord(id="B", label="beta"))
        edge = {"from_id": "A", "to_id": "B", "edge_type": "supports"}
        store.upsert(ChronoRecord(id="E", kind="edge", label="", data=edge))
        assert [hit.id for hit in store.search("alpha")] == ["A", "B"]
        store.delete("E")
        assert [hit.id for hit in store.search("alpha")] == ["A"]

    def test_filters_hold_for_neighbours_too(self, talk: ChronoStore) -> None:
        talk.upsert(ChronoRecord(id="N", kind="note", label="", data={"links": ["T1"]}))
        assert "N" in [hit.id for hit in talk.search("violin")]
        assert "N" not in [hit.id for hit in talk.search("violin", kind="turn")]


class TestChosenFields:
    def test_other_fields_can_be_chosen_for_all(self, store: ChronoStore) -> None:
        store.upsert(ChronoRecord(id="A", label="alpha", data={"recipe": {"steps": ["stir the soup"]}}))
        assert store.search("soup") == []
        with ChronoStore(store.project_root) as other:
            other.search("alpha")
            store.upkeep.set_search_fields(text={"data.recipe.steps": 3}, tags=["data.recipe.steps"])
            for reader in (store, other):
                assert [hit.id for hit in reader.search("soup")] == ["A"]
                assert [hit.id for hit in reader.search("soup", tags=["stir the soup"])] == ["A"]
                assert reader.search("alpha") == []

    @pytest.mark.parametrize("weight", [0, 101, 1.5, True])
    def test_a_weight_is_a_small_whole_number(self, store: ChronoStore, weight: int) -> None:
        with pytest.raises(ValueError, match="weight"):
            store.upkeep.set_search_fields(text={"label": weight})


class TestBadQuestions:
    def test_a_search_needs_something_to_look_for(self, store: ChronoStore) -> None:
        with pytest.raises(ValueError, match="text or a vector"):
            store.search()

    @pytest.mark.parametrize("limit", [-1, 1.5, True])
    def test_a_limit_is_a_number(self, store: ChronoStore, limit: int) -> None:
        with pytest.raises(ValueError, match="limit"):
            store.search("x", limit=limit)

    def test_words_that_nobody_used_find_nothing(self, store: ChronoStore) -> None:
        store.upsert(ChronoRecord(id="A", label="alpha"))
        assert store.search("zebra") == []
        assert store.search("") == []
        assert store.search("?!") == []


@pytest.mark.parametrize(
    "asked",
    [
        {"text": 5},
        {"text": b"x"},
        {"text": "x", "tags": [1]},
        {"text": "x", "since": "2020"},
        {"text": "x", "kind": [2]},
    ],
)
def test_what_cannot_be_asked_is_refused_by_name(store: ChronoStore, asked: dict[str, Any]) -> None:
    field = list(asked)[-1]
    with pytest.raises(InvalidArgument, match=field) as refused:
        store.search(**asked)
    assert refused.value.field == field


@pytest.mark.parametrize(
    "date", ["2020-01-05", "2020-01-05T00:00", "2020-01-05 12:30", "2020-01-05T12:30:00+01:00"]
)
def test_a_date_needs_no_time(store: ChronoStore, date: str) -> None:
    store.upsert({"id": "A", "label": "storm", "data": {"date": date}})
    january = {
        "since": datetime(2020, 1, 1, tzinfo=timezone.utc),
        "until": datetime(2020, 2, 1, tzinfo=timezone.utc),
    }
    assert [hit.id for hit in store.search("storm", **january)] == ["A"]


def test_a_question_of_very_many_words_is_answered(store: ChronoStore) -> None:
    store.upsert({"id": "A", "label": "word7 and more"})
    assert [hit.id for hit in store.search(" ".join(f"word{number}" for number in range(100_000)))] == ["A"]


def test_the_first_field_of_the_list_says_when_it_was(store: ChronoStore) -> None:
    store.upsert(
        {
            "id": "A",
            "label": "tea",
            "data": {
                "date": "2001-01-01",
                "created_at": "2002-01-01",
                "timestamp": "2003-01-01",
                "time": "2004-01-01",
            },
        }
    )
    store.upsert({"id": "B", "label": "tea", "data": {"time": "2004-02-30", "date": "2001-01-01"}})

    def within(year: int) -> set[str]:
        first, last = datetime(year, 1, 1, tzinfo=timezone.utc), datetime(year, 12, 31, tzinfo=timezone.utc)
        return {hit.id for hit in store.search("tea", since=first, until=last)}

    assert [within(year) for year in (2001, 2002, 2003, 2004)] == [{"B"}, set(), set(), {"A"}]
    store.upkeep.set_search_fields(times=["data.timestamp", "data.created_at", "data.date"])
    assert [within(year) for year in (2001, 2002, 2003, 2004)] == [{"B"}, set(), {"A"}, set()]


@pytest.mark.filterwarnings("ignore:.*uncommitted bytes")
@pytest.mark.parametrize("tail", [b"hello\n", b"\0" * 200 + b"\n", b"hello"])
def test_a_search_ends_while_a_tail_is_pending(tmp_path: Path, tail: bytes) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert_many([{"id": f"R{n}", "label": "green tea"} for n in range(5)])
    with (tmp_path / ".chronomemory" / "events.wal").open("ab") as log:
        log.write(tail)
    with ChronoStore(tmp_path) as store:
        assert len(store.search("tea")) == 5
        with (tmp_path / ".chronomemory" / "events.wal").open("r+b") as log:
            log.seek(-1, 2)
            log.write(b"x")
        assert len(store.search("tea")) == 5
        with ChronoStore(tmp_path) as other:
            other.upsert({"id": "R9", "label": "black tea"})
        assert len(store.search("tea")) == 6
        assert store.verify().valid
