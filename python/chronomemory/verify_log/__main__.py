"""Runs ``verify_log.py`` as a script, for ``python -m chronomemory.verify_log PATH``."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    here = Path(__file__).parent
    # As for a script: what lies beside it can be imported.
    sys.path.insert(0, str(here))
    runpy.run_path(str(here / "verify_log.py"), run_name="__main__")
