"""Do files of the engine, or of the doorway to it, ever lead back to themselves?

A file leads to those that its ``use`` lines name. A parent may hand on what its children hold, and a child
may name its parent: that is the tree, and no circle.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

RUST = Path(__file__).parent.parent / "rust"
USE = re.compile(r"^\s*(?:pub(?:\([^)]*\))? )?use ([^;]+);", re.MULTILINE)
Module = tuple[str, ...]


def modules(source: Path) -> dict[Module, Path]:
    """Return every file of a crate by the path of its module."""
    found = {}
    for file in source.rglob("*.rs"):
        parts = file.relative_to(source).with_suffix("").parts
        found[parts[:-1] if parts[-1] in ("mod", "lib") else parts] = file
    return found


def single(tree: str) -> Iterator[str]:
    """Yield the paths of a ``use`` tree, one by one."""
    before, brace, inside = tree.strip().partition("{")
    if not brace:
        yield tree.strip()
        return
    depth, part = 0, ""
    for letter in inside[: inside.rindex("}")] + ",":
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            if part.strip():
                yield from single(before + part.strip())
            part = ""
        else:
            part += letter


def meant(path: str, where: Module, known: dict[Module, Path]) -> Module | None:
    """Return the module that a path leads to, or None if it leads out of the crate."""
    head, *rest = path.split("::")
    if head == "crate":
        base: Module = ()
    elif head == "self":
        base = where
    elif head == "super":
        base = where[:-1]
        while rest and rest[0] == "super":
            base, rest = base[:-1], rest[1:]
    else:
        return None
    full = (*base, *rest)
    return next((full[:end] for end in range(len(full), 0, -1) if full[:end] in known), None)


def arrows(known: dict[Module, Path]) -> dict[Module, set[Module]]:
    """Return where each file leads, its own parents and children aside."""
    found: dict[Module, set[Module]] = {}
    for module, file in known.items():
        text = file.read_text(encoding="utf-8").partition("#[cfg(test)]")[0]
        paths = (path for tree in USE.findall(text) for path in single(tree))
        ends = {meant(path, module, known) for path in paths}
        found[module] = {
            end for end in ends if end and end[: len(module)] != module and module[: len(end)] != end
        }
    return found


def circle(graph: dict[Module, set[Module]]) -> list[Module]:
    """Return one circle of a graph, or nothing: what leads nowhere is taken away until nothing is left."""
    left = {module: set(ends) for module, ends in graph.items()}
    while gone := {module for module, ends in left.items() if not ends & left.keys()}:
        left = {module: ends for module, ends in left.items() if module not in gone}
    way: list[Module] = []
    at = min(left, default=None)
    while at is not None and at not in way:
        way.append(at)
        at = min(left[at] & left.keys())
    return way[way.index(at) :] if at is not None else []


@pytest.mark.parametrize(("crate", "files"), [("engine", 100), ("python", 30)])
def test_no_files_lead_back_to_themselves(crate: str, files: int) -> None:
    known = modules(RUST / crate / "src")
    assert len(known) > files
    assert circle(arrows(known)) == []


def test_a_circle_is_seen() -> None:
    one, two, three = ("a", "one"), ("a", "two"), ("b",)
    assert circle({one: {two}, two: {three}, three: {one}}) == [one, two, three]
    assert circle({one: {two}, two: {three}, three: set()}) == []
    known = {one: Path(), two: Path()}
    assert [meant(path, one, known) for path in single("super::two::{Thing, other::{A, B}}")] == [two] * 3
    assert meant("std::fmt", one, known) is None
