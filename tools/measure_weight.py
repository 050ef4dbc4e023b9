"""Prints the size of the source tree: lines, largest types, crates, public names, words of documents.

Run it from anywhere: ``python tools/measure_weight.py [ROOT]``. Tests and benches are not counted as source.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

#: Folders inside a crate that hold no product code.
NOT_SOURCE = {"tests", "benches", "fuzz", "examples", "target"}
#: An ``impl`` block: its optional trait and the name of the type.
IMPL = re.compile(
    r"^(?:unsafe )?impl(?:<[^{]*?>)?\s+(?:(?P<trait>[\w:<>', ]+?)\s+for\s+)?(?:&\w*\s*)?(?P<type>\w+)"
)
METHOD = re.compile(r"^    (?:pub(?:\([\w: ]+\))? )?(?:const |async |unsafe )*fn \w+")


def rust_files(crate: Path) -> Iterator[Path]:
    """The source files of a crate, without its tests."""
    for path in sorted(crate.rglob("*.rs")):
        if not NOT_SOURCE & set(path.relative_to(crate).parts[:-1]) and path.name != "tests.rs":
            yield path


def without_tests(text: str) -> str:
    """Source text up to its inline test module."""
    return text.split("#[cfg(test)]\nmod tests {")[0]


def line_count(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def largest_types(files: list[Path]) -> list[tuple[str, int, int]]:
    """The types with most methods of their own (no trait impls), and over how many files they spread."""
    methods: dict[str, int] = defaultdict(int)
    spread: dict[str, set[Path]] = defaultdict(set)
    for path in files:
        current: str | None = None
        for line in without_tests(path.read_text(encoding="utf-8")).splitlines():
            if found := IMPL.match(line):
                current = None if found["trait"] else found["type"]
                if current and line.rstrip().endswith("{"):
                    spread[current].add(path)
            elif line == "}":
                current = None
            elif current and METHOD.match(line):
                methods[current] += 1
    ranked = sorted(methods.items(), key=lambda item: -item[1])
    return [(name, count, len(spread[name])) for name, count in ranked[:6]]


def public_names(package: Path, module: str, name: str) -> tuple[set[str], set[str]]:
    """Public methods and properties of a class and its bases in the package: its own, and those of compat."""
    classes: dict[str, tuple[ast.ClassDef, bool]] = {}
    # Of two classes with one name, the one in the same folder is meant.
    folder = (package / module).relative_to(package).parts[0]
    nearest = sorted(package.rglob("*.py"), key=lambda path: path.relative_to(package).parts[0] != folder)
    for path in nearest:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and (node.name != name or path == package / module):
                classes.setdefault(node.name, (node, path.parent.name == "compat"))
    names: tuple[set[str], set[str]] = (set(), set())
    pending = [name]
    while pending:
        owner, is_compat = classes.get(pending.pop(), (None, False))
        for item in owner.body if owner else ():
            targets = [item.name] if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef) else []
            if isinstance(item, ast.Assign):
                targets = [target.id for target in item.targets if isinstance(target, ast.Name)]
            names[is_compat].update(target for target in targets if not target.startswith("_"))
        pending += [base.id for base in owner.bases if isinstance(base, ast.Name)] if owner else []
    return names


def root_names(package: Path) -> tuple[int, int]:
    """The length of ``__all__`` of the package, and how many of these names are defined in compat."""
    assigned = {
        target.id: node.value
        for node in ast.parse((package / "__init__.py").read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    names = ast.literal_eval(assigned["__all__"])
    homes = ast.literal_eval(assigned["_HOMES"])
    elsewhere = {name for home in homes if not home.startswith("compat.") for name in homes[home]}
    return len(names), len(set(names) - elsewhere)


def main(root: Path) -> None:
    """Print the table."""
    crates = [manifest.parent for manifest in sorted((root / "rust").glob("*/Cargo.toml"))]
    engine: list[Path] = []
    rows: list[tuple[str, str]] = []
    for crate in crates:
        files = list(rust_files(crate))
        rows.append((f"crate {crate.name}", f"{sum(map(line_count, files)):,} lines in {len(files)} files"))
        engine += files if crate.name != "python" else []
    rows.insert(0, ("engine", f"{sum(map(line_count, engine)):,} lines in {len(engine)} files"))
    package = root / "python" / "chronomemory"
    verifier = sorted((package / "verify_log").glob("*.py"))
    modules = [path for path in package.rglob("*.py") if path not in verifier]
    for title, files in (("Python", modules), ("independent verifier", verifier)):
        rows.append((title, f"{sum(map(line_count, files)):,} lines in {len(files)} files"))
    for title, files in (("engine", engine), ("binding", list(rust_files(root / "rust" / "python")))):
        listed = ", ".join(f"{name} {count}/{spread}" for name, count, spread in largest_types(files))
        rows.append((f"largest types of the {title} (methods/files)", listed))
    store, compat = public_names(package, "store.py", "ChronoStore")
    memory, _ = public_names(package, "blocks/memory.py", "Memory")
    root_count, root_compat = root_names(package)
    rows.append(("public names of ChronoStore", f"{len(store)}, and {len(compat)} of compat"))
    rows.append(("public names of Memory", f"{len(memory)}"))
    rows.append(("public names of the root", f"{root_count}, {root_compat} of them of compat"))
    tests = [
        path
        for folder in ("tests", "rust")
        for path in (root / folder).rglob("*")
        if path.suffix in {".py", ".rs"}
    ]
    tests = [path for path in tests if "tests" in path.relative_to(root).parts]
    rows.append(("tests", f"{sum(map(line_count, tests)):,} lines in {len(tests)} files"))
    # The page of the benchmarks is written by a program.
    pages = {*root.glob("*.md"), *(root / "docs").rglob("*.md")} - {root / "docs" / "benchmarks.md"}
    words = {page: len(page.read_text(encoding="utf-8").split()) for page in pages}
    decisions = [page for page in pages if page.parent.name == "decisions" and page.name != "README.md"]
    rows.append(
        ("documents", f"{sum(words.values()):,} words in {len(pages)} pages, {len(decisions)} decisions")
    )
    rows.append(("ARCHITECTURE.md", f"{words[root / 'ARCHITECTURE.md']:,} words"))
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:<{width}}  {value}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1])
