"""Rules that no compiler checks: paths in ARCHITECTURE.md, places of unsafe code, imports of the package."""

from __future__ import annotations

import ast
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
PACKAGE = ROOT / "python" / "chronomemory"
#: The crates without Python.
CRATES = [ROOT / "rust" / name / "src" for name in ("log", "state", "search", "engine")]
#: The floor below the faces, and the faces that stand on it.
GROUND = PACKAGE / "face"
FACES = [PACKAGE / name for name in ("blocks", "episodes", "graph", "pages") if (PACKAGE / name).is_dir()]
#: The room beside the ground that draws for all of them.
DRAWING = PACKAGE / "drawing"

#: Where code lives, and what its files end with.
CODE = ("rust", "python", "tests", "benches", "tools")
SUFFIXES = {".rs", ".py", ".pyi"}
#: The upper bound for one cohesive type and its methods.
LONGEST_FILE_LINES = 1000

#: Folders of a store: names in the text that begin so are no paths of this tree.
STORE_FOLDERS = {".chronomemory", "archive", "backup", "base", "quarantine", "vectors"}


def code_files(*folders: str) -> list[Path]:
    found = (path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES)
    return sorted(path for path in found if "target" not in path.relative_to(ROOT).parts)


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def paths_in_text() -> list[str]:
    """Every word in backticks that looks like a path of this tree."""
    words = re.findall(r"`([\w./-]+)`", PAGE)
    slashed = [word for word in words if "/" in word and word.split("/")[0] not in STORE_FOLDERS]
    return slashed + [word for word in words if re.fullmatch(r"[\w.-]+\.(md|toml)|Makefile", word)]


def without_comments(source: str) -> str:
    return re.sub(r"//[^\n]*", "", source)


def files_with(pattern: str, *folders: Path) -> list[str]:
    """The Rust files whose code, without comments, matches a pattern."""
    word = re.compile(pattern)
    files = sorted(path for folder in folders for path in folder.rglob("*.rs"))
    return [
        name_of(path) for path in files if word.search(without_comments(path.read_text(encoding="utf-8")))
    ]


#: Stores that are tests: logs that old releases and other tools wrote.
KEPT_STORES = ("tests/blocks/data/", "tests/compat/", "tests/corpus/", "tests/data/")


def stores_among(paths: list[str]) -> list[str]:
    """The paths that lie in a store, or are one's log or rows, those that tests keep aside."""
    in_store = re.compile(r"(^|/)\.chronomemory/|(^|/)events\.wal$|\.f32$")
    return [path for path in paths if in_store.search(path) and not path.startswith(KEPT_STORES)]


class TestTheTree:
    def test_no_store_is_tracked(self) -> None:
        """The memory of whoever works on this tree is no part of it."""
        if not (ROOT / ".git").exists():
            pytest.skip("this is no checkout")
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
        ).stdout
        paths = listed.split("\0")
        assert "ARCHITECTURE.md" in paths
        assert stores_among(paths) == []

    def test_a_store_is_seen(self) -> None:
        tracked = [".chronomemory/events.wal", "docs/.chronomemory/synced", "benches/x.f32", "a/events.wal"]
        assert (
            stores_among([*tracked, "python/chronomemory/store.py", "tests/corpus/logs/events.wal"])
            == tracked
        )


class TestThePage:
    def test_every_path_exists(self) -> None:
        paths = paths_in_text()
        assert len(paths) > 30
        assert [path for path in paths if not (ROOT / path).exists()] == []


