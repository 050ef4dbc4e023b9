"""Names of ``rich``, imported on first use, so that JSON output and the MCP server need not wait."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    pass

_HOMES = {
    "rich.console": ("Console", "RenderableType"),
    "rich.progress": ("BarColumn", "Progress", "TextColumn", "TimeElapsedColumn"),
    "rich.text": ("Text",),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            found = getattr(importlib.import_module(home), name)
            # The next time it is found here.
            globals()[name] = found
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
