"""The doorway between Python and the engine decides nothing by itself."""

from __future__ import annotations

import re
from pathlib import Path

DOORWAY = Path(__file__).parents[2] / "rust" / "python" / "src"
#: Files that count objects of Python: how large they are, how many are kept to be used again, which slot of a
#: class is which, and how much of one an error shows.
OF_OBJECTS = {"deltas", "enter", "object", "record", "shape", "shared_words", "told"}


def files_with(pattern: str) -> set[str]:
    """The files whose code, without comments, has something like this."""
    found = set()
    for path in DOORWAY.rglob("*.rs"):
        code = re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
        if re.search(pattern, code, re.MULTILINE):
            found.add(path.stem)
    return found


def test_it_has_no_thread_and_no_clock() -> None:
    """What is done when, and by whom, is up to the engine; how long to wait for a lock is handed on."""
    worldly = r"std::thread|SystemTime|Instant\b|Condvar|mpsc|Duration::from|_MILLIS|_MICROS|\bthreads\b"
    assert files_with(worldly) == set()
    assert files_with(r"\bDuration\b") == {"terms"}


def test_it_counts_nothing_but_objects_of_python() -> None:
    assert files_with(r"^(?:pub )?const \w+: (?:usize|u\d+|i\d+)") <= OF_OBJECTS
    assert "told" in files_with(r"^const OBJECT_BYTES: usize")
