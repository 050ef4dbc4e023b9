"""Checks that the rows of embeddings are those that the log names. Section 9 of docs/format.md."""

import hashlib
import io
import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from erased_lines import base_records
from retired_log import merged

Verdict = dict[str, Any]
NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")
MAX_DIM = 65_536
#: As many rows of a space are reported one by one; the others are counted in a note.
MOST_FINDINGS = 100


def hearing(log_class: Any) -> Any:
    """A log that also remembers the events about embeddings, and where the commit that says it begins."""

    class Hearing(log_class):  # type: ignore[misc]
        def __init__(self, stream: BinaryIO, synced: bytes) -> None:
            self.embeddings: list[tuple[int, dict[str, Any]]] = []
            self.broken: set[int] = set()
            super().__init__(stream, synced)
            whole = (one for one in self.embeddings if one[0] not in self.broken)
            self.embeddings = [(at, event) for at, event in whole if at < self.committed_end]

        def _takes(self, line: Any) -> bool:
            events, batch = self.known.events, self._batch
            taken: bool = super()._takes(line)
            if taken and self.known.events > events:
                event = json.loads(line.raw)
                if event["record_id"].startswith("vector:"):
                    member = batch is not None and batch.seq < event["seq"] <= batch.last
                    self.embeddings.append((batch.begin.offset if member else line.offset, event))
            return taken

        def _close(self, batch: Any) -> None:
            super()._close(batch)
            if batch.damaged or batch.expected <= batch.last:
                self.broken.add(batch.begin.offset)

    return Hearing


def applied(records: dict[str, Any], event: dict[str, Any]) -> None:
    """Let an event change what is known."""
    name, op, record = event["record_id"], event["op"], event["record"]
    if op in ("upsert", "migrate"):
        records[name] = record or {}
    elif op == "patch":
        records[name] = merged(records.get(name, {}), record or {})
    elif op == "delete" and name in records:
        records[name] = {**records[name], "status": "tombstone"}


def spaces_in(records: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """The dimension and the generation of each space: those of its record, or of groups that are further."""
    found: dict[str, tuple[int, int]] = {}
    latest: dict[str, int] = {}
    for name, record in records.items():
        data, space = record.get("data"), name.removeprefix("vector:")
        if not isinstance(data, dict) or not NAME.fullmatch(space):
            continue
        dim: Any = data.get("dim")
        generation: Any = data.get("generation")
        if type(generation) is int and generation >= 0:
            latest[space] = generation
            if data.get("space") == space and isinstance(data.get("model"), str) and is_dim(dim):
                found[space] = (dim, generation)
    for name, record in records.items():
        space, data = name.removeprefix("vector:").rpartition(":")[0], record.get("data")
        if not NAME.fullmatch(space) or not isinstance(data, dict) or not isinstance(data.get("ids"), list):
            continue
        dim, generation = data.get("dim"), data.get("generation")
        if is_dim(dim) and type(generation) is int and generation > latest.get(space, -1):
            latest[space] = generation
            found[space] = (dim, generation)
    return found


def is_dim(dim: Any) -> bool:
    return type(dim) is int and 1 <= dim <= MAX_DIM


def opened(folder: Any, name: str) -> BinaryIO:
    """The rows in a file, or none where there are none to read."""
    try:
        rows: BinaryIO = folder.open(name) if folder.exists(name) else io.BytesIO()
        return rows
    except OSError:
        return io.BytesIO()


def rows_of(name: str, record: dict[str, Any]) -> Iterator[tuple[int, str, str]]:
    """The rows that a group names and that were not taken back: number, record, digest."""
    data = record.get("data")
    if not isinstance(data, dict):
        return
    row, ids, digests = data.get("row"), data.get("ids"), data.get("sha256")
    if not isinstance(ids, list) or not isinstance(digests, list) or len(ids) != len(digests):
        return
    if not isinstance(row, int) or row < 0 or name != f"vector:{data.get('space')}:{row}":
        return
    gone = data.get("gone") if isinstance(data.get("gone"), dict) else {}
    for number, (owner, digest) in enumerate(zip(ids, digests, strict=True), start=row):
        if not {str(number), f"{data.get('generation')}:{number}"} & (gone or {}).keys():
            yield number, owner, digest


def bad_rows(folder: Any, records: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A finding for every row that is not what the log says."""
    for space, (dim, generation) in sorted(spaces_in(records).items()):
        path, stride = f"vectors/{space}.{generation}.f32", 4 * dim
        groups = [name for name in records if name.rpartition(":")[0] == f"vector:{space}"]
        with opened(folder, path) as rows:
            for name in groups:
                of = (records[name].get("data") or {}).get("generation")
                for number, owner, digest in (
                    rows_of(name, records[name]) if of in range(generation + 1) else ()
                ):
                    rows.seek(number * stride)
                    row = rows.read(stride) if of == generation else b""
                    if len(row) < stride or hashlib.sha256(row).hexdigest() != digest:
                        kind = "row-altered" if len(row) == stride else "row-missing"
                        reason = f"row {number}, the embedding of {owner!r}, is not what the log says"
                        where = {"path": f"vectors/{space}.{of}.f32", "offset": number * stride}
                        yield {**where, "line": 0, "seq": None, "kind": kind, "reason": reason}


def judge(found: Verdict, folder: Any, log_class: Any) -> Verdict:
    """Add what is to be said about rows to the verdict on a folder."""
    log = hearing(log_class)(folder.log, folder.synced)
    named = base_records(folder, log.known.first)
    records = {one["id"]: one for one in named if one["id"].startswith("vector:")}
    for _, event in log.embeddings:
        applied(records, event)
    bad = list(bad_rows(folder, records))
    counts: dict[str, int] = {}
    for one in bad:
        counts[one["path"]] = counts.get(one["path"], 0) + 1
        if counts[one["path"]] <= MOST_FINDINGS:
            found["damage"].append(one)
    more = {path: count - MOST_FINDINGS for path, count in counts.items() if count > MOST_FINDINGS}
    found["notes"] += [f"{count} more rows of {path} are damaged" for path, count in more.items()]
    return {**found, "valid": not found["damage"]}
