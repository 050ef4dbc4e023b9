"""Which dots belong together, found from their lines alone (the method of Louvain, always in one order)."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["communities"]

#: Dots that keep changing sides settle in a few sweeps; the last ones change little.
_SWEEPS = 12
_LEVELS = 12
#: A move must gain more than rounding does.
_GAIN = 1e-9

_Weights = list[dict[int, float]]


def communities(size: int, links: Sequence[tuple[int, int]]) -> list[int]:
    """Return the number of each dot's community, numbered by their first dots.

    >>> communities(6, [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5), (2, 3)])
    [0, 0, 0, 1, 1, 1]
    """
    weights: _Weights = [{} for _ in range(size)]
    for one, other in links:
        if one != other:
            weights[one][other] = weights[one].get(other, 0.0) + 1.0
            weights[other][one] = weights[other].get(one, 0.0) + 1.0
    member = list(range(size))
    within = [0.0] * size
    for _ in range(_LEVELS):
        found = _numbered(_moved(weights, within))
        if len(set(found)) == len(weights):
            break
        member = [found[place] for place in member]
        weights, within = _merged(weights, within, found)
    return _numbered(member)


def _moved(weights: _Weights, within: list[float]) -> list[int]:
    """Let each dot join the neighbours with whom it has more lines than chance gives it."""
    degree = [sum(near.values()) + own for near, own in zip(weights, within, strict=True)]
    total = sum(degree)
    side = list(range(len(weights)))
    load = list(degree)
    for _ in range(_SWEEPS):
        changed = False
        for dot, near in enumerate(weights):
            if not near:
                continue
            home = side[dot]
            load[home] -= degree[dot]
            pull: dict[int, float] = {home: 0.0}
            for other, weight in near.items():
                pull[side[other]] = pull.get(side[other], 0.0) + weight
            share = degree[dot] / total
            best, gain = home, pull[home] - share * load[home]
            for place in sorted(pull):
                here = pull[place] - share * load[place]
                if here > gain + _GAIN:
                    best, gain = place, here
            load[best] += degree[dot]
            side[dot] = best
            changed = changed or best != home
        if not changed:
            break
    return side


def _merged(weights: _Weights, within: list[float], found: list[int]) -> tuple[_Weights, list[float]]:
    """Make one dot of each community."""
    count = max(found) + 1
    merged: _Weights = [{} for _ in range(count)]
    inner = [0.0] * count
    for dot, near in enumerate(weights):
        here = found[dot]
        inner[here] += within[dot]
        for other, weight in near.items():
            there = found[other]
            if there == here:
                inner[here] += weight
            else:
                merged[here][there] = merged[here].get(there, 0.0) + weight
    return merged, inner


def _numbered(names: Sequence[int]) -> list[int]:
    numbers: dict[int, int] = {}
    return [numbers.setdefault(name, len(numbers)) for name in names]
