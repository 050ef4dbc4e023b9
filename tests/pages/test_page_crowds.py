"""Many writers lose no entry, and a crash at any step leaves a page that is the old or the new one."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from chronomemory.face import files as swapping
from chronomemory.face.files import Folder
from chronomemory.pages import Pages
from chronomemory.pages.text.page import read_page
from page_samples import files

PROGRAM = Path(__file__).with_name("appending.py")


def shown_ids(project: Path, name: str = "user-profile") -> list[str]:
    text = (project / "memory" / f"{name}.md").read_bytes().decode()
    page = read_page(text)
    assert page.text == text
    return [entry.entry_id for entry in page.entries]


def writer(project: Path, name: str, count: int, told: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, str(PROGRAM), str(project), name, str(count), str(told)])


def test_thirty_threads_lose_no_entry(tmp_path: Path) -> None:
    with Pages(tmp_path) as pages, ThreadPoolExecutor(30) as pool:
        said = [f"thread {number}" for number in range(90)]
        ids = list(pool.map(lambda text: pages.append("user-profile", text, ["said"]), said))
        assert len(set(ids)) == 90
        assert sorted(entry.content for entry in pages.read("user-profile")) == sorted(said)
        assert sorted(shown_ids(tmp_path)) == sorted(ids)
        assert pages.info("user-profile").entry_count == 90
        assert pages.sync().summary == "pages and log agree"
        assert pages.store.chain_valid()


def test_four_processes_and_threads_lose_no_entry(tmp_path: Path) -> None:
    Pages(tmp_path).close()
    told = [tmp_path / f"told{number}" for number in range(4)]
    running = [writer(tmp_path, f"process {number}", 12, place) for number, place in enumerate(told)]
    with Pages(tmp_path) as pages, ThreadPoolExecutor(4) as pool:
        own = list(pool.map(lambda n: pages.append("user-profile", f"thread {n}", ["said"]), range(20)))
        assert [process.wait(120) for process in running] == [0] * 4
        ids = own + [line for place in told for line in place.read_text().split()]
        assert len(ids) == len(set(ids)) == 68
        assert sorted(shown_ids(tmp_path)) == sorted(ids) == sorted(e.id for e in pages.read("user-profile"))
        assert pages.sync().summary == "pages and log agree"
        assert pages.store.chain_valid()


def test_a_killed_writer_leaves_what_it_acknowledged(tmp_path: Path) -> None:
    Pages(tmp_path).close()
    told = tmp_path / "told"
    for turn in range(3):
        told.touch()
        before = told.stat().st_size
        process = writer(tmp_path, f"turn {turn}", 10_000, told)
        deadline = time.monotonic() + 60
        while told.stat().st_size < before + 21 * 5 and time.monotonic() < deadline:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait(60)
        shown_ids(tmp_path)  # the page is whole: the old or the new one
        with Pages(tmp_path) as pages:
            acknowledged = told.read_text().split("\n")[:-1]
            assert len(acknowledged) >= 5 * (turn + 1)
            known = [entry.id for entry in pages.read("user-profile")]
            assert set(acknowledged) <= set(known)
            told_sync = pages.sync()
            assert (told_sync.edited, told_sync.deleted, told_sync.problems) == ((), 0, ())
            assert shown_ids(tmp_path) == known
            assert pages.store.chain_valid()
    # Drafts that were not finished lie under names that are no pages.
    assert {name for name in files(tmp_path / "memory") if not name.startswith(".")} == {
        "index.md",
        "user-preferences.md",
        "user-profile.md",
    }


class CrashError(BaseException):
    """Stands for a process that dies here."""


@pytest.mark.parametrize("step", ["open", "write", "fsync", "swap"])
@pytest.mark.parametrize("verb", ["create", "append", "supersede", "flag", "status", "compact"])
def test_a_crash_between_log_and_file_is_made_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, verb: str
) -> None:
    with Pages(tmp_path) as pages:
        first = pages.append("user-profile", "The user lives in Paris.", ["home"])
        old = pages.append("user-profile", "The user has a cat.", ["pets"])
        pages.supersede("user-profile", old, "The user has two cats.", "another cat")
        before = files(pages.folder)
        writes = Folder.write_all
        # The last step of all: the draft takes the place of the file.
        module, called = (swapping, "_exchange") if step == "swap" else (os, step)
        real = getattr(module, called)

        def crash_within(folder: Folder, *args: object, **more: object) -> list[str]:
            def die(*given: object, **options: object) -> object:
                if step == "open" and not options.get("mode") and len(given) < 3:
                    return real(*given, **options)
                raise CrashError

            with monkeypatch.context() as dying:
                dying.setattr(module, called, die)
                return writes(folder, *args, **more)  # type: ignore[arg-type]

        verbs = {
            "create": lambda: pages.create("topic-new", "New"),
            "append": lambda: pages.append("user-profile", "The user likes tea.", ["tea"]),
            "supersede": lambda: pages.supersede("user-profile", first, "The user lives in Lisbon.", "moved"),
            "flag": lambda: pages.flag_compact("user-profile", "long"),
            "status": lambda: pages.set_status("user-profile", "archived"),
            "compact": lambda: pages.compact("user-profile"),
        }
        monkeypatch.setattr(Folder, "write_all", crash_within)
        with pytest.raises(CrashError):
            verbs[verb]()
        monkeypatch.setattr(Folder, "write_all", writes)
        shown = {name: text for name, text in files(pages.folder).items() if name in before}
        assert shown == before, "the files are the old ones"
        pages._is_index_due = False
        name = "topic-new" if verb == "create" else "user-profile"
        said = pages.read(name, include_superseded=True)
    with Pages(tmp_path) as pages:
        assert pages.read(name, include_superseded=True) == said
        told = pages.sync()
        assert (told.caught_up, told.edited, told.created, told.problems) == ((name,), (), (), ())
        page = read_page((pages.folder / f"{name}.md").read_text())
        assert [entry.entry_id for entry in page.entries] == [entry.id for entry in said]
        late = pages.append(name, "Later.", ["late"])
        assert pages.read(name)[-1].id == late
        assert pages.sync().summary == "pages and log agree"


def test_what_a_killed_writer_left_is_taken_away_unless_it_may_be_an_edit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed behind the swap: the page has our text, the draft what was there."""
    with Pages(tmp_path) as pages:
        page = pages.folder / "user-profile.md"
        swap = swapping._exchange

        def killed(*given: object) -> bool:
            swap(*given)  # type: ignore[arg-type]
            raise CrashError

        def left() -> list[Path]:
            return [place for place in pages.folder.iterdir() if place.name.endswith(swapping.PART)]

        def crash(text: str, *, is_edited: bool) -> Path:
            unlink = os.unlink
            with monkeypatch.context() as dying:
                dying.setattr(swapping, "_exchange", killed)
                dying.setattr(os, "unlink", lambda *given, **more: None)
                if is_edited:
                    dying.setattr(swapping, "_exchange", lambda *given: edited(*given))
                with pytest.raises(CrashError):
                    pages.append("user-profile", text, ["a"])
            assert os.unlink is unlink
            (draft,) = left()
            return draft

        def edited(*given: object) -> bool:
            page.write_text(page.read_text() + "\n## [2026-05-01 10:00] {id: mine}\nSaved in that moment.\n")
            return killed(*given)

        draft = crash("The user likes tea.", is_edited=False)
        assert pages.sync().problems == () and left() == [draft], "it may be in use"
        os.utime(draft, (0, 0))
        assert pages.sync().problems == () and left() == []
        draft = crash("The user likes cake.", is_edited=True)
        os.utime(draft, (0, 0))
        (problem,) = pages.sync().problems
        assert (problem.kind, problem.file) == (
            "strange",
            draft.name,
        ) and "user-profile.md" in problem.message
        assert "Saved in that moment." in draft.read_text()
        draft.write_bytes(page.read_bytes()[:50] + bytes(20))  # torn
        os.utime(draft, (0, 0))
        assert pages.sync().summary == "pages and log agree" and left() == []
        assert [entry.content for entry in pages.read("user-profile")] == [
            "The user likes tea.",
            "The user likes cake.",
        ]


