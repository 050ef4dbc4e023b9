"""Entry point of ``python -m chronomemory.verify_log PATH``."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    folder = Path(__file__).parent
    sys.path.insert(0, str(folder))  # the scripts import each other by their plain names
    runpy.run_path(str(folder / "verify_log.py"), run_name="__main__")
