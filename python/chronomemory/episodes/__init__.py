"""Episodes of many users, what is consolidated from them, and the facts with all that led to them."""

from __future__ import annotations

from chronomemory.episodes.errors import ConsolidationRuleError as ConsolidationRuleError
from chronomemory.episodes.errors import FactConflictError as FactConflictError
from chronomemory.episodes.errors import MemoryScopeError as MemoryScopeError
from chronomemory.episodes.errors import MigrationNotSupported as MigrationNotSupported
from chronomemory.episodes.errors import StoreError as StoreError
from chronomemory.episodes.facts import Facts as Facts
from chronomemory.episodes.memory import Episodes as Episodes
from chronomemory.episodes.models import AddDelta as AddDelta
from chronomemory.episodes.models import ConsolidationRule as ConsolidationRule
from chronomemory.episodes.models import DeleteDelta as DeleteDelta
from chronomemory.episodes.models import Episode as Episode
from chronomemory.episodes.models import Fact as Fact
from chronomemory.episodes.models import FactPattern as FactPattern
from chronomemory.episodes.models import FactStore as FactStore
from chronomemory.episodes.models import MemoryDelta as MemoryDelta
from chronomemory.episodes.models import MemoryStore as MemoryStore
from chronomemory.episodes.models import MigrationPlan as MigrationPlan
from chronomemory.episodes.models import NoopDelta as NoopDelta
from chronomemory.episodes.models import StoreHealth as StoreHealth
from chronomemory.episodes.models import UpdateDelta as UpdateDelta
from chronomemory.episodes.runner import ConsolidationRunner as ConsolidationRunner
from chronomemory.episodes.runner import RuleRun as RuleRun
from chronomemory.episodes.runner import RunReport as RunReport
from chronomemory.episodes.stores import ChronoFactStore as ChronoFactStore
from chronomemory.episodes.stores import ChronoMemoryStore as ChronoMemoryStore
from chronomemory.episodes.stores import ChronoSession as ChronoSession
from chronomemory.episodes.stores import open_memory_store as open_memory_store
