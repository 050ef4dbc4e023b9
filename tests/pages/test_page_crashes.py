"""A page is the old or the new one after a crash at any call, and the log has what was acknowledged."""

from __future__ import annotations

import itertools
import json
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from chronomemory.pages import Pages
from crash_disk import Call, Disk, spread, traced

_NUMBERS = itertools.count()
PROGRAM = Path(__file__).with_name("acting.py")
#: What the pages say, by their names.
Texts = dict[str, str]


@pytest.fixture(scope="module", params=["prefixed", "free"])
def played(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> tuple[Path, list[Call], list[Texts]]:
    """A project as it was before a writer came, what the writer called, and the pages after each deed."""
    root = tmp_path_factory.mktemp("crashes")
    project, told = root / "project", root / "told"
    command = [sys.executable, str(PROGRAM), str(project), str(told)]
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("XDG_STATE_HOME", str(root / "state"))
        with Pages(project, "memory", layout=request.param, durability="full") as pages:
            if pages.layout == "free":
                pages.create("user-profile", "A note")
        shutil.copytree(project, root / "before")
        calls = traced(command, root / "trace")
    return root, calls, [json.loads(line) for line in told.read_text().splitlines()]


def crashes(
    root: Path, calls: list[Call], seeds: int, forgetful: Callable[[str], bool] = lambda _: False
) -> Iterator[tuple[int, dict[str, bytes]]]:
    """Yield what may be left, each state once, with how many deeds were acknowledged before the crash."""
    disk = Disk(root / "before", forgetful=forgetful)
    disk.root = f"{root / 'project'}/"
    acknowledged, seen = 0, set()
    for number, call in enumerate(calls):
        if call.name == "write" and call.paths[0] == str(root / "told"):
            acknowledged += 1
        elif not disk.play(call):
            continue
        # At each call what is durable alone, and in turns all, as after a kill, or what chance leaves.
        for seed in (-1, *(range(seeds) if number % 2 else (-2,))):
            chance = random.Random(f"{number} {seed}") if seed >= 0 else None
            left = disk.left(chance, all_of_it=seed == -2)
            state = (acknowledged, *sorted(left.items()))
            if state not in seen:
                seen.add(state)
                yield acknowledged, left


def complaint(left: dict[str, bytes], acknowledged: int, said: list[Texts], place: Path) -> str | None:
    """Return what is wrong with what is left; nothing if all that was promised is kept."""
    spread(left, place)
    before, after = said[max(0, acknowledged - 1)], said[min(acknowledged, len(said) - 1)]
    folder = place / "memory"
    for file in folder.glob("*-*.md"):
        texts = {texts.get(file.stem, "") for texts in (*said[: acknowledged + 1], after)}
        if file.read_text() not in texts:
            return f"{file.name} is neither the old page nor the new one: {file.read_text()!r}"
    if gone := [name for name in before if acknowledged and not (folder / f"{name}.md").exists()]:
        return f"{gone} are gone"
    with Pages(place, "memory", durability="full") as pages:
        look = pages._home.look
        known = {page.name: look.text(page) for page in look.pages()}
        if known not in (before, after):
            return f"the log says {known}, which is neither {before} nor {after}"
        told = pages.sync()
        if pages.layout == "free":
            # The file comes first: what is on it alone is taken in as an edit, and nothing is written.
            known = {page.name: look.text(page) for page in look.pages()}
            if known not in (before, after) or told.forgotten or told.problems:
                return f"sync loses something: {told}"
        elif told.edited or told.created or told.forgotten or told.kept or told.problems:
            return f"sync takes the crash for an edit: {told}"
        shown = {file.stem: file.read_text() for file in folder.glob("*-*.md")}
        if shown != known or not pages.store.chain_valid():
            return f"after a sync the folder is {shown}, the log {known}"
    return None


def judged(
    played: tuple[Path, list[Call], list[Texts]], seeds: int, **more: Callable[[str], bool]
) -> Iterator[str | None]:
    """Crash everywhere, and yield what is wrong with what is left, or nothing."""
    root, calls, said = played
    for acknowledged, left in crashes(root, calls, seeds, **more):
        # Each in a place of its own: what was seen of a log is remembered by where it is.
        place = root / f"crashed-{next(_NUMBERS)}"
        try:
            told = complaint(left, acknowledged, said, place)
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
        shutil.rmtree(place)
        yield f"after {acknowledged} deeds: {told}" if told else None


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_after_a_crash_at_any_call_pages_and_log_are_what_was_promised(
    played: tuple[Path, list[Call], list[Texts]],
) -> None:
    judgements = list(judged(played, seeds=1))
    assert list(filter(None, judgements)) == []
    assert len(judgements) > 150


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("played", "lie"), [("prefixed", ".part"), ("prefixed", "events.wal")], indirect=["played"]
)
def test_a_disk_that_lies_about_its_syncs_is_found_out(
    played: tuple[Path, list[Call], list[Texts]], lie: str
) -> None:
    """Whoever left a sync out would break the promise, and this test would tell."""
    assert any(judged(played, seeds=0, forgetful=lambda path: path.endswith(lie)))


def test_the_play_says_what_the_folder_says(played: tuple[Path, list[Call], list[Texts]]) -> None:
    root, calls, said = played
    disk = Disk(root / "before")
    disk.root = f"{root / 'project'}/"
    for call in calls:
        disk.play(call)
    shown = {
        path: content for path, content in disk.left(None, all_of_it=True).items() if ".part" not in path
    }
    assert shown == {
        str(place.relative_to(root / "project")): place.read_bytes()
        for place in (root / "project").rglob("*")
        if place.is_file()
    }
    assert len(said) == 20
