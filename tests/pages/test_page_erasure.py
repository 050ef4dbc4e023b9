"""An erasure leaves no erased page in an index or a managed file, and names the files that still hold it."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path

import pytest
from chronomemory import erasure
from chronomemory.pages import Pages
from chronomemory.store import ChronoStore

SECRET = "Zanzibar"


def holding(folder: Path, text: str = SECRET) -> list[str]:
    """Return the files below a folder whose names or bytes hold a text."""
    found = []
    for path in folder.rglob("*"):
        if path.is_file() and (text.encode() in path.read_bytes() or text in path.name):
            found.append(path.relative_to(folder).as_posix())
    return sorted(found)


def filled(project: Path, folder: str | None = None, **names: str) -> Pages:
    pages = Pages(project, folder, **names)
    pages.create("topic-travel", f"All about {SECRET}", [SECRET.lower()])
    pages.append("topic-travel", f"Flew to {SECRET}.", ["trip"])
    pages.append("user-profile", "Lives in Porto.", ["home"])
    pages.sync()
    return pages


@pytest.mark.parametrize("folder", [None, "notes/mine"])
def test_erasing_a_user_leaves_no_index_and_no_page(tmp_path: Path, folder: str | None) -> None:
    with filled(tmp_path, folder, user="ann") as pages:
        assert holding(pages.folder) == ["index.md", "topic-travel.md"]
        planned = pages.store.erase(scope={"user": "ann"}, reason="asked", dry_run=True)
        assert holding(pages.folder) == ["index.md", "topic-travel.md"]
        report = pages.store.erase(scope={"user": "ann"}, reason="asked")
        assert planned.removed_files == report.removed_files
        assert [Path(file).name for file in report.removed_files] == [
            "index.md",
            "topic-travel.md",
            "user-preferences.md",
            "user-profile.md",
        ]
        assert report.page_files == ()
        assert list(pages.folder.iterdir()) == []
    assert holding(tmp_path) == [] and list(pages.folder.iterdir()) == []


def test_the_index_does_not_come_back_with_what_was_erased(tmp_path: Path) -> None:
    with filled(tmp_path) as pages:
        page = f"page:{pages._home.digits}:topic-travel"
        report = pages.store.erase(ids=[page], reason="asked")
        assert [Path(file).name for file in report.removed_files] == ["index.md", "topic-travel.md"]
        assert holding(pages.folder) == []
        assert pages.sync().problems == ()
        assert "Lives in Porto." in (pages.folder / "index.md").read_text()
    with Pages(tmp_path) as pages:
        pages.append("user-profile", "Likes tea.")
        pages.rebuild_index()
    assert holding(tmp_path) == []


def test_a_process_that_is_killed_while_it_erases_leaves_no_file_to_read_in_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with filled(tmp_path) as pages:
        monkeypatch.setattr(erasure, "_clear_files", killed)
        with pytest.raises(KeyboardInterrupt):
            pages.store.erase(ids=[f"page:{pages._home.digits}:topic-travel"], reason="asked")
    with Pages(tmp_path) as pages:
        pages.sync()
    assert holding(tmp_path) == []


def test_a_page_that_keeps_the_text_is_named(tmp_path: Path) -> None:
    """Of a page that is kept, and of one that was edited by hand."""
    with filled(tmp_path) as pages:
        file = pages.folder / "topic-travel.md"
        page = f"page:{pages._home.digits}:topic-travel"
        report = pages.store.erase(ids=[page], again=[page], reason="asked")
        assert report.page_files == (str(file),) and SECRET in file.read_text()
        assert not (pages.folder / "index.md").exists()
        file.write_text(file.read_text() + "\nWritten by hand.\n")
        report = pages.store.erase(ids=[page], reason="asked")
        assert report.page_files == (str(file),) and "by hand" in file.read_text()


@pytest.mark.parametrize("verb", ["append", "sync", "rebuild"])
def test_an_erased_entry_does_not_come_back_from_a_file_of_ours(tmp_path: Path, verb: str) -> None:
    with filled(tmp_path) as pages:
        other = pages.append("topic-travel", "Packs lightly.")
        one = f"entry:{pages._home.digits}:topic-travel:{pages.append('topic-travel', 'Flew to Zcuba.')}"
        report = pages.store.erase(ids=[one], reason="asked")
        assert [Path(file).name for file in report.removed_files] == ["index.md", "topic-travel.md"]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            if verb == "append":
                pages.append("topic-travel", "Likes trains.")
            else:
                assert getattr(pages, verb)().problems == ()
        assert holding(tmp_path, "Zcuba") == []
        assert other in (pages.folder / "topic-travel.md").read_text()
        assert pages.sync().problems == ()


def test_erasing_something_else_touches_no_file(tmp_path: Path) -> None:
    with filled(tmp_path) as pages:
        before = {path.name: path.read_bytes() for path in pages.folder.iterdir()}
        other = pages.store.upsert({"id": "plain", "kind": "fact", "data": {}})
        assert other is not None
        report = pages.store.erase(ids=["plain"], reason="asked")
        assert (report.removed_files, report.page_files) == ((), ())
        assert {path.name: path.read_bytes() for path in pages.folder.iterdir()} == before


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    outside = tmp_path / "elsewhere"
    project = tmp_path / "project"
    project.mkdir()
    with filled(project, str(outside)) as pages:
        page = f"page:{pages._home.digits}:topic-travel"
    shutil.rmtree(outside)
    with ChronoStore(project) as store:
        assert store.erase(ids=[page], reason="asked").page_files == (str(outside),)


def test_an_index_of_somebody_else_and_files_outside_stay(tmp_path: Path) -> None:
    with filled(tmp_path) as pages:
        (pages.folder / "index.md").write_text(f"My own list: {SECRET}")
        target = tmp_path / "target.md"
        shutil.copy(pages.folder / "topic-travel.md", target)
        (pages.folder / "topic-travel.md").unlink()
        (pages.folder / "topic-travel.md").symlink_to(target)
        page = f"page:{pages._home.digits}:topic-travel"
        report = pages.store.erase(ids=[page], reason="asked")
        assert report.removed_files == ()
        assert report.page_files == (str(pages.folder / "topic-travel.md"),)
        assert target.exists() and (pages.folder / "index.md").exists()


def test_notes_of_a_user_are_named_and_stay(tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "Trip.md").write_text(f"Flew to {SECRET}.")
    (vault / "Other.md").write_text("Tea.")
    with Pages(tmp_path, "vault") as pages:
        page = f"page:{pages._home.digits}:Trip"
        report = pages.store.erase(ids=[page], reason="asked")
        assert report.page_files == (str(vault / "Trip.md"),) and report.removed_files == ()
        assert holding(vault) == ["Trip.md"] and holding(tmp_path / ".chronomemory") == []
        assert pages.search(SECRET) == []
        # The file is the user's: as long as it is there, a sync reads it in again, which the guide says.
        assert pages.sync().created == ("Trip",)


def test_a_section_under_a_reworded_heading_leaves_nothing_behind(tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    note = vault / "Note.md"
    note.write_text(f"# Old heading\nWent to {SECRET}.\n\n# Other\nmore\n")
    (vault / "Second.md").write_text("x")
    with Pages(tmp_path, "vault") as pages:
        note.write_text(f"# New heading\nWent to {SECRET}.\n\n# Other\nmore\n")
        pages.sync()
        (section,) = (
            one.id
            for one in pages.store.query(kind="entry", faces=True)
            if SECRET in one.label + one.data["content"]
        )
        report = pages.store.erase(ids=[section], reason="asked")
        assert report.page_files == (str(note),)
        assert holding(tmp_path / ".chronomemory") == []
        assert [one.content for one in pages.read("Note")] != []
