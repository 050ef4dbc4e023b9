"""What that which surrounds a hit adds to its score, worked out in the plainest way.

Numbers are added in the order that the engine adds them in: the same score is the same to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field
from datetime import date

LINK, SECOND, GROUP, TIME, SPEAKER = 0.3, 0.2, 0.6, 0.7, 0.15
#: What counts of a group where tokens are asked: its best, and its words.
GROUP_BEST, GROUP_WORDS = 0.4, 0.2
BEST_OTHERS = 3
FADES_AFTER, FADES_BEFORE, MARGIN = 10.0, 3.0, 1
YEAR = 0.3

#: The first and the last day that a question speaks of, or a whole year.
Stretch = tuple[date, date] | int


@dataclass
class Surroundings:
    """What joins candidates, and what is said of them, by their ids."""

    #: Pairs that are linked.
    links: set[frozenset[str]] = field(default_factory=set)
    #: What those agree in that are of a group.
    groups: dict[str, Hashable] = field(default_factory=dict)
    closeness: dict[str, float] = field(default_factory=dict)
    speakers: set[str] = field(default_factory=set)
    #: Where tokens are asked: the words of the question, the rarest first, what each is worth, who has it.
    words: list[tuple[float, set[str]]] | None = None


def closeness(day: date, stretches: Collection[Stretch]) -> float:
    """Return how close a day is to the nearest of those that a question names."""
    best = 0.0
    for stretch in stretches:
        if isinstance(stretch, int):
            close = YEAR if day.year == stretch else 0.0
        else:
            first, last = stretch
            after, before = (day - last).days, (first - day).days
            close = 1.0
            if after > MARGIN:
                close = math.exp(-after / FADES_AFTER)
            elif before > MARGIN:
                close = math.exp(-before / FADES_BEFORE)
        best = max(best, close)
    return best


def _best(names: Collection[str], alone: Mapping[str, float]) -> float:
    return max((alone[name] for name in names), default=0.0)


def _grouped(name: str, alone: Mapping[str, float], groups: Mapping[str, Hashable]) -> float:
    if name not in groups:
        return 0.0
    members = [other for other, group in groups.items() if group == groups[name]]
    weight = GROUP * (1.0 - len(members) / len(alone))
    total = 0.0
    for score in sorted((alone[other] for other in members if other != name), reverse=True)[:BEST_OTHERS]:
        total += max(score, 0.0)
    return weight * total / BEST_OTHERS if weight > 0 else 0.0


def _grouped_by_words(name: str, alone: Mapping[str, float], around: Surroundings) -> float:
    groups = around.groups
    members = {other for other, group in groups.items() if name in groups and group == groups[name]}
    share = 1.0 - len(members) / len(alone)
    if len(members) < 2 or share <= 0:
        return 0.0
    said = total = 0.0
    for weight, had in around.words or []:
        total += weight
        said += weight if had & members else 0.0
    part = said / total if total else 0.0
    best = max(0.0, _best(alone, alone))
    return share * (GROUP_BEST * max(_best(members, alone), 0.0) + GROUP_WORDS * best * part)


def lifts(alone: Mapping[str, float], around: Surroundings) -> dict[str, dict[str, float]]:
    """Return for each candidate, given with the score that it has alone, what is added to it and why."""
    near: dict[str, set[str]] = {name: set() for name in alone}
    for one, other in (tuple(pair) for pair in around.links if len(pair) == 2):
        near[one].add(other)
        near[other].add(one)
    best = max(0.0, _best(alone, alone))
    made = {}
    for name in alone:
        beyond = {other for next_one in near[name] for other in near[next_one]} - near[name] - {name}
        made[name] = {
            "linked": LINK * max(_best(near[name], alone), 0.0),
            "second": SECOND * max(_best(beyond, alone), 0.0),
            "grouped": _grouped(name, alone, around.groups)
            if around.words is None
            else _grouped_by_words(name, alone, around),
            "timed": TIME * around.closeness.get(name, 0.0) * best,
            "spoken": SPEAKER * best if name in around.speakers else 0.0,
        }
    return made


def lifted(alone: Mapping[str, float], around: Surroundings) -> dict[str, float]:
    """Return the score of each candidate."""
    scores = {}
    for name, parts in lifts(alone, around).items():
        total = 0.0
        for part in parts.values():
            total += part
        scores[name] = alone[name] + total
    return scores
