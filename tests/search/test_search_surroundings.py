"""What surrounds a hit lifts it as the decision says, to the last bit."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest
from chronomemory import ChronoRecord, ChronoStore
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lifting import Stretch, Surroundings, closeness, lifted, lifts
from plain_words import question_words, text_words
from shares import share

WORDS = ("tea", "green", "black", "coffee", "cup", "house", "garden", "river")
SPEAKERS = ("Ann", "Bob", "Ann Lee", None)
#: A Wednesday.
NOW = datetime(2023, 6, 14, 12, tzinfo=timezone.utc)


def days(first: str, last: str | None = None) -> list[Stretch]:
    return [(date.fromisoformat(first), date.fromisoformat(last or first))]


def each_year(month: int, last_day: int) -> list[Stretch]:
    return [(date(year, month, 1), date(year, month, last_day)) for year in range(2015, 2100)]


#: What a question may say of a time, and which days that are.
PHRASES: dict[str, list[Stretch]] = {
    "": [],
    "on 8 May 2023": days("2023-05-08"),
    "on the 8th of May, 2023": days("2023-05-08"),
    "in June 2023": days("2023-06-01", "2023-06-30"),
    "in May": each_year(5, 31),
    "in 2023": [2023],
    "yesterday": days("2023-06-13"),
    "last week": days("2023-06-05", "2023-06-11"),
    "two days ago or in April 2023": days("2023-06-12") + days("2023-04-01", "2023-04-30"),
}

turns = st.fixed_dictionaries(
    {
        "words": st.lists(st.sampled_from(WORDS), min_size=1, max_size=5),
        "session": st.sampled_from([None, "g1", "g2", 3]),
        "thread": st.sampled_from([None, None, "t"]),
        "previous": st.none() | st.integers(0, 11),
        "speaker": st.sampled_from(SPEAKERS),
        "day": st.none() | st.integers(0, 120),
        "angle": st.none() | st.integers(0, 40),
    }
)


def record(number: int, turn: dict[str, Any]) -> ChronoRecord:
    data = {name: turn[name] for name in ("session", "thread", "speaker") if turn[name] is not None}
    if turn["previous"] is not None:
        data["previous"] = f"R{turn['previous']}"
    if turn["day"] is not None:
        data["time"] = (date(2023, 3, 1) + timedelta(days=turn["day"])).isoformat()
    return ChronoRecord(id=f"R{number}", label=" ".join(turn["words"]), data=data)


def around(
    put_forward: set[str], records: dict[str, ChronoRecord], question: str, stretches: list[Stretch]
) -> tuple[set[str], Surroundings]:
    """Return all candidates, and what surrounds them."""
    found = Surroundings()
    for one in records.values():
        pair = frozenset({one.id, str(one.data.get("previous"))})
        # Nobody asks for the neighbours of those that are only neighbours.
        if pair <= records.keys() and pair & put_forward:
            found.links.add(pair)
    candidates = put_forward.union(*found.links)
    named: set[str] = set()
    for name in candidates:
        one = records[name]
        group = tuple(str(one.data.get(field, "")) for field in ("session", "thread"))
        if any(group):
            found.groups[name] = group
        if stretches:
            written = one.data.get("time") or one.created_at.date().isoformat()  # type: ignore[union-attr]
            found.closeness[name] = closeness(date.fromisoformat(written), stretches)
        if set(text_words(one.data.get("speaker", ""))) & set(question_words(question)):
            named.add(one.data["speaker"])
    if len(named) == 1:
        found.speakers = {name for name in candidates if records[name].data.get("speaker") in named}
    return candidates, found


@settings(max_examples=share(25, 1000), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    talk=st.lists(turns, min_size=1, max_size=12),
    words=st.lists(st.sampled_from((*WORDS, "Ann", "Lee", "Bob")), min_size=1, max_size=4),
    phrase=st.sampled_from(sorted(PHRASES)),
    with_vector=st.booleans(),
)
def test_every_score_is_that_of_the_reference_to_the_last_bit(
    tmp_path_factory: pytest.TempPathFactory,
    talk: list[dict[str, Any]],
    words: list[str],
    phrase: str,
    with_vector: bool,
) -> None:
    question = f"{' '.join(words)} {phrase}"
    with ChronoStore(tmp_path_factory.mktemp("lifted"), durability="off") as store:
        store.upsert_many([record(number, turn) for number, turn in enumerate(talk)])
        angles = {f"R{at}": turn["angle"] / 9 for at, turn in enumerate(talk) if turn["angle"] is not None}
        vector = [1.0, 0.25] if with_vector and angles else None
        if vector:
            rows = [[np.cos(angle), np.sin(angle)] for angle in angles.values()]
            store.vectors.attach_many(list(angles), rows, model="angles")
        records = {one.id: one for one in store.query()}
        alone = {hit.id: hit.score for hit in store.search(question, vector, context=False, limit=100)}
        candidates, surroundings = around(set(alone), records, question, PHRASES[phrase])
        scores = {name: alone.get(name, 0.0) for name in candidates}
        expected = lifted(scores, surroundings)
        parts = lifts(scores, surroundings)
        hits = store.search(question, vector, limit=100, now=NOW, explain=True)
        assert {hit.id: hit.score.hex() for hit in hits} == {
            name: score.hex() for name, score in expected.items()
        }
        assert [hit.id for hit in hits] == sorted(expected, key=lambda name: (-expected[name], int(name[1:])))
        for hit in hits:
            assert hit.why is not None
            assert {name: hit.why[name] for name in parts[hit.id]} == parts[hit.id]
            assert hit.why["alone"] == scores[hit.id]
            for name in ("linked", "second", "grouped"):
                assert (hit.why[f"{name}_by"] is None) == (hit.why[name] == 0.0)
                assert hit.why[f"{name}_by"] != hit.id
        # What is asked page by page is asked at one moment.
        first = store.search(question, vector, limit=1, now=NOW)
        if first.cursor:
            whole = store.search(question, vector, limit=100, now=NOW)
            assert store.search(question, vector, limit=99, now=NOW, after=first.cursor) == whole[1:]


def test_two_steps_count_less_than_one(store: ChronoStore) -> None:
    labels = ("violin", "a shop", "a violin bow")
    for number, label in enumerate(labels):
        store.upsert(ChronoRecord(id=f"T{number}", label=label, data={"previous": f"T{number - 1}"}))
    why = {hit.id: hit.why or {} for hit in store.search("violin", explain=True)}
    assert why["T1"]["linked"] == pytest.approx(0.3 * why["T0"]["alone"])
    assert (why["T2"]["second_by"], why["T2"]["linked_by"]) == ("T0", None)
    assert why["T2"]["second"] == pytest.approx(0.2 * why["T0"]["alone"])


class TestTime:
    @pytest.fixture
    def diary(self, store: ChronoStore) -> ChronoStore:
        for day in ("2023-05-08", "2023-06-13", "2023-06-20", "2024-05-09"):
            store.upsert(ChronoRecord(id=day, label="We drank tea in the garden", data={"time": day}))
        return store

    @pytest.mark.parametrize(
        ("question", "first"),
        [
            ("tea on 8 May 2023", "2023-05-08"),
            ("tea in May 2024", "2024-05-09"),
            ("the tea we drank yesterday", "2023-06-13"),
            ("tea, 2023-06-20", "2023-06-20"),
        ],
    )
    def test_what_happened_then_comes_first(self, diary: ChronoStore, question: str, first: str) -> None:
        assert diary.search(question, now=NOW)[0].id == first

    def test_a_month_that_is_another_word_is_no_time(self, diary: ChronoStore) -> None:
        hits = diary.search("may we drink tea", now=NOW, explain=True)
        assert len(hits) == 4 and all(hit.why and hit.why["timed"] == 0.0 for hit in hits)

    def test_nothing_is_found_by_its_time_alone(self, diary: ChronoStore) -> None:
        assert diary.search("what happened yesterday?", now=NOW) == []

    def test_without_context_time_does_not_count(self, diary: ChronoStore) -> None:
        scores = {hit.score for hit in diary.search("tea yesterday", now=NOW, context=False)}
        assert len(scores) == 1

    def test_what_does_not_say_when_happened_when_it_was_made(self, store: ChronoStore) -> None:
        store.upsert(ChronoRecord(id="OLD", label="tea", data={"time": "2001-01-01"}))
        store.upsert(ChronoRecord(id="NEW", label="tea"))
        assert [hit.id for hit in store.search("tea today")] == ["NEW", "OLD"]

    def test_a_now_needs_a_zone(self, store: ChronoStore) -> None:
        with pytest.raises(ValueError, match=r"now.*time zone"):
            store.search("tea", now=datetime(2023, 5, 8))

    def test_a_page_is_of_the_moment_of_the_first(self, diary: ChronoStore) -> None:
        first = diary.search("tea yesterday", now=NOW, limit=2)
        assert first.cursor is not None
        rest = diary.search("tea yesterday", now=NOW, limit=9, after=first.cursor)
        assert [*first, *rest] == diary.search("tea yesterday", now=NOW, limit=9)
        with pytest.raises(ValueError, match="another question"):
            diary.search("tea yesterday", now=NOW + timedelta(days=1), after=first.cursor)


class TestSpeaker:
    @pytest.fixture
    def talk(self, store: ChronoStore) -> ChronoStore:
        for number, name in enumerate(("Ann", "Bob", "Ann", "Cy")):
            store.upsert(ChronoRecord(id=f"{name}{number}", label="I like tea", data={"by": name}))
        store.upkeep.set_search_fields(speakers=["data.by"])
        return store

    def test_the_one_who_is_named_is_meant(self, talk: ChronoStore) -> None:
        assert talk.search("does Bob like tea?")[0].id == "Bob1"
        assert {hit.id for hit in talk.search("what does Ann like?")[:2]} == {"Ann0", "Ann2"}

    def test_who_names_several_means_nobody(self, talk: ChronoStore) -> None:
        hits = talk.search("do Ann and Bob like tea?", explain=True)
        assert len(hits) == 4 and all(hit.why and hit.why["spoken"] == 0.0 for hit in hits)

    def test_speakers_are_those_of_the_chosen_fields(self, talk: ChronoStore) -> None:
        talk.upkeep.set_search_fields(speakers=[])
        hits = talk.search("does Bob like tea?", explain=True)
        assert hits and all(hit.why and hit.why["spoken"] == 0.0 for hit in hits)
