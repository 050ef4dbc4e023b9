"""The blocks that hold the graph of links together."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["bridges"]


def bridges(links: Iterable[tuple[str, str]]) -> set[str]:
    """Return the blocks without which some others would no longer be connected.

    >>> bridges([("a", "b"), ("b", "c"), ("c", "d"), ("d", "b")])
    {'b'}
    """
    neighbours: dict[str, list[str]] = {}
    for one, other in links:
        neighbours.setdefault(one, []).append(other)
        neighbours.setdefault(other, []).append(one)
    found: set[str] = set()
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    for root in neighbours:
        if root in order:
            continue
        order[root] = lowest[root] = len(order)
        branches = 0
        # Depth first without recursion: a chain of links may be longer than Python's stack.
        path = [(root, "", iter(neighbours[root]))]
        while path:
            here, before, rest = path[-1]
            for there in rest:
                if there not in order:
                    order[there] = lowest[there] = len(order)
                    path.append((there, here, iter(neighbours[there])))
                    break
                if there != before:
                    lowest[here] = min(lowest[here], order[there])
            else:
                path.pop()
                if before:
                    lowest[before] = min(lowest[before], lowest[here])
                    if before == root:
                        branches += 1
                    elif lowest[here] >= order[before]:
                        found.add(before)
        if branches > 1:
            found.add(root)
    return found
