"""What someone who may write the files can do to them, and what verify() should say.

One row an attack. A row whose rung is not built yet says so: then verify() must say that it cannot tell. To
switch a row on, put the verdict into it that is expected from now on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from chronomemory import ChronoStore
from chronomemory.types import VerifyReport

Attack = Callable[[Path], None]
NOT_BUILT = "not built: cannot tell"
#: The verdicts that a run saw: attack, rung, verdict, remark. The terminal summary shows them as one table.
SEEN = pytest.StashKey[list[tuple[str, str, str, str]]]()


@dataclass(frozen=True)
class Row:
    """An attack, the rung that answers it, and the verdict of that rung today."""

    attack: str
    do: Attack
    rung: str
    expected: str


def verdict(report: VerifyReport, rung: str) -> str:
    """What one rung of a report says, in the words of the table."""
    said = report.rungs[rung]
    if said == "cannot tell":
        return NOT_BUILT
    if rung == "chain" and report.damage:
        return "found: " + ", ".join(sorted({item.kind for item in report.damage}))
    return said


def build(project: Path) -> Path:
    """A store with history: an archive, a base, single writes, a batch; closed."""
    with ChronoStore(project, durability="full") as store:
        for number in range(4):
            store.upsert({"id": f"OLD-{number}", "label": "original"})
        store.compact()
        for number in range(4):
            store.upsert({"id": f"NEW-{number}", "label": "original"})
        store.upsert_many([{"id": f"B-{number}", "label": "original"} for number in range(3)])
        store.delete("NEW-1")
    return project / ".chronomemory"


def edit_lines(change: Callable[[list[bytes]], object]) -> Attack:
    def attack(folder: Path) -> None:
        log = folder / "events.wal"
        lines = log.read_bytes().splitlines(keepends=True)
        change(lines)
        log.write_bytes(b"".join(lines))

    return attack


def replace_in(pattern: str, old: bytes, new: bytes) -> Attack:
    def attack(folder: Path) -> None:
        path = next(folder.glob(pattern))
        content = path.read_bytes()
        assert old in content
        path.write_bytes(content.replace(old, new, 1))

    return attack


def flip_in(pattern: str) -> Attack:
    def attack(folder: Path) -> None:
        path = next(folder.glob(pattern))
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)

    return attack


def remove(pattern: str) -> Attack:
    return lambda folder: next(folder.glob(pattern)).unlink()


def swap(lines: list[bytes]) -> None:
    lines[2], lines[3] = lines[3], lines[2]


def forge(lines: list[bytes]) -> None:
    lines[2] = lines[2].replace(b"original", b"forgery!")


def cut_in_a_line(folder: Path) -> None:
    log = folder / "events.wal"
    log.write_bytes(log.read_bytes()[:-20])


def forge_and_rehash(folder: Path) -> None:
    """Rewrite everything with fresh hashes, the hint about the last sync included."""

    def change(lines: list[bytes]) -> None:
        head = ""
        for number, line in enumerate(lines):
            event = json.loads(line.replace(b"original", b"forgery!"))
            event["prev_hash"] = head
            del event["hash"]
            payload = json.dumps(event, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
            head = event["hash"] = hashlib.sha256(payload.encode()).hexdigest()
            whole = json.dumps(event, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
            lines[number] = whole.encode() + b"\n"

    edit_lines(change)(folder)
    (folder / "synced").unlink()


def forget(folder: Path) -> None:
    (folder / "events.wal").unlink()
    (folder / "synced").unlink()


ROWS = [
    Row("a line edited", edit_lines(forge), "chain", "found: altered"),
    Row("a line deleted", edit_lines(lambda lines: lines.pop(2)), "chain", "found: unlinked"),
    Row("a line doubled", edit_lines(lambda lines: lines.insert(2, lines[2])), "chain", "found: unlinked"),
    Row("two lines swapped", edit_lines(swap), "chain", "found: unlinked"),
    Row("garbage inserted", edit_lines(lambda lines: lines.insert(2, b"?\n")), "chain", "found: unreadable"),
    Row("cut inside a line", cut_in_a_line, "chain", "found: unreadable"),
    Row("base edited", replace_in("base/*", b"original", b"forgery!"), "chain", "found: base-altered"),
    Row("base removed", remove("base/*"), "chain", "found: base-missing"),
    Row("archive edited", flip_in("archive/*"), "chain", "found: archive-altered"),
    Row("archive removed", remove("archive/*"), "chain", "ok"),
    Row("snapshot edited", replace_in("snapshot.json", b"original", b"forgery!"), "chain", "ok"),
    Row("log removed", remove("events.wal"), "chain", "found: log-missing"),
    Row(
        "log emptied", lambda folder: (folder / "events.wal").write_bytes(b""), "chain", "found: log-missing"
    ),
    Row("tail cut at a line boundary", edit_lines(lambda lines: lines.pop()), "remembered", "lost"),
    Row("log removed, and the hint too", forget, "remembered", "lost"),
    Row("all rewritten with fresh hashes", forge_and_rehash, "signed", NOT_BUILT),
    Row("two histories for two readers", lambda folder: None, "witnessed", NOT_BUILT),
]

#: What a reader of the table should know where the verdict alone may mislead.
REMARKS = {
    "archive removed": "noted as history unavailable; dropping history is allowed",
    "snapshot edited": "never believed over base and log",
    "tail cut at a line boundary": "the chain alone is ok; noted if `synced` was left as it was",
}