def test_a_page_that_is_behind_is_brought_up_to_date_by_an_append(tmp_path: Path) -> None:
    with Pages(tmp_path) as pages:
        page = pages.folder / "user-profile.md"
        texts = [page.read_bytes()]
        for number in range(3):
            pages.append("user-profile", f"fact {number}", ["a"])
            texts.append(page.read_bytes())
        # After a loss of power a file may be older by several writes.
        for text in texts[:-1]:
            page.write_bytes(text)
            pages.append("user-profile", "more", ["a"])
            assert "fact 2" in page.read_text()
        assert len(pages.read("user-profile")) == 6


def test_a_file_that_cannot_be_written_is_told_and_made_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Pages(tmp_path) as pages:

        def full(*_: object, **__: object) -> list[str]:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as broken:
            broken.setattr(Folder, "write_all", full)
            with pytest.warns(RuntimeWarning, match="this is in the log"):
                one = pages.append("user-profile", "fact one", ["a"])
            with pytest.warns(RuntimeWarning, match="No space left"):
                two = pages.append("user-profile", "fact two", ["a"])
        assert pages.rebuild().written == ("user-profile",)
        assert shown_ids(tmp_path) == [one, two]


def test_a_folder_that_cannot_be_written_is_told_by_every_verb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Pages(tmp_path) as pages:

        def refused(*_: object, **__: object) -> None:
            raise PermissionError(13, "Permission denied")

        with monkeypatch.context() as broken, pytest.warns(RuntimeWarning, match="this is in the log"):
            broken.setattr(Folder, "write_all", refused)
            broken.setattr(Folder, "remove", refused)
            one = pages.append("user-profile", "fact one", ["a"])
            told = pages.sync()
            assert told.caught_up == ()
            assert {problem.file for problem in told.problems} == {"user-profile.md", "index.md"}
            rebuilt = pages.rebuild()
            assert rebuilt.written == () and len(rebuilt.problems) == 2
            assert [problem.file for problem in pages.rebuild_index().problems] == ["index.md"]
            with pytest.raises(PermissionError):
                pages.clean()
            assert [entry.id for entry in pages.read("user-profile")] == [one], "nothing was cleaned"
            with pytest.warns(RuntimeWarning, match="index.md: it cannot be written"):
                pages.close()
    with Pages(tmp_path) as pages:
        assert pages.sync().caught_up == ("user-profile",)
        assert shown_ids(tmp_path) == [one]


