"""Entries of a vault equal a plain parse of its files, whatever a user and an agent do in any order."""

from __future__ import annotations

import random
import re
import shutil
from pathlib import Path

import pytest
from chronomemory.pages import Pages
from vaults import contents

NAMES = ["Note", "a/Note", "a/b/Deep one", "漢字", "Plan B", "topic-tea", "x y/z"]
PIECES = [
    "tea",
    "word",
    "# One",
    "## Two",
    "## Two",
    "###### Six",
    "#tag",
    "#notheading",
    "```",
    "~~~",
    "```py",
    "[[Note]]",
    "---",
    "",
    " ",
    "    # code",
    "   # three blanks",
    "## [2026-01-01 10:00] not an entry",
    "~~struck~~",
    "\\",
]
_ENTRY = re.compile(r"## \[[^\]]*\] \{id: ([A-Za-z0-9-]+)\}[^\n]*")


def parse(text: str) -> list[tuple[str, str]]:
    """Return the kind and the text of each entry, line by line: a section has the kind ``""``.

    The body of an entry is compared without its escapes, of which the texts here need few.
    """
    text = text.replace("\r\n", "\n")
    if front := re.match(r"---\n(?:.*\n)*?---[ \t]*(?=\n|\Z)", text):
        text = text[front.end() :]
    found: list[tuple[str, list[str]]] = [("", [])]
    fence = ""
    for line in text.split("\n"):
        opening = re.fullmatch(r" {0,3}(`{3,}|~{3,})(.*)", line)
        in_entry = found[-1][0] != ""
        if entry := _ENTRY.fullmatch(line):
            found.append((entry[1], []))
            continue
        if not in_entry and not fence and re.fullmatch(r" {0,3}#{1,6}([ \t].*)?", line):
            found.append(("", [line]))
            continue
        if opening and not in_entry:
            if not fence:
                fence = opening[1] if opening[1][0] == "~" or "`" not in opening[2] else ""
            elif opening[1].startswith(fence) and not opening[2].strip():
                fence = ""
        found[-1][1].append(line)
    first = found[0]
    if not "\n".join(first[1]).strip():
        # Blanks above the first section belong to it.
        lead = first[1] if len(found) > 1 and found[1][0] == "" else []
        found = found[1:]
        if lead and found:
            found[0] = ("", [*lead, *found[0][1]])
    return [(kind, "\n".join(lines).strip("\n")) for kind, lines in found]


class Bench:
    """A vault, its pages, and the steps that are done to both."""

    def __init__(self, root: Path, chance: random.Random) -> None:
        self.root, self.chance, self.vault = root, chance, root / "vault"
        self.vault.mkdir()
        (self.vault / "Note.md").write_text("tea\n")
        self.pages = Pages(root, "vault")
        self.number = 0

    def text(self) -> str:
        eol = self.chance.choice(["\n", "\n", "\r\n"])
        body = eol.join(self.chance.choice(PIECES) for _ in range(self.chance.randint(0, 9)))
        front = self.chance.choice(["", "", f"---{eol}tags: [x]{eol}---{eol}", f"---{eol}---{eol}"])
        if not front and body.startswith("---"):
            body = f"tea{eol}{body}"
        return front + body + self.chance.choice(["", eol, eol * 3])

    def notes(self) -> list[str]:
        return sorted(file.removesuffix(".md") for file in contents(self.vault))

    def write_by_hand(self) -> None:
        place = self.vault / f"{self.chance.choice(NAMES)}.md"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(self.text().encode())

    def add_by_hand(self) -> None:
        for name in self.notes()[:1]:
            place = self.vault / f"{name}.md"
            place.write_bytes(place.read_bytes() + f"\n{self.chance.choice(PIECES)}".encode())

    def delete_by_hand(self) -> None:
        if len(self.notes()) > 1:
            (self.vault / f"{self.chance.choice(self.notes())}.md").unlink()

    def move_by_hand(self) -> None:
        target = self.vault / f"{self.chance.choice(NAMES)}.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(self.vault / f"{self.chance.choice(self.notes())}.md", target)

    def append(self) -> None:
        self.number += 1
        name = self.chance.choice(self.notes())
        place = self.vault / f"{name}.md"
        before = place.read_bytes()
        self.pages.append(name, f"said {self.number}", self.chance.choice([[], ["agent"]]))
        after = place.read_bytes()
        assert after.startswith(before.rstrip(b"\r\n"))

    def supersede(self) -> None:
        name = self.chance.choice(self.notes())
        ids = [entry.id for entry in self.pages.read(name) if entry.id and not entry.id.startswith("#")]
        if ids:
            self.pages.supersede(name, self.chance.choice(ids), f"new {self.number}", "why")

    def create(self) -> None:
        name = self.chance.choice(NAMES)
        if name not in self.notes():
            self.pages.create(name, self.chance.choice(["", "about"]))

    def reopen(self) -> None:
        self.pages.close()
        self.pages = Pages(self.root, "vault")

    def check(self) -> None:
        before = contents(self.vault)
        assert self.pages.sync().problems == ()
        assert self.pages.rebuild_index().corrected == 0
        assert [page.name for page in self.pages.list()] == self.notes()
        for name in self.notes():
            expected = parse(before[f"{name}.md"].decode())
            entries = self.pages.read(name, include_superseded=True)
            ids = ["" if not e.id or e.id.startswith("#") else e.id for e in entries]
            assert ids == [kind for kind, _ in expected], name
            for entry, (kind, text) in zip(entries, expected, strict=True):
                if not kind:
                    assert entry.content == text, name
                else:
                    plain = entry.content.split("\n")[0]
                    assert plain in text and (entry.superseded == text.startswith("~~")), name
            assert self.pages.text(name).encode() == before[f"{name}.md"]
        assert contents(self.vault) == before
        hits = {hit.entry.page for hit in self.pages.search("tea", limit=1000)}
        assert hits == {name for name in self.notes() if "tea" in re.findall(r"\w+", _searched(before, name))}


def _searched(files: dict[str, bytes], name: str) -> str:
    """Return what a search looks through: all that is not superseded."""
    parsed = parse(files[f"{name}.md"].decode())
    return "\n".join(text for kind, text in parsed if not (kind and text.startswith("~~")))


@pytest.mark.parametrize("seed", range(6))
def test_entries_equal_a_plain_parse_of_the_files(tmp_path: Path, seed: int) -> None:
    bench = Bench(tmp_path, random.Random(seed))
    steps = [bench.write_by_hand] * 4 + [bench.append] * 4 + [bench.supersede] * 2
    steps += [bench.add_by_hand, bench.delete_by_hand, bench.move_by_hand, bench.create, bench.reopen]
    for number in range(60):
        bench.chance.choice(steps)()
        if number % 5 == 4:
            bench.check()
    bench.check()
    assert bench.pages.store.chain_valid()
    bench.pages.close()
