"""What can go wrong with a graph workspace, and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence

from chronomemory.errors import ChronoError


class GraphError(ChronoError):
    """The root of these."""

    usual_recovery = "Correct what the message names; nothing was written."


class ModelError(GraphError, ValueError):
    """A profile, node, edge, path, event, plan or action that cannot be; ``field`` names the part."""

    usual_recovery = "Correct the field that the message names."

    field: str = ""


class DuplicateEventError(GraphError, ValueError):
    """An event with this id was appended before; nothing was written."""

    usual_recovery = "Give the event another id: what was appended never changes."
    template = "there is an event {0.event_id!r} already"

    event_id: str = ""


class PathError(GraphError, ValueError):
    """A path cannot be branched, recorded on, merged, abandoned or compacted so; nothing was written."""

    usual_recovery = "Look at the path: only an active one takes events, and it ends only once."

    path_id: str = ""


class ActionError(GraphError, ValueError):
    """An action that cannot be applied; nothing of its batch was written."""

    usual_recovery = "Correct the action that the message names, and apply the whole batch again."

    action_id: str = ""


class ApprovalRequired(GraphError):
    """Actions need a review and have no approval; nothing was applied, and the denial is on record."""

    usual_recovery = (
        "Let somebody review the actions, and pass Approval.of(action, reviewer) for each of them."
    )

    def __init__(self, message: str = "", *, action_ids: Sequence[str] = (), recovery: str = "") -> None:
        listed = ", ".join(map(repr, action_ids))
        super().__init__(message or f"not approved: {listed}", recovery=recovery)
        self.action_ids = tuple(action_ids)


class AuditError(GraphError):
    """The audit sink did not take a record; nothing was applied, since that would be on no record."""

    usual_recovery = "Make the audit sink writable, and apply the actions again."


class EnvelopeError(GraphError, ValueError):
    """An envelope or fixture that cannot be imported; nothing was written. ``path`` is the place in it."""

    usual_recovery = (
        "Correct the place that the message names, or give a key map that says what it is called."
    )

    path: str = ""


class WorkspaceError(GraphError):
    """A folder that is no workspace, or one of other names."""

    usual_recovery = "Make one with Workspace.create(folder), and give the names that it was made with."


class UnknownNode(GraphError, KeyError):
    """There is no such node, or it was not there at the moment asked for."""

    usual_recovery = "Check the id: nodes() lists what there is."
    template = "there is no node {0.node_id!r}"

    node_id: str = ""

    # A KeyError would show its message as the repr of a key.
    __str__ = Exception.__str__
