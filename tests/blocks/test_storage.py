"""Every storage function keeps its promise: one class a table, as in the description."""

from __future__ import annotations

import inspect
import json
import math

import numpy as np
import pytest
from chronomemory import ChronoError, InvalidRecord
from chronomemory.blocks import (
    ArchiveReason,
    Blocks,
    BlockStatus,
    Edge,
    IntegrityError,
    bytes_to_embedding,
    content_hash,
    embedding_to_bytes,
    log_normalise_reinforcement,
    sync,
)
from chronomemory.face.batch import Connection

COLUMNS = {
    "id", "content", "category", "source", "created_at", "status", "archive_reason", "confidence",
    "reinforcement_count", "decay_lambda", "last_reinforced_at", "self_alignment", "embedding",
    "embedding_model", "token_count", "last_session_id",
}  # fmt: skip


class TestIds:
    def test_a_content_has_one_id_whatever_its_case_and_edges(self) -> None:
        assert content_hash("  Hello World\n") == content_hash("hello world")
        assert len(content_hash("x")) == 16
        assert content_hash("hello world") == "b94d27b9934d3e08"

    def test_vectors_come_back_as_they_were(self) -> None:
        vector = np.array([0.1, -2.5, 1e-30], dtype=np.float32)
        assert bytes_to_embedding(embedding_to_bytes(vector)).tobytes() == vector.tobytes()
        assert len(embedding_to_bytes(vector.astype(np.float64))) == 12

    def test_links_have_one_order(self) -> None:
        assert Edge.canonical("b", "a") == Edge.canonical("a", "b") == ("a", "b")

    def test_no_use_is_no_reinforcement(self) -> None:
        assert log_normalise_reinforcement(0, 9) == 0.0
        assert log_normalise_reinforcement(0, 0) == 0.0
        assert log_normalise_reinforcement(9, 9) == 1.0


