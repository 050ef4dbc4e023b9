"""Episodes of many users, for scripts: their records, and the verbs put, recent and consolidate."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, TypeVar

from chronomemory.episodes.classification import (
    Sorted,
    is_episode,
    joined,
    narrowed,
    sort,
    users_with_topics,
)
from chronomemory.episodes.errors import ConsolidationRuleError, MemoryScopeError
from chronomemory.episodes.ids import EPISODE, FACE, episode_key, plain_id, scope_key, taken
from chronomemory.episodes.kept import Kept, Progress, columns_of
from chronomemory.episodes.models import (
    ConsolidationRule,
    Episode,
    MemoryDelta,
)
from chronomemory.errors import ChronoError, HistoryUnavailable, InvalidArgument, InvalidRecord
from chronomemory.face.arguments import LAST_SEQ, contents, count, string
from chronomemory.face.moments import Now, instant, utc_now
from chronomemory.record import ChronoRecord
from chronomemory.scope import Scope
from chronomemory.store import ChronoStore, ScopedStore
from chronomemory.types import HasEngine

T = TypeVar("T")

#: Episodes are ordered by their moments: turns must not share one.
_STEP = timedelta(microseconds=1)
_TITLE_LETTERS = 80


def utc_text(moment: datetime) -> str:
    """Return a moment so that texts sort as moments do.

    >>> from datetime import timedelta
    >>> utc_text(datetime(2026, 5, 18, 11, tzinfo=timezone(timedelta(hours=2))))
    '2026-05-18T09:00:00.000000Z'
    """
    return moment.astimezone(timezone.utc).isoformat(timespec="microseconds")[:26] + "Z"


def later(moment: datetime, steps: int) -> datetime:
    """Return the moment of the turn that comes a number of turns after a moment."""
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
    line = episode.content.strip().partition("\n")[0]
    return ChronoRecord(
        id=episode_key(episode_id),
        kind=EPISODE,
        label=line if len(line) <= _TITLE_LETTERS else f"{line[: _TITLE_LETTERS - 1]}…",
        confidence=1.0,
        data=data,
    )


def episode_of(record: ChronoRecord, columns: Iterable[str] = ()) -> Episode:
    """Return the episode of a record; columns that were added are None until they are set."""
    data, names = record.data, record.data["@scope"]
    return Episode(
        id=plain_id(record.id),
        content=data["content"],
        timestamp=datetime.fromisoformat(data["timestamp"]),
        source_node=data["source_node"],
        metadata={**dict.fromkeys(columns), **data["metadata"]},
        **names,
    )


_INDEXES = {
    ("user",): "episodes.by_user",
    ("user", "session"): "episodes.by_session",
    ("user", "agent"): "episodes.by_agent",
    ("user", "session", "agent"): "episodes.by_scope",
}
#: Where a filter is read: a module of its own, since it needs a parser that not everybody has.
_FILTERS = "chronomemory.episodes.filters"
_MOST_OPERANDS = 10_000
#: Of so many users each is asked alone; of more, all at once.
_MOST_DOORS = 256


class Episodes(Kept):
    """The plain verbs of ``ChronoMemoryStore``: the same arguments, the same answers, not awaited."""

    kind, called = EPISODE, "episodes"

    def __init__(self, path: str | os.PathLike[str] | ChronoStore, *, clock: Now = utc_now) -> None:
        super().__init__(path)
        self._clock = clock

    def put(self, episode: Episode, *, user: str, session: str, agent: str) -> None:
        """Keep an episode; one with its id in the same scope is replaced, one of another scope is not."""
        self.put_many([episode], user=user, session=session, agent=agent)

    def put_at_once(self, episode: Episode, *, user: str, session: str, agent: str) -> bool:
        """Do the same unless it would wait for a writer or the disk; return whether it was done."""
        engine = self.handle.store._engine  # to open it may take a while
        if engine is None:
            return False
        scope = _whole("put", user=user, session=session, agent=agent)
        record = _record(episode, scope)
        try:
            return engine.upsert_if("at once", record, FACE)
        except InvalidRecord as error:
            raise _refused(error, scope, episode.id) from None

    def put_many(self, episodes: Sequence[Episode], *, user: str, session: str, agent: str) -> None:
        """Keep several episodes of one scope, all of them or none."""
        scope = _whole("put", user=user, session=session, agent=agent)
        records = [_record(episode, scope) for episode in episodes]
        try:
            if len(records) == 1:
                self._engine.upsert(records[0], FACE)
            elif records:
                self._engine.upsert_many(records, FACE)
        except InvalidRecord as error:
            raise _refused(error, scope, episodes[error.row or 0].id) from None

    def recent(
        self,
        user: str,
        session: str | None = None,
        agent: str | None = None,
        *,
        limit: int,
        as_of: int | datetime | None = None,
    ) -> list[Episode]:
        """Return the latest episodes, newest first; a name left out is any; ``as_of`` looks at the past."""
        scope = taken("recent", user=user, session=session, agent=agent)
        most = count("limit", limit, 1)
        given = scope.to_dict()
        names = {level: given[level] for level in ("user", "session", "agent") if level in given}
        engine = self._engine
        index, values = _INDEXES[tuple(names)], list(names.values())
        asked: dict[str, Any] = {
            "and": [{"path": ["data", "@scope", level], "eq": name} for level, name in names.items()]
        }
        past = None if as_of is None else self.handle.store.as_of(as_of)

        def read(wanted: int) -> Iterable[ChronoRecord]:
            if past is None:
                return engine.find(index, values, limit=wanted, reverse=True)
            return past.query(kind=EPISODE, where=asked, order_by="-happened", limit=wanted)

        columns = columns_of(engine, EPISODE).names
        return [episode_of(record, columns) for record in latest(read, most, is_episode)]

    def next_moment(self, now: datetime, *, user: str, session: str, agent: str) -> datetime:
        """Return when the next turn of a scope is: now, or just behind the last one if a clock went back."""
        with contents:
            instant("timestamp", now)
        last = self.recent(user, session, agent, limit=1)
        return max(now, later(last[0].timestamp, 1)) if last else now

    def forget(self, episode_id: str, *, user: str, session: str, agent: str) -> bool:
        """Take an episode of a scope away; the log keeps it. Say whether there was one."""
        scope = _whole("forget", user=user, session=session, agent=agent)
        key = episode_key(episode_id)

        def work(conn: Any) -> bool:
            record = conn.record(key)
            if record is None or record.scope != scope:
                return False
            conn.delete(key)
            return True

        return self.handle.run(work)

    def consolidate(self, rule: ConsolidationRule) -> list[MemoryDelta]:
        """Return what a rule makes of all episodes that it matches, by their time; nothing is written."""
        classified = self.sort(rule, self._clock())
        if classified.bad:
            raise ConsolidationRuleError(
                rule_id=rule.id,
                violation=f"update and delete need replaces: {', '.join(classified.bad[:10])}",
                deltas=classified.deltas,
                episode_ids=classified.bad,
            )
        return classified.deltas

    def sort(
        self, rule: ConsolidationRule, now: datetime, *, after: int = 0, until: int = LAST_SEQ
    ) -> Sorted:
        """Do the same as of a moment, good and bad together, of episodes written between two events."""
        if not rule.id.strip():
            raise ConsolidationRuleError(rule_id=rule.id, violation="id must not be blank")
        where = self._where(rule)
        changed = self._changed(after) if after else None
        if changed is not None and len(changed) <= _MOST_OPERANDS:
            if not changed:
                return Sorted()
            where = {"and": [where, {"id": {"in": changed}}]}
        try:
            # What no event is known for was there before all that are.
            return sort(self.handle.store, where, rule.id, now, after=after or -1, until=until)
        except InvalidArgument as error:
            raise ConsolidationRuleError(rule_id=rule.id, violation=f"when_filter: {error}") from None

    def among_all(self, classified: Sorted, rule: ConsolidationRule, now: datetime, *, until: int) -> Sorted:
        """Return what new episodes make in a pass over all; later ones on the same topic are made again."""
        users = users_with_topics(classified)
        if not users:
            return classified
        doors: list[tuple[HasEngine, list[str]]] = [(self.handle.store, users)]
        if len(users) <= _MOST_DOORS:
            # One user costs what that user has, however many there are.
            doors = [
                (ScopedStore(self.store, taken("consolidate", user=user), shared=False), [user])
                for user in users
            ]
        where = self._where(rule)
        passes = []
        for door, some in doors:
            narrow = narrowed(classified, some, _MOST_OPERANDS)
            both = where if narrow is None else {"and": [where, narrow]}
            passes.append(sort(door, both, rule.id, now, until=until))
        return joined(classified, users, passes)

    def reached(self, progress: Progress, *, one_store: bool) -> int:
        """Return the event that a rule got to; 0 if it is not in this log any more."""
        if one_store or progress.seq == 0 or progress.head is None:
            return min(progress.seq, self._engine.last_seq())
        try:
            return progress.seq if self._engine.has_event(progress.seq, progress.head) else 0
        except HistoryUnavailable:
            return 0

    def may_have_reached(self, progress: Progress) -> bool:
        """Say whether a runner may have got there in this log; runners of other names may have another."""
        if progress.seq > self._engine.last_seq():
            return False
        try:
            return progress.head is None or self._engine.has_event(progress.seq, progress.head)
        except HistoryUnavailable:
            return True

    def _changed(self, after: int) -> list[str] | None:
        try:
            changed = self._engine.changed_since(after + 1, faces=True)
        except HistoryUnavailable:
            return None
        return sorted(name for name in changed if name.startswith(episode_key("")))

    def _where(self, rule: ConsolidationRule) -> dict[str, Any]:
        if not rule.when_filter.strip():
            return {}
        columns = columns_of(self._engine, EPISODE).names
        where: dict[str, Any] = importlib.import_module(_FILTERS).where_of(rule.id, rule.when_filter, columns)
        return where


def latest(read: Callable[[int], Iterable[T]], most: int, is_wanted: Callable[[T], bool]) -> list[T]:
    """Read on until there are enough that are wanted; what another tool left among them does not count."""
    limit = most
    while True:
        found = list(read(limit))
        good = [one for one in found if is_wanted(one)]
        if len(good) >= most or len(found) < limit:
            return good[:most]
        limit = min(2 * limit, LAST_SEQ)


def _whole(operation: str, *, user: str, session: str, agent: str) -> Scope:
    for level, name in (("session", session), ("agent", agent)):
        if name is None:
            raise MemoryScopeError(
                scope="", operation=operation, violation=f"{level}: non-empty text expected, got None"
            )
    return taken(operation, user=user, session=session, agent=agent)


def _record(episode: Episode, scope: Scope) -> ChronoRecord:
    if (episode.user, episode.agent, episode.session) != scope.names:
        named = Scope(user=episode.user, agent=episode.agent, session=episode.session)
        raise MemoryScopeError(
            scope=str(scope), operation="put", violation=f"the episode says that it is of {named}"
        )
    return record_of(episode, scope)


def _refused(error: InvalidRecord, scope: Scope, episode_id: str) -> ChronoError:
    """Return what is said of a refusal: the engine knows the owner of an id, which must not be disclosed."""
    if error.path != "data.@scope":
        return error
    return MemoryScopeError(
        scope=str(scope), operation="put", violation=f"the id {episode_id!r} is taken in this store"
    )
