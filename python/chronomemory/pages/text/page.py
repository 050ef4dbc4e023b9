"""A page: its frontmatter, what stands before its entries, its entries, and its last line ends."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from chronomemory.pages.errors import NotAPage
from chronomemory.pages.text.entries import EntryText, read_entry, spell_entry, stretches
from chronomemory.pages.text.frontmatter import Meta, frontmatter_end, read_meta

__all__ = ["PageText", "Stretch", "decoded", "eol_of", "read_page", "title_of", "tokens_of", "without_title"]

_TITLE = re.compile(r"^# ([^\r\n]*[^\r\n \t])[ \t]*(?=\r?$)", re.MULTILINE)
#: So many characters are about one token.
_LETTERS_A_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Stretch:
    """An entry, and how it stands on the page."""

    entry: EntryText
    raw: str

    @classmethod
    def of(cls, entry: EntryText, eol: str) -> Stretch:
        """Spell an entry."""
        return cls(entry, spell_entry(entry, eol))


@dataclass(frozen=True, slots=True)
class PageText:
    """A page that was read; ``text`` is the very same bytes again."""

    head: str
    meta: Meta
    stretches: tuple[Stretch, ...]
    tail: str
    eol: str
    #: The title of a note, which stands in its frontmatter or its sections; that of a page is in its head.
    title: str = ""

    @property
    def text(self) -> str:
        """The page, as it stands in its file."""
        return "".join((self.head, *(stretch.raw for stretch in self.stretches), self.tail))

    @property
    def entries(self) -> list[EntryText]:
        """Its entries, in their order."""
        return [stretch.entry for stretch in self.stretches]

    @property
    def preamble(self) -> str:
        """What stands between the frontmatter and the first entry."""
        return self.head[frontmatter_end(self.head) :].strip("\r\n")


def read_page(text: str, known: tuple[str, Meta] | None = None) -> PageText:
    """Read a page; ``known`` is a head that was read before, and what it says."""
    start = frontmatter_end(text)
    eol = eol_of(text)
    head, raws, tail = stretches(text, start)
    meta = known[1] if known is not None and known[0] == head else read_meta(head)
    read = tuple(Stretch(read_entry(raw, eol), raw) for raw in raws)
    twice = _twice(stretch.entry.entry_id for stretch in read)
    if twice is not None:
        raise NotAPage(f"two entries have the id {twice}: give one of them another")
    return PageText(head, meta, read, tail, eol)


def _twice(ids: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for one in ids:
        if one in seen:
            return one
        seen.add(one)
    return None


def eol_of(text: str) -> str:
    """Return how the lines of a page end: as its first one does."""
    end = text.find("\n")
    return "\r\n" if end > 0 and text[end - 1] == "\r" else "\n"


def title_of(head: str) -> str:
    """Return the title of a page, or nothing."""
    found = _TITLE.search(head, frontmatter_end(head))
    return "" if found is None else found[1]


def without_title(preamble: str) -> str:
    """Return what stands above the entries besides the title."""
    return _TITLE.sub("", preamble, count=1)


def tokens_of(letters: int) -> int:
    """Return about how many tokens a text of so many characters is."""
    return letters // _LETTERS_A_TOKEN


def decoded(content: bytes) -> str:
    """Return the text of a file."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise NotAPage("the file is not UTF-8", line=line) from None
