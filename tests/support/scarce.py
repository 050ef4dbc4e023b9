"""A child with little memory: does one thing under a limit, and looks at the store again without it.

``python scarce.py VERB PROJECT MEBIBYTES`` says ``done`` or ``refused``; whatever else happens ends it
otherwise.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from chronomemory import ChronoRecord, ChronoStore

#: Loaded before memory is scarce: what is asked here is what the store does.
LOADED = np
#: How many records the store has, and how many more are written.
KNOWN = 25_000
MORE = 10_000
#: A batch of this many is written by one thread.
FEW = 400


def record(number: int) -> ChronoRecord:
    """One record, with some words to be found and a word of its own."""
    said = f"what was said about the pump and its valve in {number % 977}, word{number:x}"
    return ChronoRecord(id=f"R-{number}", label=f"record {number}", data={"n": number, "text": said})


@contextmanager
def _limit(mebibytes: int) -> Iterator[None]:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    most = pages * resource.getpagesize() + (mebibytes << 20)
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def _ask(project: Path, mebibytes: int, question: Callable[[ChronoStore], int], answer: int) -> bool:
    with ChronoStore(project) as store:
        assert store.record_count() == KNOWN
        try:
            with _limit(mebibytes):
                assert question(store) == answer
            done = True
        except MemoryError:
            done = False
        assert store.get("R-77") is not None
    return done


def _open(project: Path, mebibytes: int) -> bool:
    try:
        with _limit(mebibytes), ChronoStore(project) as store:
            assert store.record_count() == KNOWN
    except MemoryError:
        return False
    return True


def _write(project: Path, mebibytes: int, size: int) -> bool:
    """Writes batches; each is there as a whole or not at all, and all that were acknowledged are."""
    records = [record(number) for number in range(KNOWN, KNOWN + MORE)]
    acknowledged, done = 0, True
    with ChronoStore(project) as store:
        assert store.record_count() == KNOWN
        try:
            with _limit(mebibytes):
                for start in range(0, MORE, size):
                    if size == 1:
                        store.upsert(records[start])
                    else:
                        store.upsert_many(records[start : start + size])
                    acknowledged += min(size, MORE - start)
        except MemoryError:
            done = False
        # One more may be there: when it was written, Python itself had no memory to say so.
        written = store.record_count() - KNOWN
        assert acknowledged <= written <= acknowledged + size, (acknowledged, written)
        assert (written - acknowledged) % size == 0, "half a batch"
        last = store.get(records[max(acknowledged - 1, 0)].id)
        assert acknowledged == 0 or last is not None
        store.upsert(ChronoRecord(id="after", label="the store goes on"))
    with ChronoStore(project) as store:
        assert store.record_count() == KNOWN + written + 1
    return done


VERBS: dict[str, Callable[[Path, int], bool]] = {
    "open": _open,
    "query": lambda project, room: _ask(project, room, lambda store: len(store.query()), KNOWN),
    "export": lambda project, room: _ask(project, room, lambda store: len(store.export_records()), KNOWN),
    "search": lambda project, room: _ask(
        project, room, lambda store: len(store.search("pump valve", limit=5)), 5
    ),
    "verify": lambda project, room: _ask(project, room, lambda store: int(store.verify().valid), 1),
    "compact": lambda project, room: _ask(project, room, lambda store: int(store.compact() > KNOWN), 1),
    "upsert": lambda project, room: _write(project, room, 1),
    "few": lambda project, room: _write(project, room, FEW),
    "many": lambda project, room: _write(project, room, MORE // 2),
}


def main() -> None:
    verb, project, mebibytes = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    done = VERBS[verb](project, mebibytes)
    with ChronoStore(project) as store:
        report = store.verify()
        assert report.valid and report.tail is None, report
    sys.stdout.write("done" if done else "refused")


if __name__ == "__main__":
    main()
