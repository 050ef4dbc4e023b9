"""The protocols of graph store, event log and audit sink, and the runtime that applies reviewed actions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from heapq import merge
from typing import Any, Protocol, runtime_checkable

from chronomemory.errors import ChronoError
from chronomemory.face.moments import Now, utc_now
from chronomemory.graph import paths
from chronomemory.graph.changes import (
    APPLIED,
    Changes,
    Draft,
    GraphSnapshot,
    Home,
    Look,
    change_data,
    numbered,
    own_events,
    reserved,
)
from chronomemory.graph.errors import (
    ActionError,
    ApprovalRequired,
    AuditError,
    DuplicateEventError,
    ModelError,
    PathError,
)
from chronomemory.graph.models import (
    OPS,
    REVIEWED,
    Action,
    Approval,
    AuditRecord,
    Diagnostic,
    Edge,
    MemoryEvent,
    MemoryPath,
    Node,
    Profile,
    exact,
    moment_of,
    spellings,
)
from chronomemory.graph.view import hanging, replay_findings
from chronomemory.record import is_same


@runtime_checkable
class MemoryGraphStore(Protocol):
    """Profiles, nodes, edges and paths; every list is sorted by id."""

    @property
    def home(self) -> Home:
        """Where it is kept: stores, logs and sinks of one home are changed together."""

    def save_profile(self, profile: Profile) -> None: ...
    def save_node(self, node: Node) -> None: ...
    def save_edge(self, edge: Edge) -> None: ...
    def save_path(self, path: MemoryPath) -> None: ...
    def profile(self, profile_id: str) -> Profile | None: ...
    def node(self, node_id: str) -> Node | None: ...
    def edge(self, edge_id: str) -> Edge | None: ...
    def path(self, path_id: str) -> MemoryPath | None: ...
    def profiles(self) -> list[Profile]: ...
    def nodes(self, kind: str | None = None) -> list[Node]: ...
    def edges(
        self, *, source: str | None = None, target: str | None = None, kind: str | None = None
    ) -> list[Edge]: ...
    def paths(self) -> list[MemoryPath]: ...
    def export(self) -> dict[str, Any]:
        """Return all of it as one envelope."""


@runtime_checkable
class MemoryEventLog(Protocol):
    """Events in the order in which they were appended; none of them ever changes."""

    def append(self, event: MemoryEvent) -> MemoryEvent:
        """Append an event and return it, with the id that it was given if it had none."""

    def append_many(self, events: Iterable[MemoryEvent]) -> list[MemoryEvent]:
        """Append several, all of them or none."""

    def event(self, event_id: str) -> MemoryEvent | None: ...
    def events(self, kind: str | None = None) -> list[MemoryEvent]: ...
    def replay(self) -> GraphSnapshot:
        """Return the graph that the events lead to."""

    def diagnose(self) -> list[Diagnostic]:
        """Return the problems of the log; nothing is written."""


@runtime_checkable
class AuditSink(Protocol):
    """Stores audit records of applied and denied actions."""

    def record(self, entry: AuditRecord) -> AuditRecord:
        """Put something down, and return it with the id that it was given."""

    def records(self) -> Sequence[AuditRecord]: ...


def applied_id(action: Action) -> str:
    """Return the id of the event that says that an action was applied: an action is applied once."""
    return f"{APPLIED}{action.id}"


def put_into(draft: Draft, action: Action, *, ts: str, approved_by: str | None) -> None:
    """Add the effect of an action and its event to a draft, or raise ``ActionError``."""
    if draft.event(applied_id(action)) is not None:
        raise _wrong(action, "it was applied before")
    try:
        done = _done(draft, action, ts)
    except (ModelError, PathError) as error:
        raise _wrong(action, str(error)) from None
    draft.put(done)
    # A change of a path has an event of its own.
    data: dict[str, Any] = {"action": action.to_dict(), "approved_by": approved_by}
    data |= change_data(replace(done, paths=(), events=()))
    draft.events.append(MemoryEvent(applied_id(action), "action.applied", ts, data=data))


def _done(draft: Draft, action: Action, ts: str) -> Changes:
    payload, target = action.payload, action.target
    if action.op == "put_node":
        return Changes(nodes=(Node.from_dict({**payload, "id": _same_id(action)}),))
    if action.op == "put_edge":
        edge = Edge.from_dict({**payload, "id": _same_id(action)})
        for end in (edge.source, edge.target):
            if draft.node(end) is None:
                raise _wrong(action, f"there is no node {end!r} at its end")
        return Changes(edges=(edge,))
    if action.op == "delete_node":
        _takes(action, "edges")
        _node(draft, action, target)
        joined = draft.edges_of(target)
        if joined and payload.get("edges") is not True:
            advice = "payload {'edges': True} takes them too"
            raise _wrong(action, f"{len(joined)} edges are joined to {target!r}; {advice}")
        return Changes(gone_nodes=(target,), gone_edges=tuple(edge.id for edge in joined))
    if action.op == "delete_edge":
        _takes(action)
        if draft.edge(target) is None:
            raise _wrong(action, f"there is no edge {target!r}")
        return Changes(gone_edges=(target,))
    if action.op == "supersede":
        return _supersession(draft, action)
    if action.op == "compact_path":
        _takes(action, "summary_id")
        path = draft.path(target)
        if path is None:
            raise _wrong(action, f"there is no path {target!r}")
        summary_id = payload.get("summary_id")
        if summary_id is not None and not (isinstance(summary_id, str) and draft.node(summary_id)):
            raise _wrong(action, f"there is no node {summary_id!r} that sums it up")
        compacted, event = paths.compact(path, summary_id=summary_id, ts=ts)
        return Changes(paths=(compacted,), events=(event,))
    _takes(action, "phase")
    return Changes(nodes=(replace(_node(draft, action, target), phase=payload.get("phase")),))


def _supersession(draft: Draft, action: Action) -> Changes:
    _takes(action, "by")
    old, by = _node(draft, action, action.target), action.payload.get("by")
    if not isinstance(by, str) or by == old.id:
        raise _wrong(action, "payload.by must be the id of another node")
    _node(draft, action, by)
    edge = Edge(f"supersedes:{_plain(by)}:{_plain(old.id)}", by, old.id, "supersedes")
    known = draft.edge(edge.id)
    if known is not None and (known.source, known.target, known.kind) != (by, old.id, "supersedes"):
        raise _wrong(action, f"there is another edge {edge.id!r}")
    marked = replace(old, data={**old.data, "superseded_by": by})
    return Changes(nodes=(marked,), edges=(edge,))


def _plain(name: str) -> str:
    """Spell an id so that it can stand between colons."""
    return name.replace("%", "%25").replace(":", "%3A")


def _node(draft: Draft, action: Action, node_id: str) -> Node:
    node = draft.node(node_id)
    if node is None:
        raise _wrong(action, f"there is no node {node_id!r}")
    return node


def _same_id(action: Action) -> str:
    given = action.payload.get("id", action.target)
    if not isinstance(given, str) or action.target not in spellings(given):
        raise _wrong(action, "payload.id is another than its target")
    return action.target


def _takes(action: Action, *names: str) -> None:
    """Refuse payload fields without an effect: a reviewer would rely on them."""
    if strange := sorted(name for name in action.payload if name not in names):
        raise _wrong(action, f"payload has no {strange[0]!r}")


def _wrong(action: Action, reason: str) -> ActionError:
    return ActionError(f"action {action.id!r} ({action.op}): {reason}", action_id=action.id)


class PhaseMemoryRuntime:
    """A graph store, an event log and an audit sink; operations in ``review`` need an approval."""

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

    def needs_review(self, action: Action) -> bool:
        """Return whether an action needs an approval."""
        return action.requires_review or action.op in self._review

    def apply(self, actions: Iterable[Action], approvals: Iterable[Approval] = ()) -> list[MemoryEvent]:
        """Apply all actions or none, and return their events; reviewed ones need an approval."""
        # INVARIANT: what is checked, audited and applied is this one copy, whatever happens to the originals.
        given = [Action.from_dict(action.to_dict()) for action in exact(Action, actions, ActionError)]
        approved = exact(Approval, approvals, ActionError)
        reviewed = [
            (action, next((approval.reviewer for approval in approved if approval.covers(action)), None))
            for action in given
        ]
        ts = moment_of(self._clock())
        entry = AuditRecord("", ts, "applied", tuple(self._audit_entry(*pair) for pair in reviewed))
        denied = [action.id for action, by in reviewed if self.needs_review(action) and by is None]
        if denied:
            self._audit(replace(entry, outcome="denied", reason=f"not approved: {', '.join(denied)}"))
            raise ApprovalRequired(action_ids=denied)
        if not given:
            return []

        def work(look: Look) -> Changes:
            draft = Draft(look)
            for action, by in reviewed:
                put_into(draft, action, ts=ts, approved_by=by)
            return draft.changes()

        try:
            if self._shares_home(self.events) and self._shares_home(self.audit):
                return list(self._run(work, entry).events)
            work(self._look(self.graph.home.look()))
        except ChronoError as error:
            self._audit(replace(entry, outcome="refused", reason=str(error)))
            raise
        self._audit(replace(entry, outcome="applying"))
        try:
            events = list(self._run(work).events)
        except Exception as error:
            self._conclude(replace(entry, outcome="failed", reason=str(error)))
            raise
        self._conclude(entry)
        return events

    def _audit(self, entry: AuditRecord) -> None:
        """Write an audit record before any change, or say that there was none."""
        try:
            self.audit.record(entry)
        except Exception as error:
            raise AuditError(
                f"nothing was applied: the audit sink did not record the outcome {entry.outcome!r} ({error})"
            ) from error

    def _conclude(self, entry: AuditRecord) -> None:
        """Write how an announced change ended; a failure here must not look like a failed change."""
        try:
            self.audit.record(entry)
        except Exception as error:
            warnings.warn(
                f"the audit sink did not record the outcome {entry.outcome!r} ({error}); "
                "its last record of these actions says 'applying'",
                RuntimeWarning,
                stacklevel=3,
            )

    def _audit_entry(self, action: Action, approver: str | None) -> dict[str, Any]:
        return {
            "id": action.id,
            "op": action.op,
            "target": action.target,
            # The digest covers the payload: an erasure of any of these items takes it away.
            "other": action.payload.get("by", action.payload.get("summary_id")),
            "source": action.payload.get("source"),
            "end": action.payload.get("target"),
            "digest": action.digest,
            "needed_review": self.needs_review(action),
            "approved_by": approver,
        }

    def branch(self, path_id: str, parent_id: str | None = None) -> MemoryPath:
        """Begin a path, off another one if its id is given."""

        def step(look: Look, ts: str) -> paths.PathStep:
            if look.path(path_id) is not None:
                raise PathError(f"there is a path {path_id!r} already", path_id=path_id)
            parent = None if parent_id is None else _there(look, parent_id)
            return paths.branch(path_id, parent, ts=ts)

        return self._step(step)

    def record(self, path_id: str, events: Iterable[MemoryEvent]) -> MemoryPath:
        """Append events to an active path; an event that is in the log already is only added to the path."""
        listed = exact(MemoryEvent, events)
        given = [event if event.path_id else replace(event, path_id=path_id) for event in listed]

        def work(look: Look) -> Changes:
            path, ts = _there(look, path_id), moment_of(self._clock())
            paths.record(path, (), ts=ts)  # whether it takes events at all, before anything else is wrong
            new = own_events(event for event in given if not _is_there(look, event))
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

    def export(self) -> dict[str, Any]:
        """Return the graph as one envelope."""
        return self.graph.export()

    def diagnose(self) -> list[Diagnostic]:
        """Return what refers to nothing, where replay and store differ, and faults of the event log."""
        look = self._look(self.graph.home.look())
        log = [] if self._shares_home(self.events) else self.events.diagnose()
        return [*hanging(look), *replay_findings(look), *log]

    def _shares_home(self, other: MemoryEventLog | AuditSink) -> bool:
        return getattr(other, "home", None) is self.graph.home

    def _look(self, look: Look) -> Look:
        """Return a look at the graph and at the event log, which may be in a home of its own."""
        return look if self._shares_home(self.events) else _JoinedLook(look, self.events)

    def _run(self, work: Callable[[Look], Changes], *audits: AuditRecord) -> Changes:
        """Write to the graph and the event log: as one batch of their home, else the event log first."""
        home = self.graph.home
        if self._shares_home(self.events):
            return home.run(lambda look: replace(work(look), audits=audits))
        done: list[Changes] = []

        def write(look: Look) -> Changes:
            if not done:  # a home may ask again, and events are appended once
                changes = work(self._look(look))
                done.append(replace(changes, events=tuple(self.events.append_many(changes.events))))
            return replace(done[0], events=())

        home.run(write)
        return done[0]


class _JoinedLook(Look):
    """A look at a graph beside an event log of another home."""

    def __init__(self, look: Look, events: MemoryEventLog) -> None:
        self._look = look
        self._log = {event.id: event for event in events.events()}
        self.one, self.every = look.one, look.every  # type: ignore[method-assign]
        self.nodes, self.edges = look.nodes, look.edges  # type: ignore[method-assign]
        self.audits, self.audit_count = look.audits, look.audit_count  # type: ignore[method-assign]

    def event(self, event_id: str) -> MemoryEvent | None:
        return self._log.get(event_id)

    def events(self, kind: str | None = None) -> list[MemoryEvent]:
        """Return those of both homes; changes are ordered by their times."""
        both = merge(self._look.events(), self._log.values(), key=lambda one: reserved(one) and one.ts)
        return [event for event in both if kind in (None, event.kind)]

    def event_count(self) -> int:
        return len(self._log)


def _is_there(look: Look, event: MemoryEvent) -> bool:
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
