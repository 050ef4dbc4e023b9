"""Logs open as other tools write them, and only what is really broken is called broken."""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoRecord, ChronoStore
from chronomemory.errors import LogCorrupted

COMPACT = (",", ":")
SPACED = (", ", ": ")
Event = dict[str, Any]


def foreign_log(
    count: int = 3,
    *,
    payload: tuple[str, str] = SPACED,
    label: str = "grüße {}",
    **changes: Any,
) -> list[Event]:
    """Write events as a tool does that has only the standard library."""
    events: list[Event] = []
    for seq in range(1, count + 1):
        record = ChronoRecord(id=f"R-{seq}", label=label.format(seq)).to_dict()
        event: Event = {
            "seq": seq,
            "ts": f"2026-01-01T00:00:{seq:02}Z",
            "op": "upsert",
            "record_id": record["id"],
            "record": record,
            "prev_hash": events[-1]["hash"] if events else "",
            "recursion_depth": 0,
            **changes,
        }
        text = json.dumps(event, sort_keys=True, separators=payload, ensure_ascii=False)
        event["hash"] = hashlib.sha256(text.encode()).hexdigest()
        events.append(event)
    return events


def lines_of(events: list[Event], **options: Any) -> list[bytes]:
    return [json.dumps(event, **{"ensure_ascii": False, **options}).encode() for event in events]


def put(project: Path, data: bytes) -> ChronoStore:
    (project / ".chronomemory").mkdir()
    (project / ".chronomemory" / "events.wal").write_bytes(data)
    return ChronoStore(project)


def joined(lines: list[bytes], end: bytes = b"\n") -> bytes:
    return b"".join(line + end for line in lines)


GOOD = {
    "older payload": joined(lines_of(foreign_log())),
    "current payload": joined(lines_of(foreign_log(payload=COMPACT))),
    "compact line, older payload": joined(lines_of(foreign_log(), separators=COMPACT)),
    "sorted keys": joined(lines_of(foreign_log(), sort_keys=True)),
    "escaped non-ASCII": joined(lines_of(foreign_log(), ensure_ascii=True)),
    "CRLF": joined(lines_of(foreign_log()), b"\r\n"),
    "blank lines": b"\n  \n" + joined(lines_of(foreign_log()), b"\n\n\r\n") + b"\n",
    "unknown fields": joined(lines_of([{**e, "host": "here"} for e in foreign_log()])),
    "line separators in a label": joined(lines_of(foreign_log(label="a\u2028b\x85c\u2029 {}"))),
    "migrate is an upsert": joined(lines_of(foreign_log(op="migrate"))),
    "timestamps of other shapes": joined(lines_of(foreign_log(ts="yesterday"))),
}


@pytest.mark.parametrize("data", GOOD.values(), ids=GOOD.keys())
def test_it_opens_and_verifies_and_can_be_written_to(tmp_path: Path, data: bytes) -> None:
    with put(tmp_path, data) as store:
        assert [record.id for record in store.query()] == ["R-1", "R-2", "R-3"]
        report = store.verify()
        assert report.valid
        assert (report.events, report.last_seq, report.tail) == (3, 3, None)
        assert store.upsert(ChronoRecord(id="OURS")).seq == 4
        assert store.chain_valid()
    log = tmp_path / ".chronomemory" / "events.wal"
    assert log.read_bytes().startswith(data)
    with ChronoStore(tmp_path, strict=True) as store:
        assert store.record_count() == 4
        store.compact()
        assert store.chain_valid()
        assert store.record_count() == 4


def test_unknown_fields_stay_out_of_the_state_and_are_reported(tmp_path: Path) -> None:
    with put(tmp_path, GOOD["unknown fields"]) as store:
        assert "host" not in store.export_records()[0]
        assert any("fields" in note for note in store.verify().notes)


def test_unknown_operations_are_in_the_chain_and_change_nothing(tmp_path: Path) -> None:
    with put(tmp_path, joined(lines_of(foreign_log(op="annotate")))) as store:
        assert store.query(status="") == []
        assert store.chain_valid()
        assert len(store.replay()) == 3


