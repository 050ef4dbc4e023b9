"""What does ``python -m chronomemory`` do? The same as the command ``chronomemory``."""

from __future__ import annotations

from chronomemory.cli import main

if __name__ == "__main__":
    main()
