"""Where the dots of one community come to lie: a sketch by distances, then forces, then room for each."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import hypot

import numpy as np
from numpy.typing import NDArray

__all__ = ["settled"]

Places = NDArray[np.float64]

#: Distances are in steps: the usual length of a line, and how near two dots may come.
NEAREST = 0.9
#: A disc of so many dots is as wide as the root of their number times this.
EVEN_STEPS = 0.66
#: How many times longer than wide a community may be.
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
    spiral = _spiral(size)
    if size < 3 or not links:
        return _centred(spiral)
    near: list[list[int]] = [[] for _ in range(size)]
    for one, other in links:
        near[one].append(other)
        near[other].append(one)
    # A little of the spiral, so that dots with the same distances do not lie on each other.
    places = _sketch(near) + 0.05 * spiral
    return _centred(_apart(_evened(_forced(places, np.array(links, dtype=np.intp)))))


def _spiral(size: int) -> Places:
    numbers = np.arange(size, dtype=np.float64)
    far, turn = 0.62 * np.sqrt(numbers + 0.5), numbers * GOLDEN
    return np.stack([far * np.cos(turn), far * np.sin(turn)], axis=1)


def _centred(places: Places) -> Places:
    low, high = places.min(axis=0), places.max(axis=0)
    middle: Places = places - (low + high) / 2
    return middle


def _steps_from(start: int, near: Sequence[Sequence[int]]) -> list[int]:
    far = [-1] * len(near)
    far[start] = 0
    waiting = deque([start])
    while waiting:
        dot = waiting.popleft()
        for other in near[dot]:
            if far[other] < 0:
                far[other] = far[dot] + 1
                waiting.append(other)
    unreached = max(far) + 2
    return [steps if steps >= 0 else unreached for steps in far]


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
        push = _pushes(places, places[stand_ins]) * share
        way = places[other] - places[one]
        pull = way * (np.hypot(way[:, 0], way[:, 1]) * ease)[:, None]
        for axis in range(2):
            push[:, axis] += np.bincount(one, pull[:, axis], size) - np.bincount(other, pull[:, axis], size)
        push -= 0.05 * places
        length = np.hypot(push[:, 0], push[:, 1])
        limit = heat * (1 - number / rounds) ** 1.5 + 0.01
        places = places + push * (np.minimum(length, limit) / np.maximum(length, 1e-9))[:, None]
    return places


def _pushes(places: Places, stand_ins: Places) -> Places:
    strength = np.square(places[:, 0, None] - stand_ins[None, :, 0])
    strength += np.square(places[:, 1, None] - stand_ins[None, :, 1])
    np.maximum(strength, 0.01, out=strength)
    np.reciprocal(strength, out=strength)
    pushes: Places = places * strength.sum(axis=1, keepdims=True) - strength @ stand_ins
    return pushes


def _evened(places: Places) -> Places:
    """Draw in what sticks out and spread what is crowded, so that a community is a disc and not a comet."""
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
    # Of few dots the shape says more than the room that they take.
    share = min(0.7, len(far) / 50)
    # One that strayed far would make the whole community small.
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
