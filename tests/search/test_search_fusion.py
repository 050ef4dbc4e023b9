"""Words and embeddings become one score as the decision says, whatever else is asked."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from bm25 import scores
from chronomemory import ChronoRecord, ChronoStore, InvalidArgument
from chronomemory.errors import UnknownSpace
from lifting import Surroundings, lifted

Floats = npt.NDArray[np.float32]
Cosines = dict[str, float]
WORDS = [
    f"{first}{last}" for first in ("ba", "de", "fi", "go", "lu", "ma") for last in ("rk", "nt", "sp", "lm")
]
COUNT = 2500
DIM = 16
POOL = 100
TEXT = "bark dent fisp"
START = datetime(2026, 1, 1, tzinfo=timezone.utc)
chance = np.random.default_rng(5)
VECTOR: Floats = chance.standard_normal(DIM, dtype=np.float32)


def record(number: int) -> ChronoRecord:
    """Make a record that is linked with one other and shares a session with some."""
    return ChronoRecord(
        id=f"R{number}",
        kind=("note", "turn", "fact")[number % 3],
        label=" ".join(chance.choice(WORDS, chance.integers(3, 40))),
        status="superseded" if number % 11 == 0 else "active",
        confidence=(number % 10) / 10,
        data={
            "links": [f"R{number ^ 1}"],
            "session": number // 50,
            "tags": ["rare"] * (number % 40 == 1) + ["even"] * (number % 2 == 0),
            "time": (START + timedelta(hours=number)).isoformat(),
        },
    )


RECORDS = [record(number) for number in range(COUNT)]
#: One in five has no embedding.
EMBEDDED = [one.id for number, one in enumerate(RECORDS) if number % 5]
ROWS: Floats = chance.standard_normal((len(EMBEDDED), DIM), dtype=np.float32)


def cosines_with(vector: npt.ArrayLike, rows: Floats = ROWS) -> Cosines:
    wide, query = rows.astype(np.float64), np.asarray(vector, dtype=np.float64)
    found = wide @ query / np.linalg.norm(wide, axis=1) / np.linalg.norm(query)
    return dict(zip(EMBEDDED, found.tolist(), strict=True))


def best(by_id: dict[str, float], number: int) -> list[str]:
    """Return the best, of equals the older record."""
    return sorted(by_id, key=lambda name: (-round(by_id[name], 9), int(name[1:])))[:number]


def fused(texts: dict[str, float], cosines: Cosines) -> dict[str, float]:
    """Work the formula of the decision out for all records that pass."""
    pool = [cosines[name] for name in best(cosines, POOL)]
    made = {}
    for name in texts.keys() | cosines.keys():
        cosine = cosines.get(name, -1.0)
        share = min(max((cosine - pool[-1]) / (pool[0] - pool[-1]), 0.0), 1.0) if cosine > 0 else 0.0
        made[name] = (2 * texts.get(name, 0.0) / max(texts.values(), default=1.0) + 1.25 * share) / 3.25
    return made


@cache
def text_scores() -> dict[str, float]:
    return scores(RECORDS, TEXT)


def passing(passes: Callable[[ChronoRecord], bool]) -> tuple[dict[str, float], Cosines]:
    """Return texts and cosines of the records that pass."""
    names = {one.id for one in RECORDS if passes(one)}
    texts = {name: score for name, score in text_scores().items() if name in names}
    return texts, {name: cosine for name, cosine in cosines_with(VECTOR).items() if name in names}


def is_active(one: ChronoRecord) -> bool:
    return one.status == "active"


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChronoStore]:
    with ChronoStore(tmp_path_factory.mktemp("full")) as store:
        store.upsert_many(RECORDS)
        store.vectors.attach_many(EMBEDDED, ROWS, model="noise")
        yield store


class TestScore:
    def test_words_count_the_same_with_embeddings(self, full: ChronoStore) -> None:
        hits = full.search(TEXT, limit=30, context=False)
        texts, _ = passing(is_active)
        assert {hit.id: hit.score for hit in hits} == pytest.approx(
            {name: texts[name] for name in best(texts, 30)}
        )

    def test_what_keeps_the_embeddings_is_not_found(self, full: ChronoStore) -> None:
        for asked in ({}, {"kind": ["vector", "vector_space"]}):
            assert full.search("embeddings of noise", status=None, **asked) == []

    def test_the_score_is_that_of_the_decision(self, full: ChronoStore) -> None:
        texts, cosines = passing(is_active)
        expected = fused(texts, cosines)
        hits = full.search(TEXT, VECTOR, limit=40, context=False, explain=True)
        assert [hit.id for hit in hits] == best(expected, 40)
        for hit in hits:
            assert hit.why is not None
            assert hit.score == pytest.approx(expected[hit.id], abs=1e-6)
            assert hit.why["text"] == pytest.approx(texts.get(hit.id, 0.0))
            assert hit.why["cosine"] == (
                pytest.approx(cosines[hit.id], abs=1e-6) if hit.id in cosines else None
            )
            parts = 2 * hit.why["text_share"] + 1.25 * hit.why["vector_share"]
            assert parts / 3.25 == pytest.approx(hit.score)
        assert {hit.why["cosine"] is None for hit in hits if hit.why} == {True, False}

    @pytest.mark.parametrize("text", [TEXT, None])
    def test_neighbours_lift_by_what_the_decision_says(self, full: ChronoStore, text: str | None) -> None:
        texts, cosines = passing(is_active)
        alone = fused(texts, cosines) if text else cosines
        by_id = {one.id: one for one in RECORDS if is_active(one)}
        put_forward = {*best(cosines, POOL), *(best(texts, POOL) if text else [])}
        linked = {name: by_id[name].data["links"][0] for name in put_forward}
        pairs = {frozenset({name, other}) for name, other in linked.items() if other in by_id}
        score = {name: alone.get(name, 0.0) for name in put_forward.union(*pairs)}
        groups = {name: by_id[name].data["session"] for name in score}
        expected = lifted(score, Surroundings(links=pairs, groups=groups))
        hits = full.search(text, VECTOR, limit=30)
        assert [hit.id for hit in hits] == best(expected, 30)
        assert [hit.score for hit in hits] == pytest.approx([expected[hit.id] for hit in hits], abs=1e-6)

    def test_a_vector_alone_ranks_by_cosine(self, full: ChronoStore) -> None:
        hits = full.search(vector=VECTOR.tolist(), limit=150, context=False)
        near = full.vectors.nearest(VECTOR, k=150)
        assert [(hit.id, hit.score) for hit in hits] == [(one.record_id, one.score) for one in near]

    def test_all_that_can_be_found_is(self, full: ChronoStore) -> None:
        texts, cosines = passing(is_active)
        hits = full.search(TEXT, VECTOR, limit=10**9, context=False)
        assert {hit.id for hit in hits} == texts.keys() | cosines.keys()
        assert full.search(TEXT, VECTOR, limit=0) == []


AT = START + timedelta(hours=2200)
FILTERS: dict[str, tuple[dict[str, Any], Callable[[ChronoRecord], bool]]] = {
    "kind": ({"kind": "fact"}, lambda one: is_active(one) and one.kind == "fact"),
    "kinds": ({"kind": ["fact", "note"]}, lambda one: is_active(one) and one.kind in {"fact", "note"}),
    "status": ({"status": "superseded"}, lambda one: one.status == "superseded"),
    "any status": ({"status": None}, lambda one: True),
    "confidence": ({"min_confidence": 0.9}, lambda one: is_active(one) and one.confidence >= 0.9),
    "tags": ({"tags": ["rare"]}, lambda one: is_active(one) and "rare" in one.data["tags"]),
    "since": ({"since": AT}, lambda one: is_active(one) and one.data["time"] >= AT.isoformat()),
    "until": ({"until": AT}, lambda one: is_active(one) and one.data["time"] <= AT.isoformat()),
    "all": (
        {"kind": ["turn"], "min_confidence": 0.3, "tags": "even", "since": START, "until": AT},
        lambda one: (
            is_active(one)
            and one.kind == "turn"
            and one.confidence >= 0.3
            and "even" in one.data["tags"]
            and one.data["time"] <= AT.isoformat()
        ),
    ),
    "nothing": ({"tags": ["nobody has this"]}, lambda one: False),
}


class TestFilters:
    @pytest.mark.parametrize("name", FILTERS)
    def test_a_filter_is_exact(self, full: ChronoStore, name: str) -> None:
        asked, passes = FILTERS[name]
        texts, cosines = passing(passes)
        both = full.search(TEXT, VECTOR, limit=50, context=False, **asked)
        expected = fused(texts, cosines)
        assert [hit.id for hit in both] == best(expected, 50)
        assert [hit.score for hit in both] == pytest.approx([expected[hit.id] for hit in both], abs=1e-6)
        alone = full.search(vector=VECTOR, limit=50, context=False, **asked)
        assert [hit.id for hit in alone] == best(cosines, 50)
        assert all(passes(hit.record) for hit in full.search(TEXT, VECTOR, limit=500, **asked))

    def test_a_filter_follows_what_changes(self, store: ChronoStore) -> None:
        store.upsert_many(RECORDS[:50])
        store.vectors.attach_many(EMBEDDED[:20], ROWS[:20], model="noise")
        asked: dict[str, Any] = {"vector": VECTOR, "tags": ["even"], "context": False, "limit": 100}
        before = {hit.id for hit in store.search(**asked)}
        assert before
        name = sorted(before)[0]
        store.upsert(ChronoRecord(id=name, label="no tag any more"))
        assert {hit.id for hit in store.search(**asked)} == before - {name}
        store.upsert(ChronoRecord(id=name, label="again", data={"tags": ["even"]}))
        assert {hit.id for hit in store.search(**asked)} == before
        store.compact()
        assert {hit.id for hit in store.search(**asked)} == before

    def test_any_changes_are_followed(self, store: ChronoStore) -> None:
        luck = np.random.default_rng(3)
        kept: dict[str, ChronoRecord] = {}
        rows: dict[str, Floats] = {}
        asked: list[tuple[dict[str, Any], Callable[[ChronoRecord], bool]]] = [
            ({}, lambda one: True),
            ({"tags": ["even"]}, lambda one: "even" in one.data["tags"]),
            (
                {"kind": "turn", "min_confidence": 0.4},
                lambda one: one.kind == "turn" and one.confidence >= 0.4,
            ),
        ]
        for step in range(400):
            name = f"R{luck.integers(60)}"
            match luck.integers(6) if name in kept else 0:
                case 0 | 1:
                    kept[name] = replace(RECORDS[luck.integers(1, 11)], id=name)
                    store.upsert(kept[name])
                case 2 | 3:
                    rows[name] = luck.standard_normal(DIM, dtype=np.float32)
                    store.vectors.attach(name, rows[name], model="noise")
                case 4 if name in rows:
                    store.vectors.detach(name)
                    del rows[name]
                case 5:
                    store.delete(name)
                    # Its embedding waits for it to be written again.
                    kept.pop(name)
            if step % 150 == 149:
                store.compact()
            if not store.vectors.spaces():
                continue
            filters, passes = asked[luck.integers(len(asked))]
            hits = store.search(vector=VECTOR, context=False, limit=100, **filters)
            if not filters:
                assert [hit.id for hit in hits] == [
                    one.record_id for one in store.vectors.nearest(VECTOR, k=100)
                ]
            assert {hit.id for hit in hits} == {name for name in rows if name in kept and passes(kept[name])}

    def test_other_fields_make_other_filters(self, store: ChronoStore) -> None:
        store.upsert_many(
            [ChronoRecord(id="A", data={"topics": ["x"]}), ChronoRecord(id="B", data={"tags": ["x"]})]
        )
        store.vectors.attach_many(list("AB"), np.eye(2), model="two")
        assert [hit.id for hit in store.search(vector=[1, 0], tags=["x"])] == ["B"]
        store.upkeep.set_search_fields(tags=["data.topics"])
        assert [hit.id for hit in store.search(vector=[1, 0], tags=["x"])] == ["A"]


class TestSpaces:
    def test_each_space_has_its_own_embeddings(self, store: ChronoStore) -> None:
        store.upsert_many([ChronoRecord(id=name, label="same words") for name in "ABC"])
        store.vectors.attach_many(list("AB"), np.eye(2), space="small", model="two")
        store.vectors.attach_many(list("BC"), np.eye(3)[:2], space="large", model="three")
        store.vectors.use("large")
        assert [hit.id for hit in store.search(vector=[1, 0], space="small")] == ["A", "B"]
        assert [hit.id for hit in store.search(vector=[1, 0, 0])] == ["B", "C"]
        assert [hit.id for hit in store.search("same", [0, 1, 0], limit=1)] == ["C"]
        assert {hit.id for hit in store.search("same", [0, 1], space="small")} == {"A", "B", "C"}

    def test_an_unknown_space_is_refused(self, full: ChronoStore, store: ChronoStore) -> None:
        with pytest.raises(UnknownSpace, match="nowhere"):
            full.search(TEXT, VECTOR, space="nowhere")
        store.upsert(ChronoRecord(id="A", label="no embeddings at all"))
        with pytest.raises(UnknownSpace):
            store.search(vector=[1.0])

    def test_damaged_rows_have_no_cosine(self, store: ChronoStore) -> None:
        store.upsert_many([ChronoRecord(id=name, label="same words") for name in "ABC"])
        store.vectors.attach_many(list("ABC"), np.eye(3), model="three")
        [file] = (store.project_root / ".chronomemory" / "vectors").glob("*.f32")
        damaged = bytearray(file.read_bytes())
        damaged[0] ^= 1
        file.write_bytes(damaged)
        hits = store.search("same", [1, 1, 1], explain=True)
        assert {hit.id: hit.why["cosine"] is None for hit in hits if hit.why} == {
            "A": True,
            "B": False,
            "C": False,
        }
        assert {hit.id for hit in store.search(vector=[1, 1, 1])} == {"B", "C"}


class TestRefusals:
    @pytest.mark.parametrize(
        ("vector", "reason"),
        [
            ([1.0] * 15, "16 components, .+ got 15"),
            ([], "16 components, .+ got 0"),
            ([float("nan")] * DIM, "must be finite"),
            ([float("inf")] + [0.0] * 15, "must be finite"),
            ([1e300] * DIM, "too large"),
            (["a"] * DIM, "no numbers"),
            ([[1.0] * DIM], "2 dimensions"),
            (1.0, "0 dimensions"),
        ],
    )
    @pytest.mark.parametrize("text", [TEXT, None])
    def test_a_vector_that_does_not_fit_is_named(
        self, full: ChronoStore, text: str | None, vector: Any, reason: str
    ) -> None:
        with pytest.raises(InvalidArgument, match=reason) as refused:
            full.search(text, vector)
        assert refused.value.field == "vector"

    @pytest.mark.parametrize("by", ["seq", "time"])
    def test_the_past_has_no_embeddings(self, full: ChronoStore, by: str) -> None:
        when = COUNT + 1 if by == "seq" else datetime.now(timezone.utc)
        with pytest.raises(InvalidArgument, match="embeddings are kept as they are now") as refused:
            full.search(TEXT, VECTOR, as_of=when)
        assert refused.value.field == "as_of"
        assert full.search(TEXT, as_of=when, limit=1)

    def test_a_search_for_nothing_is_refused(self, full: ChronoStore) -> None:
        with pytest.raises(ValueError, match="a text or a vector"):
            full.search()


OTHER = """
import sys
import numpy as np
from chronomemory import ChronoRecord, ChronoStore
with ChronoStore(sys.argv[1]) as store:
    exec(sys.argv[2])
