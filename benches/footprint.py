"""Measures a record in memory and on disk, and a handle on a store that is open already.

``python -m benches.footprint [RECORDS ...]`` prints what it measured, on Linux. A record has a label of ten
words, one source of evidence and two fields of data: 280 to 290 bytes as canonical JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

from chronomemory import ChronoStore, Memory

from benches.text_search import texts

SIZES = [10_000, 100_000]
BLOCKS = 10_000
HANDLES = 1_000
_ROOT = Path(__file__).parent.parent


def records(count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        yield {
            "id": f"R-{number}",
            "label": f"Service number {number} answers within {number % 900} ms on host {number % 37}",
            "evidence": [f"run {number}"],
            "data": {"host": f"h{number % 37}", "ms": number % 900},
        }


def resident(of: str = "VmRSS") -> int:
    """Bytes of this process that are in memory; ``VmHWM`` is the most that there ever were."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(of))


def sizes(project: Path) -> dict[str, int]:
    """Bytes on disk, by the first name below the folder of the store."""
    found: dict[str, int] = {}
    folder = project / ".chronomemory"
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            first = path.relative_to(folder).parts[0]
            found[first] = found.get(first, 0) + path.stat().st_size
    return found


def opened(project: Path) -> dict[str, float]:
    """Open a store in this process, which did nothing before, and ask it."""
    before, wall, cpu = resident(), perf_counter(), process_time()
    with ChronoStore(project) as store:
        assert store.get("R-5") is not None
        told = {"wall": perf_counter() - wall, "cpu": process_time() - cpu}
        told |= {"bytes": resident() - before, "peak": resident("VmHWM") - before}
        assert store.search("service on host 7")
        told["searched"] = resident() - before
    return told


def measure(count: int, project: Path) -> None:
    with ChronoStore(project) as store:
        store.upsert_many(list(records(count)))
    show(count, project, "written")
    with ChronoStore(project) as store:
        store.compact()
    show(count, project, "compacted")
    with ChronoStore(project) as store:
        store.upsert({"id": "ONE-MORE"})
        store.compact()
    show(count, project, "one more record, compacted again")


def show(count: int, project: Path, when: str) -> None:
    on_disk = sizes(project)
    print(f"{count:,} records, {when}: {sum(on_disk.values()):,} bytes on disk")
    print("  ", ", ".join(f"{name} {size / count:.0f}" for name, size in on_disk.items()), "bytes a record")
    for _ in range(3):
        command = [sys.executable, "-m", "benches.footprint", "--open", str(project)]
        told = json.loads(subprocess.run(command, cwd=_ROOT, check=True, stdout=subprocess.PIPE).stdout)
        print(
            f"   opened in {told['wall']:.2f} s, {told['cpu']:.2f} s of a core; bytes a record in memory:",
            f"{told['bytes'] / count:.0f}, {told['peak'] / count:.0f} at most,",
            f"{told['searched'] / count:.0f} after a search by words",
        )


def blocks(count: int, project: Path) -> None:
    """Let an agent learn as many sentences, with the lexical embedder, and open them elsewhere."""
    with Memory(project) as memory:
        for text in texts(count, 8, 12, seed=3):
            memory.learn(text)
        memory.consolidate()
    on_disk = sizes(project)
    print(f"{count:,} blocks: {sum(on_disk.values()):,} bytes on disk")
    print("  ", ", ".join(f"{name} {size / count:.0f}" for name, size in on_disk.items()), "bytes a block")
    command = [sys.executable, "-m", "benches.footprint", "--recall", str(project)]
    for _ in range(3):
        told = json.loads(subprocess.run(command, cwd=_ROOT, check=True, stdout=subprocess.PIPE).stdout)
        print(
            f"   first recall after {told['wall']:.2f} s, {told['bytes'] / count:.0f} bytes a block in memory"
        )


def recalled(project: Path) -> dict[str, float]:
    """Recall in this process, which did nothing before."""
    learned = next(texts(BLOCKS, 8, 12, seed=3))
    before, wall = resident(), perf_counter()
    with Memory(project) as memory:
        assert memory.recall(learned)
        return {"wall": perf_counter() - wall, "bytes": resident() - before}


def entries(of: str) -> int:
    """How many threads (``task``) or file handles (``fd``) this process has."""
    return len(list(Path("/proc/self", of).iterdir()))


def handles(project: Path) -> None:
    """Hold many memories of as many users on one folder."""
    with Memory(project) as first:
        first.remember("The office opens at nine")
        threads, files = entries("task"), entries("fd")
        tracemalloc.start()
        many = [Memory(project, user=f"u{number}") for number in range(HANDLES)]
        assert all(memory.recall("when does the office open?") for memory in many)
        size = tracemalloc.get_traced_memory()[0] / HANDLES
        tracemalloc.stop()
        threads, files = entries("task") - threads, entries("fd") - files
        print(f"{HANDLES:,} memories more: {threads} threads, {files} file handles, {size:,.0f} bytes each")
        for memory in many:
            memory.close()


def main() -> None:
    if sys.argv[1:2] == ["--open"]:
        print(json.dumps(opened(Path(sys.argv[2]))))
        return
    if sys.argv[1:2] == ["--recall"]:
        print(json.dumps(recalled(Path(sys.argv[2]))))
        return
    for count in [int(size) for size in sys.argv[1:]] or SIZES:
        with TemporaryDirectory() as folder:
            measure(count, Path(folder))
    with TemporaryDirectory() as folder:
        blocks(BLOCKS, Path(folder))
    with TemporaryDirectory() as folder:
        handles(Path(folder))


if __name__ == "__main__":
    main()
