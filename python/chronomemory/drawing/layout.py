"""Where all dots lie: each community by itself, and the communities beside those that they have lines to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, pi

import numpy as np
from numpy.typing import NDArray

from chronomemory.drawing.communities import communities
from chronomemory.drawing.settling import GOLDEN, Places, settled

__all__ = ["Layout", "lay_out"]

#: How long a usual line is, in pixels of a page that is not zoomed.
STEP_PIXELS = 46.0
#: What is free around a community, in steps.
_MARGIN = 0.9
#: Communities are fitted among each other up to so many; the rest goes around them in rings.
_FITTED = 220
#: So few dots are seen at one glance: only those that no line connects lie apart.
_AT_A_GLANCE = 60
_DIRECTIONS = 32
_TURNS = 24
#: A screen is so many times wider than high, the panel beside the picture taken off.
_ASPECT = 1.3


@dataclass(frozen=True, slots=True)
class Layout:
    """The places of dots in pixels, the community of each, and middle and radius of the communities."""

    places: list[tuple[float, float]]
    community: list[int]
    circles: list[tuple[float, float, float]]


def lay_out(kinds: Sequence[str], links: Sequence[tuple[int, int]]) -> Layout:
    """Lay dots out whose kinds are these, linked by their numbers."""
    size = len(kinds)
    if not size:
        return Layout([], [], [])
    member = _together(kinds, links)
    count = max(member) + 1
    dots: list[list[int]] = [[] for _ in range(count)]
    for dot, place in enumerate(member):
        dots[place].append(dot)
    # The largest is number 0, so that the first colours are those that are seen most.
    order = sorted(range(count), key=lambda place: (-len(dots[place]), dots[place][0]))
    rank = {place: number for number, place in enumerate(order)}
    member = [rank[place] for place in member]
    dots = [dots[place] for place in order]
    inner = _inner_places(dots, member, links)
    radii = np.array([np.hypot(near[:, 0], near[:, 1]).max() + _MARGIN for near in inner])
    outer = _outer_links(count, member, links)
    middles = _lying(_packed(radii, outer), radii)
    _turned(inner, middles, dots, member, links)
    places = np.zeros((size, 2))
    for number, near in enumerate(inner):
        places[dots[number]] = near + middles[number]
    places, middles = places * STEP_PIXELS, middles * STEP_PIXELS
    return Layout(
        [(round(float(x), 1), round(float(y), 1)) for x, y in places],
        member,
        [
            (round(float(x), 1), round(float(y), 1), round(float(radius) * STEP_PIXELS, 1))
            for (x, y), radius in zip(middles, radii, strict=True)
        ],
    )


def _together(kinds: Sequence[str], links: Sequence[tuple[int, int]]) -> list[int]:
    """Find communities; dots without a line are kept together by their kinds."""
    member = communities(len(kinds), links) if len(kinds) > _AT_A_GLANCE else _connected(len(kinds), links)
    linked = {end for one, other in links if one != other for end in (one, other)}
    homes: dict[str, int] = {}
    for dot, kind in enumerate(kinds):
        if dot not in linked:
            member[dot] = homes.setdefault(kind, member[dot])
    numbers: dict[int, int] = {}
    return [numbers.setdefault(place, len(numbers)) for place in member]


def _connected(size: int, links: Sequence[tuple[int, int]]) -> list[int]:
    first = list(range(size))
    changed = True
    while changed:
        changed = False
        for one, other in links:
            least = min(first[one], first[other])
            changed = changed or first[one] != first[other]
            first[one] = first[other] = least
    return first


def _inner_places(dots: list[list[int]], member: list[int], links: Sequence[tuple[int, int]]) -> list[Places]:
    number = {dot: place for inside in dots for place, dot in enumerate(inside)}
    inner: list[list[tuple[int, int]]] = [[] for _ in dots]
    for one, other in links:
        if member[one] == member[other] and one != other:
            inner[member[one]].append((number[one], number[other]))
    return [settled(len(inside), lines) for inside, lines in zip(dots, inner, strict=True)]


def _outer_links(count: int, member: list[int], links: Sequence[tuple[int, int]]) -> list[dict[int, int]]:
    outer: list[dict[int, int]] = [{} for _ in range(count)]
    for one, other in links:
        here, there = member[one], member[other]
        if here != there:
            outer[here][there] = outer[here].get(there, 0) + 1
            outer[there][here] = outer[there].get(here, 0) + 1
    return outer


def _packed(radii: NDArray[np.float64], outer: list[dict[int, int]]) -> Places:
    """Put circles beside each other: each as near as there is room to those that it has lines to."""
    count = len(radii)
    middles = np.zeros((count, 2))
    turns = np.arange(_DIRECTIONS) * (2 * pi / _DIRECTIONS)
    around = np.stack([np.cos(turns), np.sin(turns)], axis=1)
    placed: list[int] = []
    waiting = {place for place in range(count) if outer[place]}
    pull = [0] * count
    alone = [place for place in range(count) if not outer[place]]
    while waiting and len(placed) < _FITTED:
        place = max(waiting, key=lambda one: (pull[one], radii[one], -one))
        waiting.remove(place)
        middles[place] = _fitted(place, placed, middles, radii, outer[place], around)
        placed.append(place)
        for other, weight in outer[place].items():
            pull[other] += weight
    rest = sorted(waiting) + alone
    rest.sort(key=lambda one: (-radii[one], one))
    if not placed and len(rest) <= _FITTED:
        for place in rest:
            middles[place] = _fitted(place, placed, middles, radii, {}, around)
            placed.append(place)
        return middles
    _ringed(rest, placed, middles, radii)
    return middles


def _lying(middles: Places, radii: NDArray[np.float64]) -> Places:
    """Turn the whole so that it fills a screen that is wider than high; a page on its side turns it again."""
    best, least = middles, np.inf
    for angle in np.arange(_TURNS) * (pi / _TURNS):
        turned = middles @ _turn(angle, 1.0)
        wide, high = (turned + radii[:, None]).max(axis=0) - (turned - radii[:, None]).min(axis=0)
        need = round(float(max(wide / _ASPECT, high)), 6)
        if need < least - 1e-6:
            best, least = turned, need
    low, high_end = (best - radii[:, None]).min(axis=0), (best + radii[:, None]).max(axis=0)
    lying: Places = best - (low + high_end) / 2
    return lying


def _fitted(
    place: int,
    placed: list[int],
    middles: Places,
    radii: NDArray[np.float64],
    near: dict[int, int],
    around: Places,
) -> Places:
    """Find the best free place at the edge of what is placed."""
    if not placed:
        return np.zeros(2)
    there, wide = middles[placed], radii[placed]
    reach = wide + radii[place]
    tried = (there[:, None, :] + around[None, :, :] * reach[:, None, None]).reshape(-1, 2)
    far = np.hypot(tried[:, 0, None] - there[None, :, 0], tried[:, 1, None] - there[None, :, 1])
    free = (far >= reach[None, :] - 1e-6).all(axis=1)
    # All the ground that is taken pulls a little, so that the whole stays round.
    weights = np.array([near.get(other, 0) for other in placed], dtype=np.float64)
    weights = weights / max(weights.sum(), 1.0) + 0.35 * wide**2 / (wide**2).sum()
    cost = np.where(free, far @ weights, np.inf)
    best: Places = tried[int(np.round(cost, 6).argmin())]
    return best


def _ringed(rest: list[int], placed: list[int], middles: Places, radii: NDArray[np.float64]) -> None:
    """Put what belongs to nothing in rings around the rest, the largest first."""
    middle = middles[placed].mean(axis=0) if placed else np.zeros(2)
    edge = max((hypot(*(middles[one] - middle)) + radii[one] for one in placed), default=0.0)
    start = 0
    while start < len(rest):
        wide = radii[rest[start]]
        ring = edge + wide if edge else 0.0
        holds = max(1, int(pi / np.arcsin(min(1.0, wide / ring)))) if ring > wide else 1
        inside = rest[start : start + holds]
        for number, place in enumerate(inside):
            turn = 2 * pi * number / len(inside) + GOLDEN * start
            middles[place] = middle + ring * np.array([np.cos(turn), np.sin(turn)])
        edge = ring + wide
        start += len(inside)


def _turned(
    inner: list[Places],
    middles: Places,
    dots: list[list[int]],
    member: list[int],
    links: Sequence[tuple[int, int]],
) -> None:
    """Turn each community, or turn it over, so that its dots look towards those that they have lines to."""
    number = {dot: place for inside in dots for place, dot in enumerate(inside)}
    leaving: list[list[tuple[int, int]]] = [[] for _ in dots]
    for one, other in links:
        if member[one] != member[other]:
            leaving[member[one]].append((number[one], other))
            leaving[member[other]].append((number[other], one))
    angles = np.arange(_TURNS) * (2 * pi / _TURNS)
    for _ in range(2):
        for place, lines in enumerate(leaving):
            if not lines or len(inner[place]) < 2:
                continue
            ends = np.array(
                [inner[member[other]][number[other]] + middles[member[other]] for _, other in lines]
            )
            targets = ends - middles[place]
            own = inner[place][[dot for dot, _ in lines]]
            best, least = inner[place], np.inf
            for flip in (1.0, -1.0):
                turns = [_turn(angle, flip) for angle in angles]
                for turn in turns:
                    cost = round(float(np.square(own @ turn - targets).sum()), 6)
                    if cost < least - 1e-6:
                        best, least = inner[place] @ turn, cost
            inner[place] = best


def _turn(angle: float, flip: float) -> Places:
    cosine, sine = np.cos(angle), np.sin(angle)
    return np.array([[cosine, sine], [-flip * sine, flip * cosine]])
