"""NumPy, loaded when the first of its names is used: who reads a record by its id does not wait for it."""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    found = getattr(importlib.import_module("numpy"), name)
    # The next time it is found here.
    globals()[name] = found
    return found
