"""Runs tasks: each system in processes of its own, all systems in turn, round by round.

A *task* is one thing that is measured: a function prepares a system (not timed) and returns the work (timed).
A *dataset* is a folder that one system filled and several tasks read. A *system* is ours (``ours``, with a
setting: ``ours/salt``), a peer (``rocksdict``) or a limit (what no system of that kind can do without).
"""

from __future__ import annotations

import gc
import importlib.util
import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

__all__ = ["DATASETS", "MODULES", "PARTS", "TASKS", "Job", "Profile", "Run", "dataset", "serve", "task"]

ROOT = Path(__file__).parent.parent
#: The parts, in the order of the report.
PARTS = ("write", "ingest", "open", "read", "upkeep", "search", "vectors", "memory")
#: The package that a system needs, where it has another name.
MODULES = {"sqlite": "sqlite3", "faiss": "faiss", "sqlite-vec": "sqlite_vec", "pyarrow": "pyarrow"}
#: Seconds before each measurement of a process that is kept: by then the threads of the last system sleep.
PAUSE = 0.02


@dataclass(frozen=True)
class Profile:
    """How much is measured."""

    name: str
    scale: float  # of the numbers of writes
    records: tuple[int, ...]
    documents: tuple[int, ...]
    rows: tuple[int, ...]
    blocks: tuple[int, ...]
    fresh_rounds: int
    kept_rounds: int

    def sizes(self, of: str) -> tuple[int, ...]:
        return getattr(self, of, None) or (self.records[-1:] if of == "largest" else (0,))


PROFILES = {
    "full": Profile(
        "full",
        1.0,
        (10_000, 100_000, 1_000_000),
        (1_000, 10_000, 100_000),
        (1_000, 10_000, 100_000, 1_000_000),
        (10_000, 100_000),
        7,
        11,
    ),
    "quick": Profile("quick", 0.1, (10_000, 100_000), (1_000, 10_000), (10_000, 30_000), (2_000,), 3, 4),
    "tiny": Profile("tiny", 0.01, (300,), (100,), (100,), (50,), 1, 2),
}


@dataclass
class Job:
    """What a task's function is given: which system at which size, folders, and a place for its notes."""

    task: str
    system: str
    size: int
    folder: Path  # empty, of this process alone
    datasets: Path
    scale: float
    count: int = 1  # operations in one work
    notes: dict[str, Any] = field(default_factory=dict)
    finish: Callable[[], object] | None = None  # timed on its own after the work
    stack: ExitStack = field(default_factory=ExitStack)

    @property
    def family(self) -> str:
        """The system without its setting."""
        return self.system.partition("/")[0].replace("base", "ours")

    @property
    def setting(self) -> str:
        return self.system.partition("/")[2]

    def scaled(self, count: int) -> int:
        """How many operations one work has in this profile."""
        self.count = max(10, int(count * self.scale))
        return self.count

    def dataset(self, name: str) -> Path:
        return self.datasets / f"{name}-{self.size}-{self.family}"

    def enter(self, context: Any) -> Any:
        return self.stack.enter_context(context)


Work = Callable[[], Any]


@dataclass(frozen=True)
class Task:
    name: str
    part: str
    prepare: Callable[[Job], Work]
    systems: tuple[str, ...]
    sizes: str  # the field of the profile
    dataset: str | None
    fresh: bool  # whether each round has new processes
    unit: str  # what the report shows: "/s", "ms", "µs", "s"
    before: Callable[[Job], None] | None  # done by a process of its own before each round
    rounds: int | None
    needs: str  # a package without which even ours cannot be measured


TASKS: dict[str, Task] = {}
DATASETS: dict[str, Callable[[Job], None]] = {}


def task(
    part: str,
    name: str,
    *systems: str,
    sizes: str = "",
    dataset: str | None = None,
    fresh: bool = False,
    unit: str = "ms",
    before: Callable[[Job], None] | None = None,
    rounds: int | None = None,
    needs: str = "",
) -> Callable[[Callable[[Job], Work]], Callable[[Job], Work]]:
    """Register a function as a task."""

    def register(prepare: Callable[[Job], Work]) -> Callable[[Job], Work]:
        assert name not in TASKS, name
        TASKS[name] = Task(name, part, prepare, systems, sizes, dataset, fresh, unit, before, rounds, needs)
        return prepare

    return register


def dataset(name: str) -> Callable[[Callable[[Job], None]], Callable[[Job], None]]:
    """Register a function that fills a folder for a system."""

    def register(fill: Callable[[Job], None]) -> Callable[[Job], None]:
        DATASETS[name] = fill
        return fill

    return register


# The worker: one system in one process.


