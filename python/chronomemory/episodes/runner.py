"""Runs the rules that are due, applies what they make to facts, and remembers how far each of them got.

What a rule makes of new episodes and how far it got are one atomic batch, in the store of the facts: a runner
that dies at any point has done all of a rule or nothing of it, and the next run goes on from there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from chronomemory.episodes.cadence import Cadence, Cron, cadence_of
from chronomemory.episodes.classification import Sorted
from chronomemory.episodes.errors import ConsolidationRuleError, MemoryScopeError
from chronomemory.episodes.facts import apply
from chronomemory.episodes.models import ConsolidationRule
from chronomemory.episodes.repeats import Past
from chronomemory.episodes.storage.books import Progress, progress_of, put_progress
from chronomemory.episodes.stores import ChronoFactStore, ChronoMemoryStore
from chronomemory.errors import RecordTooLarge
from chronomemory.face.arguments import string
from chronomemory.face.awaited import Awaited, awaited_verb
from chronomemory.face.batch import Connection
from chronomemory.face.moments import Now, utc_now
from chronomemory.face.results import Result, counted

__all__ = ["ConsolidationRunner", "RuleRun", "RunReport"]


@dataclass(frozen=True)
class RuleRun(Result):
    """What a rule did in a run."""

    rule_id: str
    #: Whether it was due; if not, its episodes wait.
    due: bool
    #: How many new episodes it matched.
    matched: int = 0
    added: int = 0
    updated: int = 0
    deleted: int = 0
    #: Noops, what says again what was replaced or taken away before, and what this rule did before.
    left: int = 0
    #: Episodes that want to update or delete, and do not say what.
    bad_episode_ids: tuple[str, ...] = ()
    #: Episodes that would have changed what is another's, or whose fact would be larger than a record can be.
    refused_episode_ids: tuple[str, ...] = ()
    #: Facts that were to be replaced and are not there.
    missing_fact_ids: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """What happened, in one line."""
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
        """How many deltas were applied."""
        return sum(run.added + run.updated + run.deleted + run.left for run in self.rules)

    @property
    def summary(self) -> str:
        """What happened, in one line."""
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

        However turns are divided among runs, the facts are those that one run over all of them makes.
        A rule whose filter cannot be taken stops none of the others: all are run, and then
        ``ConsolidationRuleError`` has the ``report`` of those that were.
        """
        runs: list[RuleRun] = []
        bad: list[ConsolidationRuleError] = []
        for rule, cadence in self._rules:
            try:
                runs.append(self._run(rule, cadence))
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

    def _run(self, rule: ConsolidationRule, cadence: Cadence) -> RuleRun:
        return self._facts.handle.run(lambda conn: self._attempt(conn, rule, cadence))

    def _attempt(self, conn: Connection, rule: ConsolidationRule, cadence: Cadence) -> RuleRun:
        now = self._clock()
        # Two runners at once: the second finds this changed, and begins again.
        progress = progress_of(conn, self._name, rule.id)
        # Where the log ends is noted before anything is read: what comes later is for the next run.
        last, head = self._episodes.handle.store.engine.last_event()
        if progress is None:
            progress = Progress(0, now.isoformat())
            if isinstance(cadence, Cron):
                # Its times are counted from when it was seen first.
                put_progress(conn, self._name, rule.id, progress)
        reached = self._episodes.reached(progress, one_store=self._one_store)
        told = self._episodes.sort(rule, now, after=reached, until=last)
        if isinstance(cadence, Cron):
            is_due = cadence.is_due(datetime.fromisoformat(progress.at), now)
        else:
            is_due = cadence.is_due(told.matched)
        if not is_due:
            return RuleRun(rule.id, due=False, matched=told.matched)
        if reached:
            told = self._episodes.among_all(told, rule, now, until=last)
        run = self._applied(conn, rule, told, is_whole=not reached)
        put_progress(conn, self._name, rule.id, Progress(last, now.isoformat(), head))
        return run

    @property
    def _one_store(self) -> bool:
        """Whether episodes and facts are in one log."""
        roots = {kept.store.project_root.resolve() for kept in (self._episodes, self._facts)}
        return len(roots) == 1

    def _applied(self, conn: Connection, rule: ConsolidationRule, told: Sorted, *, is_whole: bool) -> RuleRun:
        done: Counter[str] = Counter()
        refused: list[str] = []
        missing: list[str] = []
        over: set[str] = set()
        past = Past(conn, rule.id, self._episodes, is_whole=is_whole, one_store=self._one_store)
        for place, (delta, user) in enumerate(zip(told.deltas, told.users, strict=True)):
            is_again = place in told.again
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
            matched=told.matched,
            added=done["add"],
            updated=done["update"],
            deleted=done["delete"],
            left=done["noop"],
            bad_episode_ids=tuple(told.bad),
            refused_episode_ids=tuple(refused),
            missing_fact_ids=tuple(missing),
        )


class ConsolidationRunner(Awaited[Runner]):
    """Runs rules over the episodes of one store, and applies what they make to the facts of one.

    ``name`` tells runners apart that feed the same facts from different episodes; ``clock`` is asked for the
    time of a run.
    """

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
