"""A long text becomes blocks that can be found, in its order and each once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from chronomemory.blocks import LearnDocumentResult, Memory, MemorySystem
from chronomemory.blocks.life.learning import chunks
from chronomemory.errors import InvalidArgument

TEXT = """# The house

The kitchen is on the ground floor. Its window looks at the garden.

The cellar is dry.

## The garden

Apples grow by the wall."""


class TestPieces:
    def test_a_paragraph_is_one_under_its_heading(self) -> None:
        assert chunks(TEXT) == [
            "# The house\nThe kitchen is on the ground floor. Its window looks at the garden.",
            "The cellar is dry.",
            "## The garden\nApples grow by the wall.",
        ]

    def test_a_long_one_is_taken_apart_by_its_sentences(self) -> None:
        text = "One two three. Four five! Six seven? Eight nine ten eleven."
        assert chunks(text, 5) == ["One two three. Four five!", "Six seven?", "Eight nine ten eleven."]

    def test_a_sentence_stays_whole(self) -> None:
        assert chunks("one two three four five six", 2) == ["one two three four five six"]

    @pytest.mark.parametrize("text", ["", "  \n\n \t\n", "\n"])
    def test_nothing_has_none(self, text: str) -> None:
        assert chunks(text) == []

    def test_any_line_end_will_do(self) -> None:
        assert chunks("One.\r\n\r\nTwo.") == ["One.", "Two."]

    def test_a_heading_alone_is_a_piece(self) -> None:
        assert chunks("Text.\n\n# Last") == ["Text.", "# Last"]

    def test_a_chunker_of_ones_own(self) -> None:
        text = "line one\nline two\nline three"
        assert chunks(text, 2, str.splitlines) == ["line one", "line two", "line three"]
        assert chunks(text, 4, str.splitlines) == ["line one line two", "line three"]

    @pytest.mark.parametrize(
        ("field", "given"),
        [("text", (7,)), ("chunk_size", ("x", 0)), ("chunker", ("x", 9, "no function")),
         ("chunker", ("x", 9, lambda text: text)), ("chunker", ("x", 9, lambda text: [1]))],
    )  # fmt: skip
    def test_what_is_none_is_refused(self, field: str, given: tuple[Any, ...]) -> None:
        with pytest.raises(InvalidArgument) as told:
            chunks(*given)
        assert told.value.field == field


class TestLearning:
    def test_each_is_a_block_with_tags_and_source(self, tmp_path: Path) -> None:
        with Memory(tmp_path) as memory:
            told = memory.learn_document(TEXT, tags=["house"], category="manual", source="house.md")
            assert isinstance(told, LearnDocumentResult)
            assert (told.chunks_total, told.chunks_created, told.chunks_duplicate) == (3, 3, 0)
            rows = memory.list(status="inbox")
            assert [row.id for row in rows] == list(told.block_ids)[::-1]
            for row in rows:
                assert (row.tags, row.category, row.source) == (("house",), "manual", "house.md")
            memory.dream()
            assert "cellar" in memory.recall("is the cellar dry?")[0].content

    def test_a_second_time_all_is_known(self, tmp_path: Path) -> None:
        with Memory(tmp_path) as memory:
            first = memory.learn_document(TEXT)
            again = memory.learn_document(TEXT + "\n\nThe cellar is dry.")
            assert (again.chunks_total, again.chunks_created, again.chunks_duplicate) == (4, 0, 4)
            assert again.block_ids == first.block_ids

    def test_a_full_inbox_is_taken_in_on_the_way(self, tmp_path: Path) -> None:
        text = "\n\n".join(f"Paragraph {word} says {word * 2}." for word in ("ab", "cd", "ef", "gh", "ij"))
        with Memory(tmp_path, inbox_threshold=2) as memory:
            told = memory.learn_document(text)
            assert (told.consolidations, told.blocks_promoted) == (2, 4)
            assert memory.status().inbox == 1

    def test_models_can_be_left_alone(self, tmp_path: Path) -> None:
        def fail(_: str) -> dict[str, Any]:
            raise AssertionError("nobody should be asked")

        with Memory(tmp_path, analyser=fail, inbox_threshold=1) as memory:
            assert memory.learn_document(TEXT, skip_llm=True).blocks_promoted == 3

    def test_nothing_is_learned_of_nothing(self, tmp_path: Path) -> None:
        with Memory(tmp_path) as memory:
            assert memory.learn_document("").to_dict()["chunks_total"] == 0
        assert list(tmp_path.iterdir()) == []

    def test_it_can_be_awaited(self, tmp_path: Path) -> None:
        async def live() -> LearnDocumentResult:
            async with MemorySystem(tmp_path) as system:
                return await system.learn_document(TEXT, chunk_size=4, tags=None)

        assert asyncio.run(live()).chunks_created == 4
