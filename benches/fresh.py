"""Measures time and memory in a process that did nothing before.

``python -m benches.fresh VERB PROJECT`` answers in JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

from chronomemory import ChronoStore

__all__ = ["measure"]

_ROOT = Path(__file__).parent.parent
#: Written to clear_refs: the peak of resident memory starts anew from its present size.
_FORGET_PEAK = "5"


def measure(verb: str, project: Path) -> dict[str, Any]:
    """Run a verb in a process of its own and return what it measured."""
    command = [sys.executable, "-m", "benches.fresh", verb, str(project)]
    told = subprocess.run(command, cwd=_ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(told.stdout))


def _verify(project: Path) -> dict[str, Any]:
    began = perf_counter()
    report = ChronoStore(project).verify()
    seconds = perf_counter() - began
    assert report.valid
    assert report.fast_lines == report.events
    return {"seconds": seconds, "events": report.events}


def _open(project: Path) -> dict[str, Any]:
    before = _memory("VmRSS")
    began = perf_counter()
    with ChronoStore(project) as store:
        seconds = perf_counter() - began
        sizes = {"before": before, "resident": _memory("VmRSS"), "peak": _memory("VmHWM")}
        return {"seconds": seconds, "records": store.record_count(), **sizes}


def _compact(project: Path) -> dict[str, Any]:
    with ChronoStore(project) as store:
        records, resident = store.record_count(), _memory("VmRSS")
        Path("/proc/self/clear_refs").write_text(_FORGET_PEAK)
        began = perf_counter()
        store.compact()
        seconds = perf_counter() - began
        peak = _memory("VmHWM")
        assert store.record_count() == records
    assert ChronoStore(project).verify().valid
    return {"seconds": seconds, "resident": resident, "peak": peak}


def _memory(name: str) -> int:
    """Return a size from the kernel's books on this process, in bytes."""
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    verbs = {"verify": _verify, "open": _open, "compact": _compact}
    print(json.dumps(verbs[sys.argv[1]](Path(sys.argv[2]))))
