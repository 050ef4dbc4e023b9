"""Tells whether a rule did before what it makes of an episode.

Episodes are gone through once more where nobody knows any more how far a rule got, or under another name.
What the rule has done once it does not do again: facts may have been pinned, changed or taken away since.
"""

from __future__ import annotations

from chronomemory.episodes.ids import episode_key, fact_key
from chronomemory.episodes.memory import Episodes
from chronomemory.episodes.models import AddDelta, DeleteDelta, MemoryDelta, UpdateDelta
from chronomemory.episodes.storage.facts import is_fact
from chronomemory.episodes.storage.lineages import Step, lineage_in, sources_of, whole
from chronomemory.face.batch import Connection
from chronomemory.record import ChronoRecord

__all__ = ["is_repeated"]


def is_repeated(
    conn: Connection, delta: MemoryDelta, episodes: Episodes, *, is_whole: bool, one_store: bool
) -> bool:
    """Say whether its rule applied a delta before, and its episode has not been written since.

    In a whole pass it may have been long ago. Else the episode is new to who runs the rule, and only what
    nobody has added to since is known to be made of it as it is. ``one_store`` says that facts and episodes
    are in one log, whose events can be compared.
    """
    if isinstance(delta, UpdateDelta) and any(_is_of_this_batch(conn, name) for name in delta.replaces):
        # It was not there when the rule did so: a turn that was heard late.
        return False
    if isinstance(delta, AddDelta | UpdateDelta):
        known = [conn.store.engine.get(fact_key(str(delta.fact_payload.get("id"))))]
    elif isinstance(delta, DeleteDelta) and is_whole:
        # Of what is gone nobody can tell who took it away, and it is gone. What this batch made has no event.
        known = [conn.glimpse(fact_key(name)) for name in delta.replaces]
        known = [record for record in known if record is not None and record.updated_seq is not None]
    else:
        return False
    said = [episodes.handle.store.engine.get(episode_key(name)) for name in delta.source_episode_ids]
    return any(
        record is not None
        and _is_made_by(conn, record, delta, is_whole)
        and all(one is None or _is_later(record, one, one_store) for one in said)
        for record in known
    )


def _is_of_this_batch(conn: Connection, name: str) -> bool:
    """Say whether a fact is there that has no event yet."""
    record = conn.glimpse(fact_key(name))
    return record is not None and record.status == "active" and record.updated_seq is None


def _is_made_by(conn: Connection, record: ChronoRecord, delta: MemoryDelta, is_whole: bool) -> bool:
    """Say whether a rule led to a fact: by the very step of an add or update, by any if it is to go."""
    if not is_fact(record):
        return False
    lineage = lineage_in(record)
    if any(_is_step(step, delta) for step in lineage.steps[0 if is_whole else -1 :]):
        return True
    # The step stands further back only if others came upon it later, and none come upon what is gone.
    is_there = is_whole and record.status != "tombstone"
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
