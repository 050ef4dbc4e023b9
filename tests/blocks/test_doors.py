"""What a score or the log could not bear is refused by name, before anything is written."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chronomemory import InvalidArgument, InvalidRecord
from chronomemory.blocks import Frame, IntegrityError, Memory, ScoringWeights, sync
from chronomemory.blocks.storage.config import looks_secret
from chronomemory.embedders import CallableEmbedder, LexicalEmbedder
from chronomemory.face.arguments import finite
from chronomemory.record import ChronoRecord

BROKEN = "half \ud800 a pair"


@pytest.fixture
def pair(memory: Memory) -> tuple[str, str]:
    one, other = (memory.remember(f"Fact {angle}").block_id for angle in (0, 90))
    return min(one, other), max(one, other)


Call = Callable[[Memory, str, str], Any]


def batch(work: Callable[[Any, str, str], Any]) -> Call:
    def call(memory: Memory, one: str, other: str) -> Any:
        with memory.blocks.begin() as conn:
            return work(conn, one, other)

    return call


REFUSED: dict[str, tuple[str, Call]] = {
    "a link of no weight": ("weight", lambda m, a, b: m.connect(a, b, math.nan)),
    "a link beyond one": ("weight", lambda m, a, b: m.connect(a, b, 1e308)),
    "a stored link beyond one": (
        "weight",
        batch(lambda conn, a, b: sync.insert_edge(conn, from_id=a, to_id=b, weight=1.5)),
    ),
    "a stored link of no weight": (
        "weight",
        batch(lambda conn, a, b: sync.insert_edge(conn, from_id=a, to_id=b, weight=math.nan)),
    ),
    "a contradiction beyond one": (
        "score",
        batch(lambda conn, a, b: sync.insert_contradiction(conn, block_a_id=a, block_b_id=b, score=7.0)),
    ),
    "an outcome that outweighs all": ("weight", lambda m, a, b: m.outcome([a], 1.0, 1e308)),
    "a whole number beyond floats": ("weight", lambda m, a, b: m.outcome([a], 1.0, 10**400)),
    "no such reason": (
        "archive_reason",
        batch(lambda conn, a, b: sync.update_block_status(conn, a, "archived", archive_reason="bored")),
    ),
    "no such status": ("status", batch(lambda conn, a, b: sync.update_block_status(conn, a, "asleep"))),
    "a bogus list": ("status", lambda m, a, b: m.list(status="asleep")),
    "a list of less than nothing": ("limit", lambda m, a, b: m.list(limit=-1)),
    "half a consolidation": ("limit", lambda m, a, b: m.consolidate(0.5)),  # type: ignore[arg-type]
    "a broken text": ("content", lambda m, a, b: m.learn(BROKEN)),
    "a broken edit": ("content", lambda m, a, b: m.edit(a, BROKEN)),
    "a broken tag": ("tags", lambda m, a, b: m.learn("Fact 20", [BROKEN])),
    "a broken category": ("category", lambda m, a, b: m.learn("Fact 20", [], BROKEN)),
    "a broken query": ("query", lambda m, a, b: m.recall(BROKEN)),
    "a word for yes": ("diversify", lambda m, a, b: m.recall("about 0", diversify="yes")),  # type: ignore[arg-type]
    "a broken session": ("task_type", lambda m, a, b: m.begin_session(BROKEN)),
    "one tag to learn": ("tags", lambda m, a, b: m.learn("Fact 20", "work")),
    "one tag to add": ("tags", batch(lambda conn, a, b: sync.add_tags(conn, a, "work"))),
    "one tag to recall": ("tags", lambda m, a, b: m.recall("about 0", tags="self/%")),
    "one category to recall": ("categories", lambda m, a, b: m.recall("about 0", categories="decision")),
    "one id": ("ids", lambda m, a, b: m.outcome(a, 1.0)),
    "less than no budget": ("token_budget", lambda m, a, b: m.frame("self", token_budget=-1)),
    "a budget beyond all": ("token_budget", lambda m, a, b: m.frame("self", token_budget=10**30)),
    "a query of words": ("query", lambda m, a, b: m.frame("self", ["key"])),  # type: ignore[arg-type]
    "a broken id": ("block_id", lambda m, a, b: m.history(BROKEN)),
    "a broken pattern": (
        "pattern",
        batch(lambda conn, a, b: sync.get_blocks_by_tag_pattern(conn, BROKEN)),
    ),
    "half a result": ("top_k", lambda m, a, b: m.recall("about 0", top_k=2.5)),  # type: ignore[arg-type]
    "half a result in a frame": ("top_k", lambda m, a, b: m.frame("task", top_k=True)),
    "no confidence": ("min_confidence", lambda m, a, b: m.recall("about 0", min_confidence=math.nan)),
    "a window back": ("window", lambda m, a, b: m.recall("about 0", window=-1.0)),
    "links back": ("expansion", lambda m, a, b: m.recall("about 0", expansion=-1)),
    "no exploration": ("exploration", lambda m, a, b: Memory(m.blocks, exploration=math.nan)),
    "a setting of words": ("top_k", batch(lambda conn, a, b: sync.set_config(conn, "top_k", "many"))),
    "a setting of nothing": ("top_k", batch(lambda conn, a, b: sync.set_config(conn, "top_k", "0"))),
    "a threshold": (
        "prune_threshold",
        batch(lambda conn, a, b: sync.set_config(conn, "prune_threshold", "nan")),
    ),
    "a clock back": (
        "total_active_hours",
        batch(lambda conn, a, b: sync.set_config(conn, "total_active_hours", "-1")),
    ),
}


@pytest.mark.parametrize(("field", "call"), REFUSED.values(), ids=REFUSED)
def test_it_is_refused_by_name_and_nothing_is_written(
    memory: Memory, pair: tuple[str, str], field: str, call: Call
) -> None:
    before = memory.blocks.store.health().head
    with pytest.raises(InvalidArgument, match=rf"^{field} must .+, got |^{field}: ") as told:
        call(memory, *pair)
    assert told.value.field == field
    assert memory.blocks.store.health().head == before


def test_a_setting_of_an_older_hand_is_told_of_and_stops_nothing(memory: Memory) -> None:
    with memory.blocks.begin() as conn:
        conn.put(ChronoRecord(id="config:top_k", kind="config", data={"value": "many"}))
    memory.recall()
    assert memory.status().unusable == ("config:top_k: top_k: must be a number, such as 10, got 'many'",)
    with (
        pytest.raises(InvalidRecord, match=r"^top_k must be a number, such as 10, got 'many'$"),
        memory.blocks.begin() as conn,
    ):
        sync.set_config(conn, "top_k", "many")


class TestArchivedBlocks:
    def test_they_are_not_linked(self, memory: Memory, pair: tuple[str, str]) -> None:
        memory.forget(pair[0])
        with pytest.raises(IntegrityError, match="archived"):
            memory.connect(*pair)

    def test_a_refused_memory_leaves_nothing_open(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidArgument, match="exploration"):
            Memory(tmp_path, exploration=-1.0)
        assert list(tmp_path.iterdir()) == []

    def test_their_links_and_contradictions_are_not_counted(
        self, memory: Memory, pair: tuple[str, str]
    ) -> None:
        memory.connect(*pair)
        with memory.blocks.begin() as conn:
            sync.insert_contradiction(conn, block_a_id=pair[0], block_b_id=pair[1], score=0.9)
        assert (memory.status().edges, memory.status().contradictions) == (1, 1)
        third = memory.remember("Fact 180").block_id
        memory.connect(pair[1], third)
        memory.forget(pair[0])
        assert (memory.status().edges, memory.status().contradictions) == (1, 0)
        memory.forget(third)
        memory.forget(pair[1])
        assert (memory.status().edges, memory.status().contradictions) == (0, 0)


class TestQueryVectors:
    """A question's vector is looked at as those of blocks are."""

    @pytest.mark.parametrize(
        "answer",
        [[math.nan] * 384, [1.0] * 383, [], [[1.0] * 384], ["1.0"] * 384, 1.0, [1e300] * 384, None],
        ids=["nan", "short", "empty", "nested", "words", "one number", "too large", "nothing"],
    )
    def test_a_bad_one_is_refused(self, tmp_path: Path, answer: Any) -> None:
        class Broken(LexicalEmbedder):
            def embed(self, text: str) -> Any:
                return answer if text.startswith("where") else super().embed(text)

        with Memory(tmp_path, embedder=Broken()) as memory:
            memory.remember("The key is in the vault")
            for ask in (memory.recall, lambda query: memory.frame("attention", query)):
                with pytest.raises(InvalidArgument, match=r"^embedding: "):
                    ask("where is the key?")

    @pytest.mark.parametrize("row", [["1.0", "2.0"], [True, False], [1j, 2j]])
    def test_rows_of_something_else_are_no_vectors(self, tmp_path: Path, row: list[Any]) -> None:
        with Memory(tmp_path, embedder=CallableEmbedder("odd", lambda texts: [row] * len(texts))) as memory:
            memory.learn("The key is in the vault")
            with pytest.raises(ValueError, match="instead of numbers"):
                memory.consolidate()
            assert memory.status().inbox == 1

    def test_a_good_one_is_not(self, tmp_path: Path) -> None:
        def embed(texts: list[str]) -> Any:
            return np.array([[len(text), 1] for text in texts], dtype=np.int64)

        with Memory(tmp_path, embedder=CallableEmbedder("lengths", embed)) as memory:
            memory.remember("The key is in the vault")
            assert len(memory.recall("where?")) == 1


LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
SECRETS = [
    f"sk-proj-{LETTERS}", f"sk-ant-api03-{LETTERS}", f"sk_live_{LETTERS}", f"rk_live_{LETTERS}",
    f"ghp_{LETTERS}", f"gho_{LETTERS}", f"github_pat_11{LETTERS}", f"glpat-{LETTERS}", f"xoxp-1234-{LETTERS}",
    f"AKIA{LETTERS[:16].upper()}", f"ASIA{LETTERS[:16].upper()}", f"AIza{LETTERS}", f"hf_{LETTERS}",
    f"npm_{LETTERS}", f"SG.{LETTERS}.{LETTERS}", f"eyJ{LETTERS}.eyJ{LETTERS}.{LETTERS}",
    "-----BEGIN OPENSSH PRIVATE KEY-----\nb3", f"Authorization: Bearer {LETTERS}",
    "postgres://anna:hunter2@db/main", f"the key is sk-{LETTERS}, as ever",
]  # fmt: skip
SECRET_NAMES = [
    "token", "github_token", "githubToken", "private-key", "DB_PASSWD", "passphrase", "refresh_token",
    "AWS_ACCESS_KEY",
]  # fmt: skip
SECRETS += [
    "gsk_" + "a1B2" * 13, "xai-" + "a1B2" * 20, "pplx-" + "a1b2" * 12, "r8_" + "a1B2" * 9,
    "nvapi-" + "a1_-" * 16,
]  # fmt: skip
SECRET_NAMES += [
    "openai_key",
    "OPENAI_KEY",
    "anthropic_key",
    "azure_openai_key",
    "signing-key",
    "my.groq.key2",
]
HARMLESS = [
    ("sort_key", "name"), ("cache_key", "a"), ("primary_key", "id"), ("openai_model", "small"),
    ("top_k", "5"), ("token_budget", "2000"), ("max_tokens", "800"), ("tokenizer", "cl100k"),
    ("endpoint", "https://example.org:8080/v1"), ("style", "sk-learn"), ("model", "text-embedding-3-small"),
    ("digest", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"), ("monkey", "skating"),
]  # fmt: skip


class TestSecrets:
    @pytest.mark.parametrize("value", SECRETS)
    def test_a_value_of_a_known_shape_is_refused(self, memory: Memory, value: str) -> None:
        with pytest.raises(InvalidRecord, match="secret"), memory.blocks.begin() as conn:
            sync.set_config(conn, "innocent", value)

    @pytest.mark.parametrize("name", SECRET_NAMES)
    def test_so_is_a_name(self, name: str) -> None:
        assert looks_secret(name, "x")

    @pytest.mark.parametrize(("name", "value"), HARMLESS)
    def test_other_settings_are_not(self, name: str, value: str) -> None:
        assert not looks_secret(name, value)


TYPES: dict[str, Call] = {
    "a link from nowhere": batch(
        lambda conn, a, b: sync.insert_edge(conn, from_id=None, to_id=b, weight=0.5)
    ),
    "a clash with a number": batch(
        lambda conn, a, b: sync.insert_contradiction(conn, block_a_id=a, block_b_id=3, score=0.5)
    ),
    "a clash of nothing": batch(lambda conn, a, b: sync.resolve_contradiction(conn, None, b)),
    "links that are none": batch(lambda conn, a, b: sync.reinforce_edges(conn, None)),
    "links of one": batch(lambda conn, a, b: sync.reinforce_edges(conn, [(a,)])),
    "links of numbers": batch(lambda conn, a, b: sync.reinforce_edges(conn, [(1, 2)])),
    "an hour that is a word": batch(
        lambda conn, a, b: sync.get_active_blocks(conn, min_last_reinforced_at="x")
    ),
    "a link taken from nothing": lambda m, a, b: m.disconnect(None, b),
}  # fmt: skip


@pytest.mark.parametrize("call", TYPES.values(), ids=TYPES)
def test_what_is_of_another_type_is_refused_by_name(
    memory: Memory, pair: tuple[str, str], call: Call
) -> None:
    with pytest.raises(InvalidArgument):
        call(memory, *pair)


@pytest.mark.parametrize(
    "rows", [[[math.nan] * 4], [[1.0], [1.0, 2.0]], None, ["x"], np.ones((3, 4)), [[]]], ids=str
)
def test_what_an_embedder_may_not_give(tmp_path: Path, rows: Any) -> None:
    class Odd:
        model_name = "odd"

        def embed(self, _text: str) -> Any:
            return None if rows is None else rows[0]

        def embed_batch(self, _texts: Any) -> Any:
            return rows

    for embedder in (Odd(), CallableEmbedder("odd", lambda texts: rows)):
        with Memory(tmp_path / type(embedder).__name__, embedder=embedder) as memory:
            memory.learn("Whales sing")
            with pytest.raises(InvalidRecord):
                memory.consolidate()
            assert memory.status().inbox == 1


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    with Memory(
        tmp_path,
        analyser=lambda content: {"alignment": np.float32(0.75)},
        judge=lambda one, other: np.float32(0.9),
        token_counter=lambda text: np.int64(7),
    ) as memory:
        ids = [memory.remember(f"The cache of the server is {word}").block_id for word in ("warm", "cold")]
        assert memory.status().contradictions == 1
        assert [row["confidence"] for row in memory.list()] == [0.75, 0.75]
        assert memory.frame("attention", "cache", top_k=np.int64(1)).tokens == 7
        memory.outcome(ids, np.float32(0.1), np.float64(1.0))
        with memory.blocks.begin() as conn:
            sync.update_block_scoring(conn, ids[0], confidence=np.float32(0.5), token_count=np.int32(3))
            assert sync.get_block(conn, ids[0])["confidence"] == 0.5
    for wrong in (np.float32("nan"), np.bool_(True), True):
        with pytest.raises(InvalidArgument):
            finite("weight", wrong)


def test_a_counter_need_not_be_hashable(memory: Memory) -> None:
    class Counter(list[int]):
        def __call__(self, _text: str) -> int:
            return 2

    memory.remember("Fact 0", tags=["self/value"])
    assert [memory.frame("self", token_counter=Counter()).tokens for _ in range(2)] == [2, 2]


def test_a_frame_of_similarity_alone_needs_a_query(memory: Memory) -> None:
    weights = ScoringWeights(similarity=1, confidence=0, recency=0, centrality=0, reinforcement=0)
    memory.define_frame(Frame(name="alike", weights=weights))
    memory.remember("Fact 0")
    for ask in (lambda: memory.recall(frame="alike"), lambda: memory.frame("alike")):
        with pytest.raises(InvalidArgument, match="query"):
            ask()
    assert len(memory.frame("alike", "about 0").blocks) == 1


def test_blocks_left_open_make_no_noise_at_exit() -> None:
    script = "from chronomemory.blocks import open_test_blocks\nblocks = open_test_blocks()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "Exception ignored" not in done.stderr


def test_an_unknown_id_is_told_with_where_to_look(memory: Memory) -> None:
    for verb in (
        lambda: memory.forget("no"),
        lambda: memory.edit("no", "x"),
        lambda: memory.connect("no", "na"),
    ):
        with pytest.raises(IntegrityError, match=r"'n[oa]'") as told:
            verb()
        assert "list()" in told.value.recovery
