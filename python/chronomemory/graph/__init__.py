"""A graph workspace: profiles, nodes, edges, events and paths in one folder, changed behind a review gate."""

from __future__ import annotations

from chronomemory.graph.changes import GraphSnapshot
from chronomemory.graph.envelope import Imported, KeyMap
from chronomemory.graph.errors import (
    ActionError,
    ApprovalRequired,
    AuditError,
    DuplicateEventError,
    EnvelopeError,
    GraphError,
    ModelError,
    PathError,
    UnknownNode,
    WorkspaceError,
)
from chronomemory.graph.log_home import MemoryHome
from chronomemory.graph.models import (
    Action,
    ActivationPlan,
    Approval,
    AuditRecord,
    Diagnostic,
    Edge,
    MemoryEvent,
    MemoryPath,
    Node,
    Profile,
)
from chronomemory.graph.paths import abandon, branch, compact, merge, record
from chronomemory.graph.runtime import AuditSink, MemoryEventLog, MemoryGraphStore, PhaseMemoryRuntime
from chronomemory.graph.stores import (
    FileBackedMemoryGraphStore,
    InMemoryAuditSink,
    InMemoryEventLog,
    InMemoryGraphStore,
    JsonlAuditSink,
    JsonlMemoryEventLog,
    Route,
    Subgraph,
)
from chronomemory.graph.workspace import Rebuilt, Workspace

__all__ = [
    "Action",
    "ActionError",
    "ActivationPlan",
    "Approval",
    "ApprovalRequired",
    "AuditError",
    "AuditRecord",
    "AuditSink",
    "Diagnostic",
    "DuplicateEventError",
    "Edge",
    "EnvelopeError",
    "FileBackedMemoryGraphStore",
    "GraphError",
    "GraphSnapshot",
    "Imported",
    "InMemoryAuditSink",
    "InMemoryEventLog",
    "InMemoryGraphStore",
    "JsonlAuditSink",
    "JsonlMemoryEventLog",
    "KeyMap",
    "MemoryEvent",
    "MemoryEventLog",
    "MemoryGraphStore",
    "MemoryHome",
    "MemoryPath",
    "ModelError",
    "Node",
    "PathError",
    "PhaseMemoryRuntime",
    "Profile",
    "Rebuilt",
    "Route",
    "Subgraph",
    "UnknownNode",
    "Workspace",
    "WorkspaceError",
    "abandon",
    "branch",
    "compact",
    "merge",
    "record",
]
