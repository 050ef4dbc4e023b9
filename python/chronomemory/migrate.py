"""The migration under the module name that other tools import."""

from chronomemory.compat.migrate import *  # noqa: F403
from chronomemory.compat.migrate import __all__ as __all__
from chronomemory.compat.migrate import _governance_to_esdb_status as _governance_to_esdb_status
