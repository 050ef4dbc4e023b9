"""A type name is defined once in a crate.

Whoever meets a name that several files define must look up the imports to know which one is meant. Types of
tests are left out: nobody else sees them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CRATES = [ROOT / "rust" / "engine" / "src", ROOT / "rust" / "python" / "src"]

PUBLIC = r"(?:pub(?:\([^)]*\))? )?"
TESTS = re.compile(
    rf"^#\[cfg\(test\)\]\n(?:#\[[^\n]*\]\n)*{PUBLIC}mod \w+ \{{\n.*?^\}}\n", re.MULTILINE | re.DOTALL
)
#: A `type` inside an `impl` or a trait belongs to that: only those at the left edge stand alone.
TYPE = re.compile(rf"^ *{PUBLIC}(?:struct|enum|union|trait) (\w+)|^{PUBLIC}type (\w+)", re.MULTILINE)


def types_of(source: str) -> list[str]:
    """The types that a file defines, those of its tests left out."""
    code = TESTS.sub("", re.sub(r"//[^\n]*", "", source))
    return [one or other for one, other in TYPE.findall(code)]


@pytest.mark.parametrize("crate", CRATES, ids=lambda crate: crate.parent.name)
def test_a_type_name_is_defined_once_in_a_crate(crate: Path) -> None:
    files = defaultdict(list)
    for path in sorted(crate.rglob("*.rs")):
        for name in types_of(path.read_text(encoding="utf-8")):
            files[name].append(path.relative_to(crate).as_posix())
    assert len(files) > 40
    assert {name: places for name, places in files.items() if len(places) > 1} == {}


def test_all_forms_of_a_definition_are_seen() -> None:
    source = """
    // struct Told {
    pub struct One;
    pub(in crate::store) enum Two<'a> {}
    impl Three for One {
        type Inner = Two;
    }
    pub(super) type Four = One;
    trait Three {}
    #[cfg(test)]
    mod tests {
        struct Hidden;
    }
    union Five {}
    """
    lines = [line.removeprefix("    ") for line in source.splitlines()]
    assert types_of("\n".join(lines)) == ["One", "Two", "Four", "Three", "Five"]
