"""Runs the rules that are due, and records with the facts, in one batch, how far each of them got."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, partial
from typing import TypeAlias

from chronomemory.episodes.classification import Sorted
from chronomemory.episodes.errors import ConsolidationRuleError, MemoryScopeError
from chronomemory.episodes.facts import Step, apply, is_fact, lineage_in, sources_of, whole
from chronomemory.episodes.ids import episode_key, fact_key
from chronomemory.episodes.kept import Progress, progress_of, progress_of_all, put_progress
from chronomemory.episodes.memory import Episodes
from chronomemory.episodes.models import AddDelta, ConsolidationRule, DeleteDelta, MemoryDelta, UpdateDelta
from chronomemory.episodes.stores import ChronoFactStore, ChronoMemoryStore
from chronomemory.errors import RecordTooLarge
from chronomemory.face.arguments import string
from chronomemory.face.awaited import Awaited, awaited_verb
from chronomemory.face.batch import Connection
from chronomemory.face.moments import Now, utc_now
from chronomemory.face.results import Result, counted
from chronomemory.record import ChronoRecord

#: A module of its own, since it needs a parser that not everybody has.
_CRONS = "chronomemory.episodes.crons"


@dataclass(frozen=True)
class Every:
    """After so many new episodes that match."""

    episodes: int

    def is_due(self, new: int) -> bool:
        """Say whether there are enough."""
        return new >= self.episodes


@dataclass(frozen=True)
class Cron:
    """At the times of a cron expression, in UTC."""

    expression: str

    def is_due(self, since: datetime, now: datetime) -> bool:
        """Say whether one of its times has come since a moment; a wrong clock may give a future one."""
        if since > now:
            return True
        following: datetime | None = importlib.import_module(_CRONS).next_after(self.expression, since)
        return following is not None and following <= now


Cadence: TypeAlias = Every | Cron


def cadence_of(rule: ConsolidationRule) -> Cadence:
    """Take the cadence of a rule, and check what else a runner needs of it."""
    if not rule.id.strip():
        raise ConsolidationRuleError(rule_id=rule.id, violation="id must not be blank")
    if any(not channel.strip() for channel in rule.then_emits):
        raise ConsolidationRuleError(rule_id=rule.id, violation="then_emits must not hold a blank channel")
    match rule.cadence:
        case {"every": int(number), **rest} if not rest and not isinstance(number, bool) and number >= 1:
            return Every(number)
        case {"cron": str(expression), **rest} if not rest:
            fault = importlib.import_module(_CRONS).check(expression)
            if fault is None:
                return Cron(expression)
            raise ConsolidationRuleError(rule_id=rule.id, violation=f"cadence.cron: {fault}")
    expected = '{"every": N}, N from 1 on, or {"cron": "…"}'
    raise ConsolidationRuleError(rule_id=rule.id, violation=f"cadence must be {expected}, got {rule.cadence}")


class Past:
    """What a rule did before a run, under any name of a runner, over all or only new episodes."""

    def __init__(
        self, conn: Connection, rule_id: str, episodes: Episodes, *, is_whole: bool, one_store: bool
    ) -> None:
        self._conn, self._rule_id, self._episodes = conn, rule_id, episodes
        self._is_whole, self._one_store = is_whole, one_store

    def has(self, delta: MemoryDelta) -> bool:
        """Say whether the rule applied a delta before, and its episode has not been written since."""
        conn = self._conn
        replaced = delta.replaces if isinstance(delta, UpdateDelta) else ()
        facts = [conn.glimpse(fact_key(name)) for name in replaced]
        if any(one is not None and one.status == "active" and one.updated_seq is None for one in facts):
            # It has no event yet, so it was not there when the rule did so: a turn that was heard late.
            return False
        if isinstance(delta, AddDelta | UpdateDelta):
            known = [conn.store.engine.get(fact_key(str(delta.fact_payload.get("id"))))]
        elif isinstance(delta, DeleteDelta):
            # It is not known who took away what is gone. What this batch made has no event.
            known = [conn.glimpse(fact_key(name)) for name in delta.replaces]
            known = [record for record in known if record is not None and record.updated_seq is not None]
        else:
            return False
        engine = self._episodes.handle.store.engine
        sources = [one for name in delta.source_episode_ids if (one := engine.get(episode_key(name)))]
        return any(
            record is not None
            and all(_is_later(record, one, self._one_store) for one in sources)
            and self._led_to(record, delta, sources)
            for record in known
        )

    def _led_to(self, record: ChronoRecord, delta: MemoryDelta, sources: list[ChronoRecord]) -> bool:
        """Say whether the rule led to a fact: by its last step, or by one of episodes that it had before."""
        if not is_fact(record):
            return False
        steps = lineage_in(record).steps
        if not isinstance(delta, DeleteDelta) and any(_is_step(step, delta) for step in steps[-1:]):
            return True
        # Else a runner of any name must have got as far as these episodes.
        return _is_in_lineage(self._conn, record, delta) and (
            self._is_whole or all((one.updated_seq or 0) <= self._reached for one in sources)
        )

    @cached_property
    def _reached(self) -> int:
        """The last event that a runner of any name got to; few runs have to know."""
        everyone = progress_of_all(self._conn, self._rule_id)
        return max((one.seq for one in everyone if self._episodes.may_have_reached(one)), default=0)


def _is_in_lineage(conn: Connection, record: ChronoRecord, delta: MemoryDelta) -> bool:
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


@dataclass(frozen=True)
class RuleRun(Result):
    """What a rule did in a run."""

    rule_id: str
    due: bool
    matched: int = 0
    added: int = 0
    updated: int = 0
    deleted: int = 0
    #: Noops, what says again what was replaced or taken away before, and what this rule did before.
    left: int = 0
    bad_episode_ids: tuple[str, ...] = ()
    #: Episodes that would have changed what is another's, or whose fact would be larger than a record can be.
    refused_episode_ids: tuple[str, ...] = ()
    missing_fact_ids: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        if not self.due:
            return f"{self.rule_id}: not due, {counted(self.matched, 'new episode')}"
        did = f"{self.added} added, {self.updated} updated, {self.deleted} deleted, {self.left} left"
        bad = len(self.bad_episode_ids) + len(self.refused_episode_ids)
        also = f", {bad} refused" if bad else ""
        return f"{self.rule_id}: {counted(self.matched, 'new episode')}: {did}{also}"


@dataclass(frozen=True)
class RunReport(Result):
    """What all rules did in a run, in their order."""

    rules: tuple[RuleRun, ...]

    @property
    def applied(self) -> int:
        return sum(run.added + run.updated + run.deleted + run.left for run in self.rules)

    @property
    def summary(self) -> str:
        due = sum(run.due for run in self.rules)
        return f"{due} of {counted(len(self.rules), 'rule')} due, {counted(self.applied, 'delta')} applied"


class Runner:
    """The plain verb of ``ConsolidationRunner``."""

    def __init__(
        self,
        memory: ChronoMemoryStore,
        facts: ChronoFactStore,
        rules: Sequence[ConsolidationRule],
        *,
        name: str = "default",
        clock: Now = utc_now,
    ) -> None:
        self._episodes, self._facts = memory.episodes, facts.facts
        self._rules = [(rule, cadence_of(rule)) for rule in rules]
        ids = Counter(rule.id for rule in rules)
        if repeated := [rule_id for rule_id, times in ids.items() if times > 1]:
            raise ConsolidationRuleError(rule_id=repeated[0], violation="two rules have this id")
        self._name = string("name", name, empty=False)
        self._clock = clock

    def run(self) -> RunReport:
        """Run the rules that are due; a second run over the same episodes makes nothing new.

        The facts are those that one run over all turns makes. A bad filter stops only its rule: the
        ``ConsolidationRuleError`` at the end has the ``report`` of the others.
        """
        runs: list[RuleRun] = []
        bad: list[ConsolidationRuleError] = []
        for rule, cadence in self._rules:
            try:
                runs.append(self._facts.handle.run(partial(self._attempt, rule=rule, cadence=cadence)))
            except ConsolidationRuleError as error:
                bad.append(error)
        report = RunReport(tuple(runs))
        if bad:
            raise ConsolidationRuleError(
                "; ".join(error.message for error in bad),
                rule_id=bad[0].rule_id,
                violation=bad[0].violation,
                report=report,
            ) from bad[0]
        return report

    def _attempt(self, conn: Connection, rule: ConsolidationRule, cadence: Cadence) -> RuleRun:
        now = self._clock()
        # Two runners at once: the second finds this changed, and begins again.
        progress = progress_of(conn, self._name, rule.id)
        # Where the log ends is noted before anything is read: what comes later is for the next run.
        last, head = self._episodes.handle.store.engine.last_event()
        if progress is None:
            progress = Progress(0, now.isoformat())
            if isinstance(cadence, Cron):
                put_progress(conn, self._name, rule.id, progress)
        reached = self._episodes.reached(progress, one_store=self._one_store)
        classified = self._episodes.sort(rule, now, after=reached, until=last)
        if isinstance(cadence, Cron):
            is_due = cadence.is_due(datetime.fromisoformat(progress.at), now)
        else:
            is_due = cadence.is_due(classified.matched)
        if not is_due:
            return RuleRun(rule.id, due=False, matched=classified.matched)
        if reached:
            classified = self._episodes.among_all(classified, rule, now, until=last)
        run = self._applied(conn, rule, classified, is_whole=not reached)
        put_progress(conn, self._name, rule.id, Progress(last, now.isoformat(), head))
        return run

    @property
    def _one_store(self) -> bool:
        roots = {kept.store.project_root.resolve() for kept in (self._episodes, self._facts)}
        return len(roots) == 1

    def _applied(
        self, conn: Connection, rule: ConsolidationRule, classified: Sorted, *, is_whole: bool
    ) -> RuleRun:
        done: Counter[str] = Counter()
        refused: list[str] = []
        missing: list[str] = []
        over: set[str] = set()
        past = Past(conn, rule.id, self._episodes, is_whole=is_whole, one_store=self._one_store)
        for place, (delta, user) in enumerate(zip(classified.deltas, classified.users, strict=True)):
            is_again = place in classified.again
            if not is_again and past.has(delta):
                done["noop"] += 1
                continue
            try:
                applied = apply(
                    conn,
                    delta,
                    missing_ok=True,
                    user=user,
                    channels=rule.then_emits,
                    # Another rule made it and saw it replaced: this one only comes late.
                    bring_back=False,
                    again=is_again,
                )
            except (MemoryScopeError, RecordTooLarge):
                refused += delta.source_episode_ids
                continue
            if applied.over is not None:
                over.add(applied.over)
            missing += [name for name in applied.missing if name not in over]
            if applied.done:
                done[delta.kind] += 1
            elif applied.over is not None:
                done["noop"] += 1
        return RuleRun(
            rule.id,
            due=True,
            matched=classified.matched,
            added=done["add"],
            updated=done["update"],
            deleted=done["delete"],
            left=done["noop"],
            bad_episode_ids=tuple(classified.bad),
            refused_episode_ids=tuple(refused),
            missing_fact_ids=tuple(missing),
        )


class ConsolidationRunner(Awaited[Runner]):
    """Applies what rules make of episodes to facts; ``name`` tells runners of the same facts apart."""

    def __init__(
        self,
        memory: ChronoMemoryStore,
        facts: ChronoFactStore,
        rules: Sequence[ConsolidationRule],
        *,
        name: str = "default",
        clock: Now = utc_now,
    ) -> None:
        super().__init__(Runner(memory, facts, rules, name=name, clock=clock))

    run = awaited_verb(Runner.run)
