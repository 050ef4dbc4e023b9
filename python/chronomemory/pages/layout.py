"""The two layouts of a folder of pages: prefixed names side by side, or any Markdown notes in a tree."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path

from chronomemory.page_files import INDEX_FILE, OUR_MARK
from chronomemory.pages.errors import PageNameError
from chronomemory.pages.ids import SUFFIX, is_page_file
from chronomemory.pages.types import Problem

PREFIXED = "prefixed"
FREE = "free"
LAYOUTS = (PREFIXED, FREE)

_MOST_BYTES = 900
_UNFIT = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\ud800-\\udfff\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069]"
)
#: Endings of Markdown files; only the first is read, as Obsidian does, and others are reported.
_ENDINGS = (SUFFIX, ".markdown", ".mdown", ".mkd")
_MARK_BYTES = 4096


def note_name(given: object) -> str:
    """Check the name of a note in a free folder and return it: its path in the folder without ``.md``.

    >>> note_name("./Projects/Tea House.md"), note_name("漢字")
    ('Projects/Tea House', '漢字')
    """
    if not isinstance(given, str):
        raise PageNameError(f"a note is named by a string, got a {type(given).__name__}")
    name = unicodedata.normalize("NFC", given.removeprefix("./").removesuffix(SUFFIX))
    if reason := _why_not(name):
        raise PageNameError(
            f"{given!r} is not the name of a note: {reason}",
            recovery="Give its path in the folder, such as Projects/Tea; .md may be left out.",
        )
    return name


def is_note_name(name: str) -> bool:
    """Return whether a note may have this name: inside the folder, and not hidden."""
    return unicodedata.is_normalized("NFC", name) and _why_not(name) is None


def _why_not(name: str) -> str | None:
    if not all(step.strip() for step in name.split("/")):
        return "a step of the path is blank"
    if any(step.startswith(".") for step in name.split("/")):
        return "hidden files and folders are not read"
    if unfit := _UNFIT.search(name):
        return f"it has the control character {unfit[0]!r}"
    if len(name.encode()) > _MOST_BYTES:
        return f"it is longer than {_MOST_BYTES} bytes"
    return None


def is_vault(folder: Path) -> bool:
    return (folder / ".obsidian").is_dir()


def find_layout(root: Path) -> str:
    """Return the layout of a folder that has none on record: free if it holds notes without our prefixes."""
    try:
        with (root / INDEX_FILE).open("rb") as file:
            if OUR_MARK.encode() in file.read(_MARK_BYTES):
                return PREFIXED
    except OSError:  # no index, or none that can be read
        pass
    names = (file for file, _ in notes_in(root) if "/" in file or not is_page_file(file))
    return FREE if is_vault(root) or next(names, None) is not None else PREFIXED


def notes_in(root: Path, problems: list[Problem] | None = None) -> Iterator[tuple[str, str]]:
    """Yield the file and the name of each note below a folder; hidden files are skipped."""
    found = [] if problems is None else problems
    seen: set[str] = set()

    def report(file: str, message: str) -> None:
        found.append(Problem("strange", file.encode("utf-8", "backslashreplace").decode(), message))

    def report_folder(error: OSError) -> None:
        folder = Path(error.filename).relative_to(root).as_posix()
        report(folder, f"the folder cannot be read: {error.strerror}")

    for here, folders, files in os.walk(root, onerror=report_folder):
        within = Path(here).relative_to(root)
        folders[:] = sorted((name for name in folders if not name.startswith(".")), key=_composed_first)
        for name in folders:
            if Path(here, name).is_symlink():
                report((within / name).as_posix(), "it is a link to a folder, which is not followed")
        for leaf in sorted(files, key=_composed_first):
            if leaf.startswith(".") or not leaf.casefold().endswith(_ENDINGS):
                continue
            file = (within / leaf).as_posix()
            name = unicodedata.normalize("NFC", file.removesuffix(SUFFIX))
            if not leaf.endswith(SUFFIX):
                report(file, f"it is not read, since its name does not end in {SUFFIX}; rename it")
            elif reason := _why_not(name):
                report(file, f"it is not read, since {reason}; rename it")
            elif name in seen:
                report(file, "it is not read, nor the other note of this name in Unicode; rename one of them")
            elif file not in spellings(f"{name}{SUFFIX}"):
                report(file, "it is not read, since its name is spelled in two forms of Unicode; rename it")
            else:
                seen.add(name)
                yield file, name


def refused_notes(problems: Iterable[Problem]) -> set[str]:
    """Return the names of the notes that are there and are not read."""
    files = [problem.file for problem in problems if problem.file.endswith(SUFFIX)]
    return {unicodedata.normalize("NFC", file.removesuffix(SUFFIX)) for file in files}


def _composed_first(name: str) -> tuple[bool, str]:
    return not unicodedata.is_normalized("NFC", name), name


def spellings(file: str) -> tuple[str, ...]:
    """Return how the name of a file may be spelled on disk: composed, or decomposed as by a Mac."""
    return tuple(dict.fromkeys((file, unicodedata.normalize("NFD", file))))
