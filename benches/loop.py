"""The loop that a careful programmer would write without us: orjson, hashlib, one file, a dict.

The loop does what a log needs and nothing more: no lock, no sync, no check of what it is given, no
batch that is all or nothing. It writes the same bytes as the engine, so the engine's own
verification accepts its log: that is asserted wherever the loop is timed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any

import orjson

from benches.sample import Row

__all__ = ["Loop", "read_log"]

_UTC = timezone.utc
_OPTIONS = orjson.OPT_SORT_KEYS | orjson.OPT_UTC_Z


class Loop:
    """A log and the state that it leads to."""

    def __init__(self, log: Path) -> None:
        self.state: dict[str, Any] = {}
        self._seq = 0
        self._head = ""
        # Unbuffered: each write is one write(2), and there is nothing to flush.
        self._file = log.open("wb", buffering=0)

    def __enter__(self) -> Loop:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def upsert(self, record: Row) -> None:
        """Write one record with one write(2)."""
        self._seq += 1
        # orjson spells a datetime faster than isoformat() does.
        payload = orjson.dumps(
            {
                "op": "upsert",
                "prev_hash": self._head,
                "record": record,
                "record_id": record.id,
                "recursion_depth": 0,
                "seq": self._seq,
                "ts": datetime.now(_UTC),
            },
            option=_OPTIONS,
        )
        self._head = head = sha256(payload).hexdigest()
        self._file.write(b'{"hash":"%b",%b\n' % (head.encode(), payload[1:]))
        self.state[record.id] = record

    def upsert_many(self, records: Sequence[Row]) -> None:
        """Write records of one moment with one write(2)."""
        seq, head, state, lines = self._seq, self._head, self.state, []
        now = datetime.now(_UTC)
        for record in records:
            seq += 1
            payload = orjson.dumps(
                {
                    "op": "upsert",
                    "prev_hash": head,
                    "record": record,
                    "record_id": record.id,
                    "recursion_depth": 0,
                    "seq": seq,
                    "ts": now,
                },
                option=_OPTIONS,
            )
            head = sha256(payload).hexdigest()
            lines.append(b'{"hash":"%b",%b\n' % (head.encode(), payload[1:]))
            state[record.id] = record
        self._file.write(b"".join(lines))
        self._seq, self._head = seq, head

    def ingest(self, source: Path, batch: int) -> None:
        """Load a file of records, one object a line."""
        waiting = []
        with source.open("rb") as file:
            for line in file:
                waiting.append(Row(**orjson.loads(line)))
                if len(waiting) == batch:
                    self.upsert_many(waiting)
                    waiting.clear()
        if waiting:
            self.upsert_many(waiting)


def read_log(lines: Iterable[bytes], state: dict[str, tuple[str, str, bytes]] | None = None) -> int:
    """Prove every line, keep each record's kind, status and bytes in ``state``; count the events."""
    head, events = "", 0
    for line in lines:
        event = orjson.loads(line)
        digest = event.pop("hash")
        payload = orjson.dumps(event, option=orjson.OPT_SORT_KEYS)
        if event["prev_hash"] != head or sha256(payload).hexdigest() != digest or payload[1:] != line[75:-1]:
            raise ValueError(f"event {event['seq']} is damaged")
        head = digest
        events += 1
        record = event["record"]
        if state is not None and event["op"] == "upsert":
            state[event["record_id"]] = (record["kind"], record["status"], orjson.dumps(record))
    return events
