"""A module that the first call loads that needs it: who only asks does not wait for what only writes."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["Later"]


class Later:
    """Stands for a module of this folder until one of its names is used."""

    def __init__(self, name: str) -> None:
        self._name = f"chronomemory.mcp.{name}"

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._name), name)
