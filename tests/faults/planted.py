"""If somebody plants links, pipes or strangers in a store, nothing is touched that is not the store's.

In every place of the folder, on a store that is new and on one with all that a store can have, something is
planted that is not ours; then every verb is used. Nothing outside the folder may change, nor any stranger
inside; whatever a verb refuses, it says so with an error that names the place; and once the stranger is gone,
the store verifies and holds everything that was acknowledged.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import stat
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import harness
import numpy as np
from chronomemory import ChronoRecord, ChronoStore
from chronomemory.cli import app
from chronomemory.errors import ChronoError
from chronomemory.layout import head_file
from typer.testing import CliRunner

FOLDER = ".chronomemory"
DIGEST = "ab" * 32
ARCHIVE = f"1-9-{DIGEST[:16]}.wal.zst"
STAMP = "20200101T000000"
#: One verb takes much less; a hang is a finding.
PATIENCE_SECONDS = 60
#: The fast selection takes every so manieth plant.
STRIDE = 47

#: Names of ours that a store may want to write, whether it has them or not.
NAMES = (
    "events.wal", "events.wal.tmp", "snapshot.json", "snapshot.json.tmp", "snapshot.json.63.tmp", "synced",
    "lock", "care.lock", "base", "base/new.json.tmp", "base/snapshot.json.tmp", f"base/{DIGEST}.json",
    f"base/{DIGEST}.json.tmp", "archive", "archive/new.wal.zst.tmp", "archive/restored.wal.tmp",
    "archive/restored.json.tmp", "archive/healed.wal.tmp", f"archive/{ARCHIVE}", f"archive/{ARCHIVE}.tmp",
    "vectors", "vectors/default.0.f32", "vectors/default.1.f32", "vectors/default.1.f32.tmp", "index",
    f"index/{ARCHIVE}.history", f"index/{ARCHIVE}.history.tmp", "index/text", "index/text/lock",
    f"index/text/9-{DIGEST[:16]}.text", f"index/text/9-{DIGEST[:16]}.tmp", "index/vectors",
    "index/state", "index/state/lock", f"index/state/0-9-{DIGEST[:16]}.rows",
    f"index/state/0-9-{DIGEST[:16]}.tmp",
    "index/vectors/default.0.i8", "index/vectors/default.1.i8", "index/vectors/default.0.0-16384.codes",
    "index/vectors/default.0.0-16384.codes.7-0.tmp", "quarantine",
    f"quarantine/{STAMP}-tail-at-9.tmp", "backup", f"backup/{STAMP}", f"backup/{STAMP}.tmp",
)  # fmt: skip
#: Those of them that are folders.
FOLDERS = (
    "base",
    "archive",
    "vectors",
    "index",
    "index/state",
    "index/text",
    "index/vectors",
    "quarantine",
    "backup",
)
#: Almost ours. Whatever they are, they stop nobody and stay.
STRANGERS = (
    "x.tmp", ".tmp", "events.wal.bak", "snapshot.json.x.tmp", "synced.tmp", "base/notes.json",
    "base/x.json.tmp", f"base/{DIGEST[1:]}.json", f"base/{DIGEST.upper()}.json", "archive/x.tmp",
    "archive/1-2.wal", "archive/mail.wal.zst", "archive/1-2-0123456789abcdef-3.wal", "vectors/x.tmp",
    "vectors/mine.f32", "vectors/.0.f32", "index/mail.history", "index/x.tmp", "index/text/x.tmp",
    "index/text/9-notes.text", "index/state/x.tmp", "index/state/1-mine.rows", "index/vectors/x.tmp",
    "index/vectors/mine.i8", "index/vectors/mine.codes", "index/vectors/mine.0.codes", "quarantine/x.tmp",
    "quarantine/tail.tmp", "backup/x.tmp", f"backup/{STAMP}-mine.tmp", "backup/mine",
)  # fmt: skip
#: What is damage if another file stands in its place: that other harnesses look at.
TRUTH = ("events.wal", "base/", "archive/", "vectors/", "synced")
KINDS = (
    "link to a file",
    "link to a folder",
    "link to nowhere",
    "hard link",
    "pipe",
    "socket",
    "folder",
    "file",
)
#: These may go when something of ours needs their name: by it they are ours.
PLAIN = ("hard link", "file")
SECRET = b"somebody else's\n" * 20


def make_outside(folder: Path) -> None:
    """Files of somebody else, named so that whoever goes by names would take them for his own."""
    for name in (
        "keys", f"d/{DIGEST}.json", f"d/{ARCHIVE}", f"d/{ARCHIVE}.history", "d/x.tmp", "d/events.wal.tmp",
        "d/new.json.tmp", "d/default.0.f32", "d/default.0.f32.tmp", f"d/{STAMP}.tmp/events.wal", "d/synced",
    ):  # fmt: skip
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(SECRET)


def seen(path: Path) -> object:
    """What stands somewhere, down to its permissions; a second name of a file is none of its own."""
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return mode, path.readlink()
    if stat.S_ISDIR(mode):
        return mode, [(inner.name, seen(inner)) for inner in sorted(path.iterdir())]
    return mode, path.read_bytes() if stat.S_ISREG(mode) else None


def plant(kind: str, place: Path, outside: Path) -> None:
    """Put something that is not ours into a place."""
    place.parent.mkdir(parents=True, exist_ok=True)
    match kind:
        case "link to a file":
            place.symlink_to(outside / "keys")
        case "link to a folder":
            place.symlink_to(outside / "d")
        case "link to nowhere":
            place.symlink_to(outside / "nothing")
        case "hard link":
            place.hardlink_to(outside / "keys")
        case "pipe":
            os.mkfifo(place)
        case "socket":
            with socket.socket(socket.AF_UNIX) as door:
                here = Path.cwd()
                os.chdir(place.parent)  # the path of a socket is short
                try:
                    door.bind(place.name)
                finally:
                    os.chdir(here)
        case "folder":
            place.mkdir()
            (place / "inside").write_bytes(SECRET)
        case _:
            place.write_bytes(SECRET)


def fill(project: Path) -> None:
    """A store with all that one can have."""
    with ChronoStore(project) as store:
        store.upsert_many([{"id": f"R{number}", "label": f"apple {number}"} for number in range(60)])
        store.vectors.attach_many(["R1", "R2", "R3"], np.eye(3, dtype=np.float32), model="m")
        store.compact()
        store.backup()
        store.upsert(ChronoRecord(id="A"))
        store.vectors.attach("A", [0.0, 1.0, 1.0], model="m")
        store.history("R1")
        store.vectors.nearest([0.0, 0.0, 1.0])
        store.upkeep.restore(store.backup())


def places_in(project: Path) -> list[str]:
    """All names of a store, those that it has and those that it might have."""
    folder = project / FOLDER
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*")}
    return sorted({*there, *NAMES})


@dataclass
class Life:
    """What became of the verbs."""

    project: Path
    place: Path
    kind: str
    is_almost: bool
    acknowledged: set[str] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)
    refused: int = 0

    def attempt(self, verb: str, act: Callable[[], object]) -> object:
        """Use a verb; an error must be one that a caller can catch and understand."""
        try:
            return act()
        except (OSError, ChronoError) as error:
            self.refused += 1
            is_named = str(self.place) in str(error) or isinstance(error, ChronoError)
            if self.is_almost or not is_named:
                self.wrong.append(f"{verb}: {type(error).__name__}: {error}")
        except Exception as error:  # whatever it is, it is a finding
            self.wrong.append(f"{verb}: {type(error).__name__}: {error}")
        return None

    def put(self, store: ChronoStore, *ids: str) -> None:
        """Write records; those that were acknowledged are noted."""
        store.upsert_many([{"id": record_id, "label": "apple"} for record_id in ids])
        self.acknowledged.update(ids)

    def command(self, *words: str) -> None:
        """Use the command line; what it cannot do it says, and no traceback is seen."""
        answer = CliRunner().invoke(app, [*words, "--project", str(self.project)])
        if answer.exception is not None and not isinstance(answer.exception, SystemExit):
            self.wrong.append(f"{words[0]} at the terminal: {answer.exception!r}")
        if answer.exit_code == 0 and words[0] == "put":
            self.acknowledged.add(words[1])
        if answer.exit_code and self.is_almost:
            self.wrong.append(f"{words[0]} at the terminal: {answer.output}")

    def live(self) -> None:
        """Use every verb there is."""
        store = ChronoStore(self.project)
        self.attempt("open", store.open)
        self.attempt("put", lambda: self.put(store, "P1"))
        self.attempt("batch", lambda: self.put(store, "P2", "P3"))
        self.attempt("attach", lambda: store.vectors.attach("P1", [1.0, 1.0, 1.0], model="m"))
        self.attempt("search", lambda: store.search("apple"))
        self.attempt("nearest", lambda: store.vectors.nearest([1.0, 1.0, 0.0]))
        self.attempt("history", lambda: store.history("R1"))
        self.attempt("compact", store.compact)
        self.attempt("put again", lambda: self.put(store, "P4"))
        saved = self.attempt("backup", store.backup)
        if isinstance(saved, Path) and (saved / "events.wal").exists():
            self.attempt("restore", lambda: store.upkeep.restore(saved))
        self.attempt("verify", store.verify)
        self.attempt("repair", store.upkeep.repair)
        self.attempt("matrix", lambda: store.vectors.matrix() if store.vectors.spaces() else None)
        self.attempt("drop", lambda: store.compact(keep_history=False))
        self.attempt("close", store.close)
        self.command("put", "P5", "--label", "apple")
        self.command("compact")
        self.command("backup")
        self.command("verify")
        again = ChronoStore(self.project, durability="full")
        self.attempt("put at last", lambda: self.put(again, "P6"))
        self.attempt("close again", again.close)


def judge(life: Life, report_valid: bool) -> Iterator[str]:
    """Is all there that was acknowledged, now that the stranger is gone?"""
    with ChronoStore(life.project) as store:
        lost = life.acknowledged - {record.id for record in store.query()}
        if lost:
            yield f"lost: {sorted(lost)}"
        found = store.verify()
        if report_valid and not found.valid:
            yield f"not valid: {found.damage[0]}"
        store.upsert(ChronoRecord(id="after"))


def run(template: Path | None, name: str, kind: str, outcome: harness.Outcome) -> None:
    """Plant one thing, live, and look at what is left."""
    label = f"{kind} at {name}, {'a full' if template else 'a new'} store"
    with harness.project("planted-" + label.replace(" ", "-").replace("/", "-"), outcome) as folder:
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        project, outside = folder / "p", folder / "outside"
        make_outside(outside)
        if template:
            shutil.copytree(template, project, symlinks=True)
        else:
            project.mkdir()
        note = head_file(project)
        place = note if name == "note" and note else project / FOLDER / name
        original = folder / "original"
        if place.exists():
            place.rename(original)
        before = seen(outside)
        plant(kind, place, outside)
        planted = seen(place)
        life = Life(project, place, kind, name in STRANGERS)
        if template:
            life.acknowledged = {"A", "R7"}
        # A folder where we have one is ours as well; what somebody put into it is not.
        is_home = kind == "folder" and name in FOLDERS
        is_truth = original.exists() and (kind in PLAIN or is_home) and f"{name}/".startswith(TRUTH)
        signal.alarm(PATIENCE_SECONDS)
        life.live()
        if seen(outside) != before:
            life.wrong.append("something outside has changed")
        still = not is_home and os.path.lexists(place) and seen(place) == planted
        if is_home and (place / "inside").read_bytes() != SECRET:
            life.wrong.append("what lay in the folder has changed")
        # By its name a file may be ours, and a note is replaced as a whole.
        if not still and not is_home and (life.is_almost or kind not in PLAIN) and name != "note":
            life.wrong.append("what was planted is gone")
        if still:
            shutil.rmtree(place) if kind == "folder" else place.unlink()
            if original.exists() and place.parent.is_dir():
                original.rename(place)
        if not is_truth:
            life.wrong += judge(life, report_valid=not name.startswith("vectors"))
        signal.alarm(0)
        outcome.count("refused", life.refused)
        outcome.count("went on", not life.refused)
        if life.wrong:
            outcome.found.append(f"{label}: {'; '.join(life.wrong[:5])}")
    outcome.runs += 1


def late(*_: object) -> None:
    raise TimeoutError("it hangs")


def work(order: harness.Order, outcome: harness.Outcome) -> None:
    """Plant something in one place after the other."""
    warnings.simplefilter("ignore", RuntimeWarning)
    signal.signal(signal.SIGALRM, late)
    with harness.project("planted-template", outcome) as folder:
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        template = folder / "p"
        fill(template)
        full = [*places_in(template), *STRANGERS, "note"]
        table: list[tuple[Path | None, str, str]] = [
            (template, name, kind) for name in full for kind in KINDS
        ]
        table += [(None, name, kind) for name in (*NAMES, *STRANGERS, "note") for kind in KINDS]
        random.Random(order.seed).shuffle(table)
        if not order.thorough:
            table = table[::STRIDE]
        for number, (filled, name, kind) in enumerate(table):
            run(filled, name, kind, outcome)
            harness.say(done=number + 1, of=len(table))


if __name__ == "__main__":
    harness.main("planted strangers", work)