class TestBlocks:
    def test_a_new_block_has_every_column_with_its_default(self, conn: Connection) -> None:
        block = sync.get_block(conn, "a")
        assert block is not None
        assert set(block) == COLUMNS
        assert (block["status"], block["confidence"], block["decay_lambda"]) == ("inbox", 0.5, 0.01)
        assert (block["reinforcement_count"], block["last_reinforced_at"]) == (0, 0.0)
        for column in ("archive_reason", "self_alignment", "embedding", "embedding_model", "token_count"):
            assert block[column] is None

    def test_an_id_is_given_once(self, conn: Connection) -> None:
        with pytest.raises(IntegrityError, match="'a' already"):
            sync.insert_block(conn, block_id="a", content="x", category="c", source="s")
        assert issubclass(IntegrityError, ChronoError)

    def test_what_is_not_there_is_none(self, conn: Connection) -> None:
        assert sync.get_block(conn, "z") is None
        assert not sync.block_exists(conn, "z")
        assert sync.block_exists(conn, "a")

    def test_active_blocks_are_cut_off_strictly(self, conn: Connection) -> None:
        for name, hours in (("d", 10.0), ("e", 20.0)):
            sync.insert_block(
                conn,
                block_id=name,
                content=name,
                category="c",
                source="s",
                status="active",
                last_reinforced_at=hours,
            )
        assert [block["id"] for block in sync.get_active_blocks(conn)] == ["d", "e"]
        cut = sync.get_active_blocks(conn, min_last_reinforced_at=10.0)
        assert [block["id"] for block in cut] == ["e"]
        assert set(cut[0]) == COLUMNS - {"embedding"}

    def test_only_blocks_with_a_vector_come_with_one(self, conn: Connection) -> None:
        for name in "ab":
            sync.update_block_status(conn, name, "active")
        vector = np.array([1.0, 2.0], dtype=np.float32)
        sync.update_block_scoring(conn, "a", embedding=vector, embedding_model="m")
        found = sync.get_active_blocks_with_embeddings(conn)
        assert [(block["id"], block["embedding"]) for block in found] == [("a", vector.tobytes())]
        assert sync.get_active_blocks_with_embeddings(conn, min_last_reinforced_at=0.0) == []

    def test_the_inbox_is_what_waits(self, conn: Connection) -> None:
        sync.update_block_status(conn, "b", status="active")
        assert [block["id"] for block in sync.get_inbox_blocks(conn)] == ["a", "c"]
        assert sync.get_inbox_count(conn) == 2

    def test_a_status_may_be_positional_and_an_archived_block_has_a_reason(self, conn: Connection) -> None:
        sync.update_block_status(conn, "a", "archived", archive_reason="decayed")
        assert sync.get_block(conn, "a")["archive_reason"] == ArchiveReason.DECAYED
        sync.update_block_status(conn, "a", status=BlockStatus.ACTIVE)
        assert sync.get_block(conn, "a")["archive_reason"] is None
        with pytest.raises(InvalidRecord):
            sync.update_block_status(conn, "a", "gone")
        with pytest.raises(IntegrityError):
            sync.update_block_status(conn, "z", "active")

    def test_scoring_is_changed_in_part(self, conn: Connection) -> None:
        sync.update_block_scoring(conn, "a", confidence=0.9, token_count=7)
        sync.update_block_scoring(conn, "a", self_alignment=0.4, decay_lambda=1e-5)
        block = sync.get_block(conn, "a")
        assert (block["confidence"], block["token_count"], block["self_alignment"]) == (0.9, 7, 0.4)
        assert block["decay_lambda"] == 1e-5
        for bad in (
            {"confidence": 1.5},
            {"decay_lambda": math.nan},
            {"embedding": [math.inf]},
            {"token_count": -1},
        ):
            with pytest.raises(InvalidRecord):
                sync.update_block_scoring(conn, "a", **bad)

    def test_reinforcement_counts_and_never_goes_back_in_time(self, conn: Connection) -> None:
        sync.reinforce_blocks(conn, ["a", "b", "unknown"], 12.5)
        sync.reinforce_blocks(conn, ["a"], 3.0)
        a, b = sync.get_block(conn, "a"), sync.get_block(conn, "b")
        assert (a["reinforcement_count"], a["last_reinforced_at"]) == (2, 12.5)
        assert (b["reinforcement_count"], b["last_reinforced_at"]) == (1, 12.5)

    def test_a_reinforcement_is_a_small_event(self, blocks: Blocks) -> None:
        with blocks.begin() as conn:
            sync.insert_block(conn, block_id="a", content="x" * 5000, category="c", source="s")
        with blocks.begin() as conn:
            sync.reinforce_blocks(conn, ["a"], 1.0)
        event = blocks.store.replay()[-1]
        assert event.op == "patch"
        assert event.record == {"data": {"last_reinforced_at": 1.0, "reinforcement_count": 1}}


