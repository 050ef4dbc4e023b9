"""A graph workspace: profiles, nodes, edges, events and paths in one folder, changed behind a review gate."""

from __future__ import annotations

from chronomemory.graph.changes import GraphSnapshot as GraphSnapshot
from chronomemory.graph.envelope import Imported as Imported
from chronomemory.graph.envelope import KeyMap as KeyMap
from chronomemory.graph.errors import ActionError as ActionError
from chronomemory.graph.errors import ApprovalRequired as ApprovalRequired
from chronomemory.graph.errors import AuditError as AuditError
from chronomemory.graph.errors import DuplicateEventError as DuplicateEventError
from chronomemory.graph.errors import EnvelopeError as EnvelopeError
from chronomemory.graph.errors import GraphError as GraphError
from chronomemory.graph.errors import ModelError as ModelError
from chronomemory.graph.errors import PathError as PathError
from chronomemory.graph.errors import UnknownNode as UnknownNode
from chronomemory.graph.errors import WorkspaceError as WorkspaceError
from chronomemory.graph.log_home import MemoryHome as MemoryHome
from chronomemory.graph.models import Action as Action
from chronomemory.graph.models import ActivationPlan as ActivationPlan
from chronomemory.graph.models import Approval as Approval
from chronomemory.graph.models import AuditRecord as AuditRecord
from chronomemory.graph.models import Diagnostic as Diagnostic
from chronomemory.graph.models import Edge as Edge
from chronomemory.graph.models import MemoryEvent as MemoryEvent
from chronomemory.graph.models import MemoryPath as MemoryPath
from chronomemory.graph.models import Node as Node
from chronomemory.graph.models import Profile as Profile
from chronomemory.graph.paths import abandon as abandon
from chronomemory.graph.paths import branch as branch
from chronomemory.graph.paths import compact as compact
from chronomemory.graph.paths import merge as merge
from chronomemory.graph.paths import record as record
from chronomemory.graph.runtime import AuditSink as AuditSink
from chronomemory.graph.runtime import MemoryEventLog as MemoryEventLog
from chronomemory.graph.runtime import MemoryGraphStore as MemoryGraphStore
from chronomemory.graph.runtime import PhaseMemoryRuntime as PhaseMemoryRuntime
from chronomemory.graph.stores import FileBackedMemoryGraphStore as FileBackedMemoryGraphStore
from chronomemory.graph.stores import InMemoryAuditSink as InMemoryAuditSink
from chronomemory.graph.stores import InMemoryEventLog as InMemoryEventLog
from chronomemory.graph.stores import InMemoryGraphStore as InMemoryGraphStore
from chronomemory.graph.stores import JsonlAuditSink as JsonlAuditSink
from chronomemory.graph.stores import JsonlMemoryEventLog as JsonlMemoryEventLog
from chronomemory.graph.stores import Route as Route
from chronomemory.graph.stores import Subgraph as Subgraph
from chronomemory.graph.workspace import Rebuilt as Rebuilt
from chronomemory.graph.workspace import Workspace as Workspace
