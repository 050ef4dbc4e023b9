"""Eighteen questions over any store or view; those about relations need a dependency graph."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from chronomemory.compat.context_pack import ContextPackCompiler
from chronomemory.compat.metrics import find_skills
from chronomemory.deps import DepGraph
from chronomemory.record import INFRASTRUCTURE_KINDS, RAG_CONFIDENCE, ChronoRecord
from chronomemory.types import Journal, Readable

__all__ = [
    "has_this_work_been_done",
    "is_this_action_duplicate",
    "what_assumptions_underlie",
    "what_can_agent_do_next",
    "what_changed_since",
    "what_confidence_collapsed",
    "what_conflicts_with",
    "what_context_pack_minimizes_tokens",
    "what_context_packs_are_stale",
    "what_depends_on",
    "what_generated_artifacts_depend_on",
    "what_is_known",
    "what_requires_reverification",
    "what_should_agent_not_do",
    "what_skills_apply",
    "what_state_delta_would_complete",
    "what_world_models_conflict",
    "why_do_we_believe",
]

_SMALL_PACK_TOKENS = 2048
_MADE_OF = ("generated_from", "derived_from")


def what_is_known(store: Readable, kind: str | None = None) -> list[ChronoRecord]:
    """Return what is active and believed; bookkeeping kinds only when asked for by name."""
    known = store.query(kind=kind, rag_filter=True)
    return known if kind else [r for r in known if r.kind not in INFRASTRUCTURE_KINDS]


def what_conflicts_with(
    store: Readable, record_id: str, dep_graph: DepGraph | None = None
) -> list[ChronoRecord]:
    """Return the records that contradict this one, in either direction."""
    return _records(store, dep_graph.what_contradicts(record_id)) if dep_graph else []


def what_depends_on(store: Readable, record_id: str, dep_graph: DepGraph | None = None) -> list[ChronoRecord]:
    """Return the records that depend directly on this one."""
    return _records(store, dep_graph.what_depends_on(record_id)) if dep_graph else []


def what_changed_since(store: Journal, seq: int) -> list[ChronoRecord]:
    """Return the plain records upserted at ``seq`` or later, as they are now, without deletions."""
    changed = store.changed_since(seq)
    found = [store.get(name) for name in changed]
    return [record for record in found if record is not None]


def what_requires_reverification(store: Readable) -> list[ChronoRecord]:
    """Return what a rollback left as a hypothesis."""
    return store.query(status="hypothesis")


def has_this_work_been_done(store: Readable, label: str) -> bool:
    """Say whether an active decision or fact has this text in its label, whatever the case."""
    sought = label.strip().casefold()
    return bool(sought) and any(
        sought in record.label.casefold()
        for kind in ("decision", "fact")
        for record in store.query(kind=kind)
    )


def why_do_we_believe(store: Readable, record_id: str) -> list[ChronoRecord]:
    """Return the record, then those its evidence names."""
    record = store.get(record_id)
    if record is None:
        return []
    names = (name for name in record.evidence if isinstance(name, str))
    named = dict.fromkeys(name for name in names if name != record_id)
    found = [store.get(name) for name in named if isinstance(name, str) and name]
    return [record, *(source for source in found if source is not None)]


def what_context_packs_are_stale(store: Readable) -> list[ChronoRecord]:
    """Return the context packs that name a record invalidated meanwhile."""
    fallen = {record.id for record in store.query(status="invalidated")}
    return [
        pack
        for pack in store.query(kind="context_pack")
        if not fallen.isdisjoint(_entry_ids(pack.data.get("entries")))
    ]


def what_world_models_conflict(store: Readable, dep_graph: DepGraph | None = None) -> list[ChronoRecord]:
    """Return the world states that contradict another world state."""
    if dep_graph is None:
        return []
    states = store.query(kind="world_state")
    ids = {state.id for state in states}
    return [s for s in states if not ids.isdisjoint(dep_graph.what_contradicts(s.id))]


def what_assumptions_underlie(
    store: Readable, plan_id: str, dep_graph: DepGraph | None = None
) -> list[ChronoRecord]:
    """Return all that a plan assumes, directly or not; without a graph just the plan."""
    if dep_graph is None:
        return _records(store, [plan_id])
    return _records(store, sorted(dep_graph.transitive_successors(plan_id, ("assumes",))))


def what_generated_artifacts_depend_on(
    store: Readable, fact_id: str, dep_graph: DepGraph | None = None
) -> list[ChronoRecord]:
    """Return the artifacts that were made of this fact, directly or not."""
    if dep_graph is None:
        return []
    made = _records(store, sorted(dep_graph.transitive_predecessors(fact_id, _MADE_OF)))
    return [record for record in made if record.kind == "artifact"]


def what_confidence_collapsed(store: Readable, threshold: float = RAG_CONFIDENCE) -> list[ChronoRecord]:
    """Return the hypotheses that are believed less than the threshold."""
    return [r for r in store.query(status="hypothesis") if r.confidence < threshold]


def what_can_agent_do_next(
    store: Readable, goal_id: str, dep_graph: DepGraph | None = None
) -> list[ChronoRecord]:
    """Return the actions whose ``depends_on`` targets are all active, or all actions without a graph."""
    actions = store.query(kind="action")
    if dep_graph is None:
        return actions
    return [
        action
        for action in actions
        if all(
            (target := store.get(name)) is not None and target.status == "active"
            for name in dep_graph.successors(action.id, ("depends_on",))
        )
    ]


def what_should_agent_not_do(store: Readable) -> list[ChronoRecord]:
    """Return the stop conditions."""
    return store.query(kind="stop_condition")


def what_skills_apply(store: Readable, label: str) -> list[ChronoRecord]:
    """Return the skills that one of the label's words activates."""
    return find_skills(store, label)


def what_state_delta_would_complete(
    store: Readable, goal_id: str, dep_graph: DepGraph | None = None
) -> list[ChronoRecord]:
    """Return the hypotheses that the goal leads to; without a graph all of them."""
    open_points = store.query(status="hypothesis")
    if dep_graph is None:
        return open_points
    reached = dep_graph.transitive_successors(goal_id)
    return [record for record in open_points if record.id in reached]


def is_this_action_duplicate(store: Readable, label: str) -> bool:
    """Say whether doing this would repeat work that is written down as done."""
    return has_this_work_been_done(store, label)


def what_context_pack_minimizes_tokens(
    store: Readable, task_id: str, dep_graph: DepGraph | None = None
) -> list[ChronoRecord]:
    """Return the records of the best believed pack for a task that fits in 2,048 tokens."""
    pack = ContextPackCompiler(store, dep_graph).compile(task_id, "", _SMALL_PACK_TOKENS)
    return _records(store, [entry.record_id for entry in pack.entries])


def _records(store: Readable, ids: Iterable[str]) -> list[ChronoRecord]:
    found = (store.get(name) for name in ids)
    return [r for r in found if r is not None and r.status != "tombstone"]


def _entry_ids(entries: Any) -> set[str]:
    if not isinstance(entries, list):
        return set()
    named = (e.get("record_id") if isinstance(e, dict) else e for e in entries)
    return {name for name in named if isinstance(name, str)}
