"""What is let go so that the rest can be found?"""

from __future__ import annotations

import math
from dataclasses import dataclass

from chronomemory.blocks.connection import Connection
from chronomemory.blocks.graph import bridges
from chronomemory.blocks.ids import BLOCK, EDGE, block_key, plain_id
from chronomemory.blocks.learning import archive
from chronomemory.blocks.storage.blocks import DEFAULT_LAMBDA, tags_of
from chronomemory.blocks.storage.config import get_config
from chronomemory.blocks.storage.edges import is_shown
from chronomemory.blocks.storage.seed import DEFAULT_CONFIG
from chronomemory.blocks.types import DecayTier
from chronomemory.record import ChronoRecord

__all__ = ["CurateResult", "curate"]

#: A link weaker than this is taken away.
WEAK_LINK = 0.10
#: Links fade half as fast as the slower fading of their blocks.
_LINK_FADING = 0.5
#: A link that has faded less than this share is left as it is: the hours add up until it is worth an event.
_WORTH_WRITING = 0.01


@dataclass(frozen=True, slots=True)
class CurateResult:
    """What was let go."""

    archived: tuple[str, ...] = ()
    edges_pruned: int = 0
    edges_decayed: int = 0


def curate(conn: Connection, *, hours: float) -> CurateResult:
    """Archive what has faded, let links fade, and take weak ones away."""
    threshold = float(get_config(conn, "prune_threshold") or DEFAULT_CONFIG["prune_threshold"])
    links = [record for record in conn.records(EDGE, "active") if is_shown(conn, record)]
    faded = [
        record
        for record in conn.records(BLOCK, "active")
        if not is_permanent(record) and freshness(record, hours) < threshold
    ]
    kept = bridges((link.data["from_id"], link.data["to_id"]) for link in links) if faded else set()
    archived = [plain_id(record.id) for record in faded if plain_id(record.id) not in kept]
    pruned = decayed = 0
    for link in links:
        weight = _faded_weight(conn, link, hours)
        if weight < WEAK_LINK:
            conn.delete(link.id)
            pruned += 1
        elif weight < link.data["weight"] * (1.0 - _WORTH_WRITING):
            conn.patch(link.id, {"data": {"weight": weight, "last_active_hours": hours}})
            decayed += 1
    for block_id in archived:
        archive(conn, block_id, "decayed")
    return CurateResult(tuple(archived), pruned, decayed)


def is_permanent(record: ChronoRecord) -> bool:
    """Say whether a block never fades."""
    fading = record.data.get("decay_lambda", DEFAULT_LAMBDA)
    return fading <= DecayTier.PERMANENT.value or "self/constitutional" in tags_of(record)


def freshness(record: ChronoRecord, hours: float) -> float:
    """Return how fresh a block is, by the fading that is stored with it."""
    since = max(0.0, hours - record.data.get("last_reinforced_at", 0.0))
    return math.exp(-record.data.get("decay_lambda", DEFAULT_LAMBDA) * since)


def _faded_weight(conn: Connection, link: ChronoRecord, hours: float) -> float:
    ends = [conn.record(block_key(link.data[name])) for name in ("from_id", "to_id")]
    data = [end.data for end in ends if end is not None]
    fading = _LINK_FADING * min(item.get("decay_lambda", DEFAULT_LAMBDA) for item in data)
    used = link.data.get("last_active_hours")
    if used is None:
        used = max(item.get("last_reinforced_at", 0.0) for item in data)
    return float(link.data["weight"] * math.exp(-fading * max(0.0, hours - used)))