class TestTheCrates:
    def test_unsafe_code_is_where_the_page_says(self) -> None:
        word = r"\bunsafe\b|\bunsafe_code\b"
        found = files_with(word, *CRATES, ROOT / "rust" / "python" / "src")
        places = re.search(
            r"`[^`]*/disk/map.rs` maps.*?Unsafe code is denied\s+everywhere else", PAGE, re.DOTALL
        )
        assert places is not None
        named = re.findall(r"`(rust/[^`]+)`", places[0])
        assert [path for path in found if not any(path.startswith(name) for name in named)] == []
        assert [name for name in named if not any(path.startswith(name) for path in found)] == []

    def test_they_read_no_environment(self) -> None:
        """Time, randomness and files come in through arguments."""
        library = [path for path in files_with(r"\benv::", *CRATES) if "/bin/" not in path]
        assert library == []

    def test_one_file_reads_the_wall_clock_and_starts_threads_that_last(self) -> None:
        machine = ["rust/log/src/host/machine.rs"]
        assert files_with(r"SystemTime", *CRATES) == machine
        assert files_with(r"\bspawn\(work\)|thread::spawn\b", *CRATES) == machine

    def test_the_engine_has_one_export_list(self) -> None:
        listed = (ROOT / "rust" / "engine" / "src" / "lib.rs").read_text(encoding="utf-8")
        assert re.findall(r"^pub mod (\w+)", listed, re.MULTILINE) == ["testing"]
        assert "*" not in listed[listed.index("pub use ") :]


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(tree: ast.Module, known: set[str]) -> Iterator[str]:
    """The modules of the package that a module imports; the package imports whole modules by their names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield from (name for name in (whole if whole in known else node.module,) if name in known)


def cycle_in(graph: dict[str, set[str]]) -> list[str]:
    """Some modules that import each other in a circle, or none."""
    left = {name: set(targets) for name, targets in graph.items()}
    while ends := [name for name, targets in left.items() if not targets & left.keys()]:
        for name in ends:
            del left[name]
    return sorted(left)


class TestPython:
    def test_no_import_leads_back(self) -> None:
        files = {module_of(path): path for path in PACKAGE.rglob("*.py")}
        graph = {
            name: set(imported(ast.parse(path.read_text(encoding="utf-8")), set(files))) - {name}
            for name, path in files.items()
        }
        assert len(graph["chronomemory.store"]) > 5
        assert cycle_in(graph) == []

    def test_the_ground_knows_no_face_and_no_face_another(self) -> None:
        faces = {folder.name for folder in FACES}
        for folder in (GROUND, DRAWING, *FACES):
            others = {f"chronomemory.{name}" for name in (faces | {"cli"}) - {folder.name}}
            for path in folder.rglob("*.py"):
                files = {module_of(other) for other in PACKAGE.rglob("*.py")}
                used = imported(ast.parse(path.read_text(encoding="utf-8")), files)
                found = [name for name in used if ".".join(name.split(".")[:2]) in others]
                assert found == [], name_of(path)

    def test_the_drawing_knows_nothing_but_itself_and_the_errors(self) -> None:
        files = {module_of(other) for other in PACKAGE.rglob("*.py")}
        for path in DRAWING.rglob("*.py"):
            used = imported(ast.parse(path.read_text(encoding="utf-8")), files)
            own = ("chronomemory.drawing", "chronomemory.errors")
            assert [name for name in used if not name.startswith(own)] == [], name_of(path)

    def test_a_circle_is_seen(self) -> None:
        assert cycle_in({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == ["a", "b", "c"]


class TestEveryFile:
    def test_no_file_exceeds_the_upper_bound(self) -> None:
        lengths = {name_of(path): len(path.read_bytes().splitlines()) for path in code_files(*CODE)}
        assert {name: lines for name, lines in lengths.items() if lines > LONGEST_FILE_LINES} == {}

    def test_each_opens_with_a_statement_of_its_own(self) -> None:
        """No two files open with the same sentence."""
        opening = re.compile(r'\A(?://! |""")([^\n?]*\.)(?:"""|\n)')
        files = [path for path in code_files(*CODE) if not path.is_symlink()]
        assert len(files) > 900
        opened = {path: opening.match(path.read_text(encoding="utf-8")) for path in files}
        assert [name_of(path) for path, said in opened.items() if said is None] == []
        times = Counter(said[1] for said in opened.values() if said)
        assert [sentence for sentence, count in times.items() if count > 1] == []
