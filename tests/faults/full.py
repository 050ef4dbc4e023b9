"""On a disk without room errors are clear, and nothing is lost.

A small file system is mounted (tmpfs, and ext4 where loop devices are there) and filled. A write must fail
with OSError(ENOSPC) and leave nothing behind, a batch all or nothing; the store stays readable and valid;
compaction and backup fail cleanly; and once there is room, everything goes on.
"""

from __future__ import annotations

import contextlib
import errno
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import harness
from chronomemory import ChronoStore
from workload import Action, Ledger, check, perform, read, second_opinion

SIZE_KIB = 1536
#: Set for the second start, inside a name space of its own.
INSIDE = "CHRONOMEMORY_MAY_MOUNT"
#: Free bytes to leave, from none to enough for a small write but not for a large one.
ROOM_BYTES = (0, 100, 4096, 5000, 20_000)


def sh(*command: str) -> None:
    # Not everybody has the tools of the administrator in their path.
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
    if not (tool := shutil.which(command[0], path=path)):
        raise harness.Skipped(f"there is no {command[0]} here")
    done = subprocess.run([tool, *command[1:]], capture_output=True, text=True, check=False)
    if done.returncode:
        raise harness.Skipped(f"{' '.join(command)}: {done.stderr.strip()}")


def enter_name_space() -> None:
    """Start again where mounting is allowed and seen by nobody else; without that there is nothing to do."""
    if os.environ.get(INSIDE):
        return
    if sys.platform != "linux" or not shutil.which("unshare"):
        raise harness.Skipped("there is no unshare here, so no small disk can be mounted")
    command = (
        ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    )
    sh(*command, "true")
    os.environ[INSIDE] = "1"
    os.execvp(command[0], [*command, sys.executable, *sys.argv])


@contextmanager
def small_disk(kind: str) -> Iterator[Path]:
    """Mount a small file system for a while."""
    with tempfile.TemporaryDirectory(prefix="chronomemory-") as folder:
        place = Path(folder) / "disk"
        place.mkdir()
        if kind == "tmpfs":
            sh("mount", "-t", "tmpfs", "-o", f"size={SIZE_KIB}k", "none", str(place))
        else:
            image = Path(folder) / "image"
            with image.open("wb") as file:
                file.truncate(4 * 1024 * 1024)
            sh("mkfs.ext4", "-q", "-O", "^has_journal", "-m", "0", str(image))
            sh("mount", "-o", "loop", str(image), str(place))
        try:
            yield place
        finally:
            sh("umount", str(place))


def fill(disk: Path, leave_bytes: int) -> Path:
    """Take all room but a little."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"\0" * 65536)
    with ballast.open("ab", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"\0" * 512)
    if leave_bytes:
        os.truncate(ballast, max(0, ballast.stat().st_size - leave_bytes))
    return ballast


class Squeeze:
    """One store on one disk that is full again and again."""

    def __init__(self, disk: Path, seed: str, durability: str, outcome: harness.Outcome) -> None:
        self.disk, self.outcome, self.durability = disk, outcome, durability
        self.project = disk / "p"
        self.project.mkdir()
        self.dice, self.ledger, self.number = random.Random(seed), Ledger(), 0
        self.wrong: list[str] = []

    def action(self) -> Action:
        self.number += 1
        verb = self.dice.choice(["put", "put", "batch", "delete", "compact", "backup"])
        size = {"put": 1, "delete": 1, "batch": 20}.get(verb, 0)
        return Action(f"a{self.number}", verb, tuple(self.dice.sample([f"a{n}" for n in range(40)], size)))

    def attempt(self, store: ChronoStore, action: Action) -> bool:
        """Do it; whatever is not acknowledged must be OSError(ENOSPC), and must not be seen."""
        before = {record.id: record for record in store.query(status=None)}
        try:
            perform(store, action)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                self.wrong.append(f"{action}: {error!r}")
            self.outcome.count("refused for want of room")
            self.outcome.count(f"refused {action.verb}")
            if {record.id: record for record in store.query(status=None)} != before:
                self.wrong.append(f"{action} failed and was seen all the same")
            return False
        self.ledger.note(action, acknowledged=True)
        return True

    def squeeze(self, room: int) -> None:
        """Write until the disk is full, look at it, make room, go on."""
        with ChronoStore(self.project, durability=self.durability) as store:
            self.attempt(store, Action(f"b{self.number}.{room}", "put", ("first",)))
            ballast = fill(self.disk, room)
            for _ in range(25):
                self.attempt(store, self.action())
            report = store.verify()
            if not report.valid:
                self.wrong.append(f"with {room} bytes left: {report.lines()}")
            seen, wrong = read(self.project)
            self.wrong += wrong + self.ledger.judge(seen)
            ballast.unlink()
            backups = self.project / ".chronomemory" / "backup"
            # No reader takes them for backups, but they take room until someone removes them.
            self.outcome.count("unfinished backups left", len(list(backups.glob("*.tmp"))))
            shutil.rmtree(backups, ignore_errors=True)
            self.number += 1
            if not self.attempt(store, Action(f"a{self.number}", "put", ("room",))):
                self.wrong.append("there is room again, but no write")
            store.compact(keep_history=False)
        self.wrong += check(self.project, self.ledger, f"c{self.number}")
        self.wrong += second_opinion(self.project)
        self.wrong += self.leftovers()

    def leftovers(self) -> list[str]:
        """What a failed compaction or backup left must be gone once the next one succeeded."""
        left = [path.name for path in (self.project / ".chronomemory").rglob("*.tmp")]
        return [f"left behind: {left}"] if left else []


def work(order: harness.Order, outcome: harness.Outcome) -> None:
    """Fill small disks."""
    enter_name_space()
    rounds = 12 if order.thorough else 1
    kinds = ["tmpfs", "ext4"]
    for kind in kinds:
        for number in range(rounds):
            for durability in ("full", "normal"):
                seed = f"{order.seed}-{kind}-{number}-{durability}"
                try:
                    with small_disk(kind) as disk:
                        squeeze = Squeeze(disk, seed, durability, outcome)
                        for room in ROOM_BYTES:
                            squeeze.squeeze(room)
                            outcome.runs += 1
                        if squeeze.wrong:
                            outcome.found.append(f"seed {seed}: {'; '.join(squeeze.wrong[:5])}")
                except harness.Skipped:
                    # Loop devices are a luxury: without them tmpfs has to do.
                    if kind == "tmpfs":
                        raise
                    outcome.count("ext4 not mounted")
                harness.say(done=outcome.runs, of=None)


if __name__ == "__main__":
    harness.main("full disk", work)
