"""Notes with very many headings or very long tags cost little time and memory."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from chronomemory.pages import Pages
from chronomemory.pages.errors import EntryError
from chronomemory.pages.storage.records import _all_tags
from chronomemory.pages.text.page import read_note


def test_equal_headings_are_numbered_in_linear_time() -> None:
    start = time.process_time()
    note = read_note("# h\n" * 40_000)
    assert time.process_time() - start < 2
    assert [entry.entry_id for entry in note.entries][:3] == ["#h", "#h-2", "#h-3"]
    assert len(note.entries) == 5_000
    assert note.text == "# h\n" * 40_000


def test_a_tag_that_is_longer_than_tags_may_be_is_no_tag() -> None:
    assert _all_tags((), "x #a/b and #" + "a/" * 100_000) == ["a/b", "a"]


def test_a_description_has_a_limit(tmp_path: Path) -> None:
    with Pages(tmp_path) as pages, pytest.raises(EntryError, match="at most 10,000 letters, got 10,001"):
        pages.create("topic-tea", "x" * 10_001)
