"""Pages, log and index stay what a simple model says, whatever is done in whichever order."""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from chronomemory.pages import Pages
from chronomemory.pages.text.page import read_page
from page_samples import PIECES, Clock, files

NAMES = ["user-profile", "topic-a", "topic-b"]


@dataclass(frozen=True)
class Said:
    content: str
    tags: tuple[str, ...]
    by: str | None = None


@dataclass
class Model:
    """What should be there: by page and id, in order."""

    pages: dict[str, dict[str, Said]] = field(
        default_factory=lambda: {"user-profile": {}, "user-preferences": {}}
    )


class Bench:
    """The pages, the model, and the steps that are done to both."""

    def __init__(self, root: Path, chance: random.Random) -> None:
        self.root, self.chance, self.clock = root, chance, Clock()
        self.pages = Pages(root, clock=self.clock)
        self.model = Model()

    def text(self) -> str:
        while True:
            text = "".join(
                self.chance.choice([*PIECES, "word", "tea"]) for _ in range(self.chance.randint(1, 5))
            )
            if text.strip():
                return text

    def known(self) -> str:
        return self.chance.choice(sorted(self.model.pages))

    def create(self) -> None:
        name = self.chance.choice(NAMES)
        if name not in self.model.pages:
            self.pages.create(name, self.text())
            self.model.pages[name] = {}

    def append(self) -> None:
        name, said = self.known(), Said(self.text(), ("a", "b"))
        self.model.pages[name][self.pages.append(name, said.content, said.tags)] = said

    def supersede(self) -> None:
        name = self.known()
        alive = [one for one, said in self.model.pages[name].items() if said.by is None]
        if alive:
            old, text = self.chance.choice(alive), self.text()
            new = self.pages.supersede(name, old, text, self.text())
            said = self.model.pages[name][old]
            self.model.pages[name][old] = replace(said, by=new)
            self.model.pages[name][new] = Said(text, said.tags)

    def edit(self) -> None:
        """A person adds an entry, deletes one or changes a word."""
        name = self.known()
        path = self.pages.folder / f"{name}.md"
        page = read_page(path.read_bytes().decode())
        entries = self.model.pages[name]
        choice = self.chance.choice(["add", "delete", "reword", "preamble"])
        if choice == "add":
            made = f"hand-{self.clock.now:%H%M%S}-{self.chance.randrange(10**9)}"
            path.write_bytes(
                path.read_bytes() + f"\n## [2026-05-01 10:00] {{id: {made}}} #h\nby hand\n".encode()
            )
            entries[made] = Said("by hand", ("h",))
        elif choice == "preamble":
            path.write_bytes((page.head + "\n\nmine" + page.text[len(page.head) :]).encode())
        elif entries:
            one = self.chance.choice(list(entries))
            stretch = next(stretch for stretch in page.stretches if stretch.entry.entry_id == one)
            if choice == "delete":
                path.write_bytes(page.text.replace(stretch.raw, "", 1).encode())
                del entries[one]
            elif entries[one].by is None:
                path.write_bytes(page.text.replace(stretch.raw, f"{stretch.raw} more", 1).encode())
                entries[one] = replace(entries[one], content=self.reworded(path, one))

    def reworded(self, path: Path, one: str) -> str:
        return next(e.content for e in read_page(path.read_bytes().decode()).entries if e.entry_id == one)

    def compact(self) -> None:
        name = self.known()
        told = self.pages.compact(name)
        assert told.accepted, told.summary
        entries = {entry.id: entry for entry in self.pages.read(name, include_superseded=True)}
        before = self.model.pages[name]
        assert {one for one, said in before.items() if said.by is None} <= set(entries)
        for one, said in before.items():
            text = entries[one].content if one in entries else ""
            assert said.content.strip() in text or any(one in entry.content for entry in entries.values())
        self.model.pages[name] = {one: Said(e.content, e.tags, e.superseded_by) for one, e in entries.items()}

    def reopen(self) -> None:
        self.pages.close()
        self.pages = Pages(self.root, clock=self.clock)

    def sync(self) -> None:
        assert self.pages.sync().problems == ()

    def rebuild(self) -> None:
        self.sync()
        before = files(self.pages.folder)
        shutil.rmtree(self.pages.folder)
        self.pages.rebuild()
        assert files(self.pages.folder) == before

    def rebuild_index(self) -> None:
        self.sync()
        assert self.pages.rebuild_index().corrected == 0

    def flag(self) -> None:
        self.pages.flag_compact(self.known(), self.text())

    def check(self) -> None:
        self.sync()
        assert {page.name for page in self.pages.list()} == set(self.model.pages)
        for name, entries in self.model.pages.items():
            page = read_page((self.pages.folder / f"{name}.md").read_bytes().decode())
            for found in (
                {e.entry_id: Said(e.content, e.tags, e.superseded_by) for e in page.entries},
                {
                    e.id: Said(e.content, e.tags, e.superseded_by)
                    for e in self.pages.read(name, include_superseded=True)
                },
            ):
                assert list(found.items()) == list(entries.items()), name
        words = {hit.entry.id for hit in self.pages.search("word", limit=1000)}
        alive = {
            one: said
            for entries in self.model.pages.values()
            for one, said in entries.items()
            if said.by is None
        }
        assert words <= set(alive)


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_done_pages_and_log_agree(tmp_path: Path, seed: int) -> None:
    bench = Bench(tmp_path, random.Random(seed))
    steps = [bench.append] * 5 + [bench.supersede] * 3 + [bench.edit] * 3
    steps += [
        bench.create,
        bench.compact,
        bench.reopen,
        bench.sync,
        bench.rebuild,
        bench.rebuild_index,
        bench.flag,
    ]
    for number in range(30):
        bench.chance.choice(steps)()
        if number % 6 == 5:
            bench.check()
    bench.check()
    assert bench.pages.store.chain_valid()
    bench.pages.close()
