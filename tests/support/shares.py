"""How much of a long search runs: a share in `make test`, all of it in `make soak`."""

from __future__ import annotations

import os

#: `make soak` sets this variable; then every search runs in full.
VARIABLE = "CHRONOMEMORY_THOROUGH"
IS_THOROUGH = bool(os.environ.get(VARIABLE))


def share(usual: int, thorough: int) -> int:
    """Return how many examples to try: `usual` in `make test`, `thorough` in `make soak`.

    >>> share(10, 500) in (10, 500)
    True
    """
    return thorough if IS_THOROUGH else usual
