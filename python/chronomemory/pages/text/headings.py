"""The heading of an entry: its moment, its id, its tags, and what superseded it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from chronomemory.pages.errors import EntryError

__all__ = [
    "ENTRY_ID",
    "HEADING",
    "MARKER",
    "MOMENT",
    "Heading",
    "check_tag",
    "check_tags",
    "local_text",
    "moment_of",
    "read_heading",
    "spell_heading",
    "wall_time",
]

#: Seconds and a time zone may be left out.
MOMENT = r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:Z|[+-]\d{2}:?\d{2})?"
ENTRY_ID = r"[A-Za-z0-9-]+"
#: A line that begins an entry.
HEADING = re.compile(
    rf"^##[ \t]+\[(?P<moment>{MOMENT})\][ \t]+\{{id:[ \t]*(?P<id>{ENTRY_ID})[ \t]*\}}"
    r"(?P<rest>[^\r\n]*)(?=\r?$)",
    re.MULTILINE | re.ASCII,
)
MARKER = re.compile(rf"#superseded-by:({ENTRY_ID})", re.ASCII)
_TAG = re.compile(r"(?<!\S)#([^\s#:]+)(?!\S)")
_LONGEST_TAG = 64
_IN_TAGS = "_-/.+"


@dataclass(frozen=True, slots=True)
class Heading:
    """What a heading says."""

    timestamp: str
    entry_id: str
    tags: tuple[str, ...]
    superseded_by: str | None = None


@lru_cache(maxsize=4096)
def moment_of(timestamp: str) -> datetime | None:
    """Return the moment that a heading names, with a time zone only if it has one; None if there is none.

    >>> moment_of("2026-04-20 14:02"), moment_of("2026-13-01T00:00")
    (datetime.datetime(2026, 4, 20, 14, 2), None)
    """
    text = re.sub(r"Z$", "+00:00", timestamp)
    text = re.sub(r"([+-]\d{2})(\d{2})$", r"\1:\2", text)
    if fraction := re.search(r"\.\d{1,6}", text):  # Python 3.10 reads three or six digits only
        text = text.replace(fraction[0], fraction[0].ljust(7, "0"))
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def wall_time(moment: datetime) -> str:
    """Return a moment as a clock on the wall here shows it: this orders entries, with a time zone or not."""
    try:
        local = moment if moment.tzinfo is None else moment.astimezone().replace(tzinfo=None)
    except (OverflowError, ValueError):  # at the very ends of the calendar
        local = moment.replace(tzinfo=None)
    return local.isoformat(timespec="seconds")


def local_text(moment: datetime) -> str:
    """Return a moment as a frontmatter tells it: local time, with its zone."""
    return moment.astimezone().isoformat(timespec="seconds")


def read_heading(found: re.Match[str]) -> Heading:
    """Read a line that begins an entry."""
    rest = found["rest"]
    marker = MARKER.search(rest)
    return Heading(
        timestamp=found["moment"],
        entry_id=found["id"],
        tags=tuple(dict.fromkeys(_TAG.findall(rest))),
        superseded_by=None if marker is None else marker[1],
    )


def spell_heading(heading: Heading) -> str:
    """Spell the line that begins an entry.

    >>> spell_heading(Heading("2026-04-20T14:02:11", "20260420-1402-a1b23c", ("identity",)))
    '## [2026-04-20T14:02:11] {id: 20260420-1402-a1b23c} #identity'
    """
    parts = [f"## [{heading.timestamp}] {{id: {heading.entry_id}}}", *(f"#{tag}" for tag in heading.tags)]
    if heading.superseded_by is not None:
        parts.append(f"#superseded-by:{heading.superseded_by}")
    return " ".join(parts)


def check_tag(given: object, field: str = "tags") -> str:
    """Take a tag, with or without its number sign."""
    if not isinstance(given, str):
        raise EntryError(f"{field}: a tag is a word, not a {type(given).__name__}", field=field)
    tag = given.removeprefix("#")
    if not tag or len(tag) > _LONGEST_TAG or not all(map(_fits, tag)):
        raise EntryError(
            f"{field}: {given!r} is no tag; a tag is a word of letters, digits and {' '.join(_IN_TAGS)}, "
            f"of at most {_LONGEST_TAG} characters",
            field=field,
        )
    return tag


def check_tags(given: Iterable[object], field: str, *, least: int, most: int | None) -> tuple[str, ...]:
    """Take tags, each once."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise EntryError(f"{field} must be a list of words", field=field)
    tags = tuple(dict.fromkeys(check_tag(tag, field) for tag in given))
    if len(tags) < least or (most is not None and len(tags) > most):
        raise EntryError(f"{field}: {least} to {most} tags expected, got {len(tags)}", field=field)
    return tags


def _fits(letter: str) -> bool:
    return letter.isalnum() or letter in _IN_TAGS or unicodedata.category(letter).startswith("M")
