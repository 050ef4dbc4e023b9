"""The command line: ``app`` lists the commands, ``session`` opens the store, ``output`` renders."""

from __future__ import annotations

from chronomemory.__main__ import main
from chronomemory.cli.app import app

__all__ = ["app", "main"]
