"""The eighteen questions under the module name that other tools import."""

from chronomemory.compat.query import *  # noqa: F403
from chronomemory.compat.query import __all__ as __all__
