"""Compares the store with the machine and with a hand-written loop, in one Markdown table.

``python -m benches.table [--records N] [--written N] [--rounds N] [--folder PATH] [--out FILE]``
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import shutil
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

import orjson
from chronomemory import ChronoRecord, ChronoStore
from chronomemory._core import __version__, verify_path
from chronomemory.layout import log_folder

from benches import fresh
from benches.limits import ShaLimit, write_lines
from benches.loop import Loop, read_log
from benches.sample import BATCH, KIND, KIND_EVERY, build_store, fields, records, rows, write_ndjson
from benches.table_rows import Line, Note, Times, ratio

#: How many records are written. A snapshot is due at 5,000 events and again at 50,000, so a run that ends
#: just behind either pays for a whole snapshot at once: this lies between them, and --written moves it.
WRITTEN_RECORDS = 45_000
#: The store that is asked, and how often.
ASKED_RECORDS, GETS = 100_000, 10_000
#: How many single writes are timed at each end of a store's growth.
LATE_WRITES = 1_000

_ROOT = Path(__file__).parent.parent


def _interleaved(rounds: int, *works: Callable[[], float]) -> list[Times]:
    """Run the works in turn, back and forth, and return the times of each."""
    times: list[Times] = [[] for _ in works]
    for number in range(rounds):
        turn = list(zip(times, works, strict=True))
        for its_times, work in turn if number % 2 == 0 else reversed(turn):
            its_times.append(work())
    return times


def _timed(work: Callable[[], object], *, collect: bool = True) -> float:
    """Time a work as timeit does: the collector looks at the benches' own objects before, not during it."""
    if collect:
        gc.collect()
    gc.disable()
    try:
        began = perf_counter()
        work()
        return perf_counter() - began
    finally:
        gc.enable()


