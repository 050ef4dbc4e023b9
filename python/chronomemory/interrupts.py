"""Ends a command quietly that is interrupted while it is still being loaded; other programs keep Ctrl-C."""

from __future__ import annotations

import os
import signal
import sys
import threading
from itertools import pairwise
from pathlib import Path
from types import FrameType

INTERRUPTED = 130
_COMMAND = "chronomemory"
#: The second is that of the package, by which installers that run a package look for a command.
_SCRIPTS = frozenset({_COMMAND, "chronomemory-rs"})


def _is_our_command() -> bool:
    """Say whether this process is our command, by either of its names."""
    name = sys.argv[0] if sys.argv else ""
    if Path(name).stem in _SCRIPTS:
        return True
    return name == "-m" and ("-m", _COMMAND) in pairwise(sys.orig_argv)


def _end(number: int, frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)


def restore_interrupt() -> None:
    """Let an interrupt be an exception again: from here on there may be something to tidy up."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


if (
    _is_our_command()
    and threading.current_thread() is threading.main_thread()
    and signal.getsignal(signal.SIGINT) is signal.default_int_handler
):
    signal.signal(signal.SIGINT, _end)
