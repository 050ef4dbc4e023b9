"""A memory as people use it: no answer where nothing fits, the new address instead of the old one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from chronomemory.blocks import IntegrityError, Memory
from chronomemory.embedders import LexicalEmbedder
from chronomemory.errors import InvalidRecord


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory(tmp_path) as memory:
        yield memory


class TestRecall:
    def test_what_scores_too_low_is_no_answer(self, memory: Memory) -> None:
        memory.remember("The user lives in Paris")
        memory.remember("Anna plays the violin")
        every = memory.recall("where does the user live?")
        assert every[0].content == "The user lives in Paris"
        least = every[0].score
        assert [block.content for block in memory.recall("where does the user live?", min_score=least)] == [
            "The user lives in Paris"
        ]
        assert memory.recall("quantum chromodynamics", min_score=2.0) == []
        with pytest.raises(ValueError, match="min_score"):
            memory.recall("x", min_score=float("nan"))

    def test_a_tag_is_what_it_says(self, memory: Memory) -> None:
        memory.remember("Bob likes jazz", ["user/bob"])
        memory.remember("Bib likes rock", ["user/b_b", "100%"])
        assert [block.content for block in memory.recall("likes", tags=["user/b_b"])] == ["Bib likes rock"]
        assert [block.content for block in memory.recall("likes", tags=["100%"])] == ["Bib likes rock"]
        assert memory.recall("likes", tags=["user/%"]) == []
        assert len(memory.recall("likes", tag_patterns=["user/b_b"])) == 2
        assert len(memory.recall("likes", tags=["user/bob", "100%"])) == 2
        assert [b.content for b in memory.recall("likes", tags=["100%"], tag_patterns=["user/%"])] == [
            "Bib likes rock"
        ]

    def test_what_is_found_says_when_it_came_and_whose_it_is(self, memory: Memory) -> None:
        block_id = memory.remember("Bob likes jazz").block_id
        found = memory.recall("jazz")[0]
        record = memory.blocks.store.get(f"block:{block_id}")
        assert record is not None
        assert (found.created_at, found.updated_at, found.version) == (
            record.created_at,
            record.updated_at,
            record.version,
        )
        assert found.created_at is not None
        assert found.to_dict()["created_at"] == found.created_at.isoformat()
        assert found.to_dict()["scope"] == {}


class TestFrames:
    def test_they_take_tags_and_a_least_score_but_not_from_what_is_guaranteed(self, memory: Memory) -> None:
        memory.remember("Never share the key", ["self/constitutional"])
        memory.remember("Jazz is loud", ["music"])
        memory.remember("Tea is green", ["food"])
        tagged = memory.frame("simulate", "jazz tea", tags=["music"])
        assert [block.content for block in tagged.blocks] == ["Never share the key", "Jazz is loud"]
        assert len(memory.frame("simulate", "jazz tea").blocks) == 3
        high = memory.frame("simulate", "jazz tea", min_score=2.0)
        assert [block.content for block in high.blocks] == ["Never share the key"]
        assert {item.reason for item in high.dropped} == {"score"}

    def test_dates_stand_in_them_on_request(self, memory: Memory) -> None:
        memory.remember("# Tea\nis green")
        assert re.fullmatch(r"## What matters here\n- \(\d{4}-\d\d-\d\d\) # Tea\n +is green", (
            memory.frame("attention", "tea", dates=True).text
        ))  # fmt: skip
        assert "(20" not in memory.frame("attention", "tea").text


class TestSuperseding:
    def test_the_new_address_takes_the_place_of_the_old_one(self, memory: Memory) -> None:
        old = memory.remember("The user lives in Paris").block_id
        for _ in range(3):
            memory.outcome([block.id for block in memory.frame("attention", "user").blocks], 0.9)
        new = memory.remember("The user moved to Berlin", supersedes=old)
        assert new.status == "created"
        assert [block.content for block in memory.recall("where does the user live?")] == [
            "The user moved to Berlin"
        ]
        (gone,) = memory.list(status="archived")
        assert (gone["id"], gone["archive_reason"]) == (old, "superseded")
        before = len(memory.history(new.block_id))
        again = memory.learn("The user lives in Paris", supersedes=new.block_id)
        assert again.status == "reactivated"
        assert len(memory.history(new.block_id)) > before
        memory.consolidate()
        assert [block.content for block in memory.recall("user")] == ["The user lives in Paris"]

    def test_what_cannot_be_is_refused_and_nothing_is_written(self, memory: Memory) -> None:
        old = memory.remember("The user lives in Paris").block_id
        head = memory.blocks.project.health().head
        with pytest.raises(InvalidRecord, match="says just that"):
            memory.learn("The user lives in Paris ", supersedes=old)
        with pytest.raises(IntegrityError, match="there is no block"):
            memory.learn("The user moved", supersedes="nothing")
        assert memory.blocks.project.health().head == head
        memory.forget(old)
        with pytest.raises(IntegrityError, match="archived"):
            memory.learn("The user moved", supersedes=old)


class TestAnotherEmbedder:
    def test_status_names_what_has_no_embedding_and_reembed_gives_it_one(self, tmp_path: Path) -> None:
        with Memory(tmp_path) as memory:
            memory.remember("Tea is green")
            memory.remember("Jazz is loud")
            assert memory.status().not_embedded == 0
        with Memory(tmp_path, embedder=LexicalEmbedder(64)) as memory:
            told = memory.status()
            assert told.not_embedded == 2
            assert told.suggestion.startswith("2 blocks found by words alone")
            assert memory.reembed().embedded == 2
            assert memory.status().suggestion == "All is well."
            assert memory.reembed().embedded == 0
            assert memory.recall("green tea")[0].content == "Tea is green"

    def test_a_scope_embeds_its_own(self, tmp_path: Path) -> None:
        with Memory(tmp_path) as shared, Memory(tmp_path, user="ann") as ann:
            shared.remember("Tea is green")
            ann.remember("Ann likes tea")
        with Memory(tmp_path, user="ann", embedder=LexicalEmbedder(64)) as ann:
            assert ann.reembed().embedded == 1
            assert ann.status().not_embedded == 1
