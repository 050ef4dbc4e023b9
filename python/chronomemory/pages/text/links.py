"""Links in Markdown: wiki links, Markdown links and bare addresses, and what they call a page."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

__all__ = ["LinkText", "call_of", "calls_in", "links_in"]

_WIKI = re.compile(r"!?\[\[([^\[\]|\r\n]+)(?:\|([^\[\]\r\n]*))?\]\]")
_MARKDOWN = re.compile(
    r"!?\[([^\[\]\r\n]*)\]\((?:<([^<>\r\n]+)>|([^\s()]+(?:\([^\s()]*\)[^\s()]*)*))"
    r"(?:\s+(?:[^\s()][^()\r\n]*)?)?\)"
)
#: An address from behind its scheme on: so a long word is not tried as a scheme at each of its letters.
_ADDRESS = re.compile(r"://[^\s<>\[\]\"'`]+")
_IN_SCHEME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-")
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:")


@dataclass(frozen=True, slots=True)
class LinkText:
    """A link as it stands in a text: ``kind`` is wiki, markdown or address."""

    kind: str
    target: str
    label: str = ""


def links_in(text: str) -> list[LinkText]:
    """Return the links of a text, in their order, each once.

    >>> [link.target for link in links_in("[[person-alice|Al]], [x](topic-a.md) and https://example.org/a.")]
    ['person-alice', 'topic-a.md', 'https://example.org/a']
    """
    found: list[tuple[int, LinkText]] = []
    covered: list[tuple[int, int]] = []
    for wiki in _WIKI.finditer(text):
        found.append((wiki.start(), LinkText("wiki", wiki[1].strip(), (wiki[2] or "").strip())))
        covered.append(wiki.span())
    for link in _MARKDOWN.finditer(text):
        found.append((link.start(), LinkText("markdown", link[2] or link[3], link[1])))
        covered.append(link.span())
    covered.sort(reverse=True)
    end = 0
    for start, address in _addresses(text):
        while covered and covered[-1][0] <= start:
            end = max(end, covered.pop()[1])
        if start >= end:
            found.append((start, LinkText("address", address.rstrip(".,;:!?)*_~"))))
    return list(dict.fromkeys(link for _, link in sorted(found, key=lambda one: one[0])))


def _addresses(text: str) -> Iterator[tuple[int, str]]:
    """Yield the bare addresses of a text, and where they begin."""
    here = 0
    while rest := _ADDRESS.search(text, here):
        start = rest.start()
        while start > here and text[start - 1] in _IN_SCHEME:
            start -= 1
        while start < rest.start() and not text[start].isalpha():
            start += 1
        if start == rest.start():  # there is no scheme before it
            here = start + len("://")
            continue
        yield start, text[start : rest.end()]
        here = rest.end()


def call_of(target: str) -> str | None:
    """Return what a link calls a page, so that spellings of one name are equal; None if it leads elsewhere.

    >>> call_of("Person-Alice#Work"), call_of("./notes/My%20Note.md"), call_of("https://example.org")
    ('person-alice', 'notes/my note', None)
    """
    if _SCHEME.match(target):
        return None
    name = re.split(r"[#^]", unquote(target), maxsplit=1)[0].strip().removeprefix("./")
    name = re.sub(r"\.md$", "", name, flags=re.IGNORECASE)
    return unicodedata.normalize("NFC", name).casefold() or None


def calls_in(text: str) -> list[str]:
    """Return what the links of a text call pages, each once."""
    calls = (call_of(link.target) for link in links_in(text))
    return list(dict.fromkeys(call for call in calls if call is not None))
