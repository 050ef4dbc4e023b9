"""The documents say what is true: their examples run as shown, their links lead somewhere."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.shared_engines

ROOT = Path(__file__).parents[2]
GUIDES = sorted((ROOT / "docs" / "guide").glob("*.md"))
DECISIONS = [page for page in sorted((ROOT / "docs" / "decisions").glob("*.md")) if page.name != "README.md"]
#: The longest decision page, in words.
MOST_WORDS = 650
DOCUMENTS = [*sorted(ROOT.glob("*.md")), ROOT / "docs" / "format.md", *GUIDES, *DECISIONS]
WITH_EXAMPLES = [ROOT / "README.md", *(page for page in GUIDES if page.name != "README.md")]

FENCE = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[[^\]]+\]\((?P<target>[^)\s]+)\)")
HEADING = re.compile(r"^#+ (?P<title>.+)$", re.MULTILINE)

#: Commands that build things, or that a newcomer types once: their examples are read, not run.
NOT_RUN = re.compile(r"^\s*(make|pip|cargo|git|python)\b", re.MULTILINE)

#: Examples for a web framework, which is no dependency: they are run where it is installed.
USES_FASTAPI = re.compile(r"^from fastapi\b", re.MULTILINE)

#: The width of a terminal in the examples, in columns.
WIDTH = "90"


@dataclass(frozen=True)
class Block:
    """One fenced block; ``said`` is the text block right behind it, if there is one."""

    language: str
    text: str
    line: int
    said: str | None = None


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def blocks(page: str) -> Iterator[Block]:
    """Yield the examples of a page, each with the output that the page shows for it."""
    found = list(FENCE.finditer(page))
    for number, fence in enumerate(found):
        following = found[number + 1] if number + 1 < len(found) else None
        said = following["text"] if following and following["language"] == "text" else None
        line = page.count("\n", 0, fence.start("text")) + 1
        if fence["language"] in ("python", "sh"):
            yield Block(fence["language"], fence["text"], line, said)


def run_python(block: Block, page: Path, names: dict[str, object]) -> None:
    """Run an example as a script would: a damaged store warns, anything else that warns fails."""
    source = "\n" * (block.line - 1) + block.text
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", RuntimeWarning)
        exec(compile(source, name_of(page), "exec"), names)


def run_shell(block: Block, folder: Path) -> str:
    command = f'chronomemory() {{ "{sys.executable}" -m chronomemory "$@"; }}\n'
    environment = {**os.environ, "COLUMNS": WIDTH, "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        ["sh", "-euc", command + block.text], cwd=folder, env=environment, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def stripped(text: str) -> str:
    """Tables fill their lines with spaces, which no page shows."""
    return "".join(f"{line.rstrip()}\n" for line in text.strip().splitlines())


def agrees(block: Block, got: str, page: Path) -> bool:
    """Hold an output against the page; False if the page shows none."""
    if block.said is None:
        return False
    want, got = stripped(block.said), stripped(got)
    same = doctest.OutputChecker().check_output(want, got, doctest.ELLIPSIS)
    assert same, f"{name_of(page)}, line {block.line}: the page says\n{want}\nbut it is\n{got}"
    return True


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=name_of)
def test_the_examples_run_as_shown(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    compared = 0
    for block in blocks(page.read_text(encoding="utf-8")):
        if USES_FASTAPI.search(block.text) and find_spec("fastapi") is None:
            continue
        if block.language == "python":
            run_python(block, page, names)
            compared += agrees(block, capsys.readouterr().out, page)
        elif not NOT_RUN.search(block.text):
            compared += agrees(block, run_shell(block, tmp_path), page)
    assert compared > 1


@pytest.mark.parametrize("page", DOCUMENTS, ids=name_of)
def test_every_link_leads_somewhere(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for link in LINK.finditer(text):
        target, _, anchor = link["target"].partition("#")
        if re.match(r"https?:", target):
            continue
        place = page.parent / target if target else page
        assert place.exists(), f"{name_of(page)} links to {target}"
        assert not anchor or anchor in anchors(place), f"{name_of(page)} links to #{anchor}"


def anchors(page: Path) -> set[str]:
    """The names under which the headings of a page can be linked to."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    titles = (heading["title"] for heading in HEADING.finditer(text))
    return {re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", DOCUMENTS, ids=name_of)
def test_every_make_target_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"(?:`|^)make ([a-z]+)", page.read_text(encoding="utf-8"), re.MULTILINE))
    assert named <= targets


@pytest.mark.parametrize("page", DOCUMENTS, ids=name_of)
def test_nothing_is_promised_that_no_chain_can_hold(page: Path) -> None:
    assert not re.search(r"tamper.?proof", page.read_text(encoding="utf-8"), re.IGNORECASE)


def test_the_index_names_every_page_of_the_guide() -> None:
    index = (ROOT / "docs" / "guide" / "README.md").read_text(encoding="utf-8")
    assert GUIDES
    assert [page.name for page in GUIDES if f"({page.name})" not in index] == ["README.md"]


@pytest.mark.parametrize("page", DECISIONS, ids=name_of)
def test_a_decision_has_a_status_and_its_three_parts(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.match(r"Status: (accepted|superseded by).* \d{4}-\d\d-\d\d", text.splitlines()[2])
    titles = [heading["title"] for heading in HEADING.finditer(FENCE.sub("", text))]
    assert titles[1:] == ["Context", "Decision", "Consequences"]
    assert len(text.split()) <= MOST_WORDS
    assert f"({page.name})" in (page.parent / "README.md").read_text(encoding="utf-8")
