"""Entries of a page: escaping, headings, parsing, encoding, and mistyped headings."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache

from chronomemory.pages.errors import EntryError

#: Two tildes strike. A run of backslashes is looked at from its first one alone, for linear time.
_TILDES = re.compile(r"(?<!\\)(?:\\*~[\\~]*~|\A\\*~|\\*~\Z)")
_COMMENT = re.compile(r"(?<!\\)(\\*)(<!--|-->)")
#: Where some program may begin a line. Our own pages know line feeds only.
_LINE = "(?:\\A|(?<=[\\n\\r\\x0b\\x0c\\x1c\\x1d\\x1e\\x85\\u2028\\u2029]))"
_HEADING = re.compile(_LINE + r"([ \t]*)(\\*)(?=##[ \t]*\[)")
_FENCE = re.compile(_LINE + r"([ \t]*)(\\*)(?=```)")
_FENCE_LINE = re.compile(r"^[ \t]{0,3}(`{3,})(?!`)([^\r\n]*)(?=\r?$)", re.MULTILINE)
#: A first or last line that is empty would be lost: line ends around a body are not part of it.
_FIRST = re.compile(r"\A(\\*)(?=[\r\n])")
_LAST = re.compile(r"(?:(?<=[\r\n])|\A)(\\*)\Z")


def escape(content: str) -> str:
    """Return a content as it stands on a page.

    >>> print(escape("~~gone~~ <!-- ## ["))
    \\~\\~gone\\~\\~ \\<!-- ## [
    """
    # Most texts have none of this, and are looked through by plain comparisons, which are quicker.
    text = content
    if "~" in text:
        # Each tilde gets one before its own backslashes: at the beginning, and behind each other tilde.
        text = _TILDES.sub(lambda run: "\\" + run[0].replace("~", "~\\")[:-1], text)
    if "<!--" in text or "-->" in text:
        text = _COMMENT.sub(r"\\\1\2", text)
    if "##" in text:
        text = _HEADING.sub(r"\1\\\2", text)
    if "```" in text:
        unclosed = _has_open_fence(content)
        text = _FENCE.sub(lambda fence: f"{fence[1]}\\{fence[2]}" if fence[2] or unclosed else fence[0], text)
    if _FIRST.match(text):
        text = f"\\{text}"
    return _LAST.sub(r"\\\1", text, count=1) if _may_end_blank(text) else text


def unescape(text: str) -> str:
    if _may_end_blank(text):
        text = _LAST.sub(lambda line: line[1][1:], text, count=1)
    if (first := _FIRST.match(text)) is not None:
        text = first[1][1:] + text[first.end() :]
    if "```" in text:
        text = _FENCE.sub(lambda fence: f"{fence[1]}{fence[2][1:]}", text)
    if "##" in text:
        text = _HEADING.sub(lambda heading: f"{heading[1]}{heading[2][1:]}", text)
    if "<!--" in text or "-->" in text:
        text = _COMMENT.sub(lambda mark: f"{mark[1][1:]}{mark[2]}", text)
    return _TILDES.sub(_without_backslashes, text) if "~" in text else text


def _may_end_blank(text: str) -> bool:
    return not text or text[-1] in "\r\n\\"


def _without_backslashes(run: re.Match[str]) -> str:
    # If a word was struck by hand, not every tilde is escaped, and all stay as they are.
    is_escaped = run[0].startswith("\\") and "~~" not in run[0]
    return run[0][1:].replace("~\\", "~") if is_escaped else run[0]


def _has_open_fence(content: str) -> bool:
    opened = 0
    for fence in _FENCE_LINE.finditer(content):
        ticks = len(fence[1])
        if not opened:
            opened = ticks if "`" not in fence[2] else 0
        elif ticks >= opened and not fence[2].strip():
            opened = 0
    return bool(opened)


#: Seconds and a time zone may be left out.
MOMENT = r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:Z|[+-]\d{2}:?\d{2})?"
ENTRY_ID = r"[A-Za-z0-9-]+"
HEADING = re.compile(
    rf"^##[ \t]+\[(?P<moment>{MOMENT})\][ \t]+\{{id:[ \t]*(?P<id>{ENTRY_ID})[ \t]*\}}"
    r"(?P<rest>[^\r\n]*)(?=\r?$)",
    re.MULTILINE | re.ASCII,
)
_MARKER = re.compile(rf"#superseded-by:({ENTRY_ID})", re.ASCII)
_TAG = re.compile(r"(?<!\S)#([^\s#:]+)(?!\S)")
LONGEST_TAG = 64
_IN_TAGS = "_-/.+"


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
    """Return a time for a frontmatter: local, with its zone."""
    return moment.astimezone().isoformat(timespec="seconds")


def check_tag(given: object, field: str = "tags") -> str:
    """Take a tag, with or without its number sign."""
    if not isinstance(given, str):
        raise EntryError(f"{field}: a tag is a word, not a {type(given).__name__}", field=field)
    tag = given.removeprefix("#")
    is_word = all(
        one.isalnum() or one in _IN_TAGS or unicodedata.category(one).startswith("M") for one in tag
    )
    if not tag or len(tag) > LONGEST_TAG or not is_word:
        raise EntryError(
            f"{field}: {given!r} is no tag; a tag is a word of letters, digits and {' '.join(_IN_TAGS)}, "
            f"of at most {LONGEST_TAG} characters",
            field=field,
        )
    return tag


def check_tags(given: Iterable[object], field: str, *, least: int, most: int | None) -> tuple[str, ...]:
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise EntryError(f"{field} must be a list of words", field=field)
    tags = tuple(dict.fromkeys(check_tag(tag, field) for tag in given))
    if len(tags) < least or (most is not None and len(tags) > most):
        raise EntryError(f"{field}: {least} to {most} tags expected, got {len(tags)}", field=field)
    return tags


_LINE_ENDS = "\r\n"
#: The reason for a strike. No pattern here repeats a group for each character, which takes much memory.
_REASON_LINE = r"\r?\n<!-- reason: (?P<reason>[^\r\n]*?) -->[ \t]*"
_REASON = re.compile(rf"{_REASON_LINE}\Z")
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
    r"""Spell an entry as we write it: with the empty line before it, without a line end behind it.

    >>> spell_entry(EntryText("20260420-1402-a1b23c", "2026-04-20T14:02:11", ("identity",), "Ann."), "\n")
    '\n\n## [2026-04-20T14:02:11] {id: 20260420-1402-a1b23c} #identity\nAnn.'
    """
    parts = [f"## [{entry.timestamp}] {{id: {entry.entry_id}}}", *(f"#{tag}" for tag in entry.tags)]
    if entry.superseded_by is not None:
        parts.append(f"#superseded-by:{entry.superseded_by}")
    heading = " ".join(parts)
    body = escape(entry.content)
    if entry.superseded:
        body = f"~~{body}~~"
        if entry.reason is not None:
            body += f"\n<!-- reason: {_escape_reason(entry.reason)} -->"
    return f"\n\n{heading}\n{body}".replace("\n", eol)


def _escape_reason(reason: str) -> str:
    text = reason.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return re.sub("-(?=-)", r"-\\", text)


def _unescape_reason(text: str) -> str:
    signs = {"n": "\n", "r": "\r"}
    return re.sub(r"\\(.)", lambda sign: signs.get(sign[1], sign[1]), text, flags=re.DOTALL)


def read_entry(stretch: str, eol: str) -> EntryText:
    found = HEADING.search(stretch)
    if found is None:
        raise AssertionError("a stretch of a page begins with a heading")
    marker = _MARKER.search(found["rest"])
    body = stretch[found.end() :].lstrip(_LINE_ENDS)
    if eol != "\n":
        body = body.replace(eol, "\n")
    end = _end_of_strike(body)
    struck = None if end < 0 else _BEHIND.match(body, end + 2)
    if struck is not None and "--" in (struck["reason"] or ""):
        struck = None
    by, reason = None if marker is None else marker[1], None
    if struck is not None:
        body, by = body[2:end], by or struck["by"]
        reason = None if struck["reason"] is None else _unescape_reason(struck["reason"])
    elif (left := _REASON.search(body)) is not None and "--" not in left["reason"]:
        body, reason = body[: left.start()], None if by is None else _unescape_reason(left["reason"])
    return EntryText(
        entry_id=found["id"],
        timestamp=found["moment"],
        tags=tuple(dict.fromkeys(_TAG.findall(found["rest"]))),
        content=unescape(body),
        superseded=struck is not None or by is not None,
        superseded_by=by,
        reason=reason,
    )


def _end_of_strike(body: str) -> int:
    """Return where the two tildes are that end the strike at the beginning of a body, or -1."""
    end = body.find("~~", 2) if body.startswith("~~") else -1
    return end + (end > 2 and body[end - 1] == "\\" and body.startswith("~", end + 2))


def body_of(stretch: str) -> str:
    found = HEADING.search(stretch)
    return stretch if found is None else stretch[found.end() :].lstrip(_LINE_ENDS)


def stretches(text: str, start: int) -> tuple[str, list[str], str]:
    """Split a page behind its frontmatter into preamble, entries with the line ends before them, tail."""
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
_FENCE_MARK = re.compile(r"[ \t]{0,3}(`{3,}|~{3,})")


def suspects_in(text: str, known: Collection[str] = ()) -> list[str]:
    """Say of each line that looks like the heading of an entry why it is none; ``known`` ones are left out.

    >>> suspects_in("## [2026-04-20 14:02] {id: a} #x\\nTea.\\n### [2026-04-21 09:00] {id: b}\\nCake.")
    ['line 3 looks like the heading of an entry, but has 3 number signs instead of 2; it is text of a']
    """
    headings = sum(moment_of(found["moment"]) is not None for found in HEADING.finditer(text))
    if sum(1 for _ in _MAYBE.finditer(text)) == headings:
        return []
    suspects = []
    above = "what stands above the entries"
    for number, line in _lines(text):
        heading = HEADING.match(line)
        if heading is not None and moment_of(heading["moment"]) is not None:
            above = heading["id"]
        elif line not in known and (reason := _why_not(line)):
            suspects.append(
                f"line {number} looks like the heading of an entry, but {reason}; it is text of {above}"
            )
    return suspects


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text that are not code, and their numbers."""
    fence = ""
    lines = text.split("\n")
    # A fence that is never closed is a slip itself, and hides nothing here.
    fences = [found[1] if (found := _FENCE_MARK.match(line)) else "" for line in lines]
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
