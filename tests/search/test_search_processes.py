"""A search sees what other processes and threads wrote, while they write."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

from bm25 import agrees, scores
from chronomemory import ChronoRecord, ChronoStore

WRITER = """
import random, sys
from chronomemory import ChronoRecord, ChronoStore
root, name, seed = sys.argv[1:]
chance = random.Random(int(seed))
words = "alpha beta gamma delta the one".split()
with ChronoStore(root) as store:
    for number in range(150):
        token = f"{name}x{number}"
        label = " ".join([token, *chance.choices(words, k=4)])
        record = ChronoRecord(id=f"{name}-{number % 40}", label=label)
        store.upsert(record)
        found = store.search(token, limit=1, context=False)
        assert [hit.id for hit in found] == [record.id], (token, found)
        print(token, flush=True)
        if number % 7 == 3:
            store.delete(f"{name}-{chance.randrange(40)}")
"""


def test_processes_that_write_and_search_see_each_other(tmp_path: Path) -> None:
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), name, str(seed)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed, name in enumerate(("one", "two"))
    ]
    told = 0
    with ChronoStore(tmp_path) as store:
        for lines in zip(*(writer.stdout or [] for writer in writers), strict=False):
            for token in map(str.strip, lines):
                # It may be replaced already, or be a tombstone; what is found is what it says.
                hits = store.search(token, status="", limit=1, context=False)
                assert all(token in hit.record.label for hit in hits)
                told += 1
        for writer in writers:
            _, complaints = writer.communicate(timeout=60)
            assert writer.returncode == 0, complaints
        assert told == 300
        everything = store.query(status="")
        for question in ("alpha beta", "the one", "delta onex149", "gamma"):
            hits = [(hit.id, hit.score) for hit in store.search(question, status="", limit=30, context=False)]
            assert agrees(hits, scores(everything, question), 30)


def test_threads_share_one_index(store: ChronoStore) -> None:
    store.upsert_many([ChronoRecord(id=f"R{n}", label=f"alpha word{n % 50}") for n in range(2_000)])
    failures: list[str] = []

    def write_and_search(name: str) -> None:
        for number in range(60):
            store.upsert(ChronoRecord(id=f"{name}{number}", label=f"{name}token{number} alpha"))
            found = store.search(f"{name}token{number}", limit=1, context=False)
            if [hit.id for hit in found] != [f"{name}{number}"]:
                failures.append(f"{name}{number}: {found}")

    threads = [threading.Thread(target=write_and_search, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    hits = [(hit.id, hit.score) for hit in store.search("word7 alpha", limit=50, context=False)]
    assert agrees(hits, scores(store.query(), "word7 alpha"), 50)


def test_what_is_found_says_what_was_asked_however_often_it_changes(store: ChronoStore) -> None:
    stop = threading.Event()
    for number in range(3):
        store.upsert(ChronoRecord(id=f"R{number}", label=f"token{number} always"))

    def change() -> None:
        number = 0
        while not stop.is_set():
            store.upsert(ChronoRecord(id=f"R{number % 3}", label=f"token{number % 7} always"))
            number += 1

    writer = threading.Thread(target=change)
    writer.start()
    try:
        for number in range(2_000):
            token = f"token{number % 7}"
            hits = store.search(token, limit=1, context=False)
            assert all(token in hit.record.label for hit in hits)
            # What all its versions say is found through every change.
            assert store.search("always", limit=1, context=False)
    finally:
        stop.set()
        writer.join()


FIRST = """
import sys
from chronomemory import ChronoStore
with ChronoStore(sys.argv[1]) as store:
    print([(hit.id, hit.score) for hit in store.search("word7 alpha", limit=30)])
"""


def test_processes_that_make_the_first_index_at_once_agree(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert_many([ChronoRecord(id=f"R{n}", label=f"alpha word{n % 50} {n}") for n in range(21_000)])
    readers = [
        subprocess.Popen([sys.executable, "-c", FIRST, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    answers = {reader.communicate(timeout=60)[0] for reader in readers}
    assert [reader.returncode for reader in readers] == [0, 0, 0]
    assert len(answers) == 1 and "R7'" in answers.pop()
    assert len(list((tmp_path / ".chronomemory" / "index" / "text").glob("*.text"))) == 1
