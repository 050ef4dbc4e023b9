"""The commands of pages do what they say, with the exit codes that they promise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from chronomemory.cli import app
from cli_answer import Answer
from typer.testing import CliRunner

Pages = Callable[..., Answer]


@pytest.fixture
def pages(tmp_path: Path) -> Pages:
    def call(command: str, *args: str | Path, said: str | None = None) -> Answer:
        result = CliRunner().invoke(app, ["pages", command, *map(str, args), "-p", str(tmp_path)], input=said)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Answer(result.exit_code, result.stdout, result.stderr)

    return call


@pytest.fixture
def tea(pages: Pages) -> Pages:
    assert pages("create", "topic-tea", "All about tea", "-t", "drinks").code == 0
    assert pages("append", "topic-tea", "Green tea, see [[user-profile]].", "-t", "green").code == 0
    return pages


def test_pages_are_made_written_and_read(tea: Pages) -> None:
    assert [page["name"] for page in tea("list", "--json").listing] == [
        "topic-tea",
        "user-preferences",
        "user-profile",
    ]
    (entry,) = tea("read", "topic-tea", "--json").listing
    assert (entry["content"], entry["tags"]) == ("Green tea, see [[user-profile]].", ["green"])
    assert "Green tea" in tea("read", "topic-tea").stdout
    assert tea("read", "topic-tea", "--raw").stdout.startswith("---\ndescription: All about tea\n")
    (hit,) = tea("search", "green", "--json").listing
    assert hit["entry"] == entry
    assert [one["id"] for one in tea("recent", "--json").listing] == [entry["id"]]
    assert tea("search", "nothing").stdout == "nothing found\n"


def test_an_entry_is_superseded(tea: Pages) -> None:
    (entry,) = tea("read", "topic-tea", "--json").listing
    told = tea("supersede", "topic-tea", entry["id"], "-", "-r", "it changed", "--json", said="Black tea.\n")
    assert told.document["superseded"] == entry["id"]
    assert [one["content"] for one in tea("read", "topic-tea", "--json").listing] == ["Black tea."]
    chain = tea("read", "topic-tea", "--chain", entry["id"], "--json").listing
    assert [one["reason"] for one in chain] == ["it changed", None]
    assert "superseded by" in tea("read", "topic-tea", "-s").stdout
    assert tea("supersede", "topic-tea", entry["id"], "x", "-r", "y").code == 1
    assert tea("compact").code == 0
    assert tea("flag-compact", "topic-tea", "-r", "long").code == 0
    (told_compact,) = tea("compact", "--json").listing
    assert told_compact["accepted"]


@pytest.mark.parametrize(
    ("args", "code", "told"),
    [
        (["create", "bad", "x"], 2, "the prefixes are user-"),
        (["create", "topic-tea", "x"], 2, "already"),
        (["append", "topic-tea", "x", "-t", "a", "-t", "b", "-t", "c", "-t", "d"], 2, "0 to 3 tags"),
        (["append", "topic-tea", "x", "-t", "a b"], 2, "no tag"),
        (["append", "topic-tea", " ", "-t", "a"], 2, "blank"),
        (["append", "topic-nope", "x", "-t", "a"], 1, "no page"),
        (["read", "topic-nope"], 1, "no page"),
        (["read", "topic-tea", "--since", "soon"], 2, "since"),
        (["search", "x", "--status", "asleep"], 2, "status"),
        (["search", "x", "--prefix", "nope"], 2, "prefix"),
        (["status", "topic-tea", "--set", "asleep"], 2, "active, dormant, archived"),
        (["clean", "everything", "-y"], 2, "memory, all"),
        (["clean", "foo"], 2, "memory, all"),
        (["append", "topic-tea", "x", "-t", "a", "--user", "ann"], 2, "other names"),
        (["list", "--user", "ann"], 1, "there are no pages"),
        (["list", "--folder", "nowhere"], 1, "there are no pages"),
        (["links", "../x"], 2, "elsewhere"),
    ],
)
def test_what_is_refused_is_told_in_a_sentence(tea: Pages, args: list[str], code: int, told: str) -> None:
    answer = tea(*args)
    assert answer.code == code and told in answer.stderr.replace("\n", " ")
    assert "Traceback" not in answer.stderr and answer.stdout == ""


def test_reading_makes_no_folder(pages: Pages, tmp_path: Path) -> None:
    for command in (["list"], ["recent"], ["search", "x"], ["sync"], ["rebuild"]):
        answer = pages(*command)
        assert answer.code == 1 and "there are no pages" in answer.stderr
    assert not (tmp_path / "memory").exists()


def test_status_and_links(tea: Pages) -> None:
    assert tea("status", "topic-tea", "--set", "archived", "--json").document["status"] == "archived"
    assert "archived" in tea("status", "topic-tea").stdout
    assert [page["name"] for page in tea("list", "--archived", "--prefix", "topic-", "--json").listing] == [
        "topic-tea"
    ]
    told = tea("links", "user-profile", "--json").document
    assert [link["page"] for link in told["backlinks"]] == ["topic-tea"]
    assert "user-profile" in tea("links", "topic-tea").stdout


def test_edits_are_synced_and_problems_are_findings(tea: Pages, tmp_path: Path) -> None:
    page = tmp_path / "memory" / "topic-tea.md"
    page.write_text(page.read_text().replace("Green tea", "Jade tea"))
    assert "1 changed" in tea("sync").stdout
    kept = page.read_text()
    page.write_text("---\na: [\n---\n")
    answer = tea("sync")
    assert answer.code == 1 and "topic-tea.md" in answer.stdout
    assert tea("append", "topic-tea", "x", "-t", "a").code == 1
    assert tea("rebuild").code == 1 and tea("rebuild-index").code == 1
    page.unlink()
    assert tea("sync").code == 1
    assert tea("rebuild", "--json").document["written"] == ["topic-tea"]
    assert page.read_text() == kept
    assert tea("rebuild-index", "--json").document["corrected"] == 0


def test_clean_asks_first(tea: Pages, tmp_path: Path) -> None:
    assert tea("clean", "memory", said="n\n").code == 1
    assert (tmp_path / "memory" / "topic-tea.md").exists()
    answer = tea("clean", "memory", said="y\n")
    assert answer.code == 0 and "history" in answer.stderr and "history stays" in answer.stdout
    assert not (tmp_path / "memory" / "topic-tea.md").exists()
    assert tea("list").stdout == "no pages\n"


def test_folders_of_two_users_are_apart(pages: Pages) -> None:
    for user in ("ann", "bob"):
        names = ["--user", user, "--folder", f"of-{user}"]
        assert pages("append", "user-profile", f"This is {user}.", "-t", "name", *names).code == 0
    (hit,) = pages("search", "this", "--user", "ann", "--folder", "of-ann", "--json").listing
    assert hit["entry"]["content"] == "This is ann."


def test_a_folder_of_notes_is_kept_in_place(pages: Pages, tmp_path: Path) -> None:
    vault = tmp_path / "My notes"
    (vault / "Sub folder").mkdir(parents=True)
    (vault / "Sub folder" / "Tea House.md").write_text("Oolong. See [[Alice]].\n")
    (vault / "Alice.md").write_text("Alice drinks tea.")
    assert pages("search", "oolong", "--folder", vault).code == 1
    report = pages("sync", "--folder", vault, "--json")
    assert (report.code, report.document["created"]) == (0, ["Alice", "Sub folder/Tea House"])
    (hit,) = pages("search", "oolong", "-f", vault, "--json").listing
    assert hit["entry"]["page"] == "Sub folder/Tea House"
    assert pages("append", "tea house", "Sencha too.", "-f", vault).code == 0
    assert (vault / "Sub folder" / "Tea House.md").read_text().startswith("Oolong. See [[Alice]].\n\n## [")
    assert pages("create", "New/Note", "About", "-f", vault).code == 0
    assert (
        pages("links", "Alice", "-f", vault, "--json").document["backlinks"][0]["page"]
        == hit["entry"]["page"]
    )
    (vault / "Alice.md").unlink()
    assert pages("sync", "-f", vault, "--json").document["forgotten"] == ["Alice"]
    assert pages("read", "Alice", "-f", vault).code == 1
    assert sorted(path.name for path in vault.iterdir()) == ["New", "Sub folder"]


def test_a_layout_is_chosen_once(pages: Pages, tmp_path: Path) -> None:
    assert pages("sync", "-f", "notes").code == 1
    assert pages("sync", "-f", "notes", "--layout", "free").code == 0
    assert list((tmp_path / "notes").iterdir()) == []
    assert pages("sync", "-f", "notes", "--layout", "prefixed").code == 2
    assert pages("sync", "-f", "notes", "--layout", "other").code == 2


def test_pages_and_links_are_drawn(tea: Pages, tmp_path: Path) -> None:
    assert tea("picture", tmp_path / "pages.html").code == 0
    assert "topic-tea" in (tmp_path / "pages.html").read_text()
    assert tea("picture", tmp_path / "pages.html").code == 2
