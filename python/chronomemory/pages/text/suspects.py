"""Lines that look like the heading of an entry and are none, and why: somebody may have mistyped one."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from chronomemory.pages.text.headings import ENTRY_ID, HEADING, MOMENT, moment_of

__all__ = ["suspects_in"]

_LIKE = re.compile(
    r"(?P<indent>[ \t\u00a0\ufeff>]*)(?P<marks>[#\uff03]*)(?P<gap>[ \t\u00a0]*)"
    r"(?P<moment>[\[(]?[ \t]*\d{4}-\d[^\]\r\n{]*\]?)?(?P<rest>[^\r\n]*)"
)
#: Every such line begins so, and every heading: where there are no more of them than of these, there is none.
_MAYBE = re.compile(
    r"^[ \t\u00a0\ufeff>]*(?:[#\uff03]+[ \t\u00a0]*\[[ \t]*\d{4}-\d"
    r"|(?:[#\uff03]|(?:[\[(][ \t]*)?\d{4}-\d)[^\r\n]*\{[ \t]*id\b)",
    re.MULTILINE | re.IGNORECASE,
)
_ID = re.compile(r"\{[ \t]*id\b[^}\r\n]*\}?", re.IGNORECASE)
_RIGHT_ID = re.compile(rf"\{{id:[ \t]*{ENTRY_ID}[ \t]*\}}", re.ASCII)
_RIGHT_MOMENT = re.compile(rf"\[{MOMENT}\]", re.ASCII)
_FENCE = re.compile(r"[ \t]{0,3}(`{3,}|~{3,})")


def suspects_in(text: str, known: Collection[str] = ()) -> list[str]:
    """Say of each line that looks like the heading of an entry why it is none; ``known`` ones are left out.

    >>> suspects_in("## [2026-04-20 14:02] {id: a} #x\\nTea.\\n### [2026-04-21 09:00] {id: b}\\nCake.")
    ['line 3 looks like the heading of an entry, but has 3 number signs instead of 2; it is text of a']
    """
    headings = sum(moment_of(found["moment"]) is not None for found in HEADING.finditer(text))
    if sum(1 for _ in _MAYBE.finditer(text)) == headings:
        return []
    told = []
    above = "what stands above the entries"
    for number, line in _lines(text):
        heading = HEADING.match(line)
        if heading is not None and moment_of(heading["moment"]) is not None:
            above = heading["id"]
        elif line not in known and (reason := _why_not(line)):
            told.append(
                f"line {number} looks like the heading of an entry, but {reason}; it is text of {above}"
            )
    return told


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text that are not code, and their numbers."""
    fence = ""
    lines = text.split("\n")
    # A fence that is never closed is a slip itself, and hides nothing here.
    fences = [found[1] if (found := _FENCE.match(line)) else "" for line in lines]
    for number, line in enumerate(lines):
        mark = fences[number]
        if fence:
            fence = "" if mark.startswith(fence) else fence
        elif mark and any(later.startswith(mark) for later in fences[number + 1 :]):
            fence = mark
        else:
            yield number + 1, line.removesuffix("\r")


def _why_not(line: str) -> str | None:
    found = _LIKE.fullmatch(line)
    if found is None:
        return None
    named = _ID.search(found["rest"])
    marks, moment = found["marks"], found["moment"]
    # A heading with a day in it is like many others; in brackets it is one of ours, or with an id.
    if not (marks or moment if named else marks and (moment or "").startswith("[")):
        return None
    if found["indent"]:
        return "does not begin its line"
    if marks != "##":
        return (
            f"has {len(marks)} number signs instead of 2"
            if "\uff03" not in marks
            else "has a wide number sign"
        )
    if not found["gap"].strip("\u00a0") and found["gap"] != " ":
        return "has no blank behind the number signs"
    if moment is None:
        return "has no moment, such as [2026-04-20T14:02:11]"
    spelled = moment.rstrip()
    if not _RIGHT_MOMENT.fullmatch(spelled) or moment_of(spelled[1:-1]) is None:
        return f"{spelled} is no moment, such as [2026-04-20T14:02:11]"
    if named is None:
        return "has no id, such as {id: tea-1}"
    if not _RIGHT_ID.fullmatch(named[0]):
        return f"{named[0]} is no id, such as {{id: tea-1}}"
    return "is not spelled as ## [moment] {id: …} #tag"
