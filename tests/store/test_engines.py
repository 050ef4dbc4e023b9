"""The stores of a process share one engine on a folder, each on its own terms, and nothing else."""

from __future__ import annotations

import gc
import os
import random
import resource
import shutil
import sys
import threading
import time
import traceback
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoStore, LogCorrupted
from chronomemory.blocks import Memory
from chronomemory.engines import ENGINES
from chronomemory.errors import Busy, StoreClosed

pytestmark = [
    pytest.mark.shared_engines,
    pytest.mark.skipif(sys.platform != "linux", reason="counts threads and file handles by /proc"),
]


def threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


def settle(expected: int) -> None:
    """Wait until threads that have ended are gone; one of an earlier test may have been counted before."""
    deadline = time.monotonic() + 5
    while threads() > expected and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threads() <= expected


def told_at_opening(place: Path, **options: Any) -> str:
    """Open a store and close it, and return what it warned of."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        ChronoStore(place, **options).open().close()
    return "\n".join(str(warning.message) for warning in told)


def file_handles() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def in_a_child(work: Callable[[], bool]) -> bool:
    """Fork, and say whether the work of the child was done and true."""
    child = os.fork()
    if child == 0:
        done = False
        try:
            done = work()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0 if done else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_two_stores_on_one_folder_have_one_engine(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as one:
        one.upsert({"id": "A"})
        before = threads(), file_handles()
        with ChronoStore(tmp_path) as two, ChronoStore(tmp_path / "." / "..", own_engine=False) as other:
            assert two.get("A") is not None
            assert other.get("A") is None
            two.upsert({"id": "B"})
            assert one.get("B") is not None
            assert threads() <= before[0] + 1
        assert one.get("B") is not None
        settle(before[0])
        assert file_handles() <= before[1] + 4


def test_an_own_engine_is_as_far_away_as_another_process(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as one:
        one.upsert({"id": "A"})
        before = threads()
        with ChronoStore(tmp_path, own_engine=True) as two:
            assert threads() == before + 1
            assert two.get("A") is not None


def test_a_folder_that_is_made_later_is_the_same(tmp_path: Path) -> None:
    place = tmp_path / "project"
    place.mkdir()
    link = tmp_path / "link"
    link.symlink_to(place)
    with ChronoStore(place) as one, ChronoStore(link) as early:
        one.upsert({"id": "A"})
        count = threads()
        with ChronoStore(link) as late:
            assert late.get("A") is not None
            assert early.get("A") is not None
            assert threads() == count


def test_a_thousand_memories_cost_little(tmp_path: Path) -> None:
    with Memory(tmp_path) as first:
        first.remember("The deploy key lives in the vault")
        gc.collect()
        before = threads(), file_handles()
        tracemalloc.start()
        many = [Memory(tmp_path) for _ in range(1000)]
        for memory in many:
            memory.blocks.store.open()
        assert all(memory.recall("deploy key") for memory in many[:20])
        gc.collect()
        size = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert threads() - before[0] <= 3
        assert file_handles() - before[1] <= 28
        assert size / len(many) <= 20_000
        for memory in many:
            memory.close()
        assert first.recall("deploy key")


def test_the_last_one_closes(tmp_path: Path) -> None:
    stores = [ChronoStore(tmp_path).open() for _ in range(5)]
    stores[0].upsert({"id": "A"})
    engine = stores[0].engine
    for store in stores[:-1]:
        store.close()
        store.close()
        assert stores[-1].get("A") is not None
    assert engine.get("A") is not None
    stores[-1].close()
    with pytest.raises(Exception, match="closed"):
        engine.get("A")
    # A closed store opens again at its next call.
    assert stores[2].get("A") is not None
    stores[2].close()


def test_one_that_nobody_holds_lets_go(tmp_path: Path) -> None:
    before = threads()
    store = ChronoStore(tmp_path)
    store.upsert({"id": "A"})
    with pytest.warns(ResourceWarning, match="unclosed store"):
        del store
        gc.collect()
    settle(before)
    assert not list(ENGINES._shared)


@pytest.mark.parametrize(
    ("option", "first", "second"),
    [("exclusive", True, False), ("exclusive", False, True), ("head_file", "a", "b")],
)
def test_what_is_of_the_engine_must_be_alike(tmp_path: Path, option: str, first: Any, second: Any) -> None:
    if option == "head_file":
        first, second = tmp_path / first, tmp_path / second
    with ChronoStore(tmp_path, **{option: first}) as one:
        with pytest.raises(Busy, match=f"^{option}: "):
            ChronoStore(tmp_path, **{option: second}).open()
        one.upsert({"id": "A"})
        with ChronoStore(tmp_path, **{option: first}) as two:
            assert two.get("A") is not None
    with ChronoStore(tmp_path, **{option: second}) as alone:
        assert alone.get("A") is not None


def test_each_writes_on_its_own_terms(tmp_path: Path) -> None:
    with (
        ChronoStore(tmp_path) as usual,
        ChronoStore(tmp_path, durability="full", recursion_depth=2) as careful,
        ChronoStore(tmp_path, durability="off") as hasty,
    ):
        usual.upsert({"id": "BORN"})
        syncs = usual.engine.log_status()["syncs"]
        assert careful.upsert({"id": "A"}).recursion_depth == 2
        assert usual.engine.log_status()["syncs"] == syncs + 1
        careful.upsert_many({"id": f"M{number}"} for number in range(700))
        assert usual.engine.log_status()["unsynced_bytes"] == 0
        assert usual.upsert({"id": "B"}).recursion_depth == 0
        hasty.upsert({"id": "C"})
        assert usual.engine.log_status()["unsynced_bytes"] > 0
        # What one was promised is kept although another asked for less after it.
        deadline = time.monotonic() + 10
        while usual.engine.log_status()["unsynced_bytes"] and time.monotonic() < deadline:
            time.sleep(0.05)
        assert usual.engine.log_status()["unsynced_bytes"] == 0


def test_full_and_normal_writers_together_keep_their_promises(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as usual, ChronoStore(tmp_path, durability="full") as careful:
        usual.upsert({"id": "BORN"})
        faults: list[str] = []

        def write(store: ChronoStore, name: str) -> None:
            for number in range(60):
                store.upsert({"id": f"{name}{number}"})
                if store is careful and store.history(f"{name}{number}") == []:
                    faults.append(name)

        crew = [
            threading.Thread(target=write, args=(store, f"{which}-"))
            for which, store in enumerate((usual, careful, usual, careful))
        ]
        for thread in crew:
            thread.start()
        for thread in crew:
            thread.join()
        assert not faults
        assert usual.record_count() == 241
        assert usual.chain_valid()


def test_a_lock_timeout_is_of_its_store(tmp_path: Path) -> None:
    with (
        ChronoStore(tmp_path, lock_timeout=60) as patient,
        ChronoStore(tmp_path, lock_timeout=0.05) as hasty,
        ChronoStore(tmp_path, own_engine=True, exclusive=True) as holder,
    ):
        holder.upsert({"id": "A"})
        began = time.monotonic()
        with pytest.raises(Busy):
            hasty.upsert({"id": "B"})
        assert time.monotonic() - began < 30, "half of the timeout of the other store"
        threading.Timer(0.4, holder.close).start()
        assert patient.upsert({"id": "C"}).seq == 2


def test_whoever_is_strict_is_told_of_damage(tmp_path: Path, log: Path) -> None:
    with ChronoStore(tmp_path) as store:
        for number in range(3):
            store.upsert({"id": f"R{number}", "label": "original"})
    log.write_bytes(log.read_bytes().replace(b"original", b"forgery!", 1))
    assert "damage" in told_at_opening(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        lenient = ChronoStore(tmp_path).open()
    with lenient:
        with pytest.raises(LogCorrupted):
            ChronoStore(tmp_path, strict=True).open()
        assert "damage" in told_at_opening(tmp_path)
        assert lenient.get("R2") is not None


def test_a_closer_look_is_taken_for_whoever_wishes_it(tmp_path: Path, log: Path) -> None:
    with ChronoStore(tmp_path) as store:
        for number in range(3):
            store.upsert({"id": f"R{number}", "label": "original"})
    with ChronoStore(tmp_path, verify="quick") as quick:
        assert quick.get("R0") is not None
        # In place, so that nothing but a look at all hashes tells.
        with log.open("r+b") as file:
            file.seek(log.read_bytes().index(b"original"))
            file.write(b"forgery!")
        assert told_at_opening(tmp_path, verify="quick") == ""
        assert "damage" in told_at_opening(tmp_path, verify="full")
        assert told_at_opening(tmp_path, verify="full") == "", "once is enough"


def test_a_replaced_folder_gets_a_new_engine(tmp_path: Path) -> None:
    folder = tmp_path / ".chronomemory"
    with ChronoStore(tmp_path) as old:
        old.upsert({"id": "A"})
        shutil.rmtree(folder)
        with ChronoStore(tmp_path) as new:
            assert new.get("A") is None
            new.upsert({"id": "B"})
            with ChronoStore(tmp_path) as third:
                assert third.get("B") is not None
        with pytest.raises(LogCorrupted, match=r"log-missing|not there any more|another log"):
            old.upsert({"id": "C"})


def test_a_folder_that_was_there_and_is_replaced_gets_a_new_engine(tmp_path: Path) -> None:
    folder = tmp_path / ".chronomemory"
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "A"})
    shutil.copytree(folder, tmp_path / "copy")
    with ChronoStore(tmp_path) as old:
        old.upsert({"id": "LATER"})
        old.sync()
        shutil.rmtree(folder)
        (tmp_path / "copy").rename(folder)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            with ChronoStore(tmp_path) as new:
                assert new.get("LATER") is None
                assert new.get("A") is not None


def test_a_forked_child_has_its_own(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store, ChronoStore(tmp_path) as second:
        store.upsert({"id": "A"})

        def work() -> bool:
            with ChronoStore(tmp_path) as mine:
                mine.upsert({"id": "CHILD"})
            with pytest.raises(StoreClosed, match="forked"):
                store.upsert({"id": "AGAIN"})
            store.close()
            store.upsert({"id": "AGAIN"})
            store.close()
            second.close()
            return mine.get("AGAIN") is not None

        assert in_a_child(work)
        assert second.get("CHILD") is not None
        assert second.get("AGAIN") is not None
        store.upsert({"id": "B"})


def test_a_child_that_is_forked_in_the_middle_of_an_opening_does_not_wait(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "A"})
    stop = threading.Event()

    def open_and_close() -> None:
        while not stop.is_set():
            ChronoStore(tmp_path).open().close()

    crew = [threading.Thread(target=open_and_close) for _ in range(3)]
    for thread in crew:
        thread.start()
    try:
        for _ in range(10):

            def work() -> bool:
                with ChronoStore(tmp_path) as mine:
                    return mine.get("A") is not None

            assert in_a_child(work)
    finally:
        stop.set()
        for thread in crew:
            thread.join()


def test_threads_that_open_and_close_as_they_like(tmp_path: Path) -> None:
    places = [tmp_path / "one", tmp_path / "two"]
    for place in places:
        place.mkdir()
    faults: list[BaseException] = []
    before = threads()

    def live(seed: int) -> None:
        chance = random.Random(seed)
        try:
            for step in range(25):
                place = chance.choice(places)
                with ChronoStore(place, durability=chance.choice(("normal", "off"))) as store:
                    store.upsert({"id": f"{seed}-{step}", "data": {"place": place.name}})
                    assert store.get(f"{seed}-{step}") is not None
        except BaseException as fault:
            faults.append(fault)

    crew = [threading.Thread(target=live, args=(seed,)) for seed in range(6)]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    assert not faults
    settle(before)
    found = 0
    for place in places:
        with ChronoStore(place) as store:
            assert store.chain_valid()
            found += store.record_count()
    assert found == 6 * 25


def test_a_folder_that_cannot_be_opened_is_the_error_of_that_call(tmp_path: Path) -> None:
    with Memory(tmp_path) as memory:
        memory.remember("The deploy key lives in the vault")
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        held: list[int] = []
        try:
            highest = max(int(held.name) for held in Path("/proc/self/fd").iterdir())
            resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 8, hard))
            with pytest.raises(OSError, match="Too many open files"):
                while True:
                    held.append(os.dup(0))
            with pytest.raises(OSError, match="Too many open files"):
                memory.remember("A fact of no importance")
            with pytest.raises(OSError, match="Too many open files"):
                memory.blocks.store.backup()
        finally:
            for each in held:
                os.close(each)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        memory.remember("All is well again")
        memory.blocks.store.sync()
        assert memory.blocks.store.health().poisoned is None
        assert memory.recall("well again")
