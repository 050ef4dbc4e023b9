"""What pages and entries are called: in the folder, in the log, and by other pages."""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from datetime import date, datetime
from pathlib import Path

from chronomemory._core import canonical_json
from chronomemory.face.arguments import HIDDEN
from chronomemory.pages.errors import PageNameError

FACE = "pages"

PAGE = "page"
ENTRY = "entry"
PREAMBLE = "preamble"
FOLDER_KIND = "page_folder"

#: What the name of a page begins with: of whom or what it speaks.
PREFIXES = ("user", "project", "tool", "topic", "person", "org", "event")
SUFFIX = ".md"

MOST_PAGE_BYTES = 8 << 20
_DIGITS = 16
_MOST_BYTES = 200
#: What file systems, wiki links and shells take for something else.
_UNFIT = re.compile(r'[\x00-\x1f\x7f-\x9f\ud800-\udfff/\\<>:"|?*#^\[\]\u2028\u2029]')
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def page_name(given: object) -> str:
    """Take the name of a page, with or without ``.md``, and return it without.

    >>> page_name("topic-rust.md"), page_name("event-2026-04-22")
    ('topic-rust', 'event-2026-04-22')
    """
    if not isinstance(given, str):
        raise PageNameError(f"a page is called by a string, not by a {type(given).__name__}")
    name = unicodedata.normalize("NFC", given.removesuffix(SUFFIX))
    reason = _why_not(name)
    if reason is None and (hidden := HIDDEN.search(name)):
        reason = f"it has the invisible character U+{ord(hidden[0]):04X} in it"
    if reason:
        listed = ", ".join(f"{prefix}-" for prefix in PREFIXES)
        raise PageNameError(f"no page is called {given!r}: {reason}; the prefixes are {listed}")
    return name


def _why_not(name: str) -> str | None:
    prefix, dash, rest = name.partition("-")
    if "/" in name or "\\" in name or ".." in name:
        return "it would lead elsewhere"
    if prefix not in PREFIXES or not dash:
        return "it begins with none of the prefixes"
    if not rest.strip(" .") or rest != rest.strip(" ") or rest.endswith("."):
        return "behind the prefix there must be a name"
    if unfit := _UNFIT.search(name):
        return f"it has {unfit[0]!r} in it"
    if len(name.encode()) > _MOST_BYTES:
        return f"it is longer than {_MOST_BYTES} bytes"
    if prefix == "event" and not _is_date(rest):
        return "an event page is called by its day, such as event-2026-04-22"
    return None


def _is_date(text: str) -> bool:
    try:
        return bool(_DATE.fullmatch(text)) and date.fromisoformat(text) is not None
    except ValueError:
        return False


def is_page_file(file_name: str) -> bool:
    """Return whether a file of this name is a page; temporary files of editors are not."""
    name = file_name.removesuffix(SUFFIX)
    return file_name.endswith(SUFFIX) and is_page_name(name) and not HIDDEN.search(name)


def is_page_name(name: str) -> bool:
    """Return whether a page in the log may have this name; old ones have invisible characters."""
    return unicodedata.is_normalized("NFC", name) and _why_not(name) is None


def file_of(name: str) -> str:
    """Return the file of a page, whose name was checked wherever it came from."""
    return f"{name}{SUFFIX}"


def prefix_of(name: str) -> str:
    """Return the prefix of a page name, or an empty text for a note without one."""
    prefix, dash, _ = name.partition("-")
    return prefix if dash and prefix in PREFIXES else ""


def folder_place(project: Path, folder: Path) -> list[str]:
    """Return where a folder is: inside its project the steps from there, so that both may move."""
    try:
        return ["within", *folder.relative_to(project).parts]
    except ValueError:
        return ["at", os.fsencode(folder).decode("utf-8", "backslashreplace")]


def folder_digits(project: Path, folder: Path) -> str:
    """Return the digest of a folder's place, which stands for it in ids."""
    return hashlib.sha256(canonical_json(folder_place(project, folder))).hexdigest()[:_DIGITS]


def folder_key(folder: str) -> str:
    return f"{PAGE}:{folder}"


def page_key(folder: str, name: str) -> str:
    return f"{PAGE}:{folder}:{name}"


def entry_key(folder: str, name: str, entry_id: str) -> str:
    return f"{ENTRY}:{folder}:{name}:{entry_id}"


def draw_id(moment: datetime) -> str:
    drawn = hashlib.blake2s(os.urandom(8), digest_size=3).hexdigest()
    return f"{moment:%Y%m%d-%H%M}-{drawn}"
