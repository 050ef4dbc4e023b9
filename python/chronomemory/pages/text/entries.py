"""An entry: what it says, and the stretch of a page that says it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from chronomemory.pages.text.escaping import escape, escape_reason, unescape, unescape_reason
from chronomemory.pages.text.headings import (
    ENTRY_ID,
    HEADING,
    Heading,
    moment_of,
    read_heading,
    spell_heading,
)

__all__ = ["EntryText", "body_of", "read_entry", "spell_entry", "stretches"]

_LINE_ENDS = "\r\n"
#: The reason for a strike; where a strike is taken away by hand it stays, and is no part of the content.
#: No pattern here repeats a group for each character: that takes many times the memory of the text.
_REASON_LINE = r"\r?\n<!-- reason: (?P<reason>[^\r\n]*?) -->[ \t]*"
_REASON = re.compile(rf"{_REASON_LINE}\Z")
#: What may follow a body that is struck as a whole.
_BEHIND = re.compile(
    rf"[ \t]*(?:#superseded-by:(?P<by>{ENTRY_ID})[ \t]*)?(?:{_REASON_LINE})?\Z", re.DOTALL | re.ASCII
)


@dataclass(frozen=True, slots=True)
class EntryText:
    """One entry of a page."""

    entry_id: str
    timestamp: str
    tags: tuple[str, ...]
    content: str
    #: Struck, or marked: it does not hold any more, and perhaps another entry holds instead.
    superseded: bool = False
    superseded_by: str | None = None
    reason: str | None = None

    def struck(self, by: str, reason: str | None) -> EntryText:
        """Return it as it is once another entry holds instead."""
        return replace(self, superseded=True, superseded_by=by, reason=reason or None)


def spell_entry(entry: EntryText, eol: str) -> str:
    """Spell an entry as we write it: with the empty line before it, without a line end behind it."""
    heading = spell_heading(Heading(entry.timestamp, entry.entry_id, entry.tags, entry.superseded_by))
    body = escape(entry.content)
    if entry.superseded:
        body = f"~~{body}~~"
        if entry.reason is not None:
            body += f"\n<!-- reason: {escape_reason(entry.reason)} -->"
    return f"\n\n{heading}\n{body}".replace("\n", eol)


def read_entry(stretch: str, eol: str) -> EntryText:
    """Read the stretch of a page that is an entry."""
    found = HEADING.search(stretch)
    if found is None:
        raise AssertionError("a stretch of a page begins with a heading")
    heading = read_heading(found)
    body = stretch[found.end() :].lstrip(_LINE_ENDS)
    if eol != "\n":
        body = body.replace(eol, "\n")
    end = _end_of_strike(body)
    struck = None if end < 0 else _BEHIND.match(body, end + 2)
    if struck is not None and "--" in (struck["reason"] or ""):
        struck = None
    by, reason = heading.superseded_by, None
    if struck is not None:
        body, by = body[2:end], by or struck["by"]
        reason = None if struck["reason"] is None else unescape_reason(struck["reason"])
    elif (left := _REASON.search(body)) is not None and "--" not in left["reason"]:
        body, reason = body[: left.start()], None if by is None else unescape_reason(left["reason"])
    return EntryText(
        entry_id=heading.entry_id,
        timestamp=heading.timestamp,
        tags=heading.tags,
        content=unescape(body),
        superseded=struck is not None or by is not None,
        superseded_by=by,
        reason=reason,
    )


def _end_of_strike(body: str) -> int:
    """Return where the two tildes are that end the strike at the beginning of a body, or -1."""
    end = body.find("~~", 2) if body.startswith("~~") else -1
    # A body may end with an escaped tilde.
    return end + (end > 2 and body[end - 1] == "\\" and body.startswith("~", end + 2))


def body_of(stretch: str) -> str:
    """Return what stands below the heading of an entry, as it is spelled on the page."""
    found = HEADING.search(stretch)
    return stretch if found is None else stretch[found.end() :].lstrip(_LINE_ENDS)


def stretches(text: str, start: int) -> tuple[str, list[str], str]:
    """Cut a page, from behind its frontmatter on, into what is before its entries, those, and the line ends.

    The line ends before a heading belong to the entry that it begins, so that no append changes another.
    """
    begins = [
        found.start() for found in HEADING.finditer(text, start) if moment_of(found["moment"]) is not None
    ]
    cuts = [0]
    for begin in begins:
        cut = begin
        while cut > max(start, cuts[-1]) and text[cut - 1] in _LINE_ENDS:
            cut -= 1
        cuts.append(cut)
    end = len(text)
    floor = begins[-1] if begins else start
    while end > floor and text[end - 1] in _LINE_ENDS:
        end -= 1
    parts = [text[here:there] for here, there in zip(cuts, [*cuts[1:], end], strict=True)]
    return parts[0], parts[1:], text[end:]
