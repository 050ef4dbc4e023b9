"""Files of the engine use only what stands above them; they and those of the doorway lead nowhere back.

A file leads to those that it names, in a ``use`` or on the spot. A parent may hand on what its children hold,
and a child may name its parent: that is the tree, and no circle.
"""

from __future__ import annotations

from pathlib import Path

import engine_files
import pytest
from engine_files import ENGINE, STORE, files_named, files_of, leaves, list_of, lists_it, meant


def name_of(path: Path) -> str:
    return path.relative_to(ENGINE).as_posix()


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Return one circle of a graph, or nothing: what leads nowhere is taken away until nothing is left."""
    left = {name: set(ends) for name, ends in graph.items()}
    while gone := {name for name, ends in left.items() if not ends & left.keys()}:
        left = {name: ends for name, ends in left.items() if name not in gone}
    way: list[str] = []
    at = min(left, default=None)
    while at is not None and at not in way:
        way.append(at)
        at = min(left[at] & left.keys())
    return way[way.index(at) :] if at is not None else []


def test_each_file_stands_in_the_list_of_its_room() -> None:
    assert sorted(files_of(ENGINE)) == sorted(ENGINE.rglob("*.rs"))


def test_a_file_uses_only_files_above_it_in_the_list_of_its_room() -> None:
    """Room by room and file by file. What a ``mod.rs`` defines may be named by all in its room."""
    order = {path: number for number, path in enumerate(files_of(ENGINE))}
    named = {path: files_named(path) for path in order}
    assert sum(len(others) for others in named.values()) > 2000
    below = [
        f"{name_of(path)} uses {name_of(other)}"
        for path, others in named.items()
        for other in sorted(others)
        if order[other] > order[path] and not lists_it(other, path)
    ]
    assert below == []


def test_no_room_uses_a_file_that_uses_the_room() -> None:
    """Only the store does: it is defined where its rooms are listed, and all of them work on it."""
    both = [
        name_of(path)
        for path in files_of(ENGINE)
        for other in files_named(path)
        if lists_it(other, path) and other != list_of(STORE) and path in files_named(other)
    ]
    assert both == []


def test_what_a_room_hands_out_is_looked_for_where_it_comes_from() -> None:
    assert meant(ENGINE, ["log", "Durability"]) == ENGINE / "log" / "sync.rs"
    assert meant(ENGINE, ["disk", "Disk"]) == ENGINE / "disk" / "mod.rs"
    assert meant(STORE, ["load", "base", "Base", "load"]) == STORE / "load" / "base.rs"


def test_a_path_on_the_spot_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_files, "ENGINE", tmp_path)
    (tmp_path / "room").mkdir()
    texts = {
        "lib.rs": "mod room;\npub use room::Thing;\n",
        "room/mod.rs": "mod one;\n\nmod two;\n\npub use two::Thing;\n",
        "room/one.rs": "// super::two::other()\nfn call() -> u8 { super::two::answer() }\n",
        "room/two.rs": "use super::one::call;\n#[cfg(test)]\nuse crate::lib;\n",
        "room/three.rs": "fn make() -> crate::Thing { crate::room::Thing }\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    named = {
        name: {other.relative_to(tmp_path).as_posix() for other in files_named(tmp_path / name)}
        for name in texts
    }
    assert named["room/one.rs"] == named["room/three.rs"] == {"room/two.rs"}
    assert named["room/two.rs"] == {"room/one.rs"}
    assert named["room/mod.rs"] == named["lib.rs"] == set()


def test_the_trees_of_a_use_are_seen() -> None:
    assert list(leaves("a::{b, c::{D, E}};")) == [["a", "b"], ["a", "c", "D"], ["a", "c", "E"]]
    assert list(leaves("a::b::C::default()")) == [["a", "b", "C", "default"]]


def arrows(source: Path) -> dict[str, set[str]]:
    """Where each file of a crate leads by the names in it, what lists it and what it lists aside."""
    return {
        path.relative_to(source).as_posix(): {
            other.relative_to(source).as_posix()
            for other in files_named(path)
            if not lists_it(other, path) and not lists_it(path, other)
        }
        for path in files_of(source)
    }


@pytest.mark.parametrize(("crate", "least"), [("engine", 100), ("python", 30)])
def test_no_files_lead_back_to_themselves(crate: str, least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    source = ENGINE.parents[1] / crate / "src"
    monkeypatch.setattr(engine_files, "ENGINE", source)
    graph = arrows(source)
    assert len(graph) > least
    assert circle(graph) == []
