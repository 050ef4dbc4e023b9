"""Tokens are kept as the format says, found as plain Python finds them, and safe like any other row."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pytest
from bm25 import scores as text_scores
from chronomemory import ChronoRecord, ChronoStore, InvalidArgument, InvalidRecord
from chronomemory.embedders import CallableEmbedder, CallableTokenEmbedder
from chronomemory.errors import EmbeddingMismatch, UnknownSpace
from lifting import Surroundings, lifted
from token_codes import TEXT, TOKENS, VECTOR, fused, row_of, scores, shares, signs_of
from verdicts import verify_log

Floats = npt.NDArray[np.float32]
DIM, MOST, COUNT = 40, 6, 30
WORDS = ("bark", "dent", "fisp", "gong", "lump", "malt")
chance = np.random.default_rng(3)
#: Some have more tokens than there is room for, and one in five has none.
GIVEN: dict[str, Floats] = {
    f"R{number}": chance.standard_normal((1 + number % 9, DIM), dtype=np.float32)
    for number in range(COUNT)
    if number % 5
}
QUESTION: Floats = chance.standard_normal((3, DIM), dtype=np.float32)
VECTORS: Floats = chance.standard_normal((COUNT, 8), dtype=np.float32)


def record(number: int) -> ChronoRecord:
    return ChronoRecord(id=f"R{number}", label=" ".join(chance.choice(WORDS, 5)))


RECORDS = [record(number) for number in range(COUNT)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ChronoStore]:
    with ChronoStore(tmp_path) as made:
        made.upsert_many(RECORDS)
        made.vectors.attach_tokens_many(list(GIVEN), GIVEN.values(), model="m", most=MOST)
        yield made


def found(store: ChronoStore, **asked: object) -> dict[str, float | None]:
    hits = store.search(query_tokens=QUESTION, limit=COUNT, context=False, explain=True, **asked)  # type: ignore[arg-type]
    return {hit.id: hit.why["tokens"] for hit in hits if hit.why}


def expected(names: object = None) -> dict[str, float]:
    wanted = GIVEN if names is None else {name: GIVEN[name] for name in GIVEN if name in names}  # type: ignore[operator]
    return scores(QUESTION, {name: signs_of(tokens, MOST) for name, tokens in wanted.items()})


def tokens_file(store: ChronoStore) -> Path:
    return next((store.project_root / ".chronomemory" / "vectors").glob("tokens.*.f32"))


class TestRows:
    def test_codes_are_those_of_the_format(self, store: ChronoStore) -> None:
        for name, tokens in GIVEN.items():
            kept = store.engine.vectors.embedding(name, space="tokens")
            assert kept == row_of(tokens, MOST)

    def test_a_space_says_that_it_holds_tokens(self, store: ChronoStore) -> None:
        (space,) = store.vectors.spaces()
        assert (space.name, space.model, space.tokens, space.dim, space.living) == (
            "tokens",
            "m",
            DIM,
            4 * MOST,
            24,
        )
        bound = store.get("vector:tokens")
        assert bound is not None and bound.data["tokens"] == DIM

    def test_both_verifiers_know_them(self, store: ChronoStore) -> None:
        store.close()
        assert store.verify().valid
        assert verify_log.verify_folder(store.project_root / ".chronomemory")["valid"]
        file = tokens_file(store)
        data = bytearray(file.read_bytes())
        data[5 * 16 * MOST] ^= 1
        file.write_bytes(data)
        assert [damage.kind for damage in store.verify().damage] == ["row-altered"]
        told = verify_log.verify_folder(store.project_root / ".chronomemory")
        assert [one["kind"] for one in told["damage"]] == ["row-altered"]

    def test_a_new_generation_still_holds_tokens(self, store: ChronoStore) -> None:
        before = found(store)
        for _ in range(2):
            store.vectors.attach_tokens_many(list(GIVEN), GIVEN.values())
        store.compact()
        (space,) = store.vectors.spaces()
        assert (space.generation, space.tokens, space.rows) == (1, DIM, len(GIVEN))
        assert found(store) == before
        with ChronoStore(store.project_root, own_engine=True) as other:
            assert found(other) == before

    def test_other_processes_see_them_at_once(self, store: ChronoStore) -> None:
        with ChronoStore(store.project_root, own_engine=True) as other:
            assert "R0" not in found(other)
            store.vectors.attach_tokens("R0", QUESTION)
            assert next(iter(found(other))) == "R0"
            assert other.vectors.detach("R0", space="tokens")
        assert "R0" not in found(store)


class TestRoom:
    """Where a record has few tokens, more of their signs are kept."""

    FEW: ClassVar[dict[str, Floats]] = {
        f"R{number}": chance.standard_normal((1 + number, 300), dtype=np.float32) for number in range(12)
    }
    ASKED: ClassVar[Floats] = chance.standard_normal((4, 300), dtype=np.float32)

    def test_rows_and_scores_are_those_of_plain_python(self, tmp_path: Path) -> None:
        with ChronoStore(tmp_path) as store:
            store.upsert_many(RECORDS)
            store.vectors.attach_tokens_many(list(self.FEW), self.FEW.values(), model="m", most=11)
            kept = {name: signs_of(tokens, 11) for name, tokens in self.FEW.items()}
            assert {len(signs[0]) // 124 for signs in kept.values()} == {1, 2, 3, 4}
            for name, tokens in self.FEW.items():
                assert store.engine.vectors.embedding(name, space="tokens") == row_of(tokens, 11)
            hits = store.search(query_tokens=self.ASKED, limit=COUNT, context=False, explain=True)
            assert {hit.id: (hit.why or {})["tokens"] for hit in hits} == scores(self.ASKED, kept)

    def test_rows_from_before_are_read_as_they_were(self, tmp_path: Path) -> None:
        """Until 2026-11-17 every token had one code, however much room there was."""
        one = self.FEW["R3"]
        with ChronoStore(tmp_path) as store:
            store.upsert_many(RECORDS)
            plain = np.frombuffer(row_of(one, len(one)), np.float32)
            filled = np.concatenate([plain, np.tile(plain[-4:], 11 - len(one))])[None]
            store.engine.vectors.attach((["R3"], filled, "tokens", "m", 300))
            (hit,) = store.search(query_tokens=self.ASKED, context=False, explain=True)
            assert (hit.why or {})["tokens"] == scores(self.ASKED, {"R3": signs_of(one, len(one))})["R3"]


class TestEmbedder:
    """An embedder that is handed to a search reads its text for whatever was embedded."""

    def test_it_gives_what_a_space_can_be_asked_for(self, store: ChronoStore) -> None:
        tokens = CallableTokenEmbedder("m", lambda texts: [QUESTION for _ in texts])
        plain = CallableEmbedder("v", lambda texts: [VECTORS[3] for _ in texts])
        wanted = store.search("bark", query_tokens=QUESTION)
        assert [(hit.id, hit.score) for hit in store.search("bark", embedder=tokens)] == [
            (hit.id, hit.score) for hit in wanted
        ]
        with pytest.raises(InvalidArgument, match="embedded by 'v'") as refused:
            store.search("bark", embedder=plain)
        assert refused.value.field == "embedder"
        store.vectors.attach_many([one.id for one in RECORDS], VECTORS, model="v")
        hits = store.search("bark", embedder=plain)
        assert [hit.score for hit in hits] == [hit.score for hit in store.search("bark", VECTORS[3])]
        with pytest.raises(InvalidArgument, match="text"):
            store.search(embedder=tokens)


class TestContext:
    def test_a_group_counts_by_its_best_and_its_words(self, tmp_path: Path) -> None:
        with ChronoStore(tmp_path) as store:
            records = [
                ChronoRecord(id=one.id, label=one.label, data={"session": number % 4})
                for number, one in enumerate(RECORDS)
            ]
            store.upsert_many(records)
            store.vectors.attach_tokens_many(list(GIVEN), GIVEN.values(), model="m", most=MOST)
            hits = store.search("bark malt fisp", query_tokens=QUESTION, limit=COUNT, explain=True)
            alone = {hit.id: hit.why["alone"] for hit in hits if hit.why}
            words = []
            for word in ("bark", "malt", "fisp"):
                had = {one.id for one in RECORDS if word in one.label}
                weight = math.log(1.0 + (COUNT - len(had) + 0.5) / (len(had) + 0.5))
                words.append((weight, word, had & set(alone)))
            words.sort(key=lambda one: (-one[0], one[1]))
            around = Surroundings(
                groups={one.id: one.data["session"] for one in records if one.id in alone},
                words=[(weight, had) for weight, _, had in words],
            )
            assert len(alone) > 20 and any((hit.why or {})["grouped"] > 0 for hit in hits)
            assert {hit.id: hit.score for hit in hits} == lifted(alone, around)


class TestSearch:
    def test_tokens_alone_are_those_of_plain_python(self, store: ChronoStore) -> None:
        wanted = expected()
        assert found(store) == wanted
        assert list(found(store)) == sorted(wanted, key=lambda name: (-wanted[name], int(name[1:])))

    def test_all_three_become_one_score(self, store: ChronoStore) -> None:
        store.vectors.attach_many([one.id for one in RECORDS], VECTORS, model="v")
        hits = store.search(
            "bark malt", VECTORS[3], query_tokens=QUESTION, limit=COUNT, context=False, explain=True
        )
        by_tokens = shares(expected())
        assert len(hits) == COUNT
        for hit in hits:
            why = hit.why or {}
            assert why["token_share"] == by_tokens.get(hit.id, 0.0)
            parts = [(TEXT, why["text_share"]), (VECTOR, why["vector_share"]), (TOKENS, why["token_share"])]
            assert hit.score == why["alone"] == fused(parts)

    def test_words_and_tokens_are_one_score_without_a_vector(self, store: ChronoStore) -> None:
        by_words = text_scores(RECORDS, "bark malt")
        best = max(by_words.values())
        by_tokens = shares(expected())
        for hit in store.search("bark malt", query_tokens=QUESTION, limit=COUNT, context=False, explain=True):
            text = by_words.get(hit.id, 0.0) / best
            assert hit.score == pytest.approx(
                fused([(TEXT, text), (TOKENS, by_tokens.get(hit.id, 0.0))]), rel=1e-12
            )

    def test_what_others_hold_changes_nothing(self, tmp_path: Path) -> None:
        with ChronoStore(tmp_path) as store:
            one, other = store.scoped(user="one"), store.scoped(user="other")
            for number, (name, tokens) in enumerate(GIVEN.items()):
                (one if number % 2 else other).upsert(RECORDS[int(name[1:])])
                (one if number % 2 else other).vectors.attach_tokens(name, tokens, model="m", most=MOST)
            mine = list(GIVEN)[1::2]
            hits = one.search(query_tokens=QUESTION, limit=COUNT, context=False, explain=True)
            assert {hit.id: (hit.why or {})["tokens"] for hit in hits} == expected(mine)

    def test_a_filter_changes_who_is_looked_at(self, store: ChronoStore) -> None:
        bark = {one.id for one in RECORDS if "bark" in one.label}
        assert found(store, where={"label": {"like": "%bark%"}}) == expected(bark)

    def test_among_many_those_are_looked_at_that_words_put_forward(self, store: ChronoStore) -> None:
        many = [ChronoRecord(id=f"M{number}", label="other") for number in range(1100)]
        store.upsert_many(many)
        codes = chance.standard_normal((len(many), 1, DIM), dtype=np.float32)
        store.vectors.attach_tokens_many([one.id for one in many], codes)
        store.vectors.attach_tokens("M7", QUESTION)
        by_words = {one.id for one in RECORDS if "bark" in one.label}
        hits = store.search("bark", query_tokens=QUESTION, limit=COUNT, context=False, explain=True)
        assert {hit.id for hit in hits} == by_words
        assert {hit.id: (hit.why or {})["tokens"] for hit in hits if hit.id in GIVEN} == expected(by_words)
        # Alone they are held against all.
        assert store.search(query_tokens=QUESTION, limit=3, context=False)[0].id == "M7"

    def test_codes_that_were_touched_are_never_scored(self, store: ChronoStore) -> None:
        before = found(store)
        best = next(iter(before))
        row = list(GIVEN).index(best)
        file = tokens_file(store)
        data = bytearray(file.read_bytes())
        data[row * 16 * MOST] ^= 1
        file.write_bytes(data)
        assert found(store) == expected(set(GIVEN) - {best})
        assert store.vectors.spaces()[0].damaged == 1
        store.upkeep.repair()
        assert found(store) == expected(set(GIVEN) - {best}) and store.verify().valid


class TestRefusals:
    @pytest.mark.parametrize(
        ("asked", "field", "said"),
        [
            ({"query_tokens": QUESTION[:, :7]}, "query_tokens", "40 components"),
            ({"query_tokens": np.zeros((0, DIM))}, "query_tokens", "at least one row"),
            ({"query_tokens": np.full((1, DIM), np.nan)}, "query_tokens", "finite"),
            ({"query_tokens": QUESTION[0]}, "query_tokens", "1 dimensions"),
            ({"query_tokens": QUESTION, "as_of": 1}, "as_of", "as they are now"),
            ({"query_tokens": QUESTION, "token_space": "default"}, "token_space", "holds vectors"),
            ({"vector": np.ones(4 * MOST), "space": "tokens"}, "space", "codes of tokens"),
        ],
    )
    def test_of_a_question(self, store: ChronoStore, asked: dict[str, object], field: str, said: str) -> None:
        store.vectors.attach("R0", [1.0, 2.0], model="v")
        with pytest.raises(InvalidArgument, match=said) as caught:
            store.search("bark", **asked)  # type: ignore[arg-type]
        assert caught.value.field == field

    def test_of_tokens(self, store: ChronoStore) -> None:
        seq = store.wal_seq()
        for tokens, said in (
            (QUESTION[:0], "at least one row"),
            (QUESTION * np.nan, "not finite"),
            ([[]], "at least"),
        ):
            with pytest.raises((InvalidRecord, InvalidArgument), match=said):
                store.vectors.attach_tokens("R1", tokens)
        with pytest.raises(EmbeddingMismatch):
            store.vectors.attach_tokens("R1", QUESTION, model="another")
        with pytest.raises(InvalidArgument, match="components, not codes of token vectors of 7"):
            store.vectors.attach_tokens("R1", QUESTION[:, :7])
        with pytest.raises(InvalidArgument, match='"tokens" holds codes of token vectors'):
            store.vectors.attach("R1", np.ones(4 * MOST), space="tokens")
        with pytest.raises(InvalidArgument, match="room for 6 codes"):
            store.vectors.attach_tokens("R1", QUESTION, most=7)
        with pytest.raises(InvalidArgument, match="most must be at least 1"):
            store.vectors.attach_tokens("R1", QUESTION, most=0)
        with pytest.raises(InvalidArgument, match="holds codes of tokens"):
            store.vectors.use("tokens")
        with pytest.raises((InvalidRecord, InvalidArgument), match="do not go together"):
            store.vectors.attach_tokens_many(["R1", "R2"], [QUESTION])
        with pytest.raises(InvalidArgument, match="codes of tokens"):
            store.vectors.nearest(np.ones(4 * MOST), space="tokens")
        assert store.wal_seq() == seq

    def test_of_a_space_that_is_not_there(self, tmp_path: Path) -> None:
        with ChronoStore(tmp_path) as store:
            store.upsert(RECORDS[0])
            with pytest.raises(UnknownSpace):
                store.search("bark", query_tokens=QUESTION)


def test_an_erased_record_leaves_no_code(tmp_path: Path) -> None:
    chance = np.random.default_rng(3)
    tokens = [chance.standard_normal((5 + number, 32)).astype(np.float32) for number in range(4)]
    ids = [f"R{number}" for number in range(4)]
    with ChronoStore(tmp_path) as store:
        store.upsert_many([{"id": one, "label": one} for one in ids])
        store.vectors.attach_tokens_many(ids, tokens, model="noise")
        row = store.engine.vectors.embedding("R2", space="tokens")
        others = [store.engine.vectors.embedding(one, space="tokens") for one in ids if one != "R2"]
        store.erase(ids=["R2"], reason="asked for")
        assert row is not None
        assert "R2" not in {hit.id for hit in store.search(query_tokens=tokens[2])}
        assert [store.engine.vectors.embedding(one, space="tokens") for one in ids if one != "R2"] == others
        assert store.verify().valid
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files and not any(row in path.read_bytes() for path in files)
