"""Says which facts a rewrite of a page has lost."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from chronomemory.pages.text.links import links_in
from chronomemory.pages.text.page import PageText

__all__ = ["LEAST_PERCENT", "Losses", "losses"]

#: So many of a hundred different words must be kept.
LEAST_PERCENT = 95

_WORD = re.compile(r"[\w-]{4,}")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
#: Chinese, Japanese and Korean have no words between spaces: a run of their letters is kept whole.
_CJK = re.compile(
    "[\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303b\u3040-\u30ff\u3105-\u312f"
    "\u3130-\u318f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff"
    "\uff66-\uffdc\U0001b000-\U0001b16f\U00020000-\U0003ffff]+"
)


@dataclass(frozen=True, slots=True)
class Losses:
    """What a rewrite has lost; of words a few may be."""

    words_in_all: int
    words: tuple[str, ...]
    numbers: tuple[str, ...]
    cjk: tuple[str, ...]
    ids: tuple[str, ...]
    links: tuple[str, ...]

    @property
    def are_too_many(self) -> bool:
        """Whether the rewrite is to be rejected."""
        kept = self.words_in_all - len(self.words)
        too_few_words = 100 * kept < LEAST_PERCENT * self.words_in_all
        return too_few_words or bool(self.numbers or self.cjk or self.ids or self.links)

    @property
    def words_kept(self) -> float:
        """The share of the words that was kept."""
        return 1.0 if not self.words_in_all else 1 - len(self.words) / self.words_in_all


def losses(before: PageText, after: PageText) -> Losses:
    """Compare two texts of a page.

    An entry that holds must be there with its id and moment; one that was superseded may have become a note,
    which names its id.
    """
    old, new = _prose(before), _prose(after)
    kept_words = set(_words(new))
    kept_numbers = set(_NUMBER.findall(new))
    kept_cjk = set(_CJK.findall(new))
    kept_links = {link.target for link in links_in(new)}
    words = _words(old)
    return Losses(
        words_in_all=len(words),
        words=tuple(word for word in words if word not in kept_words),
        numbers=tuple(one for one in _once(_NUMBER.findall(old)) if one not in kept_numbers),
        cjk=tuple(run for run in _once(_CJK.findall(old)) if not any(run in kept for kept in kept_cjk)),
        ids=_lost_ids(before, after, new),
        links=tuple(_once(link.target for link in links_in(old) if link.target not in kept_links)),
    )


def _lost_ids(before: PageText, after: PageText, new: str) -> tuple[str, ...]:
    living = {(entry.entry_id, entry.timestamp) for entry in after.entries if not entry.superseded}
    named = {entry.entry_id for entry in after.entries}
    lost = []
    for entry in before.entries:
        if not entry.superseded:
            is_lost = (entry.entry_id, entry.timestamp) not in living
        else:
            is_lost = entry.entry_id not in named and not _is_named(entry.entry_id, new)
        if is_lost:
            lost.append(entry.entry_id)
    return tuple(lost)


def _is_named(entry_id: str, text: str) -> bool:
    return re.search(rf"(?<![A-Za-z0-9-]){re.escape(entry_id)}(?![A-Za-z0-9-])", text) is not None


def _prose(page: PageText) -> str:
    """Return what a page says, without headings: these are compared by their ids."""
    parts = [page.preamble]
    for entry in page.entries:
        parts += [entry.content, entry.reason or "", *entry.tags]
    return "\n".join(parts)


def _words(text: str) -> list[str]:
    return _once(word.casefold() for word in _WORD.findall(text))


def _once(found: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(found))
