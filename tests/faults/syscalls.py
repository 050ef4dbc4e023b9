"""If any one system call fails, the error is clear and nothing is lost.

A fixed plan is performed again and again, each time with the next call of one sort failing, until a run
meets no fault. Each time: every exception is an OSError or a ChronoError, a failed sync of the log stops
all writes until the store is opened again, an interrupted call (EINTR) is no failure at all, and afterwards
the store verifies and holds everything that was acknowledged. With SIGKILL in place of an error, the writer
dies at exactly that call.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import harness
from chronomemory import ChronoStore
from traced import Fault, Run, need_strace, trace
from workload import Action, Ledger, check, perform

#: Calls of one sort, whatever this machine's name for them is, and what may go wrong with them.
SWEEP = {
    "?pwrite64,?pwritev": ["EIO", "ENOSPC", "EINTR", "SIGKILL", "EIO without ftruncate"],
    "fdatasync": ["EIO", "ENOSPC", "EINTR", "SIGKILL"],
    "fsync": ["EIO", "EINTR", "SIGKILL"],
    "?rename,?renameat,?renameat2": ["EIO", "ENOSPC", "SIGKILL"],
    "?openat": ["EIO", "ENOSPC", "EINTR", "SIGKILL"],
    "ftruncate": ["EIO", "ENOSPC", "EINTR", "SIGKILL"],
    "flock": ["EINTR", "SIGKILL"],
}
#: Not asked for by anyone, but they can fail as well.
MORE = {
    "pread64": ["EIO", "EINTR"],
    "?unlink,?unlinkat": ["EIO", "SIGKILL"],
    "?mkdir,?mkdirat": ["EIO", "ENOSPC", "SIGKILL"],
    "?statx,?newfstatat,?fstat": ["EIO"],
    "?getdents64": ["EIO"],
    "?flock": ["ENOLCK"],
}
#: The fast selection takes every 72nd call of each sort; the first of them is among the first 36.
STRIDE = 72
OFFSETS = 36
WRITES = {"put", "batch", "delete", "compact", "drop", "backup"}


def the_plan() -> list[Action]:
    """Every way of writing at least once, in an order in which each follows another."""
    row = [
        ("put", 1), ("put", 1), ("batch", 5), ("delete", 1), ("sync", 0), ("batch", 30), ("put", 1),
        ("compact", 0), ("put", 1), ("batch", 3), ("backup", 0), ("delete", 1), ("drop", 0), ("put", 1),
        ("put", 1), ("compact", 0), ("put", 1),
    ]  # fmt: skip
    actions = []
    for number, (verb, size) in enumerate(row):
        ids = tuple(f"a{(number * 3 + place) % 41}" for place in range(size))
        actions.append(Action(f"a{number}", verb, ids))
    return actions


def complaints(run: Run, fault: Fault | None, actions: list[Action]) -> Iterator[str]:
    """What was wrong with the way a run ended, as its caller saw it."""
    if run.hung:
        yield "the writer hung"
    for told in run.told:
        if not told["ok"] and not told["clean"]:
            yield f"{told['name']} raised {told['kind']}: {told.get('text')}"
    failed = [told for told in run.told if not told["ok"]]
    if failed and (fault is None or fault.error == "EINTR"):
        yield f"{failed[0]} although nothing should fail"
    if run.lost_the_log() and fault and fault.error not in ("EINTR", "SIGKILL"):
        yield from bravery(run, {action.name for action in actions if action.verb in WRITES})


def bravery(run: Run, writes: set[str]) -> Iterator[str]:
    """A log that cannot be trusted is not written to, until it was opened and read again."""
    broken = [number for number, told in enumerate(run.told) if not told["ok"]]
    if not broken:
        yield "a sync of the log failed and nobody was told"
        return
    later = run.told[broken[0] + 1 :]
    brave = [told for told in later if told["name"] in writes and told.get("kind") != "StorePoisoned"]
    if brave:
        yield f"a sync of the log failed, but {brave[0]}"
    last = [told for told in later if told["name"] == "last" and not told["ok"]]
    if last and "open again" not in [told["name"] for told in run.told[broken[0] :] if not told["ok"]]:
        yield f"after opening again: {last[0]}"


def enter(ledger: Ledger, run: Run, actions: list[Action]) -> None:
    """Enter into the ledger what was acknowledged, what failed and what nobody knows of."""
    told = {told["name"]: told["ok"] for told in run.told}
    for action in actions:
        if action.name in told:
            ledger.note(action, acknowledged=told[action.name])
        elif len(run.told) <= len(actions):
            ledger.note(action, acknowledged=False)
            break
    ledger.note(Action("last", "put", ("last",)), acknowledged=told.get("last", False))


def one_run(calls: str, fault: Fault | None, durability: str, outcome: harness.Outcome) -> Run:
    """Perform the plan with one fault and judge what is left."""
    actions = the_plan()
    name = f"syscalls-{fault or calls}-{durability}".replace(" ", "-")
    with harness.project(name, outcome) as folder:
        run = trace(folder, actions, durability, calls, fault)
        ledger = Ledger()
        enter(ledger, run, actions)
        wrong = list(complaints(run, fault, actions))
        wrong += check(folder / "p", ledger, "after")
        if wrong:
            outcome.found.append(f"{fault}, {durability}: {'; '.join(wrong[:5])}; {run.injected}")
    outcome.runs += 1
    return run


def sweep(calls: str, error: str, durability: str, order: harness.Order, outcome: harness.Outcome) -> None:
    """Let call number 1, 2, 3 … fail until a run has no such call."""
    first, step = (1, 1) if order.thorough else (1 + hash_of(calls, error) % OFFSETS, STRIDE)
    number = first
    while True:
        run = one_run(calls, Fault(calls, error, number), durability, outcome)
        if not run.met(calls):
            return
        outcome.count(f"{calls.replace('?', '').split(',')[0]} {error}")
        harness.say(done=outcome.runs, of=None)
        number += step


def hash_of(*words: str) -> int:
    """A number that is the same in every process."""
    return sum(map(ord, "".join(words)))


def warm_up(folder: Path) -> None:
    """Whatever is loaded or opened only once is loaded now, and not under the eyes of strace."""
    with ChronoStore(folder / "warm") as store:
        for action in the_plan():
            perform(store, action)


def work(order: harness.Order, outcome: harness.Outcome) -> None:
    """Let one system call after the other fail."""
    need_strace()
    warnings.simplefilter("ignore", RuntimeWarning)
    with harness.project("syscalls-warm", outcome) as folder:
        warm_up(folder)
    for calls in SWEEP:
        one_run(calls, None, "full", outcome)
    sorts = (SWEEP, MORE) if order.thorough else (SWEEP,)
    table = [(calls, error) for faults in sorts for calls, errors in faults.items() for error in errors]
    for calls, error in table:
        for durability in ("full", "normal") if order.thorough else ("full",):
            sweep(calls, error, durability, order, outcome)


if __name__ == "__main__":
    harness.main("syscall faults", work)
