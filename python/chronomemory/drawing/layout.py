"""Layout of a graph: communities, node positions inside each, and their arrangement."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, pi

import numpy as np
from numpy.typing import NDArray

#: Dots that keep changing sides settle in a few sweeps; the last ones change little.
_SWEEPS = 12
_LEVELS = 12
#: A move must gain more than rounding does.
_GAIN = 1e-9

#: Of each dot the weights of its lines to the others; to itself stands what lies inside a merged dot.
_Weights = list[Counter[int]]


def communities(size: int, links: Sequence[tuple[int, int]]) -> list[int]:
    """Return the number of each dot's community, numbered by their first dots.

    >>> communities(6, [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5), (2, 3)])
    [0, 0, 0, 1, 1, 1]
    """
    weights: _Weights = [Counter() for _ in range(size)]
    for one, other in links:
        if one != other:
            weights[one][other] += 1
            weights[other][one] += 1
    member = list(range(size))
    for _ in range(_LEVELS):
        found = _numbered(_moved(weights))
        if len(set(found)) == len(weights):
            break
        member = [found[place] for place in member]
        merged: _Weights = [Counter() for _ in range(max(found) + 1)]
        for dot, near in enumerate(weights):
            for other, weight in near.items():
                merged[found[dot]][found[other]] += weight
        weights = merged
    return _numbered(member)


def _moved(weights: _Weights) -> list[int]:
    """Let each dot join the neighbours with whom it has more lines than chance gives it."""
    degree = [sum(near.values()) for near in weights]
    total = sum(degree)
    side = list(range(len(weights)))
    load = list(degree)
    for _ in range(_SWEEPS):
        before = list(side)
        for dot, near in enumerate(weights):
            load[side[dot]] -= degree[dot]
            pull = Counter({side[dot]: 0})
            for other, weight in near.items():
                pull[side[other]] += weight if other != dot else 0
            share = degree[dot] / max(total, 1)
            best, gain = side[dot], pull[side[dot]] - share * load[side[dot]]
            for place in sorted(pull):
                here = pull[place] - share * load[place]
                if here > gain + _GAIN:
                    best, gain = place, here
            load[best] += degree[dot]
            side[dot] = best
        if side == before:
            break
    return side


def _numbered(names: Sequence[int]) -> list[int]:
    numbers: dict[int, int] = {}
    return [numbers.setdefault(name, len(numbers)) for name in names]


Places = NDArray[np.float64]

#: Distances are in steps: the usual length of a line, and how near two dots may come.
NEAREST = 0.9
#: A disc of so many dots is as wide as the root of their number times this.
EVEN_STEPS = 0.66
_LONGEST = 1.6
#: Up to so many dots each repels each; of more, each is repelled by so many of them that stand for all.
_EXACT = 300
_SAMPLE = 192
_PIVOTS = 24
_ROUNDS = 100
_ROUNDS_OF_MANY = 60
_PUSHES = 16
#: An angle whose multiples never meet: dots on such a spiral lie evenly.
GOLDEN = 2.399963229728653


def settled(size: int, links: Sequence[tuple[int, int]]) -> Places:
    """Return a place for each dot, around the middle; the same dots always come to lie the same way."""
    numbers = np.arange(size, dtype=np.float64)
    far, turn = 0.62 * np.sqrt(numbers + 0.5), numbers * GOLDEN
    spiral: Places = np.stack([far * np.cos(turn), far * np.sin(turn)], axis=1)
    if size < 3 or not links:
        return _centred(spiral)
    near: list[list[int]] = [[] for _ in range(size)]
    for one, other in links:
        near[one].append(other)
        near[other].append(one)
    # A little of the spiral, so that dots with the same distances do not lie on each other.
    places = _sketch(near) + 0.05 * spiral
    return _centred(_apart(_evened(_forced(places, np.array(links, dtype=np.intp)))))


def _centred(places: Places) -> Places:
    low, high = places.min(axis=0), places.max(axis=0)
    middle: Places = places - (low + high) / 2
    return middle


def _steps_from(start: int, near: Sequence[Sequence[int]]) -> list[int]:
    far = {start: 0}
    waiting = deque([start])
    while waiting:
        dot = waiting.popleft()
        new = [other for other in dict.fromkeys(near[dot]) if other not in far]
        far.update(dict.fromkeys(new, far[dot] + 1))
        waiting.extend(new)
    unreached = max(far.values()) + 2
    return [far.get(dot, unreached) for dot in range(len(near))]


def _sketch(near: Sequence[Sequence[int]]) -> Places:
    """Lay dots out by how many lines lead from some far apart ones to them (pivot scaling)."""
    size = len(near)
    pivot = max(range(size), key=lambda dot: (len(near[dot]), -dot))
    columns: list[list[int]] = []
    nearest = [size * 2] * size
    for _ in range(min(_PIVOTS, size)):
        columns.append(_steps_from(pivot, near))
        nearest = [min(pair) for pair in zip(nearest, columns[-1], strict=True)]
        pivot = max(range(size), key=lambda dot: (nearest[dot], -dot))
    squares = np.array(columns, dtype=np.float64).T ** 2
    spread = squares - squares.mean(axis=0) - squares.mean(axis=1, keepdims=True) + squares.mean()
    _, axes = np.linalg.eigh(spread.T @ spread)
    chosen = axes[:, -2:] if axes.shape[1] > 1 else np.hstack([axes, np.zeros_like(axes)])
    # The two ends of an axis are alike to the mathematics; the picture has them always on the same side.
    places = spread @ chosen[:, ::-1]
    for axis in range(2):
        if places[np.abs(places[:, axis]).argmax(), axis] < 0:
            places[:, axis] *= -1
    scale = np.sqrt(np.square(places).sum(axis=1).mean())
    wide = 0.6 * np.sqrt(size)
    sketch: Places = places * (wide / scale) if scale > 0 else places
    return sketch


def _forced(places: Places, links: NDArray[np.intp]) -> Places:
    """Let lines pull and dots push, less and less, until all lie well."""
    size = len(places)
    exact = size <= _EXACT
    rounds = _ROUNDS if exact else _ROUNDS_OF_MANY
    stand_ins = np.arange(size) if exact else np.linspace(0, size - 1, _SAMPLE).astype(np.intp)
    share = size / len(stand_ins)
    one, other = links[:, 0], links[:, 1]
    degree = np.bincount(links.ravel(), minlength=size).astype(np.float64)
    # A dot with many lines is not torn by them: each counts less.
    ease = 1.0 / np.sqrt(np.minimum(degree[one], degree[other]))
    heat = 0.25 * np.sqrt(size)
    for number in range(rounds):
        apart = np.square(places[:, 0, None] - places[stand_ins, 0])
        apart += np.square(places[:, 1, None] - places[stand_ins, 1])
        strength = 1.0 / np.maximum(apart, 0.01)
        push = (places * strength.sum(axis=1, keepdims=True) - strength @ places[stand_ins]) * share
        way = places[other] - places[one]
        pull = way * (np.hypot(way[:, 0], way[:, 1]) * ease)[:, None]
        for axis in range(2):
            push[:, axis] += np.bincount(one, pull[:, axis], size) - np.bincount(other, pull[:, axis], size)
        push -= 0.05 * places
        length = np.hypot(push[:, 0], push[:, 1])
        limit = heat * (1 - number / rounds) ** 1.5 + 0.01
        places = places + push * (np.minimum(length, limit) / np.maximum(length, 1e-9))[:, None]
    return places


def _evened(places: Places) -> Places:
    """Draw outliers in and spread crowded dots, so that a community is a disc."""
    places = places - places.mean(axis=0)
    spread, axes = np.linalg.eigh(places.T @ places)
    narrow, wide = np.sqrt(np.maximum(spread, 1e-9))
    if wide > _LONGEST * narrow:
        scale = np.sqrt(wide / (_LONGEST * narrow))
        # A chain of dots is as thin as a thread: drawn in, it winds, but only so far.
        places = places @ axes @ np.diag([min(scale, 4.0), 1 / min(scale, 2.0)]) @ axes.T
    far = np.hypot(places[:, 0], places[:, 1])
    even = np.empty(len(far))
    even[np.argsort(far, kind="stable")] = EVEN_STEPS * np.sqrt(np.arange(len(far)) + 0.5)
    share = min(0.7, len(far) / 50)
    rim = 1.0 + 1.2 * np.quantile(far, 0.95)
    wanted = np.minimum(far, rim) * (1 - share) + even * share
    evened: Places = places * (wanted / np.maximum(far, 1e-9))[:, None]
    return evened


def _apart(places: Places) -> Places:
    """Move dots apart that lie nearer than dots may."""
    across, down = places[:, 0].tolist(), places[:, 1].tolist()
    size = len(across)
    for _ in range(_PUSHES):
        cells: dict[tuple[int, int], list[int]] = {}
        for dot in range(size):
            cells.setdefault((int(across[dot] // NEAREST), int(down[dot] // NEAREST)), []).append(dot)
        moved = False
        for (column, row), dots in cells.items():
            around = [
                other
                for beside in (column - 1, column, column + 1)
                for below in (row - 1, row, row + 1)
                for other in cells.get((beside, below), ())
            ]
            for dot in dots:
                for other in around:
                    if other <= dot:
                        continue
                    x, y = across[other] - across[dot], down[other] - down[dot]
                    far = hypot(x, y)
                    if far >= NEAREST:
                        continue
                    moved = True
                    if far < 1e-6:
                        x, y, far = 1e-3 * (1 + other % 7), 1e-3 * (1 + other % 5), 2e-3
                    push = (NEAREST - far) / far * 0.52
                    across[dot] -= x * push
                    down[dot] -= y * push
                    across[other] += x * push
                    down[other] += y * push
        if not moved:
            break
    apart: Places = np.array([across, down]).T
    return apart


STEP_PIXELS = 46.0
_MARGIN = 0.9
_FITTED = 220
_AT_A_GLANCE = 60
_DIRECTIONS = 32


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
    dots: list[list[int]] = [[] for _ in range(max(member) + 1)]
    for dot, place in enumerate(member):
        dots[place].append(dot)
    dots.sort(key=lambda inside: (-len(inside), inside[0]))
    for place, inside in enumerate(dots):
        for dot in inside:
            member[dot] = place
    number = {dot: place for inside in dots for place, dot in enumerate(inside)}
    within: list[list[tuple[int, int]]] = [[] for _ in dots]
    outer: list[Counter[int]] = [Counter() for _ in dots]
    for one, other in links:
        here, there = member[one], member[other]
        if here != there:
            outer[here][there] += 1
            outer[there][here] += 1
        elif one != other:
            within[here].append((number[one], number[other]))
    inner = [settled(len(inside), lines) for inside, lines in zip(dots, within, strict=True)]
    radii = np.array([np.hypot(near[:, 0], near[:, 1]).max() + _MARGIN for near in inner])
    middles = _centred(_packed(radii, outer))
    places = np.zeros((size, 2))
    for inside, near, middle in zip(dots, inner, middles, strict=True):
        places[inside] = near + middle
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
    if len(kinds) > _AT_A_GLANCE:
        member = communities(len(kinds), links)
    else:
        member, before = list(range(len(kinds))), list[int]()
        while member != before:
            before = list(member)
            for one, other in links:
                member[one] = member[other] = min(member[one], member[other])
    linked = {end for one, other in links if one != other for end in (one, other)}
    homes: dict[str, int] = {}
    for dot, kind in enumerate(kinds):
        if dot not in linked:
            member[dot] = homes.setdefault(kind, member[dot])
    return _numbered(member)


def _packed(radii: NDArray[np.float64], outer: list[Counter[int]]) -> Places:
    count = len(radii)
    middles = np.zeros((count, 2))
    turns = np.arange(_DIRECTIONS) * (2 * pi / _DIRECTIONS)
    around = np.stack([np.cos(turns), np.sin(turns)], axis=1)
    placed: list[int] = []
    waiting = set(range(count))
    pull = [0] * count
    while waiting and len(placed) < _FITTED:
        place = max(waiting, key=lambda one: (pull[one], radii[one], -one))
        waiting.remove(place)
        middles[place] = _fitted(place, placed, middles, radii, outer[place], around)
        placed.append(place)
        for other, weight in outer[place].items():
            pull[other] += weight
    # The remaining circles go into rings around those that were placed, the largest first.
    rest = sorted(waiting, key=lambda one: (-radii[one], one))
    middle = middles[placed].mean(axis=0)
    edge = max(hypot(*(middles[one] - middle)) + radii[one] for one in placed)
    start = 0
    while start < len(rest):
        wide = radii[rest[start]]
        ring = edge + wide
        holds = max(1, int(pi / np.arcsin(wide / ring)))
        inside = rest[start : start + holds]
        for number, place in enumerate(inside):
            turn = 2 * pi * number / len(inside) + GOLDEN * start
            middles[place] = middle + ring * np.array([np.cos(turn), np.sin(turn)])
        edge = ring + wide
        start += len(inside)
    return middles


def _fitted(
    place: int,
    placed: list[int],
    middles: Places,
    radii: NDArray[np.float64],
    near: Counter[int],
    around: Places,
) -> Places:
    if not placed:
        return np.zeros(2)
    there, wide = middles[placed], radii[placed]
    reach = wide + radii[place]
    tried = (there[:, None, :] + around[None, :, :] * reach[:, None, None]).reshape(-1, 2)
    far = np.hypot(tried[:, 0, None] - there[None, :, 0], tried[:, 1, None] - there[None, :, 1])
    free = (far >= reach[None, :] - 1e-6).all(axis=1)
    weights = np.array([near[other] for other in placed], dtype=np.float64)
    weights = weights / max(weights.sum(), 1.0) + 0.35 * wide**2 / (wide**2).sum()
    cost = np.where(free, far @ weights, np.inf)
    best: Places = tried[int(np.round(cost, 6).argmin())]
    return best