"""


def test_what_another_process_does_is_seen_at_once(store: ChronoStore, tmp_path: Path) -> None:
    def elsewhere(work: str) -> None:
        subprocess.run([sys.executable, "-c", OTHER, str(tmp_path), work], check=True, timeout=60)

    def found(**asked: Any) -> dict[str, float | None]:
        hits = store.search(vector=[1, 0, 0], explain=True, context=False, **asked)
        return {hit.id: hit.why["cosine"] for hit in hits if hit.why}

    store.upsert_many([ChronoRecord(id=name, label="same words") for name in "ABC"])
    store.vectors.attach_many(list("AB"), np.eye(3)[:2], model="three")
    assert found() == {"A": 1.0, "B": 0.0}
    elsewhere("store.vectors.attach('C', [2, 0, 0])")
    assert found() == {"A": 1.0, "C": 1.0, "B": 0.0}
    elsewhere("store.vectors.attach('A', [0, 0, 5])")
    assert found() == {"C": 1.0, "A": 0.0, "B": 0.0}
    elsewhere("store.vectors.detach('C')")
    assert found() == {"A": 0.0, "B": 0.0}
    assert found(text="words") == {"A": 0.0, "B": 0.0, "C": None}
    elsewhere("store.delete('A')")
    assert found() == {"B": 0.0}
    elsewhere(
        "store.upsert(ChronoRecord(id='D', label='new')); store.vectors.attach('D', [1, 0, 0]);"
        " store.compact()"
    )
    assert found() == {"D": 1.0, "B": 0.0}


def test_what_is_scored_too_low_is_left_out(store: ChronoStore) -> None:
    store.upsert_many(
        [{"id": f"T-{number}", "label": "tea " * number + "cup " * (9 - number)} for number in range(1, 8)]
    )
    found = store.search("tea")
    floor = found[3].score
    kept = store.search("tea", min_score=floor)
    assert [hit.id for hit in kept] == [hit.id for hit in found if hit.score >= floor]
    assert 4 <= len(kept) < len(found)
    assert store.search("tea", min_score=found[0].score * 2) == []
    page = store.search("tea", min_score=floor, limit=3)
    rest = store.search("tea", min_score=floor, limit=3, after=page.cursor)
    assert [hit.id for hit in [*page, *rest]] == [hit.id for hit in kept]
    assert rest.cursor is None
    with pytest.raises(InvalidArgument, match="another question"):
        store.search("tea", limit=3, after=page.cursor)
    with pytest.raises(InvalidArgument, match="min_score"):
        store.search("tea", min_score="much")  # type: ignore[arg-type]
