"""A lock ends with its holder, also if a child was forked."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from chronomemory import ChronoStore
from chronomemory.errors import StoreClosed

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

#: Opens, forks a child that sleeps, says both process ids, and goes on writing until it is killed.
PARENT = """
import os, sys, time
from chronomemory import ChronoStore
store = ChronoStore(sys.argv[1], exclusive=sys.argv[2] == "exclusive").open()
store.upsert({"id": "A"})
child = os.fork()
if child == 0:
    time.sleep(60)
    os._exit(0)
print(child, flush=True)
number = 0
while True:
    store.upsert({"id": f"N-{number % 100}"})
    number += 1
"""


def writes_at_once(project: Path) -> float:
    began = time.monotonic()
    with ChronoStore(project, lock_timeout=5) as store:
        store.upsert({"id": "AFTER"})
    return time.monotonic() - began


# Who is killed amid a write leaves a line that does not end, and whoever comes next is told.
@pytest.mark.filterwarnings("ignore:.*uncommitted bytes:RuntimeWarning")
@pytest.mark.parametrize("how", ["exclusive", "shared"])
def test_a_killed_parent_leaves_no_lock_to_its_child(tmp_path: Path, how: str) -> None:
    for _ in range(1 if how == "exclusive" else 5):
        parent = subprocess.Popen(
            [sys.executable, "-c", PARENT, str(tmp_path), how], stdout=subprocess.PIPE, text=True
        )
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        time.sleep(0.05)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        try:
            os.kill(child, 0)  # it lives, and sleeps
            assert writes_at_once(tmp_path) < 2
        finally:
            os.kill(child, signal.SIGKILL)
        parent.stdout.close()


def in_child(act: object) -> int:
    """Run something in a forked child; return its exit code."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            act()  # type: ignore[operator]
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_the_parent_keeps_what_the_child_lets_go(tmp_path: Path) -> None:
    with ChronoStore(tmp_path, exclusive=True) as store:
        store.upsert({"id": "A"})
        assert in_child(lambda: None) == 0
        with ChronoStore(tmp_path, lock_timeout=0.05) as other, pytest.raises(TimeoutError):
            other.upsert({"id": "B"})
        store.upsert({"id": "C"})


def test_a_child_closes_no_descriptor_twice(tmp_path: Path) -> None:
    store = ChronoStore(tmp_path, exclusive=True).open()
    store.upsert({"id": "A"})

    def act() -> None:
        global_file = os.open(tmp_path / "mine", os.O_CREAT | os.O_RDWR)
        engine = store.engine  # a new one, since the other is the parent's
        del engine
        store.close()
        os.write(global_file, b"still mine")
        os.fstat(global_file)

    # The store of the parent is exclusive: the child must be told so, and not wait for ever.
    store._options["lock_timeout"] = 0.05
    store._options["exclusive"] = False
    assert in_child(act) == 0
    store.close()
    assert (tmp_path / "mine").read_bytes() == b"still mine"


def test_a_child_must_open_for_itself(tmp_path: Path) -> None:
    store = ChronoStore(tmp_path).open()
    store.upsert({"id": "A"})
    engine = store.engine

    def act() -> None:
        with pytest.raises(StoreClosed):
            engine.get("A")
        with pytest.raises(StoreClosed):
            store.upsert({"id": "CHILD"})
        with ChronoStore(tmp_path) as mine:
            mine.upsert({"id": "CHILD"})

    assert in_child(act) == 0
    assert store.get("CHILD") is not None
    store.close()


def _write(project: Path, number: int) -> int:
    with ChronoStore(project, lock_timeout=60) as store:
        store.upsert({"id": f"POOL-{number}"})
    return number


def test_a_pool_beside_busy_threads(tmp_path: Path) -> None:
    stop = threading.Event()
    store = ChronoStore(tmp_path, lock_timeout=60).open()
    counts = [0, 0]

    def write(place: int) -> None:
        while not stop.is_set():
            store.upsert({"id": f"T-{place}-{counts[place] % 50}"})
            counts[place] += 1
            if counts[place] % 20 == 0:  # opens and closes locks beside the forks
                with ChronoStore(tmp_path / f"other-{place}") as other:
                    other.upsert({"id": "A"})

    threads = [threading.Thread(target=write, args=(place,)) for place in range(2)]
    for thread in threads:
        thread.start()
    try:
        with multiprocessing.get_context("fork").Pool(4) as pool:
            done = pool.starmap_async(_write, [(tmp_path, number) for number in range(40)])
            assert sorted(done.get(timeout=60)) == list(range(40))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert all(store.get(f"POOL-{number}") is not None for number in range(40))
    assert store.chain_valid()
    store.close()
