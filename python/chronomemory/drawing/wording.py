"""Texts of others, made fit to be shown: nothing hidden steers them, and none is cut within a word."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from unicodedata import east_asian_width

__all__ = ["clean", "distinct", "excerpt", "label_lines"]

#: What a page says of a text at most; whoever wants all of it asks the store.
EXCERPT_LETTERS = 4000
#: A label at a dot: so many lines, each so wide that most words fit.
LABEL_LINES = 3
LABEL_COLUMNS = 20
#: A single word is let out of the column up to here, and only then broken.
WORD_COLUMNS = 30

# Controls apart from tab and line feed, what turns the direction of all that follows, halves of characters,
# and what XML has no place for. Marks of direction stay: set apart from its surroundings, a text needs them.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff]"
)
_SPACE = re.compile(r"\s+")
#: Where a long word may be broken: behind a sign that joins, or where small letters meet a large one.
_SEAM = re.compile(r"(?<=[-_/.:,;=&?@#+|])(?=\w)|(?<=[a-z])(?=[A-Z])")
#: Writing that puts no spaces between words.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]"
)
_ELLIPSIS = "…"


def clean(text: str) -> str:
    """Return a text with what is hidden in it made visible."""
    return text if text.isascii() and text.isprintable() else _HIDDEN.sub(_visible, text)


def _visible(found: re.Match[str]) -> str:
    code = ord(found[0])
    return chr(0x2400 + code) if code < 0x20 else "\ufffd"


def excerpt(text: str, letters: int = EXCERPT_LETTERS) -> str:
    """Return a text of at most so many letters, ended behind a word, that says how much is missing."""
    if len(text) <= letters:
        return clean(text)
    head = text[:letters]
    if not text[letters].isspace():
        spaces = [found.start() for found in _SPACE.finditer(head, letters // 2)]
        head = head[: spaces[-1]] if spaces else head
    head = head.rstrip()
    return f"{clean(head)} {_ELLIPSIS} ({len(text) - len(head):,} more characters)"


def distinct(names: Iterable[str]) -> dict[str, str]:
    """Return the clean spelling of each name; two names never become one."""
    spelled: dict[str, str] = {}
    taken: set[str] = set()
    # Names that are clean already come first, so that they keep their spelling.
    for name in sorted(set(names), key=lambda name: (clean(name) != name, name)):
        proposal, number = clean(name), 1
        while proposal in taken:
            number += 1
            proposal = f"{clean(name)} ({number})"
        taken.add(proposal)
        spelled[name] = proposal
    return spelled


def label_lines(text: str, columns: int = LABEL_COLUMNS, lines: int = LABEL_LINES) -> list[str]:
    """Return the lines of a label; an ellipsis ends one that has more to say.

    >>> label_lines("The deploy of Friday evening failed because a certificate had run out")
    ['The deploy of Friday', 'evening failed', 'because a…']
    """
    made: list[str] = []
    room = 0
    for piece, spaced in _pieces(clean(text[:EXCERPT_LETTERS]), columns):
        wide = _columns(piece)
        if made and room + spaced + wide <= columns:
            made[-1] += " " * spaced + piece
            room += spaced + wide
        elif len(made) < lines:
            made.append(piece)
            room = wide
        else:
            return [*made[:-1], _ended(made[-1], columns)]
    return made


def _ended(line: str, columns: int) -> str:
    """Put an ellipsis behind a line, behind the word before if there is no room."""
    words = line.rstrip(" ,;:.-–").split(" ")
    while len(words) > 1 and _columns(" ".join(words)) >= columns:
        words.pop()
    return " ".join(words) + _ELLIPSIS


def _pieces(text: str, columns: int) -> Iterator[tuple[str, bool]]:
    """Yield what stays together, and whether a space stands before it."""
    for word in text.split():
        spaced = True
        for piece in [word] if _columns(word) <= columns else _broken(word, columns):
            yield piece, spaced
            spaced = False


def _broken(word: str, columns: int) -> Iterator[str]:
    for part in _SEAM.split(word):
        if _UNSPACED.search(part):
            yield from part
        elif _columns(part) <= max(columns, WORD_COLUMNS):
            yield part
        else:
            # No seam at all: a digest, or a text that somebody wrote to see what happens.
            yield part[: columns - 1] + _ELLIPSIS


def _columns(text: str) -> int:
    return len(text) if text.isascii() else sum(1 + (east_asian_width(sign) in "WF") for sign in text)
