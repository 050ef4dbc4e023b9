"""Text cleaning and the HTML shell shared by all drawn pages."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from html import escape
from importlib import resources
from typing import Any
from unicodedata import east_asian_width

EXCERPT_LETTERS = 4000
LABEL_LINES = 3
LABEL_COLUMNS = 20
#: A single word is let out of the column up to here, and only then broken.
WORD_COLUMNS = 30

# Controls, marks that turn the direction of all that follows, and what XML has no place for.
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
    """Return a text with hidden characters made visible."""
    if text.isascii() and text.isprintable():
        return text
    return _HIDDEN.sub(lambda found: chr(0x2400 + ord(found[0])) if found[0] < " " else "\ufffd", text)


def excerpt(text: str, letters: int = EXCERPT_LETTERS) -> str:
    """Return the beginning of a text up to a word boundary, and how much is missing."""
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
            # The ellipsis goes behind the line, or behind the word before if there is no room.
            words = made[-1].rstrip(" ,;:.-–").split(" ")
            while len(words) > 1 and _columns(" ".join(words)) >= columns:
                words.pop()
            return [*made[:-1], " ".join(words) + _ELLIPSIS]
    return made


def _pieces(text: str, columns: int) -> Iterator[tuple[str, bool]]:
    """Yield unbreakable pieces, and whether a space precedes each."""
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
            yield part[: columns - 1] + _ELLIPSIS


def _columns(text: str) -> int:
    return len(text) if text.isascii() else sum(1 + (east_asian_width(sign) in "WF") for sign in text)


TITLE_LETTERS = 300

#: Nothing in the data may end its element, begin a comment, or end a line of a script.
_ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


def page_of(body: str, scripts: tuple[str, ...], data: dict[str, Any], texts: dict[str, str]) -> str:
    """Return a page with this body, texts, scripts and data; only its own scripts and style may run."""
    style, script = _file("style.css"), "\n".join(map(_file, scripts))
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    safe = {mark: escape(excerpt(text)) for mark, text in texts.items()}
    return _filled(
        _file("page.html"),
        {
            "__POLICY__": policy,
            "__TITLE__": escape(excerpt(texts["__HEADING__"], TITLE_LETTERS)),
            "__STYLE__": style,
            "__BODY__": _filled(_file(body), safe),
            "__DATA__": json.dumps(data, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPES),
            "__SCRIPT__": script,
        },
    )


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def by_count(names: Iterable[Any]) -> list[tuple[Any, int]]:
    return sorted(Counter(names).items(), key=lambda pair: (-pair[1], pair[0]))


def _file(name: str) -> str:
    return (resources.files("chronomemory.drawing") / "web" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _filled(page: str, parts: dict[str, str]) -> str:
    # In one walk: what a text says must not be taken for a mark of the page.
    made, rest = [], page
    for mark, part in parts.items():
        before, rest = rest.split(mark, 1)
        made += [before, part]
    return "".join((*made, rest))
