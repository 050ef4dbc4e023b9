"""Runs all harnesses for hours instead of seconds.

One command for all harnesses: `make soak`, or `python tests/faults/soak.py --help`. It shows how far each has
come and ends with a table: what ran, how often, what was found. It fails if anything was.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
#: How many crash points one seed gives, over all modes and beginnings; measured, and checked by the count.
POINTS_A_SEED = 12_000
#: With fewer seeds the tests of the crash model find fewer points than they ask for.
LEAST_SEEDS = 8

#: How tests of the engine say how much they looked at.
COUNTED = re.compile(r"(?:crash points(?: of chance)?|killed repairs|fuzzed inputs \(\w+\)): (\d+)")

Tell = Callable[[int, "int | None"], None]


@dataclass
class Result:
    """One row of the table."""

    runs: int = 0
    found: list[str] = field(default_factory=list)
    skipped: str | None = None
    more: str = ""


def lines_of(command: list[str], environment: dict[str, str] | None = None) -> Iterator[str]:
    """Run a command and give what it says, line by line; the last line is its exit code."""
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        yield from process.stdout
    yield str(process.returncode)


def script(name: str, *options: str) -> Callable[[Tell], Result]:
    """A harness of this folder."""

    def run(tell: Tell) -> Result:
        said: list[str] = []
        for line in lines_of([sys.executable, str(HERE / name), "--thorough", *options]):
            said.append(line)
            if line.startswith('{"done"'):
                told = json.loads(line)
                tell(told["done"], told["of"])
        outcome = next((json.loads(line) for line in said if line.startswith('{"harness"')), None)
        if outcome is None:
            return Result(found=["it did not end: " + "".join(said[-6:])])
        more = ", ".join(f"{number:,} {what}" for what, number in outcome["counts"].items())
        return Result(outcome["runs"], outcome["found"], outcome["skipped"], more)

    return run


def cargo(test: str, environment: dict[str, str], least: int) -> Callable[[Tell], Result]:
    """A test of the engine that says how much it has looked at."""

    def run(tell: Tell) -> Result:
        result, said = Result(), []
        command = ["cargo", "test", "--profile", "quick", "--quiet", "--package", "chronomemory"]
        command += ["--test", "promises", test]
        for line in lines_of(command, environment):
            said.append(line)
            if counted := re.search(
                r"(?:crash points|crash points of chance|killed repairs|fuzzed inputs \(\w+\)): (\d+)", line
            ):
                result.runs += int(counted[1])
                tell(result.runs, None)
        if said[-1] != "0":
            result.found.append("".join(said)[-3000:])
        elif result.runs < least:
            result.found.append(f"only {result.runs} of {least}")
        return result

    return run


def searches() -> Callable[[Tell], Result]:
    """The tests of Python with every search in full."""

    def run(tell: Tell) -> Result:
        result, output = Result(), []
        command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", "--dist", "worksteal"]
        for line in lines_of(command, {"CHRONOMEMORY_THOROUGH": "1"}):
            output.append(line)
            if counted := re.search(r"(\d+) passed", line):
                result.runs = int(counted[1])
                tell(result.runs, None)
        if output[-1] != "0":
            result.found.append("".join(output)[-3000:])
        return result

    return run


def harnesses(options: argparse.Namespace) -> dict[str, Callable[[Tell], Result]]:
    """Everything there is, by name."""
    seed = ["--seed", str(options.seed)]
    seeds = max(LEAST_SEEDS, -(-options.crash_points // POINTS_A_SEED))
    many_seeds = {"CHRONOMEMORY_SEEDS": str(seeds)}
    fuzz = {"CHRONOMEMORY_FUZZ_SECONDS": str(options.fuzz_seconds)}
    fuzz["CHRONOMEMORY_FUZZ_SEED"] = str(options.seed * 1_000_000_000)
    return {
        "crash model": cargo(
            "a_crash_keeps_what_each_mode_promises",
            {"CHRONOMEMORY_SEEDS": str(seeds)},
            options.crash_points,
        ),
        "worker": cargo("the_worker_keeps_the_second", {"CHRONOMEMORY_SEEDS": str(10 * seeds)}, 1000),
        "killed repairs": cargo("a_killed_repair_says_so", many_seeds, 100),
        "writers at erasures": cargo(
            "writers_go_on_beside_an_erasure", {"CHRONOMEMORY_SEEDS": str(seeds)}, 0
        ),
        "kill -9": script("killed.py", "--runs", str(options.kills), *seed),
        "killed memories": script("remembered.py", "--runs", str(options.kills), *seed),
        "killed runners": script("consolidated.py", "--runs", str(options.kills), *seed),
        "killed restores": script("restored.py", "--runs", str(options.kills), *seed),
        "killed copies": script("copied.py", "--runs", str(options.kills), *seed),
        "killed erasures": script("erased.py", "--runs", str(options.kills), *seed),
        "erasures in crowds": script("crowded.py", "--runs", str(max(options.kills // 10, 1)), *seed),
        "twins": script("twin.py", "--runs", str(options.damages), *seed),
        "twins with faces": script("faced.py", "--runs", str(options.damages // 2), *seed),
        "erased teachers": script("taught.py", "--runs", str(options.kills), *seed),
        "version 1 beside it": script("elders.py", "--runs", str(max(options.kills // 5, 1)), *seed),
        "forgers": script("forged.py", "--runs", str(options.damages), *seed),
        "guessers": script("guessed.py", *seed),
        "bent erasures": script("bent.py", "--runs", str(options.damages), *seed),
        "syscall faults": script("syscalls.py", *seed),
        "many processes": script("crowd.py", *seed),
        "lost updates": script("updates.py", *seed),
        "verdicts in storms": script("judged.py", *seed),
        "damage and repair": script("mended.py", "--runs", str(options.damages), *seed),
        "lives and damage": script("lived.py", "--runs", str(options.damages), *seed),
        "swapped logs": script("swapped.py", "--runs", str(options.kills), *seed),
        "vanished logs": script("vanished.py", "--runs", str(options.kills), *seed),
        "hostile files": script("hostile.py", "--thorough", "--runs", str(options.damages * 3), *seed),
        "full disk": script("full.py", *seed),
        "planted strangers": script("planted.py", *seed),
        "searches": searches(),
        "fuzz": cargo("no_bytes_break_a_reader", fuzz, 1000),
    }


def run_all(wanted: dict[str, Callable[[Tell], Result]], console: Console) -> dict[str, tuple[Result, float]]:
    """Run them one after the other, each with a bar of its own."""
    results = {}
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description:18}"),
        BarColumn(),
        TextColumn("{task.fields[runs]}"),
    )
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        for name, work in wanted.items():
            task = progress.add_task(name, total=None, runs="")

            def tell(done: int, total: int | None, task: TaskID = task) -> None:
                shown = f"{done:,}" + (f" of {total:,}" if total else "")
                progress.update(task, completed=done, total=total, runs=shown)

            began = time.monotonic()
            result = work(tell)
            results[name] = (result, time.monotonic() - began)
            progress.update(task, total=1, completed=1, runs=f"{result.runs:,}")
            if not console.is_terminal:
                console.print(f"{name}: {result.runs:,} runs, {len(result.found)} found")
    return results


def table_of(results: dict[str, tuple[Result, float]]) -> Table:
    table = Table(title="Nothing acknowledged is ever lost", title_justify="left")
    table.add_column("harness")
    table.add_column("runs", justify="right")
    table.add_column("found", justify="right")
    table.add_column("time", justify="right")
    table.add_column("more", overflow="fold")
    for name, (result, seconds) in results.items():
        if result.skipped:
            table.add_row(name, "-", "[yellow]skipped[/]", "-", result.skipped)
            continue
        style = "red" if result.found else "green"
        found = f"[{style}]{len(result.found)}[/]"
        table.add_row(name, f"{result.runs:,}", found, f"{seconds:,.0f} s", result.more)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--crash-points", type=int, default=100_000)
    parser.add_argument("--damages", type=int, default=10_000)
    parser.add_argument("--fuzz-seconds", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", metavar="HARNESS", help="one of them, may be given again")
    options = parser.parse_args()
    wanted = harnesses(options)
    if unknown := set(options.only or ()) - wanted.keys():
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(wanted)}")
    console = Console()
    results = run_all({name: wanted[name] for name in wanted if name in (options.only or wanted)}, console)
    console.print(table_of(results))
    found = [(name, sentence) for name, (result, _) in results.items() for sentence in result.found]
    for name, sentence in found:
        console.print(f"{name}: {sentence}", markup=False, highlight=False)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
