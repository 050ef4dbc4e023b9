"""Context packs under the module name that other tools import."""

from chronomemory.compat.context_pack import *  # noqa: F403
from chronomemory.compat.context_pack import __all__ as __all__
