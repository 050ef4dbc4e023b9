"""What the pages hand out: entries, pages, hits, links, and what a verb did."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from chronomemory.face.results import Result, counted
from chronomemory.pages.text.entries import moment_of


@dataclass(frozen=True, slots=True)
class Entry(Result):
    """One entry of a page, its content as it was given."""

    #: Nothing for what stands above the entries, which a search finds too.
    id: str
    page: str
    timestamp: str
    tags: tuple[str, ...]
    content: str
    superseded: bool = False
    superseded_by: str | None = None
    reason: str | None = None

    @property
    def moment(self) -> datetime | None:
        """When it was written; without a time zone, as pages tell it, this is local time."""
        return moment_of(self.timestamp)

    @property
    def summary(self) -> str:
        return f"[{self.timestamp}] {self.id or 'above'} {' '.join(self.content.split())}"


@dataclass(frozen=True, slots=True)
class PageInfo(Result):
    """A page, without its entries."""

    name: str
    title: str
    description: str
    tags: tuple[str, ...]
    status: str
    created: str
    updated: str
    entry_count: int
    needs_compact: bool
    tokens: int
    compact_reason: str = ""

    @property
    def path(self) -> str:
        return f"{self.name}.md"

    @property
    def summary(self) -> str:
        return f"{self.name}: {self.description} ({counted(self.entry_count, 'entry', 'entries')})"


@dataclass(frozen=True, slots=True)
class PageHit(Result):
    """An entry that a search found."""

    entry: Entry
    score: float

    @property
    def summary(self) -> str:
        return f"{self.score:.2f} {self.entry.page} {self.entry.summary}"


@dataclass(frozen=True, slots=True)
class Problem(Result):
    """Something about a file that a person should know."""

    #: ``conflict``, ``heading``, ``missing``, ``renamed``, ``strange``.
    kind: str
    file: str
    message: str

    @property
    def summary(self) -> str:
        return f"{self.file}: {self.message}"


@dataclass(frozen=True, slots=True)
class Synced(Result):
    """The result of a sync."""

    #: Pages that were edited by hand, new ones, those that were behind the log, and that sleep by now.
    edited: tuple[str, ...] = ()
    created: tuple[str, ...] = ()
    caught_up: tuple[str, ...] = ()
    dormant: tuple[str, ...] = ()
    forgotten: tuple[str, ...] = ()
    added: int = 0
    changed: int = 0
    deleted: int = 0
    #: Entries written during an edit of an older text, which were put back.
    kept: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def summary(self) -> str:
        parts = []
        if self.edited or self.created:
            parts.append(
                f"took in {counted(len(self.edited) + len(self.created), 'page')}: "
                f"{self.added} added, {self.changed} changed, {self.deleted} deleted"
            )
        if self.kept:
            parts.append(f"kept {counted(len(self.kept), 'entry', 'entries')} that the edit did not know")
        for verb, names in (
            ("brought up to date", self.caught_up),
            ("dormant now", self.dormant),
            ("forgotten", self.forgotten),
        ):
            if names:
                parts.append(f"{counted(len(names), 'page')} {verb}")
        if self.problems:
            parts.append(counted(len(self.problems), "problem"))
        return "; ".join(parts) or "pages and log agree"


@dataclass(frozen=True, slots=True)
class Rebuilt(Result):
    """The result of a rebuild."""

    pages: int
    written: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def summary(self) -> str:
        text = f"wrote {len(self.written):,} of {counted(self.pages, 'page')}"
        return f"{text}; {counted(len(self.problems), 'problem')}" if self.problems else text


@dataclass(frozen=True, slots=True)
class Indexed(Result):
    """The result of a rebuild of the index."""

    pages: int
    entries: int
    corrected: int
    problems: tuple[Problem, ...] = ()

    @property
    def summary(self) -> str:
        entries = counted(self.entries, "entry", "entries")
        text = f"{counted(self.pages, 'page')} with {entries}, {self.corrected:,} corrected"
        return f"{text}; {counted(len(self.problems), 'problem')}" if self.problems else text


@dataclass(frozen=True, slots=True)
class Cleaned(Result):
    """The result of a clean; the log keeps the history."""

    what: str
    pages: int
    entries: int
    left: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        text = f"took away {counted(self.pages, 'page')} with {counted(self.entries, 'entry', 'entries')}"
        return f"{text}; left {', '.join(self.left)}" if self.left else text


@dataclass(frozen=True, slots=True)
class Compaction(Result):
    """The result of a compaction, and the facts that were missing."""

    page: str
    accepted: bool
    tokens_before: int
    tokens_after: int
    words_kept: float = 1.0
    missing_words: tuple[str, ...] = ()
    missing_numbers: tuple[str, ...] = ()
    missing_cjk: tuple[str, ...] = ()
    missing_ids: tuple[str, ...] = ()
    missing_links: tuple[str, ...] = ()
    reason: str = ""
    missing_tags: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        if self.accepted:
            return f"{self.page}: {self.tokens_before:,} tokens became {self.tokens_after:,}"
        lost = (
            ("words", self.missing_words),
            ("numbers", self.missing_numbers),
            ("CJK text", self.missing_cjk),
            ("ids", self.missing_ids),
            ("links", self.missing_links),
            ("tags", self.missing_tags),
        )
        named = [f"{what} {', '.join(missing[:10])}" for what, missing in lost if missing]
        return f"{self.page}: rejected: {self.reason or 'missing ' + '; '.join(named)}"


@dataclass(frozen=True, slots=True)
class Link(Result):
    """A link between two pages, or to somewhere else: ``page`` is None where it leads to no page."""

    kind: str
    target: str
    label: str
    page: str | None
    entry: str | None

    @property
    def summary(self) -> str:
        return f"{self.target} → {self.page or 'no page'}"


@dataclass(frozen=True, slots=True)
class Links(Result):
    """The links of a page, and the links to it."""

    page: str
    links: tuple[Link, ...]
    backlinks: tuple[Link, ...]

    @property
    def summary(self) -> str:
        return f"{self.page}: {counted(len(self.links), 'link')}, {counted(len(self.backlinks), 'backlink')}"
