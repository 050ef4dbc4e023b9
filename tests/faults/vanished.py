"""An open store says so when its log goes away, and begins no second history.

Several handles, in two processes, have a store open. Then something happens to the log that none of ours
does: it is removed, moved away with its project, emptied, cut at a line or inside one, replaced by an
older copy or by a stranger. Every call must then either tell the truth as it was or raise; nothing may
be acknowledged into a log that nobody will find. When the log comes back the handles go on by
themselves, with everything that was acknowledged.
"""

from __future__ import annotations

import os
import random
import shutil
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import harness
from children import start
from chronomemory import ChronoStore
from chronomemory.errors import ChronoError

LOG = "events.wal"


def removed(home: Path, dice: random.Random) -> None:
    (home / LOG).unlink()


def moved(home: Path, dice: random.Random) -> None:
    home.rename(home.with_name("moved"))


def emptied(home: Path, dice: random.Random) -> None:
    os.truncate(home / LOG, 0)


def cut(home: Path, dice: random.Random) -> None:
    os.truncate(home / LOG, dice.randrange(1, (home / LOG).stat().st_size))


def cut_at_a_line(home: Path, dice: random.Random) -> None:
    lines = (home / LOG).read_bytes().splitlines(keepends=True)
    os.truncate(home / LOG, sum(map(len, lines[: dice.randrange(len(lines))])))


def older(home: Path, dice: random.Random) -> None:
    lines = (home / LOG).read_bytes().splitlines(keepends=True)
    (home / LOG).unlink()
    (home / LOG).write_bytes(b"".join(lines[: max(1, len(lines) // 2)]))


def stranger(home: Path, dice: random.Random) -> None:
    other = home.with_name("stranger")
    with ChronoStore(other) as store:
        store.upsert({"id": "stranger"})
    (home / LOG).unlink()
    shutil.copy(other / ".chronomemory" / LOG, home / LOG)
    shutil.rmtree(other)


WAYS: tuple[Callable[[Path, random.Random], None], ...] = (
    removed,
    moved,
    emptied,
    cut,
    cut_at_a_line,
    older,
    stranger,
)


def asked(store: ChronoStore, known: set[str], dice: random.Random) -> list[str]:
    """Ask a handle whose log is gone; what it answers must be what was, or an error."""
    wrong = []
    for _ in range(4):
        try:
            match dice.randrange(4):
                case 0:
                    name = dice.choice(sorted(known))
                    if store.get(name) is None:
                        wrong.append(f"{name} is not there, and nothing is said")
                case 1:
                    number = store.record_count()
                    if number != len(known):
                        wrong.append(f"{number} records instead of {len(known)}, and nothing is said")
                case 2:
                    event = store.upsert({"id": "ghost"})
                    wrong.append(f"a write was acknowledged as event {event.seq}")
                case _:
                    store.upsert_many([{"id": "ghost"}, {"id": "spectre"}])
                    wrong.append("a batch was acknowledged")
        except ChronoError:
            continue
    return wrong


def run(seed: str, rounds: int, outcome: harness.Outcome) -> None:
    dice = random.Random(seed)
    with harness.project(f"vanished-{seed}", outcome) as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        os.environ["XDG_STATE_HOME"] = str(folder / "state")

        def once(number: int) -> list[str]:
            project = folder / f"project-{number}"
            home = project / ".chronomemory"
            known = {f"R-{n}" for n in range(dice.randrange(2, 40))}
            writer, reader = ChronoStore(project), ChronoStore(project)
            try:
                writer.upsert_many([{"id": name} for name in sorted(known)])
                if dice.random() < 0.4:
                    writer.compact(keep_history=dice.random() < 0.5)
                    writer.upsert({"id": "R-0", "label": "again"})
                writer.sync()
                reader.open()
                kept = folder / "kept"
                shutil.rmtree(kept, ignore_errors=True)
                shutil.copytree(home, kept)
                time.sleep(0.02)  # the writer's lease is over
                way = dice.choice(WAYS)
                way(home, dice)
                outcome.count(way.__name__)
                if not (home / LOG).exists() or (home / LOG).read_bytes() != (kept / LOG).read_bytes():
                    wrong = asked(writer, known, dice) + asked(reader, known, dice)
                else:
                    wrong = []
                # The log comes back, and so do the handles.
                if way is moved:
                    home.with_name("moved").rename(home)
                else:
                    (home / LOG).unlink(missing_ok=True)
                    shutil.copy(kept / LOG, home / LOG)
                writer.upsert({"id": "later"})
                (seen,) = start(lambda tell: tell(ChronoStore(project).record_count())).end()
                if seen != len(known | {"later"}):
                    wrong.append(f"after it came back another process sees {seen} records")
                if reader.get("later") is None:
                    wrong.append("a reader does not see what was written after the log came back")
                if not ChronoStore(project).chain_valid():
                    wrong.append("the chain is not valid any more")
            finally:
                for store in (writer, reader):
                    store.close()
                shutil.rmtree(project, ignore_errors=True)
            return [f"{way.__name__}: {one}" for one in wrong]

        harness.live(seed, rounds, outcome, once)


def work(order: harness.Order, outcome: harness.Outcome) -> None:
    """Take logs away from open stores, and bring them back."""
    harness.in_projects(order, outcome, 20, run)


if __name__ == "__main__":
    harness.main("vanished logs", work)
