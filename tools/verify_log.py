"""Runs the verifier from the source tree: ``python tools/verify_log.py PATH``, with nothing installed."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "python" / "chronomemory" / "verify_log"
sys.path.insert(0, str(FOLDER))
runpy.run_path(str(FOLDER / "verify_log.py"), run_name="__main__")
