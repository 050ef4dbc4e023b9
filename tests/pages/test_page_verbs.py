"""The verbs do what the format says, and refuse what it forbids."""

from __future__ import annotations

import random
import re
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from chronomemory import InvalidArgument
from chronomemory.pages import (
    PREFIXES,
    EntryError,
    PageExists,
    PageNameError,
    Pages,
    Settings,
    SettingsError,
    UnknownEntry,
    UnknownPage,
)
from chronomemory.pages.text.page import read_page
from hypothesis import HealthCheck, given, settings
from page_samples import CONTENTS, SEED, TAGS, TEXTS, Clock, files


class TestNames:
    @pytest.mark.parametrize(
        "name",
        [
            "",
            "profile",
            "user",
            "user-",
            "User-a",
            "topic-a/b",
            "topic-..",
            "topic-a\\b",
            "../user-a",
            "topic-a\n",
            "topic-a:b",
            "topic- a",
            "topic-a.",
            "event-today",
            "event-2026-02-30",
            "topic-[a]",
            "topic-" + "x" * 200,
            7,
        ],
    )
    def test_others_are_refused_and_the_prefixes_listed(self, pages: Pages, name: Any) -> None:
        before = files(pages.folder)
        with pytest.raises(PageNameError) as caught:
            pages.create(name, "x")
        assert isinstance(caught.value, ValueError)
        assert isinstance(name, int) or all(f"{prefix}-" in str(caught.value) for prefix in PREFIXES)
        assert files(pages.folder) == before

    def test_the_suffix_may_be_left_out(self, pages: Pages) -> None:
        assert pages.create("topic-a.md", "x") == "topic-a"
        assert pages.create("event-2026-04-22", "x") == "event-2026-04-22"
        assert pages.create("person-zoë müller", "x") == "person-zoë müller"
        assert pages.read("topic-a.md") == pages.read("topic-a") == []
        assert (pages.folder / "person-zoë müller.md").exists()


class TestCreate:
    def test_a_folder_begins_with_two_pages_and_a_list(self, pages: Pages) -> None:
        assert sorted(files(pages.folder)) == ["index.md", "user-preferences.md", "user-profile.md"]
        assert pages.folder.name == "memory"

    def test_a_page_has_its_frontmatter_and_title(self, pages: Pages) -> None:
        pages.create("topic-rust", "Async: Rust", ["rust", "true"], title="Rust 🦀")
        page = read_page((pages.folder / "topic-rust.md").read_text())
        assert (page.meta.description, page.meta.tags, page.preamble) == (
            "Async: Rust",
            ("rust", "true"),
            "# Rust 🦀",
        )
        info = pages.info("topic-rust")
        assert (info.title, info.status, info.entry_count, info.tags) == (
            "Rust 🦀",
            "active",
            0,
            ("rust", "true"),
        )
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d", info.created)

    def test_one_that_is_there_is_not_made_again(self, pages: Pages) -> None:
        with pytest.raises(PageExists):
            pages.create("user-profile", "x")
        (pages.folder / "topic-mine.md").write_text("by hand")
        with pytest.raises(PageExists):
            pages.create("topic-mine", "x")
        assert (pages.folder / "topic-mine.md").read_text() == "by hand"

    @pytest.mark.parametrize(
        ("given", "field"),
        [
            ({"description": 5}, "description"),
            ({"description": "\ud800"}, "description"),
            ({"tags": "word"}, "tags"),
            ({"tags": ["two words"]}, "tags"),
            ({"tags": [None]}, "tags"),
            ({"title": ""}, "title"),
            ({"title": "a\nb"}, "title"),
            ({"title": " a"}, "title"),
        ],
    )
    def test_bad_input_is_refused_and_named(self, pages: Pages, given: dict[str, Any], field: str) -> None:
        with pytest.raises(ValueError, match=field):
            pages.create("topic-x", **{"description": "x", **given})
        assert not (pages.folder / "topic-x.md").exists()


