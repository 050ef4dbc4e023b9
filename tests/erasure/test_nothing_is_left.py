"""After any record of any face is erased, no file of the store's folder holds it or lets it be guessed."""

from __future__ import annotations

import hashlib
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoRecord, ChronoStore
from chronomemory._core import canonical_json, file_holds
from chronomemory.blocks import Memory
from chronomemory.episodes import FactPattern, Facts
from chronomemory.graph import Workspace
from chronomemory.mcp.reference import read_graph
from chronomemory.mcp.served_store import ServedStore
from chronomemory.pages import Pages
from chronomemory.scope import Scope
from shares import share
from test_erase import is_valid_for_both
from world import World

#: So many digits of a digest are enough to confirm a guess.
_DIGITS = 16


def texts_in(value: Any) -> Iterator[str]:
    """Every text in a JSON value that holds a secret."""
    if isinstance(value, str):
        if "zq" in value:
            yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from texts_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts_in(inner)


def guesses(record: ChronoRecord) -> set[str]:
    """The digests that confirm a guess at what a record says."""
    scope = record.scope or Scope()
    told = [canonical_json(record.data), canonical_json(record.to_dict())]
    for text in texts_in(record.to_dict()):
        told += [text.encode(), canonical_json(text), canonical_json([text])]
        told.append(scope.spelled + b"\n" + text.encode())
    return {hashlib.sha256(one).hexdigest()[:_DIGITS] for one in told}


def found_in(root: Path, needles: set[str]) -> list[tuple[str, str]]:
    """The files that hold one of these, unpacked where they are packed, or are called so."""
    files = [path for path in sorted((root / ".chronomemory").rglob("*")) if path.is_file()]
    wanted = [needle.lower().encode() for needle in sorted(needles)]
    suspects = [path for path in files if file_holds(path, wanted) or any(n in path.name for n in needles)]
    return [
        (path.name, needle) for path in suspects for needle in needles if file_holds(path, [needle.encode()])
    ]


def check_faces(root: Path, user: str) -> None:
    """All faces read what is left."""
    names = {"user": user} if user else {}
    with ChronoStore(root) as store:
        with Memory(store, **names) as memory:
            for block in memory.list():
                memory.history(block["id"])
            memory.recall("The number is")
            memory.frame("attention", "The number")
        with Facts(store) as facts:
            for fact in facts.query(FactPattern()):
                assert all(step["rule_id"] == "r" for step in fact.lineage)
        with Pages(store, **names) as pages:
            for page in pages.list():
                assert pages.text(page.name)
                pages.read(page.name)
        read_graph(ServedStore(store, Scope.of(**names) if user else Scope()), 20_000)
        store.search("number")
    with Workspace.open(root) as workspace:
        assert workspace.replay() == workspace.snapshot()
        workspace.graph.export()
        workspace.audit.records()
        list(workspace.events.events())


@pytest.mark.parametrize("seed", range(share(3, 60)))
def test_nothing_is_left_of_erased_records(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    world = World(tmp_path, chance, user="mia" if seed % 3 == 2 else "")
    with ChronoStore(tmp_path, salt=True) as store:
        world.fill(store)
        for path in ("label", "evidence", "data.content"):
            store.upkeep.create_index(path)
    for _ in range(2):
        with ChronoStore(tmp_path, salt=True) as store:
            everyone = store.everyone()
            # The keys of what was sealed are written when they are first asked.
            everyone.query(where={"label": {"starts": "zq"}})
            ids = chance.sample(sorted(world.secrets), 6)
            records = [one for one in map(everyone.get, ids) if one is not None]
            needles = {text for name in ids for text in world.secrets.pop(name)}
            rows = [row for name in ids if (row := everyone.vectors.get(name)) is not None]
            needles |= {hashlib.sha256(row.tobytes()).hexdigest()[:_DIGITS] for row in rows}
            needles |= {digest for record in records for digest in guesses(record)}
            planned = store.erase(ids=ids, reason="asked for", dry_run=True)
            told = store.erase(ids=ids, reason="asked for")
            assert (planned.belonging, planned.mentions) == (told.belonging, told.mentions)
            assert found_in(tmp_path, needles) == []
            assert is_valid_for_both(store)
            assert all(everyone.get(name) is None for name in ids)
            kept = [name for name in told.mentions if everyone.get(name, expired=True) is None]
            assert kept == [], "what is listed as mentioning them is kept"
        # What a file of pages says is read in again.
        shutil.rmtree(tmp_path / "memory", ignore_errors=True)
        check_faces(tmp_path, world.user)
        with ChronoStore(tmp_path, salt=True) as store:
            store.compact()
            assert found_in(tmp_path, needles) == []


def test_nothing_is_left_of_an_erased_user(tmp_path: Path) -> None:
    world = World(tmp_path, random.Random(99), user="mia")
    other = World(tmp_path, random.Random(98))
    with ChronoStore(tmp_path, salt=True) as store:
        for one in (world, other):
            for part in (one.plain, one.blocks, one.episodes, one.entities):
                part(store)
        store.compact()
        store.erase(scope={"user": "mia"}, reason="asked for")
        needles = {text for texts in world.secrets.values() for text in texts}
        assert found_in(tmp_path, needles) == []
        assert is_valid_for_both(store)
        assert store.record_count() > 0
