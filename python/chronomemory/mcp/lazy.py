"""Modules of the server that are imported when the first call needs them."""

from __future__ import annotations

import importlib
from typing import Any

from chronomemory.errors import ChronoError

_PAGES_EXTRA = ("ruamel", "tomli", "watchfiles")


class LazyModule:
    """A module that is imported on first use; a missing extra is a ``ChronoError``."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(importlib.import_module(self._name), name)
        except ImportError as error:
            missing = error.name or getattr(error.__cause__, "name", None) or ""
            if missing.partition(".")[0] not in _PAGES_EXTRA:
                raise
            raise ChronoError(
                f"pages need the package {missing}, which is not installed",
                recovery='Install it with: pip install "chronomemory-rs[pages]", and start the server again.',
            ) from None
