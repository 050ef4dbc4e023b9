"""How an episode becomes a record, and a record an episode."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from typing import Any

from chronomemory.episodes.ids import EPISODE, episode_key, has_all_names, plain_id, scope_key
from chronomemory.episodes.models import Episode
from chronomemory.errors import InvalidRecord
from chronomemory.face.arguments import contents, string
from chronomemory.face.moments import instant, is_instant
from chronomemory.record import ChronoRecord
from chronomemory.scope import Scope

#: Episodes are ordered by their moments: turns must not share one.
_STEP = timedelta(microseconds=1)
_TITLE_LETTERS = 80
_PREFIX = episode_key("")
_PREFIX_LETTERS = len(_PREFIX)


def utc_text(moment: datetime) -> str:
    """Return a moment so that texts sort as moments do.

    >>> from datetime import timedelta
    >>> utc_text(datetime(2026, 5, 18, 11, tzinfo=timezone(timedelta(hours=2))))
    '2026-05-18T09:00:00.000000Z'
    """
    return moment.astimezone(timezone.utc).isoformat(timespec="microseconds")[:26] + "Z"


def later(moment: datetime, steps: int) -> datetime:
    """Return when the turn is that comes so many turns behind a moment."""
    try:
        return moment + steps * _STEP
    except OverflowError:
        raise InvalidRecord(f"timestamp: no turn can come after {moment}", field="timestamp") from None


@contents
def record_of(episode: Episode, scope: Scope) -> ChronoRecord:
    """Return the record of an episode: searched by its content, ordered by its moment in UTC."""
    moment = instant("timestamp", episode.timestamp)
    try:
        time = utc_text(moment)
    except OverflowError:
        raise InvalidRecord(f"timestamp: {moment} is out of reach in UTC", field="timestamp") from None
    episode_id = string("id", episode.id, empty=False)
    if not episode_id.strip():
        raise InvalidRecord("id must not be blank", field="id")
    data: dict[str, Any] = {
        "@scope": scope.to_dict(),
        "content": string("content", episode.content),
        "metadata": episode.metadata,
        "scope_key": scope_key(scope),
        "source_node": string("source_node", episode.source_node),
        "time": time,
        "timestamp": moment.isoformat(),
    }
    return ChronoRecord(
        id=episode_key(episode_id),
        kind=EPISODE,
        label=_title(episode.content),
        confidence=1.0,
        data=data,
    )


def _title(content: str) -> str:
    """Return the beginning of a text, for lists: all of it stands in ``data.content``."""
    line = content.strip().partition("\n")[0]
    return line if len(line) <= _TITLE_LETTERS else f"{line[: _TITLE_LETTERS - 1]}…"


def is_episode(record: ChronoRecord) -> bool:
    """Say whether a record is an episode as this face writes it, with a moment that can be read.

    Plain ones of its kind are none. Under the prefix another tool may have written anything: what it left
    blank or out is nobody's turn, and stops nobody.
    """
    data = record.data
    return (
        record.id.startswith(_PREFIX)
        and bool(record.id[_PREFIX_LETTERS:].strip())
        and has_all_names(data.get("@scope"))
        and isinstance(data.get("metadata"), dict)
        and isinstance(data.get("content"), str)
        and isinstance(data.get("source_node"), str)
        and is_instant(data.get("timestamp"))
    )


def episode_of(record: ChronoRecord, columns: Iterable[str] = ()) -> Episode:
    """Return the episode of a record; columns that were added read as None until somebody fills them."""
    data, names = record.data, record.data["@scope"]
    return Episode(
        id=plain_id(record.id),
        content=data["content"],
        timestamp=datetime.fromisoformat(data["timestamp"]),
        source_node=data["source_node"],
        metadata={**dict.fromkeys(columns), **data["metadata"]},
        **names,
    )
