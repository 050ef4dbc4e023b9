"""The bridge under the module name that other tools import."""

from chronomemory.compat.bridge import *  # noqa: F403
from chronomemory.compat.bridge import __all__ as __all__
