"""Runs the command ``chronomemory`` as ``python -m chronomemory``."""

from __future__ import annotations

from chronomemory.cli import main

if __name__ == "__main__":
    main()
