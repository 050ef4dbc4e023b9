"""Only the table of the faces knows them; other rooms of the engine take what one declares as data."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENGINE = ROOT / "rust" / "engine" / "src"
DOORWAY = ROOT / "rust" / "python" / "src"
PACKAGE = ROOT / "python" / "chronomemory"
#: What each face declares of itself, one file a face.
TABLE = ENGINE / "event" / "faces"
#: Where a face is known by name: in the table, and where recalls and acts of the blocks are at home.
AT_HOME = (
    "rust/engine/src/event/faces/",
    "rust/engine/src/blocks/",
    "rust/engine/src/acts/blocks/",
    "rust/python/src/blocks.rs",
)
#: Prefixes of a face that are words of the engine as well: a kind that a record has if nobody says another, a
#: level of a scope, an argument, and what an error is about.
WORDS_OF_THE_ENGINE = {"event", "fact", "path", "session"}


def declared_faces() -> dict[str, list[str]]:
    """The faces, and what their ids begin with. Those that only the store itself writes are none here."""
    row = re.compile(r'\bname: "(\w+)",\s+prefixes: &\[([^\]]+)\]')
    files = [path.read_text(encoding="utf-8") for path in TABLE.glob("*.rs") if path.name != "mod.rs"]
    rows = [found for source in files if (found := row.search(source))]
    assert len(rows) == len(files)
    return {found[1]: re.findall(r'"(\w+)"', found[2]) for found in rows}


@cache
def spelled() -> re.Pattern[str]:
    """A text that names a face, its acts, one of its indexes, ids or kinds."""
    names = "|".join(declared_faces())
    prefixes = [prefix for own in declared_faces().values() for prefix in own]
    kinds = "|".join(prefix for prefix in prefixes if prefix not in WORDS_OF_THE_ENGINE)
    return re.compile(rf'"(?:(?:act:)?(?:{names})["\.]|(?:{"|".join(prefixes)}):(?!:)|(?:{kinds})")')


def named_faces(source: str) -> list[str]:
    """The texts in code, its comments and tests aside, that name a face."""
    return spelled().findall(re.sub(r"//[^\n]*", "", source).split("#[cfg(test)]\nmod tests {")[0])


def test_each_face_is_a_row_of_the_table() -> None:
    assert all((PACKAGE / name / "__init__.py").is_file() for name in declared_faces())
    assert {"episode", "fact", "rule"} <= set(declared_faces()["episodes"])


def test_no_other_file_of_rust_names_a_face() -> None:
    names = [
        path.relative_to(ROOT).as_posix() for folder in (ENGINE, DOORWAY) for path in folder.rglob("*.rs")
    ]
    others = [name for name in names if not name.startswith(AT_HOME)]
    assert 100 < len(others) < len(names) - 20
    code = [name for name in others if not name.endswith("/tests.rs")]
    said = {name: named_faces((ROOT / name).read_text(encoding="utf-8")) for name in code}
    assert {name: found for name, found in said.items() if found} == {}
    called = {name: set(Path(name).with_suffix("").parts) & set(declared_faces()) for name in others}
    assert {name: found for name, found in called.items() if found} == {}


def test_a_name_is_seen() -> None:
    for named in (
        'const PREFIX: &[u8] = b"episode:";',
        'index_named("episodes.by_user")',
        'draft.act("blocks", &shown)',
        'b"act:blocks"',
        'r#"{"id":"gedge:a","kind":"x"}"#',
        'kind: Some("block".to_owned())',
    ):
        assert len(named_faces(named)) == 1, named
    for other in (
        'let (path, session) = ("path", "session"); // "episode:"',
        'words("the blocks: some"); crate::event::line::read("event::line")',
        'fn a() {}\n#[cfg(test)]\nmod tests { const ID: &str = "block:a"; }',
    ):
        assert named_faces(other) == [], other
