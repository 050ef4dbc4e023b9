"""Metrics and skills under the module name that other tools import."""

from chronomemory.compat.metrics import *  # noqa: F403
from chronomemory.compat.metrics import __all__ as __all__
