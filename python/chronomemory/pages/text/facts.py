"""Says which facts a rewrite of a page has lost."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from chronomemory.pages.text.entries import EntryText, body_of
from chronomemory.pages.text.hashtags import hashtags_in
from chronomemory.pages.text.headings import ENTRY_ID
from chronomemory.pages.text.links import links_in
from chronomemory.pages.text.page import PageText
from chronomemory.pages.text.showing import divided

__all__ = ["LEAST_PERCENT", "Losses", "losses"]

#: So many of a hundred different words must be kept.
LEAST_PERCENT = 95

_WORD = re.compile(r"[\w-]{4,}")
#: With its sign, its decimals, its power of ten and its percent: without them it is another number. A dash
#: within a word or between two numbers is no sign. Groups are limited: each takes memory while it matches.
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


@dataclass(frozen=True, slots=True)
class Losses:
    """What a rewrite has lost; of words a few may be."""

    words_in_all: int
    words: tuple[str, ...]
    numbers: tuple[str, ...]
    cjk: tuple[str, ...]
    ids: tuple[str, ...]
    links: tuple[str, ...]
    tags: tuple[str, ...]

    @property
    def are_too_many(self) -> bool:
        """Whether the rewrite is to be rejected."""
        kept = self.words_in_all - len(self.words)
        too_few_words = 100 * kept < LEAST_PERCENT * self.words_in_all
        return too_few_words or bool(self.numbers or self.cjk or self.ids or self.links or self.tags)

    @property
    def words_kept(self) -> float:
        """The share of the words that was kept."""
        return 1.0 if not self.words_in_all else 1 - len(self.words) / self.words_in_all


@dataclass(frozen=True, slots=True)
class _Said:
    """What a page says as holding, and what is hidden on it, struck or superseded."""

    holding: str
    hidden: str

    @property
    def whole(self) -> str:
        return f"{self.holding}\n{self.hidden}"


def losses(before: PageText, after: PageText) -> Losses:
    """Compare two texts of a page.

    What held must hold: in a struck entry, in a comment or crossed out it is lost. What did not hold may
    stand anywhere. An entry that holds must be there with its id, its moment and its tags; one that was
    superseded stays so, or has become a note, which names its id.
    """
    old, new = _said(before), _said(after)

    def lost(facts: Callable[[str], list[str]]) -> tuple[list[str], tuple[str, ...]]:
        held, kept, kept_at_all = facts(old.holding), set(facts(new.holding)), set(facts(new.whole))
        known = set(held)
        besides = [fact for fact in facts(old.hidden) if fact not in known]
        gone = [fact for fact in held if fact not in kept]
        return held + besides, (*gone, *(fact for fact in besides if fact not in kept_at_all))

    words, lost_words = lost(_words)
    runs, kept_runs, kept_at_all = _runs(old.holding), _runs(new.holding), _runs(new.whole)
    cjk = _without(runs, kept_runs)
    held_runs = set(runs)
    cjk += [run for run in _without(_runs(old.hidden), kept_at_all) if run not in held_runs]
    return Losses(
        words_in_all=len(words),
        words=lost_words,
        numbers=lost(_numbers)[1],
        cjk=tuple(cjk),
        ids=tuple(_lost_ids(before, after, new.holding)),
        links=lost(_links)[1],
        tags=tuple(_once([*_lost_tags(before, after, new), *lost(hashtags_in)[1]])),
    )


def _lost_ids(before: PageText, after: PageText, shown: str) -> Iterable[str]:
    there = {entry.entry_id: entry for entry in after.entries}
    named = set(re.findall(ENTRY_ID, shown, re.ASCII))
    for entry in before.entries:
        now = there.get(entry.entry_id)
        if entry.superseded:
            is_kept = entry.entry_id in named if now is None else _is_still_struck(entry, now)
        else:
            is_kept = now is not None and not now.superseded and now.timestamp == entry.timestamp
        if not is_kept:
            yield entry.entry_id


def _is_still_struck(before: EntryText, now: EntryText) -> bool:
    return now.superseded and (before.superseded_by is None or now.superseded_by is not None)


def _lost_tags(before: PageText, after: PageText, new: _Said) -> Iterable[str]:
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


def _said(page: PageText) -> _Said:
    """Return what a page says, with the tags of headings as words; ids and moments are compared as such."""
    holding, hidden = ([part] for part in divided(page.preamble))
    for stretch in page.stretches:
        entry = stretch.entry
        if entry.superseded:
            hidden += [entry.content, entry.reason or "", *entry.tags]
        else:
            shown, behind = divided(body_of(stretch.raw))
            holding += [shown, *entry.tags]
            hidden.append(behind)
    return _Said("\n".join(holding), "\n".join(hidden))


def _without(runs: list[str], kept: list[str]) -> list[str]:
    """Return the runs that are part of no kept one; most are one themselves."""
    known, joined = set(kept), "\n".join(kept)
    return [run for run in runs if run not in known and run not in joined]


def _runs(text: str) -> list[str]:
    return _once(_CJK.findall(text))


def _words(text: str) -> list[str]:
    return _once(word.casefold() for word in _WORD.findall(text))


def _numbers(text: str) -> list[str]:
    """Return the numbers of a text; one that is spelled with another dash or gap is the same."""
    return _once("".join(found.translate(_SPELLINGS).split()) for found in _NUMBER.findall(text))


def _links(text: str) -> list[str]:
    return _once(link.target for link in links_in(text))


def _once(found: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(found))