class TestTags:
    def test_they_are_alphabetical_and_each_once(self, conn: Connection) -> None:
        sync.add_tags(conn, "a", ["work", "home"])
        sync.add_tags(conn, "a", ["work"])
        assert sync.get_tags(conn, "a") == ["home", "work"]
        sync.remove_tags(conn, "a", ["work", "never"])
        assert sync.get_tags(conn, "a") == ["home"]
        assert sync.get_tags(conn, "z") == []

    def test_lasting_ones_let_a_block_last(self, blocks: Blocks) -> None:
        with blocks.begin() as conn:
            for name, fading in (("a", 0.01), ("b", 0.02), ("c", 0.03)):
                fields = {"content": name, "category": "c", "source": "s", "decay_lambda": fading}
                sync.insert_block(conn, block_id=name, **fields)
            sync.add_tags(conn, "c", ["self/goal"])
        with blocks.begin() as conn:
            sync.add_tags(conn, "a", ["self/constitutional"])
            sync.add_tags(conn, "b", ["work"])
        with blocks.begin() as conn:
            assert [sync.get_block(conn, name)["decay_lambda"] for name in "abc"] == [1e-5, 0.02, 0.03]
            sync.add_tags(conn, "b", ["self/goal"])
            assert sync.get_block(conn, "b")["decay_lambda"] == 1e-3

    def test_they_belong_to_a_block(self, conn: Connection) -> None:
        with pytest.raises(IntegrityError):
            sync.add_tags(conn, "z", ["work"])

    @pytest.mark.parametrize("committed", [False, True])
    def test_patterns_are_sql_like(self, blocks: Blocks, committed: bool) -> None:
        with blocks.begin() as conn:
            for name, tag in (("b", "self/Goal"), ("a", "SELF/value"), ("c", "self")):
                sync.insert_block(conn, block_id=name, content=name, category="c", source="s")
                sync.add_tags(conn, name, [tag, "self/too"] if name == "a" else [tag])
            if not committed:
                assert sync.get_blocks_by_tag_pattern(conn, "self/%") == ["a", "b"]
        with blocks.connect() as conn:
            assert sync.get_blocks_by_tag_pattern(conn, "self/%") == ["a", "b"]
            assert sync.get_blocks_by_tag_pattern(conn, "sel_") == ["c"]
            assert sync.get_blocks_by_tag_pattern(conn, "nothing") == []

    def test_an_archived_block_shows_none(self, conn: Connection) -> None:
        sync.add_tags(conn, "a", ["work"])
        sync.update_block_status(conn, "a", "archived", archive_reason="forgotten")
        assert sync.get_tags(conn, "a") == []
        assert sync.get_blocks_by_tag_pattern(conn, "%") == []


class TestEdges:
    def test_they_are_found_from_either_end(self, conn: Connection) -> None:
        sync.insert_edge(conn, from_id="a", to_id="b", weight=0.6)
        for end in "ab":
            (edge,) = sync.get_edges_for_block(conn, end)
            assert (edge["from_id"], edge["to_id"], edge["weight"]) == ("a", "b", 0.6)
            assert edge["reinforcement_count"] == 0
            assert "created_at" in edge

    def test_order_ends_and_repetition_are_checked(self, conn: Connection) -> None:
        with pytest.raises(InvalidRecord):
            sync.insert_edge(conn, from_id="b", to_id="a", weight=0.6)
        with pytest.raises(InvalidRecord):
            sync.insert_edge(conn, from_id="a", to_id="a", weight=0.6)
        with pytest.raises(IntegrityError):
            sync.insert_edge(conn, from_id="a", to_id="z", weight=0.6)
        sync.insert_edge(conn, from_id="a", to_id="b", weight=0.6)
        with pytest.raises(IntegrityError):
            sync.insert_edge(conn, from_id="a", to_id="b", weight=0.6)

    @pytest.mark.parametrize("committed", [False, True])
    def test_neighbours_and_degree(self, blocks: Blocks, committed: bool) -> None:
        def check(conn: Connection) -> None:
            assert sync.get_neighbours(conn, ["a"]) == ["b", "c"]
            assert sync.get_neighbours(conn, ["a", "b"]) == ["c"]
            degrees = sync.get_weighted_degree(conn, ["a", "b", "d"])
            bonus = 0.10 * math.log(3)
            assert degrees == pytest.approx({"a": 0.9 + bonus, "b": 0.6 + bonus, "d": 0.0})

        with blocks.begin() as conn:
            for name in "abcd":
                sync.insert_block(conn, block_id=name, content=name, category="c", source="s")
            sync.insert_edge(conn, from_id="a", to_id="b", weight=0.6)
            sync.insert_edge(conn, from_id="a", to_id="c", weight=0.3)
            sync.reinforce_edges(conn, [("a", "b"), ("a", "d")])
            sync.reinforce_edges(conn, [("a", "b")], current_active_hours=3.0)
            if not committed:
                check(conn)
        with blocks.connect() as conn:
            check(conn)

    def test_an_archived_end_hides_them(self, conn: Connection) -> None:
        sync.insert_edge(conn, from_id="a", to_id="b", weight=0.6)
        sync.update_block_status(conn, "b", "archived")
        assert sync.get_edges_for_block(conn, "a") == []
        assert sync.get_neighbours(conn, ["a"]) == []
        assert sync.get_weighted_degree(conn, ["a"]) == {"a": 0.0}

    def test_ids_with_colons_do_not_get_mixed_up(self, conn: Connection) -> None:
        for name in ("a:b", "b:c"):
            sync.insert_block(conn, block_id=name, content=name, category="c", source="s")
        sync.insert_edge(conn, from_id="a:b", to_id="c", weight=0.1)
        sync.insert_edge(conn, from_id="a", to_id="b:c", weight=0.2)
        assert [edge["weight"] for edge in sync.get_edges_for_block(conn, "a")] == [0.2]


