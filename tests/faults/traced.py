"""Makes one system call of a running writer fail, or be its last.

A child is forked, warmed up and stopped; strace attaches to it, so that only the writer's own calls are
counted and nothing of starting an interpreter is. Then the child performs a plan, goes on after every
failure and reports each outcome, by a system call that is never tampered with.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import harness
from chronomemory import ChronoStore
from chronomemory.errors import ChronoError
from workload import Action, perform

PR_SET_PTRACER = 0x59616D61
ANYONE = ctypes.c_ulong(-1)
#: The child writes this much longer than any run takes; a hang is a finding.
PATIENCE_SECONDS = 60


@dataclass(frozen=True)
class Fault:
    """Which call fails and how: an errno by name, or SIGKILL."""

    calls: str
    error: str
    number: int

    def __str__(self) -> str:
        return f"{self.error} at {self.calls.replace('?', '').split(',')[0]} number {self.number}"

    def spelled(self) -> list[str]:
        """What strace is told."""
        error, _, undo = self.error.partition(" without ")
        how = f"signal={error}" if error.startswith("SIG") else f"error={error}"
        rules = [f"inject={self.calls}:{how}:when={self.number}"]
        # A write that failed is undone by truncating: that may fail too.
        return rules + ([f"inject={undo}:error={error}"] if undo else [])


@dataclass
class Run:
    """What a traced writer did."""

    told: list[dict[str, Any]] = field(default_factory=list)
    trace: str = ""
    hung: bool = False

    @property
    def injected(self) -> list[str]:
        """The calls that were tampered with, as strace shows them."""
        lines = self.trace.splitlines()
        if any("+++ killed by SIGKILL +++" in line for line in lines):
            return lines[-3:]
        return [line for line in lines if "(INJECTED)" in line]

    def met(self, calls: str) -> bool:
        """Whether one of these calls was tampered with, or was the writer's last."""
        names = "|".join(calls.replace("?", "").split(","))
        return any(re.search(rf"\b({names})\(|killed by SIGKILL", line) for line in self.injected)

    def lost_the_log(self) -> bool:
        """Whether a sync of the log failed, or undoing a write to it: nobody knows then what is on disk."""
        pattern = r"(fsync|fdatasync|ftruncate)\(\d+<[^>]*/p/\.chronomemory/events\.wal>"
        return any(re.search(pattern, line) for line in self.injected)


def need_strace() -> None:
    """Find out whether calls can be tampered with here."""
    if sys.platform != "linux" or not shutil.which("strace"):
        raise harness.Skipped("strace is not installed")
    tried = subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        raise harness.Skipped(f"strace may not trace here: {tried.stderr.strip()}")


def attempt(tell: int, name: str, act: Any) -> None:
    """Do something and report how it ended; an error that a caller could not catch is a finding."""
    told: dict[str, Any] = {"name": name, "ok": True}
    try:
        act()
    except OSError as error:
        told = {"name": name, "ok": False, "kind": type(error).__name__, "errno": error.errno, "clean": True}
    except ChronoError as error:
        told = {"name": name, "ok": False, "kind": type(error).__name__, "clean": True}
    except BaseException as error:
        told = {"name": name, "ok": False, "kind": type(error).__name__, "clean": False, "text": str(error)}
    os.writev(tell, [json.dumps(told).encode() + b"\n"])


def write_on(project: Path, actions: list[Action], durability: str, tell: int) -> None:
    """Perform a plan whatever fails, then close, open again and write once more."""
    warnings.simplefilter("ignore", RuntimeWarning)
    store = ChronoStore(project, durability=durability)
    attempt(tell, "open", store.open)
    for action in actions:
        attempt(tell, action.name, lambda action=action: perform(store, action))
    attempt(tell, "verify", store.verify)
    attempt(tell, "close", store.close)
    again = ChronoStore(project, durability=durability)
    attempt(tell, "open again", again.open)
    attempt(tell, "last", lambda: perform(again, Action("last", "put", ("last",))))
    attempt(tell, "close again", again.close)


def fork_writer(project: Path, actions: list[Action], durability: str) -> tuple[int, int, int]:
    """Fork a writer that waits for a byte; gives its pid, where to send it and where to listen."""
    waiting, go = os.pipe()
    reading, tell = os.pipe()
    pid = os.fork()
    if pid:
        os.close(waiting)
        os.close(tell)
        return pid, go, reading
    try:
        os.close(go)
        os.close(reading)
        # Where only ancestors may trace, the child invites anyone.
        ctypes.CDLL(None).prctl(PR_SET_PTRACER, ANYONE, 0, 0, 0)
        os.read(waiting, 1)
        write_on(project, actions, durability, tell)
    finally:
        os._exit(0)


def attach(pid: int, fault: Fault | None, calls: str, log: Path) -> subprocess.Popen[str]:
    """Let strace watch a process; returns once it does."""
    rules = [f"trace={calls},ftruncate", *(fault.spelled() if fault else [])]
    command = ["strace", "-f", "-y", "-p", str(pid), "-o", str(log)]
    command += [word for rule in rules for word in ("-e", rule)]
    tracer = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert tracer.stderr is not None
    said = tracer.stderr.readline()
    if "attached" not in said:
        tracer.wait()
        raise harness.Skipped(f"strace may not attach to a process here: {said.strip()}")
    return tracer


def trace(project: Path, actions: list[Action], durability: str, calls: str, fault: Fault | None) -> Run:
    """Run a writer under strace with one fault, or none."""
    log = project / "trace"
    pid, go, reading = fork_writer(project / "p", actions, durability)
    run = Run()
    try:
        tracer = attach(pid, fault, calls, log)
        os.write(go, b"g")
        try:
            tracer.communicate(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            run.hung = True
    finally:
        if run.hung or not log.exists():
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(go)
        with os.fdopen(reading, "rb") as heard:
            run.told = [json.loads(line) for line in heard.read().splitlines()]
    run.trace = log.read_text(errors="replace")
    return run
