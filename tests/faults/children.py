"""Sets a child to work, listens to it, and kills it.

A child reports each acknowledgement through a pipe, so that the parent knows what it was promised whenever
the child ends. The parent has no threads, and a child never returns.
"""

from __future__ import annotations

import ctypes
import os
import random
import select
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO

NUMBER = struct.Struct("<i")
PR_SET_PDEATHSIG = 1
#: What a child reports when an action failed: nothing may fail here.
FAILED = -1

Tell = Callable[[int], None]


@dataclass
class Child:
    """A child at work."""

    pid: int
    pipe: int
    #: What went wrong in it.
    notes: IO[str] = field(repr=False)
    said: bytes = b""
    was_killed: bool = False

    def listen(self, seconds: float) -> bool:
        """Take in what the child reported; False once it is gone."""
        if not select.select([self.pipe], [], [], seconds)[0]:
            return True
        heard = os.read(self.pipe, 65536)
        self.said += heard
        return bool(heard)

    def told(self) -> int:
        return len(self.said) // NUMBER.size

    def fault(self) -> str:
        """What went wrong in a child that has ended, in one line; empty if nothing did."""
        self.notes.seek(0)
        return " <- ".join(line.strip() for line in self.notes.read().splitlines()[:-6:-1])

    def end(self) -> list[int]:
        """Wait until the child is gone, and return what it acknowledged."""
        while self.listen(60):
            pass
        os.close(self.pipe)
        _, status = os.waitpid(self.pid, 0)
        self.was_killed = os.WIFSIGNALED(status)
        whole = self.told() * NUMBER.size
        return [number for (number,) in NUMBER.iter_unpack(self.said[:whole])]

    def kill(self) -> list[int]:
        """Kill the child now, and return what it acknowledged."""
        os.kill(self.pid, signal.SIGKILL)
        return self.end()

    def kill_after(self, acknowledgements: int, dice: random.Random) -> list[int]:
        """Kill the child a random moment after so many acknowledgements, and return what it acknowledged."""
        deadline = time.monotonic() + 60
        while self.told() < acknowledgements and time.monotonic() < deadline and self.listen(1):
            pass
        time.sleep(dice.choice([0, dice.random() * 0.001, dice.random() * 0.02]))
        return self.kill()


def die_with_parent() -> None:
    """Let the kernel kill this process when its parent is gone: one that writes for ever fills a disk."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def start(work: Callable[[Tell], None]) -> Child:
    """Fork a child that does some work and tells the number of each action once it was acknowledged."""
    reading, writing = os.pipe()
    notes = tempfile.TemporaryFile("w+")  # noqa: SIM115 (it lives as long as the child)
    pid = os.fork()
    if pid:
        os.close(writing)
        return Child(pid, reading, notes)

    def tell(number: int) -> None:
        os.write(writing, NUMBER.pack(number))

    code = 1
    try:
        die_with_parent()
        os.close(reading)
        work(tell)
        code = 0
    except BaseException:
        traceback.print_exc(file=notes)
        notes.flush()
        tell(FAILED)
    finally:
        os._exit(code)