class Bench:
    """The measurements; each returns rows, and asserts that both sides did the work."""

    def __init__(self, folder: Path, total: int, written: int, rounds: int) -> None:
        self.folder, self.total, self.written, self.rounds = folder, total, written, rounds
        self.big = folder / "big"

    def _ours(self, write: Callable[[ChronoStore], object], count: int, exclusive: bool = False) -> float:
        with TemporaryDirectory(dir=self.folder) as project:
            with ChronoStore(project, exclusive=exclusive) as store:
                seconds = _timed(lambda: write(store))
                assert store.record_count() == count
            assert verify_path(os.fspath(log_folder(Path(project))))["valid"]
        return seconds

    def _loop(self, write: Callable[[Loop], object], count: int) -> float:
        with TemporaryDirectory(dir=self.folder) as project:
            log = log_folder(Path(project))
            log.mkdir()
            with Loop(log / "events.wal") as loop:
                seconds = _timed(lambda: write(loop))
                assert len(loop.state) == count
            found = verify_path(os.fspath(log))
            assert found["valid"]
            assert found["events"] == count
        return seconds

    def _lines(self, count: int) -> tuple[Path, list[bytes]]:
        """A log of so many records by the loop, and its lines."""
        log = self.folder / f"{count}.wal"
        with Loop(log) as loop:
            loop.upsert_many(rows(0, count))
        return log, log.read_bytes().splitlines(keepends=True)

    def one_by_one(self) -> list[Line]:
        count = self.written
        given, theirs, target = records(0, count), rows(0, count), self.folder / "plain"
        log, lines = self._lines(count)

        def ours(store: ChronoStore) -> None:
            for record in given:
                store.upsert(record)

        def loop(hand_written: Loop) -> None:
            for record in theirs:
                hand_written.upsert(record)

        with ShaLimit(log) as sha:
            shared, alone, hand, hashed, written = _interleaved(
                self.rounds,
                lambda: self._ours(ours, count),
                lambda: self._ours(ours, count, exclusive=True),
                lambda: self._loop(loop, count),
                lambda: sha.seconds(count),
                lambda: write_lines(lines, target),
            )
        return [
            Line(f"upsert of {count:,}, one by one", count, shared, hand, sha=hashed, write=written, bar=1.3),
            Line("the same, exclusive=True", count, alone, hand, sha=hashed, write=written),
        ]

    def birth(self) -> list[Note]:
        """Write the first record: a log is born complete and durable."""
        (record,) = records(0, 1)
        times = [self._ours(lambda store: store.upsert(record), 1) for _ in range(self.rounds)]
        return [Note("the first write of a store", f"{median(times) * 1e3:.1f} ms", median(times))]

    def in_batches(self) -> list[Line]:
        count = self.written
        given, theirs, target = records(0, count), rows(0, count), self.folder / "plain"
        source = self.folder / "records.ndjson"
        write_ndjson(source, count)
        log, lines = self._lines(count)
        starts = range(0, count, BATCH)
        joined = [b"".join(lines[start : start + BATCH]) for start in starts]

        def ours(store: ChronoStore) -> None:
            for start in starts:
                store.upsert_many(given[start : start + BATCH])

        def loop(hand_written: Loop) -> None:
            for start in starts:
                hand_written.upsert_many(theirs[start : start + BATCH])

        with ShaLimit(log) as sha:
            many, loaded, hand, hand_loaded, hashed, written = _interleaved(
                self.rounds,
                lambda: self._ours(ours, count),
                lambda: self._ours(lambda store: store.ingest(source), count),
                lambda: self._loop(loop, count),
                lambda: self._loop(lambda hand_written: hand_written.ingest(source, BATCH), count),
                lambda: sha.seconds(count),
                lambda: write_lines(joined, target),
            )
        return [
            Line(
                f"upsert_many of {count:,}, {BATCH:,} at a time",
                count,
                many,
                hand,
                sha=hashed,
                write=written,
                bar=2.5,
            ),
            Line(
                f"ingest of {count:,} from an NDJSON file",
                count,
                loaded,
                hand_loaded,
                sha=hashed,
                write=written,
            ),
        ]

    def evidence(self) -> list[Line | Note]:
        build_store(self.big, self.total)
        log = log_folder(self.big) / "events.wal"
        events = fresh.measure("verify", self.big)["events"]
        part = min(self.total, ASKED_RECORDS)
        with log.open("rb") as file:
            lines = [file.readline() for _ in range(part)]
        opened = []

        def open_once() -> float:
            opened.append(fresh.measure("open", self.big))
            assert opened[-1]["records"] == self.total
            return float(opened[-1]["seconds"])

        def loop(state: dict[str, tuple[str, str, bytes]] | None) -> float:
            return _timed(lambda: read_log(lines, state))

        with ShaLimit(log) as sha:
            proven, loaded, hand, hand_loaded, hashed = _interleaved(
                max(3, self.rounds // 2),
                lambda: float(fresh.measure("verify", self.big)["seconds"]),
                open_once,
                lambda: loop(None),
                lambda: loop({}),
                lambda: sha.seconds(events),
            )
        slower = ratio(loaded, proven)
        assert slower is not None
        resident = median(sizes["resident"] for sizes in opened) / 1e6
        before, peak = (median(sizes[name] for sizes in opened) / 1e6 for name in ("before", "peak"))
        of_a_million = before + (resident - before) * 1_000_000 / self.total
        return [
            Line(f"verify {events:,} events", events, proven, hand, part, hashed, bar=0.45, bar_on="sha"),
            Line(f"open {self.total:,} records, verified", events, loaded, hand_loaded, part, hashed),
            Note("open, in times of verify", f"{slower:.2f} ×", slower, 3),
            Note(
                f"resident memory with {self.total:,} records open",
                f"{resident:.0f} MB ({before:.0f} before, peak {peak:.0f})",
                of_a_million,
                600,
            ),
        ]

    def compaction(self) -> list[Note]:
        copy = self.folder / "copy"
        shutil.copytree(self.big, copy)
        told = fresh.measure("compact", copy)
        shutil.rmtree(copy)
        more = told["peak"] / told["resident"]
        said = f"{more:.2f} × ({told['peak'] / 1e6:.0f} MB, {told['seconds']:.1f} s)"
        return [Note("peak memory during compaction, in times of that", said, more, 1.3)]

    def growth(self) -> list[Line | Note]:
        """Write to a young store, to an old one and to the loop in turn; look at single calls."""
        young = self.folder / "young"
        build_store(young, BATCH)
        times: tuple[Times, Times, Times] = ([], [], [])
        given, theirs = records(self.total, LATE_WRITES), rows(self.total, LATE_WRITES)
        with ChronoStore(young) as small, ChronoStore(self.big) as large, Loop(self.folder / "hand") as loop:
            for record, row in zip(given, theirs, strict=True):
                times[0].append(_timed(partial(small.upsert, record), collect=False))
                times[1].append(_timed(partial(large.upsert, record), collect=False))
                times[2].append(_timed(partial(loop.upsert, row), collect=False))
            assert small.record_count() == BATCH + LATE_WRITES
            assert large.record_count() == self.total + LATE_WRITES
            assert len(loop.state) == LATE_WRITES
        early, late = (median(its_times) * 1e6 for its_times in times[:2])
        said = f"{late / early:.2f} × ({late:.1f} µs, {early:.1f} µs)"
        return [
            Line("upsert, median of single calls", 1, times[0], times[2]),
            Note(f"write number {self.total:,}, in times of number {BATCH:,}", said, late / early, 1.2),
        ]

    def answers(self) -> list[Line]:
        project = self.folder / "asked"
        build_store(project, ASKED_RECORDS)
        numbers = Random(7).sample(range(ASKED_RECORDS), GETS)
        ids = [f"REC-{number:07}" for number in numbers]
        state: dict[str, tuple[str, str, bytes]] = {}
        with (log_folder(project) / "events.wal").open("rb") as file:
            read_log(file, state)
        expected = ASKED_RECORDS // KIND_EVERY
        with ChronoStore(project) as store:
            assert store.get(ids[0]) == ChronoRecord(**fields(numbers[0]))
            assert orjson.loads(state[ids[0]][2]) == fields(numbers[0])
            assert len(store.query(kind=KIND)) == len(_hand_query(state)) == expected
            got, hand_got, found, hand_found = _interleaved(
                self.rounds,
                lambda: _timed(lambda: [store.get(record_id) for record_id in ids]),
                lambda: _timed(lambda: [orjson.loads(state[record_id][2]) for record_id in ids]),
                lambda: _timed(lambda: store.query(kind=KIND)),
                lambda: _timed(lambda: _hand_query(state)),
            )
        return [
            Line("get by id", GETS, got, hand_got),
            Line(f"query by kind, {expected:,} of {ASKED_RECORDS:,}", expected, found, hand_found),
        ]

    def table(self) -> str:
        lines: list[Line | Note] = []
        for part in (
            self.birth,
            self.one_by_one,
            self.in_batches,
            self.evidence,
            self.compaction,
            self.growth,
            self.answers,
        ):
            lines += part()
        head = [
            "question",
            "ours",
            "loop",
            "ours ÷ loop",
            "SHA-256, all cores",
            "share of it",
            "write(2)",
            "share of it",
            "bar",
            "met",
        ]
        body = [head, ["---"] * len(head), *(line.cells() for line in lines)]
        return "\n".join("| " + " | ".join(cells) + " |" for cells in body)


def _hand_query(state: dict[str, tuple[str, str, bytes]]) -> list[object]:
    return [
        orjson.loads(text) for kind, status, text in state.values() if kind == KIND and status == "active"
    ]


def _machine(rounds: int) -> str:
    model = next(
        (line.split(":")[1].strip() for line in _lines_of("/proc/cpuinfo") if line.startswith("model name")),
        platform.processor(),
    )
    git = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=_ROOT, capture_output=True, text=True, check=False
    )
    return (
        f"{os.cpu_count()} cores ({model}), {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}, orjson {orjson.__version__}, chronomemory {__version__}, "
        f"commit {git.stdout.strip() or 'unknown'}, load {os.getloadavg()[0]:.1f} at the start.\n"
        "Speeds in thousand records or events a second: medians of interleaved rounds "
        f"({rounds} where a round is short). Ratios are medians of the rounds' own ratios. "
        "A record has about 420 bytes, its line about 690."
    )


def _lines_of(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=1_000_000, help="for verify, open and memory")
    parser.add_argument("--written", type=int, default=WRITTEN_RECORDS, help="for upsert and ingest")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument(
        "--folder", type=Path, help="where the stores are written; a temporary folder otherwise"
    )
    parser.add_argument("--out", type=Path, help="write the table to this file too")
    options = parser.parse_args()
    machine = _machine(options.rounds)
    with TemporaryDirectory(dir=options.folder) as folder:
        table = Bench(Path(folder), options.records, options.written, options.rounds).table()
    text = f"{machine}\n\n{table}\n"
    print(text, end="")
    if options.out:
        options.out.write_text(text)


if __name__ == "__main__":
    main()