class TestAppend:
    def test_an_entry_is_on_the_page_and_found(self, pages: Pages) -> None:
        entry_id = pages.append("user-profile", "The user lives in Lisbon.", ["home", "#city"])
        assert re.fullmatch(r"\d{8}-\d{4}-[0-9a-f]{6}", entry_id)
        text = (pages.folder / "user-profile.md").read_text()
        assert re.search(
            rf"^## \[\S+\] \{{id: {entry_id}\}} #home #city\nThe user lives in Lisbon\.\n\Z", text, re.M
        )
        assert "entry_count: 1\n" in text
        (entry,) = pages.read("user-profile")
        assert (entry.id, entry.tags, entry.content) == (
            entry_id,
            ("home", "city"),
            "The user lives in Lisbon.",
        )
        assert [hit.entry for hit in pages.search("lisbon")] == [entry]

    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(CONTENTS, TAGS, TEXTS)
    def test_any_content_survives(self, pages: Pages, content: str, tags: list[str], reason: str) -> None:
        old = pages.append("user-profile", content, tags)
        new = pages.supersede("user-profile", old, content, reason)
        one, other = pages.read("user-profile", include_superseded=True)[-2:]
        assert (one.id, one.content, one.superseded_by, one.reason) == (old, content, new, reason or None)
        assert (other.id, other.content, other.tags) == (new, content, tuple(dict.fromkeys(tags)))
        page = read_page((pages.folder / "user-profile.md").read_bytes().decode())
        assert [entry.content for entry in page.entries[-2:]] == [content, content]
        assert pages.sync().summary == "pages and log agree"

    @pytest.mark.parametrize(
        ("content", "tags"),
        [
            ("", ["a"]),
            (" \n", ["a"]),
            (None, ["a"]),
            ("\udfff", ["a"]),
            ("x", ["a", "b", "c", "d"]),
            ("x", "abc"),
            ("x", None),
            ("x", ["a b"]),
            ("x", ["superseded-by:y"]),
            ("x", ["<!--"]),
            ("x", ["#"]),
        ],
    )
    def test_bad_input_is_refused_and_writes_nothing(self, pages: Pages, content: Any, tags: Any) -> None:
        before, seq = files(pages.folder), pages.store.wal_seq()
        with pytest.raises((EntryError, InvalidArgument)):
            pages.append("user-profile", content, tags)
        assert (files(pages.folder), pages.store.wal_seq()) == (before, seq)

    def test_an_unknown_page_is_named(self, pages: Pages) -> None:
        with pytest.raises(UnknownPage, match="topic-nope"):
            pages.append("topic-nope", "x", ["a"])
        with pytest.raises(KeyError):
            pages.read("topic-nope")

    def test_one_append_is_one_batch_and_costs_the_same_on_any_page(self, pages: Pages) -> None:
        before = pages.store.wal_seq()
        pages.append("user-profile", "x", ["a"])
        assert pages.store.wal_seq() - before == 3  # begin, entry, page

    def test_long_pages_are_suggested_and_then_flagged(self, tmp_path: Path) -> None:
        (tmp_path / ".chronomemory").mkdir()
        config = tmp_path / ".chronomemory" / "config.toml"
        config.write_text("[writer]\nsoft_limit_tokens = 100\nhard_limit_tokens = 200\n[other]\nx = 1\n")
        with Pages(tmp_path) as pages:
            assert pages.settings == Settings(100, 200, 30)
            with pytest.warns(RuntimeWarning, match="more than 100"):
                pages.append("user-profile", "x " * 150, ["a"])
            assert not pages.info("user-profile").needs_compact
            pages.append("user-profile", "y " * 150, ["a"])
            info = pages.info("user-profile")
            assert info.needs_compact and info.compact_reason == "longer than 200 tokens"
            assert "needs_compact: true" in (pages.folder / "user-profile.md").read_text()

    @pytest.mark.parametrize(
        "config",
        ["[writer]\nsoft_limit_tokens = 0", "writer = 3", "[writer", "[writer]\nauto_dormant_days='x'"],
    )
    def test_a_bad_configuration_is_named_and_left(self, tmp_path: Path, config: str) -> None:
        (tmp_path / ".chronomemory").mkdir()
        place = tmp_path / ".chronomemory" / "config.toml"
        place.write_text(config)
        with pytest.raises(SettingsError, match=r"config\.toml"):
            Pages(tmp_path)
        assert place.read_text() == config