def _cpu() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def _timed(work: Work) -> tuple[float, float, Any]:
    """Return wall and CPU seconds of a work, and its answer; no garbage is collected meanwhile."""
    gc.collect()
    gc.disable()
    try:
        cpu, began = _cpu(), perf_counter()
        answer = work()
        return perf_counter() - began, _cpu() - cpu, answer
    finally:
        gc.enable()


def serve(verb: str, order: dict[str, Any]) -> None:
    """Be a worker: fill a dataset, do what precedes a round, or measure once for each line on stdin."""
    name = order.pop("name")
    job = Job(task=name, **{**order, "folder": Path(order["folder"]), "datasets": Path(order["datasets"])})
    with job.stack:
        if verb == "fill":
            DATASETS[name](job)
        elif verb == "before":
            before = TASKS[name].before
            assert before is not None
            before(job)
        else:
            work = TASKS[name].prepare(job)
            print(json.dumps({"ready": True}), flush=True)
            for _ in sys.stdin:
                job.notes = {}
                wall, cpu, answer = _timed(work)
                sample = {"wall": wall, "cpu": cpu, "count": job.count, "notes": job.notes, "answer": answer}
                if job.finish is not None:
                    sample["finish"] = _timed(job.finish)[:2]
                print(json.dumps(sample), flush=True)


# The run: all systems in turn.


class WorkerError(Exception):
    """A worker ended with an error."""


@dataclass
class Worker:
    process: subprocess.Popen[str]
    log: Path

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            raise WorkerError(_last_line(self.log))
        return dict(json.loads(line))

    def ask(self) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write("again\n")
        self.process.stdin.flush()
        return self.read()

    def end(self) -> None:
        self.process.communicate()


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else "ended without a message"


