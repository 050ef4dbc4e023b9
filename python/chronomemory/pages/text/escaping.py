"""Escapes the content of an entry, so that nothing in it can end an entry, begin one, strike one or hide one.

Escaping adds one backslash in front of what could be misread, and reading takes one away again, so that any
text comes back as it was. Markdown shows an escaped sign as the sign itself.
"""

from __future__ import annotations

import re

__all__ = ["escape", "escape_reason", "unescape", "unescape_reason"]

#: Two tildes strike; one at either end would become part of the two around a struck body. A run of
#: backslashes is looked at from its first one alone, so that the work grows with the text and no faster.
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
    """Return the content that a text on a page stands for."""
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
    """Say whether code is begun that does not end: Markdown would take all that follows for code."""
    opened = 0
    for fence in _FENCE_LINE.finditer(content):
        ticks = len(fence[1])
        if not opened:
            opened = ticks if "`" not in fence[2] else 0
        elif ticks >= opened and not fence[2].strip():
            opened = 0
    return bool(opened)


def escape_reason(reason: str) -> str:
    """Return a reason as it stands within a comment: on one line, and never its end."""
    text = reason.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return re.sub("-(?=-)", r"-\\", text)


def unescape_reason(text: str) -> str:
    """Return the reason that stands within a comment."""
    return re.sub(r"\\(.)", lambda sign: _SIGNS.get(sign[1], sign[1]), text, flags=re.DOTALL)


_SIGNS = {"n": "\n", "r": "\r"}