class TestSupersede:
    def test_exactly_the_entry_with_that_id_is_struck(self, pages: Pages) -> None:
        ids = [pages.append("user-profile", "The same text.", ["a", "b"]) for _ in range(3)]
        new = pages.supersede("user-profile", ids[1], "Another text.", "it changed")
        entries = pages.read("user-profile", include_superseded=True)
        assert [entry.id for entry in entries] == [*ids, new]
        assert [entry.superseded for entry in entries] == [False, True, False, False]
        assert (entries[1].superseded_by, entries[1].reason, entries[3].tags) == (
            new,
            "it changed",
            ("a", "b"),
        )
        text = (pages.folder / "user-profile.md").read_text()
        assert text.count("~~The same text.~~") == 1 and text.count("The same text.") == 3
        assert f"{{id: {ids[1]}}} #a #b #superseded-by:{new}\n" in text

    def test_what_is_superseded_is_hidden_unless_asked_for(self, pages: Pages) -> None:
        old = pages.append("user-profile", "The user works at Oldcorp.", ["work"])
        new = pages.supersede("user-profile", old, "The user works at Acme.", "new job")
        assert [entry.id for entry in pages.read("user-profile")] == [new]
        assert [hit.entry.id for hit in pages.search("Oldcorp")] == []
        assert [hit.entry.id for hit in pages.search("Oldcorp", include_superseded=True)] == [old]
        assert [entry.id for entry in pages.recent()] == [new]

    def test_twice_is_an_error_and_so_is_an_unknown_id(self, pages: Pages) -> None:
        old = pages.append("user-profile", "x", ["a"])
        pages.supersede("user-profile", old, "y", "z")
        before = files(pages.folder)
        for wrong in (old, "nobody", ""):
            with pytest.raises(UnknownEntry):
                pages.supersede("user-profile", wrong, "y", "z")
        with pytest.raises(UnknownEntry):
            pages.supersede("user-preferences", old, "y", "z")
        assert files(pages.folder) == before

    def test_a_chain_is_walked_from_either_end(self, pages: Pages) -> None:
        ids = [pages.append("user-profile", "one", ["a"])]
        pages.append("user-profile", "beside", ["a"])
        for word in ("two", "three"):
            ids.append(pages.supersede("user-profile", ids[-1], word, "because"))
        for start in ids:
            assert [entry.id for entry in pages.chain("user-profile", start)] == ids
        with pytest.raises(UnknownEntry):
            pages.chain("user-profile", "nobody")

    def test_a_chain_that_a_person_closed_to_a_ring_ends(self, pages: Pages) -> None:
        (pages.folder / "topic-ring.md").write_text(
            "## [2026-01-01 10:00] {id: a} #superseded-by:b\nx\n\n"
            "## [2026-01-01 10:00] {id: b} #superseded-by:a\ny\n"
        )
        pages.sync()
        assert [entry.id for entry in pages.chain("topic-ring", "a")] == ["a", "b"]
        assert pages.compact("topic-ring").accepted

    def test_the_page_of_the_seed_behaves_as_its_rules_say(self, pages: Pages) -> None:
        path = pages.folder / "person-kming.md"
        path.write_text(SEED)
        assert pages.sync().created == ("person-kming",)
        assert path.read_text() == SEED
        assert [entry.content for entry in pages.read("person-kming")][
            1
        ] == "User joined Acme Corp as a senior engineer."
        chain = pages.chain("person-kming", "20260420-1630-3f0e99")
        assert [entry.id for entry in chain] == ["20260420-1630-3f0e99", "20260421-0915-c4f1a5"]
        assert [hit.entry.id for hit in pages.search("engineer")] == ["20260421-0915-c4f1a5"]
        pages.append("person-kming", "New.", ["x"])
        text = path.read_text()
        assert "status: active           # active | dormant | archived\n" in text
        assert "entry_count: 4\n" in text and text.startswith(SEED.partition("updated")[0])
        assert SEED.partition("# User Profile")[2].rstrip() in text