def test_a_page_stays_as_private_as_somebody_made_it(tmp_path: Path) -> None:
    with Pages(tmp_path) as pages:
        page = pages.folder / "user-profile.md"
        for mode in (0o600, 0o640, 0o400):
            page.chmod(mode)
            pages.append("user-profile", f"said under {mode:o}", ["a"])
            assert page.stat().st_mode & 0o777 == mode
        assert len(pages.read("user-profile")) == 3


def test_a_file_that_could_not_be_written_for_long_is_behind_and_not_edited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Pages(tmp_path) as pages:

        def full(*_: object, **__: object) -> list[str]:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as broken, pytest.warns(RuntimeWarning, match="this is in the log"):
            broken.setattr(Folder, "write_all", full)
            ids = [pages.append("user-profile", f"fact {number}", ["a"]) for number in range(20)]
        told = pages.sync()
        assert (told.caught_up, told.edited, told.kept) == (("user-profile",), (), ())
        assert shown_ids(tmp_path) == ids


def test_a_log_that_lost_its_last_second_takes_the_entry_from_the_page(tmp_path: Path) -> None:
    with Pages(tmp_path / "a") as pages:
        pages.append("user-profile", "fact one", ["a"])
        pages.store.sync()
        shutil.copytree(tmp_path / "a" / ".chronomemory", tmp_path / "b" / ".chronomemory")
        lost = pages.append("user-profile", "fact two", ["a"])
    shutil.copytree(tmp_path / "a" / "memory", tmp_path / "b" / "memory")
    with Pages(tmp_path / "b") as pages:
        assert pages.sync().added == 1
        assert pages.read("user-profile")[-1].id == lost