class TestContradictions:
    def test_only_unresolved_ones_are_told(self, conn: Connection) -> None:
        sync.insert_contradiction(conn, block_a_id="a", block_b_id="b", score=0.9)
        (found,) = sync.get_contradictions_for_blocks(conn, ["b", "c"])
        assert (found["block_a_id"], found["block_b_id"], found["score"], found["resolved"]) == (
            "a",
            "b",
            0.9,
            0,
        )
        sync.resolve_contradiction(conn, "a", "b")
        assert sync.get_contradictions_for_blocks(conn, ["a", "b"]) == []

    def test_order_ends_and_repetition_are_checked(self, conn: Connection) -> None:
        with pytest.raises(InvalidRecord):
            sync.insert_contradiction(conn, block_a_id="b", block_b_id="a", score=0.9)
        with pytest.raises(IntegrityError):
            sync.insert_contradiction(conn, block_a_id="a", block_b_id="z", score=0.9)
        sync.insert_contradiction(conn, block_a_id="a", block_b_id="b", score=0.9)
        with pytest.raises(IntegrityError):
            sync.insert_contradiction(conn, block_a_id="a", block_b_id="b", score=0.9)
        with pytest.raises(IntegrityError):
            sync.resolve_contradiction(conn, "a", "c")

    def test_an_archived_end_hides_them(self, conn: Connection) -> None:
        sync.insert_contradiction(conn, block_a_id="a", block_b_id="b", score=0.9)
        sync.update_block_status(conn, "a", "archived")
        assert sync.get_contradictions_for_blocks(conn, ["b"]) == []


class TestFrames:
    FIELDS = {  # noqa: RUF012
        "weights_json": "{}", "filters_json": "{}", "guarantees_json": "[]", "template": "{blocks}",
        "token_budget": 100, "cache_json": None, "source": "user",
    }  # fmt: skip

    def test_they_are_raw_strings(self, conn: Connection) -> None:
        sync.upsert_frame(conn, name="mine", **self.FIELDS)
        frame = sync.get_frame(conn, "mine")
        assert {name: frame[name] for name in self.FIELDS} == self.FIELDS
        assert frame["name"] == "mine"
        assert sync.get_frame(conn, "other") is None

    def test_the_first_moment_is_kept(self, conn: Connection) -> None:
        sync.upsert_frame(conn, name="mine", **self.FIELDS)
        before = sync.get_frame(conn, "mine")
        sync.upsert_frame(conn, name="mine", **{**self.FIELDS, "token_budget": 7})
        after = sync.get_frame(conn, "mine")
        assert (after["token_budget"], after["created_at"]) == (7, before["created_at"])

    def test_they_are_listed_by_name(self, conn: Connection) -> None:
        for name in ("z", "a"):
            sync.upsert_frame(conn, name=name, **self.FIELDS)
        assert [frame["name"] for frame in sync.list_frames(conn)] == ["a", "z"]


