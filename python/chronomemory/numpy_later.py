"""NumPy, loaded when the first of its names is used: who reads a record by its id does not wait for it."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

__all__ = ["np", "npt"]

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
else:
    # The types are named in annotations alone, which are never evaluated.
    np = npt = sys.modules[__name__]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):  # asked by the import system of every module
        raise AttributeError(name)
    found = getattr(importlib.import_module("numpy"), name)
    # The next time it is found here.
    globals()[name] = found
    return found
