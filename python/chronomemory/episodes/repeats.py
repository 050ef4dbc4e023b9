"""Tells whether a rule did before what it makes of an episode.

Episodes are gone through once more where nobody knows any more how far a rule got, or under another name.
What the rule has done once it does not do again: facts may have been pinned, changed or taken away since.
"""

from __future__ import annotations

from functools import cached_property

from chronomemory.episodes.ids import episode_key, fact_key
from chronomemory.episodes.memory import Episodes
from chronomemory.episodes.models import AddDelta, DeleteDelta, MemoryDelta, UpdateDelta
from chronomemory.episodes.storage.books import progress_of_all
from chronomemory.episodes.storage.facts import is_fact
from chronomemory.episodes.storage.lineages import Step, lineage_in, sources_of, whole
from chronomemory.face.batch import Connection
from chronomemory.record import ChronoRecord

__all__ = ["Past"]


class Past:
    """What a rule did before a run, under whatever name.

    ``is_whole`` says that the run goes over all episodes; else over those that are new under its name.
    ``one_store`` says that facts and episodes are in one log, whose events can be compared.
    """

    def __init__(
        self, conn: Connection, rule_id: str, episodes: Episodes, *, is_whole: bool, one_store: bool
    ) -> None:
        self._conn, self._rule_id, self._episodes = conn, rule_id, episodes
        self._is_whole, self._one_store = is_whole, one_store

    def has(self, delta: MemoryDelta) -> bool:
        """Say whether the rule applied a delta before, and its episode has not been written since."""
        conn = self._conn
        if isinstance(delta, UpdateDelta) and any(_is_of_this_batch(conn, name) for name in delta.replaces):
            # It was not there when the rule did so: a turn that was heard late.
            return False
        if isinstance(delta, AddDelta | UpdateDelta):
            known = [conn.store.engine.get(fact_key(str(delta.fact_payload.get("id"))))]
        elif isinstance(delta, DeleteDelta):
            # Of what is gone nobody can tell who took it away, and it is gone. What this batch made has no
            # event.
            known = [conn.glimpse(fact_key(name)) for name in delta.replaces]
            known = [record for record in known if record is not None and record.updated_seq is not None]
        else:
            return False
        engine = self._episodes.handle.store.engine
        said = [one for name in delta.source_episode_ids if (one := engine.get(episode_key(name)))]
        return any(
            record is not None
            and all(_is_later(record, one, self._one_store) for one in said)
            and self._led_to(record, delta, said)
            for record in known
        )

    def _led_to(self, record: ChronoRecord, delta: MemoryDelta, said: list[ChronoRecord]) -> bool:
        """Say whether the rule led to a fact: by the very step of an add or update, by any if it is to go.

        What nobody has added to since is made of its episode as it is. Else it may have been long ago, and
        counts only if the rule had the episode before: it may be new to the rule, and the fact not.
        """
        if not is_fact(record):
            return False
        steps = lineage_in(record).steps
        if not isinstance(delta, DeleteDelta) and any(_is_step(step, delta) for step in steps[-1:]):
            return True
        return _is_in_lineage(self._conn, record, delta) and (self._is_whole or self._took_in(said))

    def _took_in(self, said: list[ChronoRecord]) -> bool:
        """Say whether a runner of any name got as far as these episodes."""
        return all((one.updated_seq or 0) <= self._reached for one in said)

    @cached_property
    def _reached(self) -> int:
        """The last event that a runner of any name got to; few runs have to know."""
        everyone = progress_of_all(self._conn, self._rule_id)
        return max((one.seq for one in everyone if self._episodes.may_have_reached(one)), default=0)


def _is_of_this_batch(conn: Connection, name: str) -> bool:
    """Say whether a fact is there that has no event yet."""
    record = conn.glimpse(fact_key(name))
    return record is not None and record.status == "active" and record.updated_seq is None


def _is_in_lineage(conn: Connection, record: ChronoRecord, delta: MemoryDelta) -> bool:
    """Say whether a step of a fact is that of a delta."""
    lineage = lineage_in(record)
    if any(_is_step(step, delta) for step in lineage.steps):
        return True
    # The step stands further back only if others came upon it later, and none come upon what is gone.
    is_there = record.status != "tombstone"
    return is_there and any(_is_step(step, delta) for step in whole(lineage, conn.glimpse))


def _is_step(step: Step, delta: MemoryDelta) -> bool:
    if step.get("rule_id") != delta.rule_id:
        return False
    return isinstance(delta, DeleteDelta) or sources_of(step) == delta.source_episode_ids


def _is_later(fact: ChronoRecord, episode: ChronoRecord, one_store: bool) -> bool:
    if one_store:
        return (episode.updated_seq or 0) < (fact.updated_seq or 0)
    if fact.updated_at is None or episode.updated_at is None:
        return True
    return episode.updated_at <= fact.updated_at
