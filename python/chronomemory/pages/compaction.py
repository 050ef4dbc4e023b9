"""Compaction: a page is rewritten, unless the rewrite loses facts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from chronomemory.face.arguments import function
from chronomemory.face.batch import Connection
from chronomemory.pages.errors import NotAPage, PageConflict
from chronomemory.pages.storage.changes import change_to
from chronomemory.pages.storage.home import Home, Settled
from chronomemory.pages.storage.records import Origin
from chronomemory.pages.text.entries import ENTRY_ID, EntryText, body_of, escape, local_text, spell_entry
from chronomemory.pages.text.frontmatter import edit, frontmatter_end, mark_after, mark_of, utc_text
from chronomemory.pages.text.links import divided, hashtags_in, links_in
from chronomemory.pages.text.page import PageText, Stretch, read_page, tokens_of
from chronomemory.pages.types import Compaction

#: So many of a hundred different words must be kept.
LEAST_PERCENT = 95

_WORD = re.compile(r"[\w-]{4,}")
#: With sign, decimals, power of ten and percent. Groups are limited: each takes memory while it matches.
_MINUS = "\u2212\u2013\ufe63\uff0d-"
_POINT = ".,\u066b\u066c\uff0e\uff0c"
_NUMBER = re.compile(
    rf"(?:(?<![\w)\]{_MINUS}])[+\uff0b{_MINUS}])?"
    rf"(?:\d+(?:[{_POINT}]\d+){{0,999}}|(?<![\w.])[{_POINT}]\d+)"
    rf"(?:[eE][+{_MINUS}]?\d+(?!\w))?"
    r"(?:[ \t\u00a0\u202f]?[%‰‱％٪])?"
)
_SPELLINGS = str.maketrans(dict.fromkeys(_MINUS, "-") | {"\uff0b": "+", "\uff05": "%", "\u066a": "%"})
#: Chinese, Japanese and Korean have no words between spaces: a run of their letters is kept whole.
_CJK = re.compile(
    "[\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303b\u3040-\u30ff\u3105-\u312f"
    "\u3130-\u318f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff"
    "\uff66-\uffdc\U0001b000-\U0001b16f\U00020000-\U0003ffff]+"
)

_KINDS = ("words", "numbers", "cjk", "ids", "links", "tags")


@dataclass(frozen=True, slots=True)
class Losses:
    """The facts that a rewrite lost; a few words may be."""

    words_in_all: int
    words: tuple[str, ...]
    numbers: tuple[str, ...]
    cjk: tuple[str, ...]
    ids: tuple[str, ...]
    links: tuple[str, ...]
    tags: tuple[str, ...]

    @property
    def are_too_many(self) -> bool:
        kept = self.words_in_all - len(self.words)
        too_few_words = 100 * kept < LEAST_PERCENT * self.words_in_all
        return too_few_words or bool(self.numbers or self.cjk or self.ids or self.links or self.tags)

    @property
    def words_kept(self) -> float:
        return 1.0 if not self.words_in_all else 1 - len(self.words) / self.words_in_all


@dataclass(frozen=True, slots=True)
class _PageParts:
    """The text of a page that holds, and the text that is hidden, struck or superseded."""

    holding: str
    hidden: str

    @property
    def whole(self) -> str:
        return f"{self.holding}\n{self.hidden}"


def losses(before: PageText, after: PageText) -> Losses:
    """Compare two texts of a page: what held must still hold, superseded text may be anywhere."""
    old, new = _parts_of(before), _parts_of(after)

    def lost(facts: Callable[[str], list[str]], *, parts: bool = False) -> tuple[str, ...]:
        """Return the facts that are gone; with ``parts`` one that is part of another is not."""
        held = _once(facts(old.holding))
        besides = _missing(_once(facts(old.hidden)), held)
        gone = _missing(held, facts(new.holding), parts=parts)
        return (*gone, *_missing(besides, facts(new.whole), parts=parts))

    return Losses(
        words_in_all=len(_words(old.whole)),
        words=lost(_words),
        # A number that is spelled with another dash or gap is the same.
        numbers=lost(
            lambda text: ["".join(one.translate(_SPELLINGS).split()) for one in _NUMBER.findall(text)]
        ),
        cjk=lost(_CJK.findall, parts=True),
        ids=tuple(_lost_ids(before, after, new.holding)),
        links=lost(_links),
        tags=tuple(_once([*_lost_tags(before, after, new), *lost(hashtags_in)])),
    )


def _lost_ids(before: PageText, after: PageText, shown: str) -> Iterable[str]:
    there = {entry.entry_id: entry for entry in after.entries}
    named = set(re.findall(ENTRY_ID, shown, re.ASCII))
    for entry in before.entries:
        now = there.get(entry.entry_id)
        if entry.superseded:
            is_marked = now is not None and (entry.superseded_by is None or now.superseded_by is not None)
            is_kept = entry.entry_id in named if now is None else now.superseded and is_marked
        else:
            is_kept = now is not None and not now.superseded and now.timestamp == entry.timestamp
        if not is_kept:
            yield entry.entry_id


def _lost_tags(before: PageText, after: PageText, new: _PageParts) -> Iterable[str]:
    """Yield the tags of headings that are gone; those of an entry that is a note by now stand there."""
    there = {entry.entry_id: entry.tags for entry in after.entries}
    for entry in before.entries:
        for tag in entry.tags:
            if entry.entry_id in there:
                is_kept = tag in there[entry.entry_id]
            else:
                is_kept = re.search(rf"(?<!\w)#{re.escape(tag)}(?![\w/])", new.whole) is not None
            if not is_kept:
                yield tag


def _parts_of(page: PageText) -> _PageParts:
    holding, hidden = ([part] for part in divided(page.preamble))
    for stretch in page.stretches:
        entry = stretch.entry
        if entry.superseded:
            hidden += [entry.content, entry.reason or "", *entry.tags]
        else:
            shown, behind = divided(body_of(stretch.raw))
            holding += [shown, *entry.tags]
            hidden.append(behind)
    return _PageParts("\n".join(holding), "\n".join(hidden))


def _missing(facts: list[str], kept: list[str], *, parts: bool = False) -> list[str]:
    """Return the facts that are not kept; with ``parts`` neither as a part of another."""
    known, joined = set(kept), "\n".join(kept) if parts else ""
    return [fact for fact in facts if fact not in known and fact not in joined]


def _words(text: str) -> list[str]:
    return _once(word.casefold() for word in _WORD.findall(text))


def _links(text: str) -> list[str]:
    return _once(link.target for link in links_in(text))


def _once(found: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(found))


NOTE = "Earlier"


def merge_superseded(text: str) -> str:
    """Return a page whose superseded entries are notes of the entries that replaced them."""
    page = read_page(text)
    by_id = {entry.entry_id: entry for entry in page.entries}
    ends: dict[str, EntryText | None] = {}
    notes: dict[str, list[str]] = {}
    merged = set()
    for entry in page.entries:
        living = _living(entry, by_id, ends) if entry.superseded else None
        if living is not None:
            about = [entry.timestamp, *(f"#{tag}" for tag in entry.tags)]
            if entry.reason:
                about.append(f"superseded: {' '.join(entry.reason.split())}")
            # One paragraph, so that an erasure knows where it ends; notes of the entry itself follow.
            content = re.sub(rf"\n\s*\n(?!{NOTE}: )", "\n", entry.content)
            note = f"{NOTE}: {entry.entry_id} ({', '.join(about)}): {content}"
            notes.setdefault(living.entry_id, []).append(note)
            merged.add(entry.entry_id)
    kept = []
    for stretch in page.stretches:
        entry = stretch.entry
        if entry.entry_id in merged:
            continue
        if entry.entry_id in notes:
            stretch = _noted(stretch, notes[entry.entry_id], page.eol)
        kept.append(stretch)
    return replace(page, stretches=tuple(kept)).text


def _noted(stretch: Stretch, notes: list[str], eol: str) -> Stretch:
    """Return an entry with notes below it, keeping its spelling."""
    entry = stretch.entry
    extended = replace(entry, content="\n\n".join((entry.content.rstrip("\r\n"), *notes)))
    if stretch.raw == spell_entry(entry, eol):
        return Stretch.of(extended, eol)
    below = escape("\n\n".join(notes)).replace("\n", eol)
    return Stretch(extended, f"{stretch.raw.rstrip()}{eol}{eol}{below}")


def _living(
    entry: EntryText, by_id: dict[str, EntryText], ends: dict[str, EntryText | None]
) -> EntryText | None:
    """Return the entry at the end of a chain, or None; ``ends`` caches the results."""
    passed: dict[str, None] = {}
    here: EntryText | None = entry
    while here is not None and here.superseded and here.entry_id not in ends:
        ends[here.entry_id] = None
        passed[here.entry_id] = None
        here = by_id.get(here.superseded_by or "")
    end = ends[here.entry_id] if here is not None and here.superseded else here
    ends.update(dict.fromkeys(passed, end))
    return end


Rewrite = Callable[[str], str]

_COMPACTED = Origin("inferred", ("compacted",))


def compact(home: Home, path: str, rewrite: Rewrite = merge_superseded) -> Compaction:
    """Let a function rewrite a page, without a lock; a rewrite that loses facts is rejected."""
    name = home.name(path)
    rewriter = function("rewrite", rewrite)
    with home.locked():
        home.catch_up(name)
        settled = home.settle(name)
    before = home.read(settled.text, settled.page)
    tokens = tokens_of(len(settled.text))
    after = _rewritten(home, rewriter(settled.text), before)
    if isinstance(after, str):
        return Compaction(name, False, tokens, tokens, reason=after)
    lost = losses(before, after)
    report = Compaction(
        page=name,
        accepted=not lost.are_too_many,
        tokens_before=tokens,
        tokens_after=tokens_of(len(after.text)),
        words_kept=lost.words_kept,
        **{f"missing_{kind}": getattr(lost, kind) for kind in _KINDS},
    )
    if not report.accepted:
        return report
    return _commit(home, name, settled, after, report)


def _rewritten(home: Home, text: object, before: PageText) -> PageText | str:
    """Return the page that a rewrite gives, with the old frontmatter, or why it is none."""
    if not isinstance(text, str):
        return f"the rewrite returned a {type(text).__name__}, not a text"
    try:
        text.encode()
        body = text[frontmatter_end(text) :]
        front = before.head[: frontmatter_end(before.head)]
        gap = "" if not front or body.startswith(("\n", "\r")) else before.eol * 2
        return home.read(front + gap + body)
    except UnicodeEncodeError:
        return "the rewrite is not text: it has half of a surrogate pair in it"
    except NotAPage as error:
        return f"the rewrite is no page: {error}"


def _commit(home: Home, name: str, settled: Settled, after: PageText, report: Compaction) -> Compaction:
    now = home.clock()
    before = mark_of(settled.page.head, settled.page.meta)
    updated = local_text(mark_after(before, now, len(after.entries)))
    changes: dict[str, Any] = {
        "updated": updated,
        "entry_count": len(after.entries),
        "needs_compact": False,
        "compact_reason": None,
    }
    head, tail = after.head, after.tail
    if not home.is_free:
        tail = tail or after.eol
    elif settled.page.meta.needs_compact:  # of the frontmatter of a note only the flag is ours
        changes = {"needs_compact": None, "compact_reason": None}
    else:
        changes = {}
    if changes:
        head, _ = edit(head, changes, plain=False, eol=after.eol)
    meta = replace(after.meta, updated=updated, needs_compact=False, compact_reason="")
    after = replace(after, head=head, meta=meta, tail=tail)
    if home.is_free:
        after = home.dated(name, settled.page, after)

    def work(conn: Connection, current: Settled) -> tuple[Compaction, str]:
        if current.page.digest != settled.page.digest:
            rejected = replace(report, accepted=False, reason="the page was changed while it was rewritten")
            return rejected, current.text
        change = change_to(
            home.digits,
            name,
            after,
            _COMPACTED,
            page=current.page,
            entries=home.look.entries(current.page),
            shown=current.shown,
            written=utc_text(now),
        )
        change.put(conn, home.digits)
        return replace(report, tokens_after=tokens_of(len(change.text))), change.text

    return home.change(name, work)


def compact_flagged(home: Home, rewrite: Rewrite = merge_superseded) -> list[Compaction]:
    reports = []
    for name in home.look.flagged():
        try:
            reports.append(compact(home, name, rewrite))
        except PageConflict as error:
            reports.append(Compaction(name, False, 0, 0, reason=str(error)))
    return reports