def test_a_record_with_few_fields_gets_the_defaults(tmp_path: Path) -> None:
    record = {"id": "FEW", "label": "short", "colour": "red"}
    data = joined(lines_of(foreign_log(1, record=record, record_id="FEW")))
    with put(tmp_path, data) as store:
        assert store.query() == [ChronoRecord(id="FEW", label="short")]
        assert store.chain_valid()


EVENTS = lines_of(foreign_log())
WRONG_SEQ = lines_of(foreign_log(seq="two"))
BROKEN = {
    "garbage between": (joined([EVENTS[0], b"!! garbage !!", *EVENTS[1:]]), ["R-1", "R-2", "R-3"]),
    "a line changed": (
        joined([EVENTS[0], EVENTS[1].replace(b"gr\xc3\xbc", b"GR\xc3\xbc"), EVENTS[2]]),
        ["R-1", "R-3"],
    ),
    "a line gone": (joined([EVENTS[0], EVENTS[2]]), ["R-1", "R-3"]),
    "lines swapped": (joined([EVENTS[0], EVENTS[2], EVENTS[1]]), ["R-1", "R-3", "R-2"]),
    "a seq that is no number": (joined([*EVENTS, WRONG_SEQ[0]]), ["R-1", "R-2", "R-3"]),
    "a binary line in front": (b"\x00\xff\x01BIN\x00\n" + joined(EVENTS), ["R-1", "R-2", "R-3"]),
    "a binary prefix": (b"\x00\xff\x01BIN\x00" + joined(EVENTS), ["R-2", "R-3"]),
    "no hash": (
        joined([EVENTS[0].replace(b'"hash":', b'"hush":'), *EVENTS[1:]]),
        ["R-2", "R-3"],
    ),
}


#: What is broken at its end is not written to before a repair.
WITHOUT_END = ("lines swapped", "a seq that is no number")


@pytest.mark.parametrize("how", BROKEN)
def test_what_is_broken_is_named_and_the_rest_is_loaded(tmp_path: Path, how: str) -> None:
    data, loaded = BROKEN[how]
    store = put(tmp_path, data)
    assert store.chain_valid() is False
    with pytest.warns(RuntimeWarning, match="damage"):
        store.open()
    assert [record.id for record in store.query()] == loaded
    with pytest.raises(LogCorrupted) if how in WITHOUT_END else contextlib.nullcontext():
        store.upsert(ChronoRecord(id="OURS"))
    assert store.chain_valid() is False
    store.close()
    assert (tmp_path / ".chronomemory" / "events.wal").read_bytes().startswith(data)


def test_a_partial_last_line_is_a_tail_and_no_break(tmp_path: Path) -> None:
    store = put(tmp_path, joined(EVENTS) + EVENTS[0][:50])
    assert store.chain_valid()
    with pytest.warns(RuntimeWarning, match="uncommitted"):
        assert store.record_count() == 3
    store.close()


@pytest.mark.parametrize("data", [b"", b"\n\n \t \r\n"])
def test_an_empty_log_is_an_empty_store(tmp_path: Path, data: bytes) -> None:
    with put(tmp_path, data) as store:
        assert store.record_count() == store.wal_seq() == 0
        assert store.chain_valid()
        assert store.upsert(ChronoRecord(id="A")).prev_hash == ""
        assert store.chain_valid()


def test_a_left_over_temporary_file_is_removed_at_the_next_write(tmp_path: Path) -> None:
    left_over = tmp_path / ".chronomemory" / "events.wal.tmp"
    with put(tmp_path, joined(EVENTS)) as store:
        left_over.write_bytes(b"half a log")
        assert store.record_count() == 3
        store.upsert(ChronoRecord(id="A"))
        assert not left_over.exists()
        assert store.chain_valid()


def test_our_events_can_be_read_with_the_standard_library(store: ChronoStore, log: Path) -> None:
    store.upsert_many([{"id": "A", "label": "ä\u2028"}, {"id": "B", "confidence": 1e-05}])
    store.delete("A")
    previous = ""
    for line in log.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        claimed = event.pop("hash")
        text = json.dumps(event, sort_keys=True, separators=COMPACT, ensure_ascii=False)
        assert hashlib.sha256(text.encode()).hexdigest() == claimed
        assert event["prev_hash"] == previous
        previous = claimed
    assert previous == store.health().head
