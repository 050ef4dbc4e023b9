"""Links in Markdown: wiki links, Markdown links and bare addresses, and what they call a page."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from urllib.parse import unquote

__all__ = ["LinkText", "call_of", "calls_in", "links_in"]

_WIKI = re.compile(r"!?\[\[([^\[\]|\r\n]+)(?:\|([^\[\]\r\n]*))?\]\]")
_MARKDOWN = re.compile(
    r"!?\[([^\[\]\r\n]*)\]\((?:<([^<>\r\n]+)>|([^\s()]+(?:\([^\s()]*\)[^\s()]*)*))(?:\s+[^()\r\n]*)?\)"
)
_ADDRESS = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://[^\s<>\[\]\"'`]+")
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
    for address in _ADDRESS.finditer(text):
        if not any(start <= address.start() < end for start, end in covered):
            target = address[0].rstrip(".,;:!?)*_~")
            found.append((address.start(), LinkText("address", target)))
    return list(dict.fromkeys(link for _, link in sorted(found, key=lambda one: one[0])))


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
