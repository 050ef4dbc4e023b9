"""Reads the lists of the engine's rooms, and finds the files that a file of it names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ENGINE = Path(__file__).parents[2] / "rust" / "engine" / "src"
STORE = ENGINE / "store"


def without_comments(source: str) -> str:
    return re.sub(r"//[^\n]*", "", source)


def list_of(room: Path) -> Path:
    """The file that lists what is in a room."""
    if room == ENGINE:
        return room / "lib.rs"
    return room / "mod.rs" if (room / "mod.rs").is_file() else room.with_suffix(".rs")


@cache
def code_of(path: Path) -> str:
    """What a file says outside of comments and tests."""
    return without_comments(path.read_text(encoding="utf-8")).split("#[cfg(test)]")[0]


@cache
def listed_in(room: Path) -> list[str]:
    """The files and rooms of a room, as it lists them."""
    listed = list_of(room).read_text(encoding="utf-8")
    return re.findall(r"^(?:pub(?:\([^)]*\))? )?mod (\w+);$", listed, re.MULTILINE)


def files_of(room: Path) -> list[Path]:
    """The files of a room, in the order of the lists; what lists a room stands behind what is in it."""
    found = []
    for name in listed_in(room):
        inner = room / name
        found += files_of(inner) if inner.is_dir() else [inner.with_suffix(".rs")]
    return [*found, list_of(room)]


def leaves(tree: str) -> Iterator[list[str]]:
    """The paths that a tree of names leads to: ``a::{b, c::D}`` to ``a::b`` and ``a::c::D``."""
    path = re.match(r"\w+(?:::\w+)*", tree)
    begun = path[0].split("::") if path else []
    rest = tree[path.end() if path else 0 :].removeprefix("::")
    if not rest.startswith("{"):
        yield begun
        return
    depth, start = 0, 1
    for place, char in enumerate(rest):
        depth += {"{": 1, "}": -1}.get(char, 0)
        if depth == 0 or (char == "," and depth == 1):
            inner = rest[start:place].strip()
            if inner:
                yield from ([*begun, *leaf] for leaf in leaves(inner))
            start = place + 1
        if depth == 0:
            return


@cache
def handed_out(room: Path) -> dict[str, list[str]]:
    """What a room hands out under its own name, and the path inside it."""
    trees = re.findall(
        r"^(?:pub(?:\([^)]*\))? )?use (?:self::)?([a-z_]+::[^;]+;)", code_of(list_of(room)), re.MULTILINE
    )
    own = [leaf for tree in trees for leaf in leaves(tree) if leaf[0] in listed_in(room)]
    return {leaf[-1]: leaf for leaf in own}


def meant(room: Path, steps: list[str]) -> Path:
    """The file that a path leads to from a room, also by what rooms on its way hand out."""
    steps = [step for step in steps if step != "self"]
    while steps:
        inner = room / steps[0]
        if inner.is_dir():
            room, steps = inner, steps[1:]
        elif inner.with_suffix(".rs").is_file():
            return inner.with_suffix(".rs")
        elif steps[0] in handed_out(room):
            steps = handed_out(room)[steps[0]]
        else:
            break
    return list_of(room)


@cache
def files_named(path: Path) -> set[Path]:
    """The files of the engine that a file names, in a ``use`` or on the spot. To hand out is not to name."""
    code = code_of(path)
    found: set[Path] = set()
    own = path.parent if path.name in ("mod.rs", "lib.rs") else path.with_suffix("")
    for begin in re.finditer(r"\b(?:crate|self|super(?:::super)*)::", code):
        ups = begin[0].count("super")
        room = ENGINE if begin[0] == "crate::" else [own, *own.parents][ups]
        if room == ENGINE or ENGINE in room.parents:
            found |= {meant(room, leaf) for leaf in leaves(code[begin.end() :]) if room.is_dir()}
    if own.is_dir():
        kept = re.sub(r"^pub(?:\([^)]*\))? use [^;]+;", "", code, flags=re.MULTILINE)
        for begin in re.finditer(rf"(?<![\w:])(?:{'|'.join(listed_in(own))})::", kept):
            found |= {meant(own, leaf) for leaf in leaves(kept[begin.start() :])}
    return found - {path}


def lists_it(path: Path, other: Path) -> bool:
    """Whether a file lists the room that another is in."""
    return any(list_of(room) == path for room in other.parents if room == ENGINE or ENGINE in room.parents)
