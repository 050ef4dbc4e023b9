"""A damaged line is found again whoever wrote it, and if not, it is said of whom it spoke."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoRecord, ChronoStore
from recovering import labels, quiet

COMPACT = (",", ":")
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


def damages(whole: bytes, step: int) -> Iterator[tuple[str, bytes]]:
    # The last newline makes a line: without it there is a tail, which nobody promised.
    for at in range(0, len(whole) - 1, step):
        yield f"altered at {at}", whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :]
        yield f"lost at {at}", whole[:at] + whole[at + 1 :]
        yield f"slipped in at {at}", whole[:at] + b"7" + whole[at:]
        yield f"cut at {at}", whole[:at] + b"\n" + whole[at + 1 :]
        yield f"parted at {at}", whole[:at] + b"\n" + whole[at:]


@pytest.mark.parametrize("payload", [SPACED, COMPACT], ids=["spaced", "compact"])
def test_any_single_byte_of_a_foreign_log_comes_back(tmp_path: Path, payload: tuple[str, str]) -> None:
    whole = foreign(tmp_path / "whole", payload)
    truth = labels(tmp_path / "whole")
    assert len(truth) == 3
    project = tmp_path / "broken"
    for what, damaged in damages(whole, 47):
        shutil.rmtree(project, ignore_errors=True)
        (project / ".chronomemory").mkdir(parents=True)
        (project / ".chronomemory" / "events.wal").write_bytes(damaged)
        with quiet(), ChronoStore(project) as store:
            told = store.upkeep.repair() if not store.verify().valid else {"lost": []}
        assert told["lost"] == [], what
        assert labels(project) == truth, what


def break_line(project: Path, *marks: bytes) -> None:
    """Make a line illegible that holds all of these words, its moment too: nobody else tells that."""
    log = project / ".chronomemory" / "events.wal"
    lines = log.read_bytes().split(b"\n")
    (number,) = [number for number, line in enumerate(lines) if all(mark in line for mark in marks)]
    lines[number] = lines[number].replace(b'"op"', b'"OP"').replace(b'"ts":"2', b'"TS":"?')
    log.write_bytes(b"\n".join(lines))


@pytest.fixture
def embedded(tmp_path: Path) -> Path:
    with ChronoStore(tmp_path) as store:
        store.upsert_many([{"id": "A", "label": "one"}, {"id": 'B"q"', "label": "two"}])
        store.vectors.attach_many(["A", 'B"q"'], [[1.0, 0.0], [0.0, 1.0]], model="m")
    return tmp_path


def test_a_lost_detach_names_the_record(embedded: Path) -> None:
    with ChronoStore(embedded) as store:
        assert store.vectors.detach('B"q"')
        store.upsert({"id": "later"})
    break_line(embedded, b'"gone"')
    told = repair(embedded)
    (lost,) = told["lost"]
    assert r'the embedding of "B\"q\"" in space "default" may be an older one' in lost
    assert '"A"' not in lost
    assert told["unsettled"] == []
    with ChronoStore(embedded) as store:
        record = store.get('B"q"')
        assert record is not None
        assert (record.status, record.label, record.data) == ("active", "two", {})


def test_a_lost_attach_names_the_record(embedded: Path) -> None:
    with ChronoStore(embedded) as store:
        store.vectors.attach("A", [0.6, 0.8])
        store.upsert({"id": "later"})
    break_line(embedded, b'"ids":["A"]')
    told = repair(embedded)
    (lost,) = told["lost"]
    assert 'the embedding of "A" in space "default" may be an older one' in lost
    assert told["unsettled"] == []
    with ChronoStore(embedded) as store:
        assert {record.id for record in store.query()} == {"A", 'B"q"', "later"}
        assert store.vectors.get("A") is not None


def test_a_lost_foreign_line_puts_its_record_on_hold(tmp_path: Path) -> None:
    whole = foreign(tmp_path, SPACED)
    damaged = whole.replace(b"hot", b"HOT").replace(b'"record_id": "R-2"', b'"record_id" :"R-1"')
    (tmp_path / ".chronomemory" / "events.wal").write_bytes(damaged)
    told = repair(tmp_path)
    (lost,) = told["lost"]
    assert '"R-1", "R-2"' in lost
    assert told["unsettled"] == ["R-1"]


def test_a_lost_begin_tells_how_long_its_batch_was(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert_many([{"id": "A"}, {"id": "B"}, {"id": "C"}])
    break_line(tmp_path, b'"begin"')
    (lost, *_) = repair(tmp_path)["lost"]
    assert "the begin of a batch of 3" in lost


def test_a_batch_that_does_not_count_names_its_records(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "A", "label": "old"})
        store.upsert_many([{"id": "A", "label": "new"}, {"id": "B", "label": "last"}])
    (tmp_path / ".chronomemory" / "synced").unlink()
    break_line(tmp_path, b'"last"')
    told = repair(tmp_path)
    assert any("broken-batch" in lost and lost.endswith('; it speaks of "A"') for lost in told["lost"])
    assert told["unsettled"] == ["A"]
