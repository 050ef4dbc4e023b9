"""The command that looks a whole installation over, and says what to do about each finding."""

from __future__ import annotations

import fcntl
import importlib.metadata
import json
import os
import platform
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import typer
from rich.text import Text

from chronomemory._core import __version__
from chronomemory.cli.output import clean, size
from chronomemory.cli.session import FINDING, Session, Target
from chronomemory.cli.tables import table
from chronomemory.errors import ChronoError
from chronomemory.face.results import counted
from chronomemory.layout import head_file, log_folder, log_path, network_file_system
from chronomemory.mcp.clients import command_of
from chronomemory.types import VerifyReport

OK, NOTE, BAD = "ok", "note", "bad"
_STYLES = {OK: "green", NOTE: "yellow", BAD: "bold red"}

_LITTLE_BYTES, _SLOW_SECONDS, _GIVEN_UP_SECONDS = 100_000_000, 5.0, 30.0
_MARKED_BYTES = 1024

_HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "doctor", "version": __version__},
    },
}


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at, how it is, and what to do."""

    how: str
    what: str
    said: str
    do: str = ""


_ok, _note, _bad = (partial(Finding, how) for how in (OK, NOTE, BAD))


def doctor(at: Target) -> None:
    """Look at versions, store, locks, disk, indexes and MCP server; the exit code is 1 if one is bad."""
    with at.open() as here, warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # each is a finding of its own
        found = [finding for look in _LOOKS for finding in _looked(look, here, at.project.absolute())]
        if at.as_json:
            here.out.document({"findings": [asdict(each) for each in found], "ok": not _is_bad(found)})
        else:
            made = table("what", "", "finding")
            for each in found:
                text = clean(each.said) if not each.do else f"{clean(each.said)}\n→ {clean(each.do)}"
                made.add_row(each.what, Text(each.how, style=_STYLES[each.how]), text)
            here.out.show(made)
    if _is_bad(found):
        raise typer.Exit(FINDING)


def _is_bad(found: list[Finding]) -> bool:
    return any(each.how == BAD for each in found)


Look = Callable[[Session, Path], Iterator[Finding]]


def _looked(look: Look, here: Session, project: Path) -> Iterator[Finding]:
    name = look.__name__.strip("_")
    try:
        yield from look(here, project)
    except ChronoError as error:
        yield _bad(name, str(error), error.recovery)
    except OSError as error:
        text = f"{error.strerror or error}: {error.filename or project}"
        yield _bad(name, text, "See to the rights on that file or folder.")


def _versions(here: Session, project: Path) -> Iterator[Finding]:
    machine = f"{platform.system()} {platform.machine()}"
    yield _ok("versions", f"chronomemory {__version__}, Python {platform.python_version()}, {machine}")


def _folder(here: Session, project: Path) -> Iterator[Finding]:
    folder = log_folder(project)
    if not log_path(project).exists():
        yield _note("folder", f"no log yet in {folder}", "The first write makes one.")
    elif not os.access(folder, os.W_OK):
        yield _bad(
            "folder", f"{folder} may not be written", "See to its rights: who writes needs the folder."
        )
    else:
        yield _ok("folder", str(folder))
    network = network_file_system(project)
    if network is not None:
        yield _note(
            "folder",
            f"it lies on a network file system ({network})",
            "Keep a store that several processes use on a local disk.",
        )


def _store(here: Session, project: Path) -> Iterator[Finding]:
    report = here.store.verify()
    if not report.valid:
        places = counted(len(report.damage), "damaged place")
        yield _bad(
            "store",
            f"{places}: {report.damage[0]}",
            "Run chronomemory verify, then repair or restore a backup.",
        )
    elif report.cut:
        yield _bad("store", report.cut, "Run chronomemory repair, or restore a backup.")
    elif report.altered_indexes:
        yield _bad("store", "an index is not what the log says", "Run chronomemory repair: it is made again.")
    else:
        yield _ok("store", f"{counted(report.events, 'event')}, every hash holds")
    if report.tail:
        do = (
            "Run chronomemory repair before anything is written."
            if report.tail.events
            else "Nothing: the next write puts them aside."
        )
        yield Finding("store", BAD if report.tail.events else NOTE, str(report.tail), do)
    yield from _head_notes(report, project)


def _head_notes(report: VerifyReport, project: Path) -> Iterator[Finding]:
    note = head_file(project)
    if note is None:
        yield _note("head note", "there is no home to keep it in", "Set XDG_STATE_HOME, or give head_file.")
    elif report.remembered == "kept":
        yield _ok("head note", f"the head that was seen last is there, as {note} says")
    elif report.remembered in ("lost", "unknown", "unreadable"):
        do = "If that was meant, such as a checkout: chronomemory accept-head. Else restore a backup."
        yield _bad("head note", report.remembered_reason or report.remembered, do)
    else:
        yield _note("head note", "no head was seen here before", "Nothing: the next write leaves a note.")


def _locks(here: Session, project: Path) -> Iterator[Finding]:
    path = log_folder(project) / "lock"
    if not path.exists():
        yield _ok("locks", "nobody has written yet")
        return
    with path.open("rb") as file:
        content = file.read(_MARKED_BYTES * 4)
        if len(content) >= _MARKED_BYTES:
            words = content.rstrip(b"\0 \n").decode("utf-8", "replace")
            yield _bad("locks", f"a sync failed: {words}", "See to the disk, then run chronomemory repair.")
            return
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = content.decode("utf-8", "replace").strip() or "another process"
            yield _note("locks", f"held now by {holder}", "Wait: a lock goes with the process that holds it.")
        else:
            # The file itself always stays: the system lets go of a lock when its process ends.
            yield _ok("locks", "nobody holds the lock, and none can be left behind")


def _disk(here: Session, project: Path) -> Iterator[Finding]:
    health = here.store.health()
    if health.poisoned is not None:
        yield _bad(
            "disk", f"writes are refused: {health.poisoned}", "See to the disk, then run chronomemory repair."
        )
    free = health.disk_free_bytes
    if free is None:
        yield _note("disk", "how much room is left cannot be told", "Look with df.")
    elif free < _LITTLE_BYTES:
        yield _bad("disk", f"only {size(free)} are free", "Make room: a write that finds none is refused.")
    else:
        yield _ok("disk", f"{size(free)} free, the log has {size(health.log_bytes)}")


def _index(here: Session, project: Path) -> Iterator[Finding]:
    health = here.store.health()
    if health.text_index_seq is None:
        yield _ok("index", "no text index on disk: the first search of a process reads all records")
    else:
        behind = max(health.last_seq - health.text_index_seq, 0)
        text = f"text index up to event {health.text_index_seq:,}; a search reads the {behind:,} since"
        yield _ok("index", text)
    if health.indexes:
        yield _ok("index", f"{counted(health.indexes, 'field')} with an index of its own")


def _mcp(here: Session, project: Path) -> Iterator[Finding]:
    try:
        version = importlib.metadata.version("mcp")
    except importlib.metadata.PackageNotFoundError:
        yield _note("mcp", "the MCP server is not installed", 'To use it: pip install "chronomemory-rs[mcp]"')
        return
    began = time.perf_counter()
    done = subprocess.run(
        command_of(project, ["--read-only"]),
        input=json.dumps(_HELLO).encode() + b"\n",
        capture_output=True,
        timeout=_GIVEN_UP_SECONDS,
        check=False,
    )
    seconds = time.perf_counter() - began
    if b'"serverInfo"' not in done.stdout:
        output = done.stderr.decode("utf-8", "replace").strip().splitlines()[-2:] or ["it says nothing"]
        yield _bad(
            "mcp",
            f"the server does not start: {' '.join(output)}",
            "Run chronomemory mcp and read what it says.",
        )
    elif seconds > _SLOW_SECONDS:
        do = "Give the client a longer start-up time; a busy machine or a cold disk may be why."
        yield _note("mcp", f"mcp {version}: started, answered and ended in {seconds:.1f} s", do)
    else:
        yield _ok("mcp", f"mcp {version}: started, answered and ended in {seconds:.1f} s")


_LOOKS: tuple[Look, ...] = (_versions, _folder, _store, _locks, _disk, _index, _mcp)
