"""The command line: how a person at a terminal, or a script, talks to a store.

``app`` gathers the commands, each module beside it owns those of one noun, ``session`` opens the
store and turns errors into exit codes, ``output`` and ``tables`` own how an answer looks.
"""

from __future__ import annotations

from chronomemory.cli.app import app, main

__all__ = ["app", "main"]
