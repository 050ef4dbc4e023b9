"""A damaged line is found again whoever wrote it, and if not, it is said of whom it spoke."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from chronomemory import ChronoRecord, ChronoStore
from recovering import quiet

SPACED = (", ", ": ")


def repair(project: Path) -> dict[str, Any]:
    with quiet(), ChronoStore(project) as store:
        return store.upkeep.repair()


def foreign(project: Path, payload: tuple[str, str]) -> bytes:
    """A log as a tool writes it that has only the standard library; its bytes."""
    lines, prev = [], ""
    for seq, label in enumerate(["tea", 'grün, "hot"', "later"], 1):
        record = ChronoRecord(id=f"R-{seq}", label=label, data={"zeta": [1, None], "b": {"c": 2.5}}).to_dict()
        event: dict[str, Any] = {
            "seq": seq,
            "ts": f"2026-01-01T00:00:{seq:02}Z",
            "op": "upsert",
            "record_id": record["id"],
            "record": record,
            "prev_hash": prev,
        }
        event["recursion_depth"] = 0
        text = json.dumps(event, sort_keys=True, separators=payload, ensure_ascii=False)
        event["hash"] = prev = hashlib.sha256(text.encode()).hexdigest()
        lines.append(json.dumps(event, ensure_ascii=False).encode() + b"\n")
    (project / ".chronomemory").mkdir(parents=True)
    (project / ".chronomemory" / "events.wal").write_bytes(b"".join(lines))
    return b"".join(lines)


def break_line(project: Path, *marks: bytes) -> None:
    """Make a line illegible that holds all of these words, its moment too: nobody else tells that."""
    log = project / ".chronomemory" / "events.wal"
    lines = log.read_bytes().split(b"\n")
    (number,) = [number for number, line in enumerate(lines) if all(mark in line for mark in marks)]
    lines[number] = lines[number].replace(b'"op"', b'"OP"').replace(b'"ts":"2', b'"TS":"?')
    log.write_bytes(b"\n".join(lines))


def test_a_line_that_names_two_records_puts_none_on_hold(tmp_path: Path) -> None:
    whole = foreign(tmp_path, SPACED)
    damaged = whole.replace(b"hot", b"HOT").replace(b'"record_id": "R-2"', b'"record_id" :"R-1"')
    (tmp_path / ".chronomemory" / "events.wal").write_bytes(damaged)
    told = repair(tmp_path)
    (lost,) = told["lost"]
    assert lost.startswith("event 2 lost")
    assert told["unsettled"] == []


def test_records_of_a_batch_that_does_not_count_are_on_hold(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "A", "label": "old"})
        store.upsert_many([{"id": "A", "label": "new"}, {"id": "B", "label": "last"}])
    (tmp_path / ".chronomemory" / "synced").unlink()
    break_line(tmp_path, b'"last"')
    told = repair(tmp_path)
    assert any("broken-batch" in lost for lost in told["lost"])
    assert told["unsettled"] == ["A"]
