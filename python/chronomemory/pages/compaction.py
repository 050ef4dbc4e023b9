"""Compaction: a page is rewritten, unless the rewrite has lost facts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from chronomemory.face.arguments import function
from chronomemory.face.batch import Connection
from chronomemory.pages.errors import NotAPage, PageConflict
from chronomemory.pages.storage.changes import change_to
from chronomemory.pages.storage.home import Home, Settled
from chronomemory.pages.storage.records import Origin
from chronomemory.pages.text.facts import losses
from chronomemory.pages.text.frontmatter import edit, frontmatter_end, mark_after, mark_of, utc_text
from chronomemory.pages.text.headings import local_text
from chronomemory.pages.text.page import PageText, tokens_of
from chronomemory.pages.text.rewriting import merge_superseded
from chronomemory.pages.types import Compaction

__all__ = ["Rewrite", "compact", "compact_flagged"]

Rewrite = Callable[[str], str]

_COMPACTED = Origin("inferred", ("compacted",))


def compact(home: Home, path: str, rewrite: Rewrite = merge_superseded) -> Compaction:
    """Let a function rewrite the text of a page; one that loses facts changes nothing, and the flag stays.

    No lock is held while it works: it may be a model that takes minutes. If the page changes meanwhile, the
    rewrite is rejected.
    """
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
    told = Compaction(
        page=name,
        accepted=not lost.are_too_many,
        tokens_before=tokens,
        tokens_after=tokens_of(len(after.text)),
        words_kept=lost.words_kept,
        missing_words=lost.words,
        missing_numbers=lost.numbers,
        missing_cjk=lost.cjk,
        missing_ids=lost.ids,
        missing_links=lost.links,
        missing_tags=lost.tags,
    )
    if not told.accepted:
        return told
    return _commit(home, name, settled, after, told)


def _rewritten(home: Home, text: object, before: PageText) -> PageText | str:
    """Return the page that a rewrite is, or why it is none.

    The frontmatter stays ours: what a person keeps there is not up to a rewrite.
    """
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


def _commit(home: Home, name: str, settled: Settled, after: PageText, told: Compaction) -> Compaction:
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
            rejected = replace(told, accepted=False, reason="the page was changed while it was rewritten")
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
        return replace(told, tokens_after=tokens_of(len(change.text))), change.text

    return home.change(name, work)


def compact_flagged(home: Home, rewrite: Rewrite = merge_superseded) -> list[Compaction]:
    """Compact every page that is flagged, and report on each."""
    told = []
    for name in home.look.flagged():
        try:
            told.append(compact(home, name, rewrite))
        except PageConflict as error:
            told.append(Compaction(name, False, 0, 0, reason=str(error)))
    return told
