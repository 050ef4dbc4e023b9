"""The command line: ``app`` lists the commands, ``session`` opens the store, ``output`` renders."""

from __future__ import annotations

from chronomemory.cli.app import app, main

__all__ = ["app", "main"]