@dataclass
class Run:
    """Measures tasks and collects what they gave."""

    profile: Profile
    folder: Path
    base: str | None = None  # the Python of another build
    peers: bool = True
    rounds: int | None = None
    results: list[dict[str, Any]] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    _jobs: int = 0

    def measure(self, parts: Sequence[str], save: Callable[[], object]) -> None:
        """Measure these parts; after each, save, and remove the datasets that no later part needs."""
        for place, part in enumerate(parts):
            tasks = [one for one in TASKS.values() if one.part == part and self._installed(one.needs)]
            for one in tasks:
                for size in self.profile.sizes(one.sizes):
                    self._task(one, size)
            save()
            later = {one.dataset for one in TASKS.values() if one.part in parts[place + 1 :]}
            for folder in self.folder.glob("datasets/*/*"):
                if folder.name.partition("-")[0] not in later:
                    shutil.rmtree(folder) if folder.is_dir() else folder.unlink()

    def _systems(self, one: Task, size: int) -> Iterator[str]:
        for system in one.systems:
            family = system.partition("/")[0]
            if family == "ours":
                yield system
                if self.base is not None:
                    yield system.replace("ours", "base")
            elif (not self.peers and family != "limit") or (
                family not in ("limit", "numpy") and not self._installed(family)
            ):
                continue
            else:
                yield system

    def _installed(self, family: str) -> bool:
        if not family:
            return True
        if family not in self.skipped and not importlib.util.find_spec(MODULES.get(family, family)):
            self.skipped[family] = "not installed"
            print(f"{family} is not installed and left out", flush=True)
        return family not in self.skipped

    def _order(self, one: str, system: str, size: int) -> dict[str, Any]:
        self._jobs += 1
        folder = self.folder / "jobs" / str(self._jobs)
        folder.mkdir(parents=True)
        datasets = self.folder / "datasets" / ("base" if system.startswith("base") else "main")
        datasets.mkdir(parents=True, exist_ok=True)
        scale = self.profile.scale
        return {
            "module": (TASKS[one].prepare if one in TASKS else DATASETS[one]).__module__.rpartition(".")[2],
            "name": one,
            "system": system,
            "size": size,
            "folder": str(folder),
            "datasets": str(datasets),
            "scale": scale,
        }

    def _start(self, verb: str, one: str, system: str, size: int) -> Worker:
        order = self._order(one, system, size)
        cores = str(os.cpu_count() or 1)
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), cores)
        python = self.base if system.startswith("base") and self.base else sys.executable
        # Code is compiled once, as an installation does it; heads are remembered in the folder of the run.
        places = {"PYTHONPYCACHEPREFIX": "compiled", "XDG_STATE_HOME": "state"}
        own = {name: str(self.folder / place) for name, place in places.items()}
        usual = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        log = Path(order["folder"]).with_suffix(".log")
        with log.open("w") as errors:
            process = subprocess.Popen(
                [python, "-m", "benches", "worker", verb, json.dumps(order)],
                cwd=ROOT,
                env={**usual, **threads, **own, "PYTHONUTF8": "1"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        return Worker(process, log)

    def _once(self, verb: str, one: str, system: str, size: int, *, dies: bool = False) -> None:
        worker = self._start(verb, one, system, size)
        worker.end()
        if worker.process.returncode and not dies:
            raise WorkerError(_last_line(worker.log))

    def _task(self, one: Task, size: int) -> None:
        began, used = perf_counter(), _cpu()
        samples: dict[str, list[dict[str, Any]]] = {}
        ready = [system for system in self._systems(one, size) if self._prepared(one, system, size)]
        rounds = self.rounds or one.rounds
        rounds = rounds or (self.profile.fresh_rounds if one.fresh else self.profile.kept_rounds)
        workers: dict[str, Worker] = {}
        if not one.fresh:
            for system in ready:
                self._guarded(
                    one, system, size, lambda system=system: self._begin(one, system, size, workers)
                )
        for number in range(rounds):
            turn = ready[number % max(1, len(ready)) :] + ready[: number % max(1, len(ready))]
            for system in turn:
                if not one.fresh and system not in workers:
                    continue
                sample = self._guarded(
                    one, system, size, lambda system=system: self._ask(one, system, size, workers)
                )
                if sample is None:
                    ready = [other for other in ready if other != system]
                    workers.pop(system, None)
                    samples.pop(system, None)
                else:
                    samples.setdefault(system, []).append(sample)
        for worker in workers.values():
            worker.end()
        shutil.rmtree(self.folder / "jobs", ignore_errors=True)
        self.keep(one, size, samples)
        took = f"{perf_counter() - began:.1f} s, {_cpu() - used:.1f} s of CPU"
        print(f"{one.part}: {one.name}{f', {size:,}' if size else ''}: {took}", flush=True)

    def _guarded(self, one: Task, system: str, size: int, work: Work) -> Any:
        """Do a work; a failure is noted, and the run goes on without that system."""
        try:
            return work()
        except WorkerError as error:
            self.faults.append(f"{one.name}, {size:,}, {system}: {error}")
            print(f"FAILED {self.faults[-1]}", flush=True)
            return None

    def _prepared(self, one: Task, system: str, size: int) -> bool:
        if one.dataset is None or system == "limit":
            return True
        # The name of the folder is that of Job.dataset.
        order = self._order(one.dataset, system, size)
        family = system.partition("/")[0].replace("base", "ours")
        folder = Path(order["datasets"]) / f"{one.dataset}-{size}-{family}"
        if folder.exists():
            return True

        def fill() -> bool:
            self._once("fill", one.dataset or "", system, size)
            folder.mkdir(exist_ok=True)
            return True

        return self._guarded(one, system, size, fill) is not None

    def _begin(self, one: Task, system: str, size: int, workers: dict[str, Worker]) -> None:
        worker = self._start("measure", one.name, system, size)
        worker.read()
        worker.ask()  # warms up, and is not counted
        workers[system] = worker

    def _ask(self, one: Task, system: str, size: int, workers: dict[str, Worker]) -> dict[str, Any]:
        if not one.fresh:
            sleep(PAUSE)
            return workers[system].ask()
        if one.before is not None:
            self._once("before", one.name, system, size, dies=True)
        worker = self._start("measure", one.name, system, size)
        worker.read()
        sample = worker.ask()
        worker.end()
        shutil.rmtree(self.folder / "jobs", ignore_errors=True)
        return sample

    def keep(self, one: Task, size: int, samples: dict[str, list[dict[str, Any]]]) -> None:
        """Check that all systems gave the same answers, and keep what they took."""
        answers = {
            system: json.dumps([sample["answer"] for sample in its])
            for system, its in samples.items()
            if any(sample["answer"] is not None for sample in its)
        }
        if len(set(answers.values())) > 1:
            first = next(iter(answers))
            others = [system for system in answers if answers[system] != answers[first]]
            self.faults.append(
                f"{one.name}, {size:,}: {', '.join(others)} and {first} gave different answers"
            )
            print(f"FAILED {self.faults[-1]}", flush=True)
        for system, its in samples.items():
            kept = [{key: value for key, value in sample.items() if key != "answer"} for sample in its]
            self.results.append(
                {
                    "part": one.part,
                    "task": one.name,
                    "size": size,
                    "system": system,
                    "unit": one.unit,
                    "rounds": kept,
                }
            )

    def document(self, machine: dict[str, Any]) -> dict[str, Any]:
        """Return all of it as JSON values."""
        return {
            "machine": machine,
            "profile": asdict(self.profile),
            "skipped": self.skipped,
            "faults": self.faults,
            "results": self.results,
        }