class TestReading:
    @pytest.fixture
    def filled(self, pages: Pages, clock: Clock) -> Pages:
        clock.step = timedelta(days=1)
        pages.create("topic-tea", "Tea", ["drinks"])
        for number in range(5):
            pages.append(
                "topic-tea", f"Tea number {number} is a fine café.", ["odd" if number % 2 else "even", "tea"]
            )
        pages.append("user-profile", "The user likes tea.", ["tea"])
        return pages

    def test_filters_of_read(self, filled: Pages) -> None:
        entries = filled.read("topic-tea")
        assert [entry.content[11] for entry in entries] == list("01234")
        assert filled.read("topic-tea", tags=["odd"]) == [entries[1], entries[3]]
        assert filled.read("topic-tea", tail_n=2) == entries[-2:]
        assert filled.read("topic-tea", tail_n=0) == []
        day = entries[2].timestamp[:10]
        assert filled.read("topic-tea", since=day, until=day) == [entries[2]]
        assert filled.read("topic-tea", since=date.fromisoformat(day)) == entries[2:]
        assert filled.read("topic-tea", until=entries[2].timestamp) == entries[:3]

    @pytest.mark.parametrize(
        "bad", [{"since": "x"}, {"until": 7}, {"since": "2026-02-30"}, {"tail_n": -1}, {"tags": "odd"}]
    )
    def test_bad_filters_are_refused(self, filled: Pages, bad: dict[str, Any]) -> None:
        with pytest.raises(ValueError):
            filled.read("topic-tea", **bad)

    def test_search_and_its_filters(self, filled: Pages) -> None:
        def ids(query: str, **filters: Any) -> list[str]:
            return [hit.entry.content for hit in filled.search(query, **filters)]

        assert len(ids("tea")) == 6 and len(ids("TEA", limit=2)) == 2 and ids("tea", limit=0) == []
        assert len(ids("cafe")) == 5, "accents do not matter"
        assert ids("tea", path="user-profile") == ids("tea", path="user-*.md") == ["The user likes tea."]
        assert ids("tea", prefix="user-") == ids("tea", prefix="user") == ids("likes")
        assert len(ids("tea", path="topic-te?")) == 5 and ids("tea", path="topic_tea") == []
        assert len(ids("tea", tags=["odd"])) == 2 and len(ids("odd")) == 2
        day = filled.read("topic-tea")[1].timestamp[:10]
        assert ids("tea", since=day, until=day) == ["Tea number 1 is a fine café."]
        filled.set_status("topic-tea", "archived")
        assert ids("tea", status="active") == ["The user likes tea."]
        assert len(ids("tea", status="archived")) == 5
        assert ids("nothing of the kind") == []

    def test_those_that_are_alike_come_by_time_the_latest_first(self, filled: Pages) -> None:
        found = filled.search("fine café", tags=["even"])
        assert len({hit.score for hit in found}) == 1
        assert [hit.entry.content[11] for hit in found] == list("420")
        assert [hit.entry.content[11] for hit in filled.search("fine café", tags=["even"], limit=1)] == ["4"]

    def test_of_a_thousand_that_are_alike_the_latest_come_first(self, filled: Pages) -> None:
        """The oldest stand in the log first; ids decide where moments are the same."""
        chance = random.Random(5)
        order = [
            (f"2026-03-{day:02}T10:{minute:02}:00", f"m{number:04}")
            for number in range(1_000)
            for day, minute in [(chance.randint(1, 28), chance.randint(0, 59))]
        ]
        said = "".join(f"\n\n## [{at}] {{id: {one}}} #same\nAlike in everything." for at, one in order)
        (filled.folder / "topic-alike.md").write_text(f"# Alike{said}\n")
        filled.sync()
        by_id = sorted(order, key=lambda each: each[1])
        wanted = [one for _, one in sorted(by_id, key=lambda each: each[0], reverse=True)]
        for limit in (1, 10, 250):
            hits = filled.search("alike", limit=limit)
            assert len({hit.score for hit in hits}) == 1
            assert [hit.entry.id for hit in hits] == wanted[:limit]

    @pytest.mark.parametrize(
        "bad", [{"prefix": "nope"}, {"status": "asleep"}, {"limit": -1}, {"tags": ["a b"]}]
    )
    def test_bad_questions_are_refused(self, filled: Pages, bad: dict[str, Any]) -> None:
        with pytest.raises(ValueError):
            filled.search("tea", **bad)

    def test_recent_and_tagged(self, filled: Pages) -> None:
        found = filled.recent(limit=3)
        assert found[0].content == "The user likes tea."
        assert [entry.timestamp for entry in found] == sorted(
            (entry.timestamp for entry in found), reverse=True
        )
        assert [entry.page for entry in filled.recent(prefixes=["user-"])] == ["user-profile"]
        assert len(filled.recent(since=found[1].timestamp[:10])) == 2
        assert [entry.content[11] for entry in filled.tagged("odd")] == ["3", "1"]

    def test_list_hides_what_sleeps(self, filled: Pages) -> None:
        filled.set_status("topic-tea", "dormant")
        filled.set_status("user-preferences", "archived")
        assert [page.name for page in filled.list()] == ["user-profile"]
        assert [page.name for page in filled.list(include_dormant=True)] == ["topic-tea", "user-profile"]
        assert len(filled.list(include_dormant=True, include_archived=True)) == 3
        assert [page.name for page in filled.list(include_dormant=True, prefixes=["topic"])] == ["topic-tea"]
        with pytest.raises(ValueError, match="status"):
            filled.set_status("topic-tea", "asleep")
