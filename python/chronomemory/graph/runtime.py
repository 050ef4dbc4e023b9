"""Applies actions behind a review gate, and the verbs of paths; whatever happens is on record."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

from chronomemory.errors import ChronoError
from chronomemory.face.moments import Now, utc_now
from chronomemory.graph import paths
from chronomemory.graph.actions import put_into
from chronomemory.graph.changes import Changes, Draft, Home, Look, numbered
from chronomemory.graph.diagnostics import hanging
from chronomemory.graph.errors import ActionError, ApprovalRequired, DuplicateEventError, PathError
from chronomemory.graph.models import (
    OPS,
    REVIEWED,
    Action,
    Approval,
    AuditRecord,
    Diagnostic,
    MemoryEvent,
    MemoryPath,
    moment_of,
)
from chronomemory.graph.protocols import AuditSink, MemoryEventLog, MemoryGraphStore
from chronomemory.sameness import is_same

__all__ = ["PhaseMemoryRuntime"]


class PhaseMemoryRuntime:
    """A graph store, an event log and an audit sink at work together.

    If all three are of one home, as those of a workspace are, whatever is applied is one atomic batch.
    ``review`` are the ops that nobody applies without an approval; an action may ask for one itself.
    """

    def __init__(
        self,
        graph: MemoryGraphStore,
        events: MemoryEventLog,
        audit: AuditSink,
        *,
        review: Collection[str] = REVIEWED,
        clock: Now = utc_now,
    ) -> None:
        self.graph = graph
        self.events = events
        self.audit = audit
        self._review = frozenset(review)
        self._clock = clock
        if strange := sorted(self._review - set(OPS)):
            raise ActionError(f"review: there is no op {strange[0]!r}")

    # The review gate.

    def needs_review(self, action: Action) -> bool:
        """Say whether an action is denied without an approval."""
        return action.requires_review or action.op in self._review

    def apply(self, actions: Iterable[Action], approvals: Iterable[Approval] = ()) -> list[MemoryEvent]:
        """Apply actions in their order, all of them or none, and return the events that say so.

        An action that needs a review is denied unless an approval is bound to its digest: then nothing of
        the batch is applied, and ``ApprovalRequired`` names what was not approved. Every apply, denial and
        refusal is an audit record.
        """
        given, approved = list(actions), list(approvals)
        for what, cls in ((given, Action), (approved, Approval)):
            if strange := [one for one in what if not isinstance(one, cls)]:
                raise ActionError(f"{cls.__name__} expected, got {type(strange[0]).__name__}")
        reviewed = [(action, _approver(action, approved)) for action in given]
        ts = moment_of(self._clock())
        listed = tuple(self._told(action, by) for action, by in reviewed)
        denied = [action.id for action, by in reviewed if self.needs_review(action) and by is None]
        if denied:
            self.audit.record(AuditRecord("", ts, "denied", listed, f"not approved: {', '.join(denied)}"))
            raise ApprovalRequired(action_ids=denied)
        if not given:
            return []

        def work(look: Look) -> Changes:
            draft = Draft(look)
            for action, by in reviewed:
                put_into(draft, action, ts=ts, approved_by=by)
            return draft.changes(audits=[AuditRecord("", ts, "applied", listed)])

        try:
            return list(self._run(work).events)
        except ChronoError as error:
            self.audit.record(AuditRecord("", ts, "refused", listed, str(error)))
            raise

    def _told(self, action: Action, approver: str | None) -> dict[str, Any]:
        return {
            "id": action.id,
            "op": action.op,
            "target": action.target,
            # The digest covers the payload: an erasure of either item takes it away.
            "other": action.payload.get("by", action.payload.get("summary_id")),
            "digest": action.digest,
            "needed_review": self.needs_review(action),
            "approved_by": approver,
        }

    # Paths.

    def branch(self, path_id: str, parent_id: str | None = None) -> MemoryPath:
        """Begin a path, off another one if its id is given."""

        def step(look: Look, ts: str) -> paths.PathStep:
            if look.path(path_id) is not None:
                raise PathError(f"there is a path {path_id!r} already", path_id=path_id)
            parent = None if parent_id is None else _there(look, parent_id)
            return paths.branch(path_id, parent, ts=ts)

        return self._step(step)

    def record(self, path_id: str, events: Iterable[MemoryEvent]) -> MemoryPath:
        """Append events and put them on a path that is active, all of it or nothing.

        An event that is in the log already is only put on the path.
        """
        given = [event if event.path_id else replace(event, path_id=path_id) for event in events]

        def work(look: Look) -> Changes:
            path, ts = _there(look, path_id), moment_of(self._clock())
            paths.record(path, (), ts=ts)  # whether it takes events at all, before anything else is wrong
            new = tuple(event for event in given if not _is_there(look, event))
            named = numbered(Changes(events=new), look).events
            coming = iter(named)
            listed = [event.id if _is_there(look, event) else next(coming).id for event in given]
            grown, event = paths.record(path, listed, ts=ts)
            return Changes(paths=(grown,), events=(*named, event))

        return self._run(work).paths[0]

    def merge(self, path_id: str, into_id: str) -> MemoryPath:
        """End a path in another one."""

        def step(look: Look, ts: str) -> paths.PathStep:
            known = {path.id: path for path in look.paths()}
            return paths.merge(_there(look, path_id), _there(look, into_id), known=known, ts=ts)

        return self._step(step)

    def abandon(self, path_id: str, reason: str) -> MemoryPath:
        """End a path, and say why."""
        return self._step(lambda look, ts: paths.abandon(_there(look, path_id), reason, ts=ts))

    def _step(self, step: Callable[[Look, str], paths.PathStep]) -> MemoryPath:
        def work(look: Look) -> Changes:
            path, event = step(look, moment_of(self._clock()))
            return Changes(paths=(path,), events=(event,))

        return self._run(work).paths[0]

    # Looking.

    def export(self) -> dict[str, Any]:
        """Return the graph as one envelope."""
        return self.graph.export()

    def diagnose(self) -> list[Diagnostic]:
        """Return what hangs in the air, and what is wrong with the event log; nothing is written."""
        return [*hanging(self.graph.home.look()), *(self.events.diagnose() if self._homes() is None else ())]

    def _homes(self) -> Home | None:
        """Return the home of all three, or None if they have several."""
        home = self.graph.home
        others: Sequence[object] = (self.events, self.audit)
        return home if all(getattr(other, "home", None) is home for other in others) else None

    def _run(self, work: Callable[[Look], Changes]) -> Changes:
        """Write to all three: together where they have one home, else one after the other."""
        if self._homes() is not None:
            return self.graph.home.run(work)
        made: list[Changes] = []

        def of_graph(look: Look) -> Changes:
            made[:] = [work(look)]
            if getattr(self.events, "home", None) is self.graph.home:
                return replace(made[0], audits=())
            return replace(made[0], events=(), audits=())

        done = self.graph.home.run(of_graph)
        if getattr(self.events, "home", None) is not self.graph.home:
            done = replace(done, events=tuple(self.events.append_many(made[0].events)))
        for entry in made[0].audits:
            self.audit.record(entry)
        return done


def _approver(action: Action, approvals: Iterable[Approval]) -> str | None:
    return next((approval.reviewer for approval in approvals if approval.covers(action)), None)


def _is_there(look: Look, event: MemoryEvent) -> bool:
    """Say whether an event was appended before; it may have been on no path then."""
    known = look.event(event.id) if event.id else None
    if known is None:
        return False
    if not is_same({**known.shown(), "path_id": event.path_id}, event.shown()):
        raise DuplicateEventError(event_id=event.id)
    return True


def _there(look: Look, path_id: str) -> MemoryPath:
    path = look.path(path_id)
    if path is None:
        raise PathError(f"there is no path {path_id!r}", path_id=path_id, recovery="Branch it first.")
    return path
