"""Links that are only forming: blocks that were shown together in too few sessions for a link that counts.

Most pairs are never seen again. So a block has few of these links at a time (the engine sees to it when
blocks are shown), they go away with it, and curation takes away what was not seen for long.
"""

from __future__ import annotations

from collections.abc import Iterator

from chronomemory.blocks.ids import BLOCK, EDGE, block_key, edge_key
from chronomemory.blocks.storage.config import hours_for
from chronomemory.blocks.types import BlockStatus, Edge
from chronomemory.face.batch import Connection
from chronomemory.record import ChronoRecord

#: The status of a link that does not count yet.
FORMING = "forming"
#: So many a memory has after a curation, or one for each active block.
_MOST = 1000
#: A pair that was not seen together for so long is no habit.
_SEEN_WITHIN_HOURS = 200.0


def forming_links(conn: Connection, block_id: str) -> list[ChronoRecord]:
    """Return the links of a block that are forming, as the batch sees them."""
    keys = {
        edge_key(*Edge.canonical(block_id, other))
        for other in conn.store.engine.blocks.forming([block_id])[0]
    }
    keys |= {record.id for record in conn.pending(EDGE) if block_id in _names(record)}
    found = (conn.glimpse(key) for key in sorted(keys))
    return [record for record in found if record is not None and record.status == FORMING]


def drop_forming(conn: Connection, block_id: str) -> None:
    """Take away the links of a block that are forming."""
    for record in forming_links(conn, block_id):
        conn.delete(record.id)


def letting_go(conn: Connection, hours: float) -> Iterator[str]:
    """Yield the keys of those not worth waiting for: of blocks that left, long unseen, or too many."""
    kept = []
    for link in conn.records(EDGE, FORMING, own=True):
        # A link of two sessions is wider than either: both ends must be known here.
        if any(conn.glimpse(block_key(name)) is None for name in _names(link)):
            continue
        since = hours_for(conn, link, hours) - _last_seen(conn, link)
        if len(_ends(conn, link)) == 2 and since <= _SEEN_WITHIN_HOURS:
            kept.append(link)
        else:
            yield link.id
    kept.sort(key=lambda link: _promise(conn, link), reverse=True)
    most = max(_MOST, conn.count(BLOCK, BlockStatus.ACTIVE.value, own=True))
    yield from (link.id for link in kept[most:])


def _names(link: ChronoRecord) -> tuple[str, str]:
    return link.data["from_id"], link.data["to_id"]


def _promise(conn: Connection, link: ChronoRecord) -> tuple[int, float, str]:
    return len(link.data["sessions"]), _last_seen(conn, link), link.id


def _ends(conn: Connection, link: ChronoRecord) -> list[ChronoRecord]:
    found = (conn.glimpse(block_key(name)) for name in _names(link))
    return [end for end in found if end is not None and end.status == BlockStatus.ACTIVE]


def _last_seen(conn: Connection, link: ChronoRecord) -> float:
    """Return when the pair was seen. Older stores do not say it; but whoever is shown is reinforced."""
    if "last_active_hours" in link.data:
        return float(link.data["last_active_hours"])
    return min((end.data.get("last_reinforced_at", 0.0) for end in _ends(conn, link)), default=0.0)