class TestSessions:
    def test_the_latest_open_one_is_active(self, conn: Connection) -> None:
        assert sync.get_active_session(conn) is None
        sync.start_session(conn, session_id="s1", task_type="general", start_active_hours=1.5)
        sync.start_session(conn, session_id="s2", task_type="coding", start_active_hours=2.0)
        session = sync.get_active_session(conn)
        assert (session["id"], session["task_type"], session["start_active_hours"]) == ("s2", "coding", 2.0)
        assert session["ended_at"] is None
        sync.end_session(conn, "s2")
        assert sync.get_active_session(conn)["id"] == "s1"

    def test_an_id_is_given_once(self, conn: Connection) -> None:
        sync.start_session(conn, session_id="s1", start_active_hours=0.0)
        with pytest.raises(IntegrityError):
            sync.start_session(conn, session_id="s1", start_active_hours=0.0)
        with pytest.raises(IntegrityError):
            sync.end_session(conn, "never")


class TestConfig:
    def test_settings_are_strings(self, conn: Connection) -> None:
        assert sync.get_config(conn, "top_k") is None
        sync.set_config(conn, "top_k", "7")
        assert sync.get_config(conn, "top_k") == "7"
        with pytest.raises(InvalidRecord):
            sync.set_config(conn, "top_k", 7)

    @pytest.mark.parametrize("key", ["openai_api_key", "API-KEY", "client_secret", "db_password"])
    def test_no_secret_is_stored(self, conn: Connection, key: str) -> None:
        with pytest.raises(InvalidRecord, match="secret"):
            sync.set_config(conn, key, "x")
        with pytest.raises(InvalidRecord, match="secret"):
            sync.set_config(conn, "innocent", "sk-abcdefghijklmnopqrstuvwx")

    def test_the_clock_is_a_float(self, conn: Connection) -> None:
        assert sync.get_total_active_hours(conn) == 0.0
        sync.set_total_active_hours(conn, 12.25)
        assert sync.get_total_active_hours(conn) == 12.25
        assert sync.get_config(conn, "total_active_hours") == "12.25"


class TestSeed:
    def test_it_is_idempotent(self, blocks: Blocks) -> None:
        with blocks.begin() as conn:
            sync.seed_builtin_data(conn)
        before = blocks.store.wal_seq()
        with blocks.begin() as conn:
            sync.seed_builtin_data(conn)
        assert blocks.store.wal_seq() == before

    def test_it_is_exactly_this(self, conn: Connection) -> None:
        sync.seed_builtin_data(conn)
        frames = {frame["name"]: frame for frame in sync.list_frames(conn)}
        weights = {name: tuple(json.loads(frame["weights_json"]).values()) for name, frame in frames.items()}
        assert weights == {
            "attention": (0.35, 0.15, 0.25, 0.15, 0.10),
            "self": (0.10, 0.30, 0.05, 0.25, 0.30),
            "task": (0.20, 0.20, 0.20, 0.20, 0.20),
        }
        settings = {
            key: sync.get_config(conn, key) for key in ("total_active_hours", "prune_threshold", "top_k")
        }
        assert settings == {"total_active_hours": "0.0", "prune_threshold": "0.05", "top_k": "10"}
        assert json.loads(frames["self"]["guarantees_json"]) == ["self/constitutional"]
        assert json.loads(frames["self"]["filters_json"])["tag_patterns"] == ["self/%"]
        assert [frames[name]["token_budget"] for name in ("self", "attention", "task")] == [600, 2000, 800]

    def test_what_a_user_changed_stays(self, conn: Connection) -> None:
        sync.set_config(conn, "top_k", "9")
        sync.seed_builtin_data(conn)
        assert sync.get_config(conn, "top_k") == "9"


def test_every_function_takes_a_connection_first() -> None:
    plain = {"bytes_to_embedding", "content_hash", "embedding_to_bytes"}
    functions = {name for name, value in vars(sync).items() if inspect.isfunction(value)}
    assert functions > plain
    for name in functions - plain:
        assert next(iter(inspect.signature(getattr(sync, name)).parameters)) == "conn", name
