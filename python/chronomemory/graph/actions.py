"""What each action does to a graph: it is checked against what is there, and put into a draft."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from chronomemory.graph import paths
from chronomemory.graph.changes import Changes, Draft
from chronomemory.graph.errors import ActionError, ModelError, PathError
from chronomemory.graph.ids import spellings
from chronomemory.graph.models import Action, Edge, MemoryEvent, MemoryPath, Node
from chronomemory.graph.replaying import APPLIED, told

__all__ = ["applied_id", "put_into"]


def applied_id(action: Action) -> str:
    """Return the id of the event that says that an action was applied: an action is applied once."""
    return f"{APPLIED}{action.id}"


def put_into(draft: Draft, action: Action, *, ts: str, approved_by: str | None) -> None:
    """Put what an action does into a draft, with the event that says so; or say why it cannot be."""
    if draft.event(applied_id(action)) is not None:
        raise _wrong(action, "it was applied before")
    try:
        done = _done(draft, action, ts)
    except (ModelError, PathError) as error:
        raise _wrong(action, str(error)) from None
    put: tuple[Node | Edge | MemoryPath, ...] = (*done.nodes, *done.edges, *done.paths)
    for item in put:
        draft.put(item)
    for name in done.gone_nodes:
        draft.drop_node(name)
    for name in done.gone_edges:
        draft.drop_edge(name)
    draft.events += done.events
    # What happens to a path is told by an event of its own.
    said = told(replace(done, paths=(), events=()))
    data: dict[str, Any] = {"action": action.to_dict(), "approved_by": approved_by, **said}
    draft.events.append(MemoryEvent(applied_id(action), "action.applied", ts, data=data))


def _done(draft: Draft, action: Action, ts: str) -> Changes:
    payload, target = action.payload, action.target
    if action.op == "put_node":
        return Changes(nodes=(Node.from_dict({**payload, "id": _same_id(action)}),))
    if action.op == "put_edge":
        return Changes(edges=(_edge(draft, action),))
    if action.op == "delete_node":
        return _deletion(draft, action)
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


def _edge(draft: Draft, action: Action) -> Edge:
    payload = dict(action.payload)
    edge = Edge.from_dict({**payload, "id": _same_id(action)})
    for end in (edge.source, edge.target):
        if draft.node(end) is None:
            raise _wrong(action, f"there is no node {end!r} at its end")
    return edge


def _deletion(draft: Draft, action: Action) -> Changes:
    _takes(action, "edges")
    _node(draft, action, action.target)
    joined = draft.edges_of(action.target)
    if joined and action.payload.get("edges") is not True:
        raise _wrong(
            action,
            f"{len(joined)} edges are joined to {action.target!r}; payload {{'edges': True}} takes them too",
        )
    return Changes(gone_nodes=(action.target,), gone_edges=tuple(edge.id for edge in joined))


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
    """Refuse what an action says beyond what it does: a reviewer would believe that it counts."""
    if strange := sorted(name for name in action.payload if name not in names):
        raise _wrong(action, f"payload has no {strange[0]!r}")


def _wrong(action: Action, reason: str) -> ActionError:
    return ActionError(f"action {action.id!r} ({action.op}): {reason}", action_id=action.id)
