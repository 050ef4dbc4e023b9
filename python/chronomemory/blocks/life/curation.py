"""What is let go so that the rest can be found.

First a look, which nobody has to wait for; then small batches, each of which looks again at what it lets go.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from chronomemory.blocks.ids import BLOCK, EDGE, block_key, plain_id
from chronomemory.blocks.life.learning import archive
from chronomemory.blocks.storage.blocks import DEFAULT_LAMBDA, tags_of
from chronomemory.blocks.storage.config import hours_for
from chronomemory.blocks.storage.edges import is_shown
from chronomemory.blocks.storage.forming import FORMING, letting_go
from chronomemory.blocks.types import BlockStatus, DecayTier
from chronomemory.face.batch import Connection
from chronomemory.face.results import Result, counted
from chronomemory.record import ChronoRecord


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


#: A link weaker than this is taken away.
WEAK_LINK = 0.10
#: Links fade half as fast as the slower fading of their blocks.
_LINK_FADING = 0.5
#: A link that has faded less than this share is left as it is: the hours add up until it is worth an event.
_WORTH_WRITING = 0.01
#: How many blocks or links one batch lets go.
_TOGETHER = 64


@dataclass(frozen=True, slots=True)
class CurateResult(Result):
    """What was let go; links that were still forming are counted apart."""

    archived: tuple[str, ...] = ()
    edges_pruned: int = 0
    edges_decayed: int = 0
    forming_pruned: int = 0

    def __add__(self, other: CurateResult) -> CurateResult:
        return CurateResult(
            self.archived + other.archived,
            self.edges_pruned + other.edges_pruned,
            self.edges_decayed + other.edges_decayed,
            self.forming_pruned + other.forming_pruned,
        )

    @property
    def summary(self) -> str:
        return (
            f"{counted(len(self.archived), 'block')} archived, "
            f"{counted(self.edges_pruned, 'link')} taken away, "
            f"{counted(self.edges_decayed, 'link')} weaker, {self.forming_pruned:,} no longer forming."
        )


Write = Callable[[Callable[[Connection], CurateResult]], CurateResult]


def curate(look: Connection, write: Write, *, hours: float, threshold: float) -> CurateResult:
    """Archive what is less fresh than the threshold, let links fade, and take weak ones away.

    ``write`` runs a batch.
    """
    links = [record for record in look.records(EDGE, "active") if is_shown(look, record)]
    own = {record.id for record in look.records(EDGE, "active", own=True)}
    faded = [
        plain_id(record.id)
        for record in look.records(BLOCK, "active", own=True)
        if _has_faded(record, hours_for(look, record, hours), threshold)
    ]
    kept = bridges((link.data["from_id"], link.data["to_id"]) for link in links) if faded else set()
    fading = [
        link.id for link in links if link.id in own and _worth_writing(link, _faded_weight(look, link, hours))
    ]
    done = CurateResult()
    for some in _some(fading):
        done += write(partial(_fade, keys=some, hours=hours))
    for some in _some([block_id for block_id in faded if block_id not in kept]):
        done += write(partial(_archive, block_ids=some, hours=hours, threshold=threshold))
    for some in _some(list(letting_go(look, hours))):
        done += write(partial(_drop, keys=some))
    return done


def _some(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    yield from (ids[start : start + _TOGETHER] for start in range(0, len(ids), _TOGETHER))


def _fade(conn: Connection, keys: Sequence[str], hours: float) -> CurateResult:
    pruned = decayed = 0
    for key in keys:
        link = conn.record(key)
        if link is None or not _worth_writing(link, weight := _faded_weight(conn, link, hours)):
            continue
        if weight < WEAK_LINK:
            conn.delete(key)
            pruned += 1
        else:
            now = hours_for(conn, link, hours)
            conn.patch(key, {"data": {"weight": weight, "last_active_hours": now}})
            decayed += 1
    return CurateResult((), pruned, decayed)


def _drop(conn: Connection, keys: Sequence[str]) -> CurateResult:
    pruned = 0
    for key in keys:
        link = conn.record(key)
        if link is not None and link.status == FORMING:
            conn.delete(key)
            pruned += 1
    return CurateResult(forming_pruned=pruned)


def _archive(conn: Connection, block_ids: Sequence[str], hours: float, threshold: float) -> CurateResult:
    archived = []
    for block_id in block_ids:
        record = conn.record(block_key(block_id))
        if record is not None and _has_faded(record, hours_for(conn, record, hours), threshold):
            archive(conn, block_id, "decayed")
            archived.append(block_id)
    return CurateResult(tuple(archived))


def is_permanent(record: ChronoRecord) -> bool:
    """Say whether a block never fades."""
    fading = record.data.get("decay_lambda", DEFAULT_LAMBDA)
    return fading <= DecayTier.PERMANENT.value or "self/constitutional" in tags_of(record)


def freshness(record: ChronoRecord, hours: float) -> float:
    """Return how fresh a block is, by the fading that is stored with it."""
    since = max(0.0, hours - record.data.get("last_reinforced_at", 0.0))
    return math.exp(-record.data.get("decay_lambda", DEFAULT_LAMBDA) * since)


def _has_faded(record: ChronoRecord, hours: float, threshold: float) -> bool:
    return (
        record.status == BlockStatus.ACTIVE
        and not is_permanent(record)
        and freshness(record, hours) < threshold
    )


def _worth_writing(link: ChronoRecord, weight: float) -> bool:
    return weight < WEAK_LINK or weight < link.data["weight"] * (1.0 - _WORTH_WRITING)


def _faded_weight(conn: Connection, link: ChronoRecord, hours: float) -> float:
    """Return what a link weighs now; that its blocks are used meanwhile is no reason to begin again."""
    ends = [conn.glimpse(block_key(link.data[name])) for name in ("from_id", "to_id")]
    data = [end.data for end in ends if end is not None]
    if not data:
        # Both were erased while links were gone through, and it with them: what is written of it conflicts.
        return float(link.data["weight"])
    fading = _LINK_FADING * min(item.get("decay_lambda", DEFAULT_LAMBDA) for item in data)
    used = link.data.get("last_active_hours")
    if used is None:
        used = max(item.get("last_reinforced_at", 0.0) for item in data)
    return float(link.data["weight"] * math.exp(-fading * max(0.0, hours_for(conn, link, hours) - used)))
