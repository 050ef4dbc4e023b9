"""Makes a store as an erasure leaves it, by hand from section 16 of docs/format.md; no verifier is in it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cases_base import folder_case, state_file
from cases_packed import frame
from craft import Case, Chain, sha256

Lines = list[bytes]
ZEROS = bytes(32)
REMOVED = {"backups": 0, "quarantine": 0}


def added_up(before: dict[str, Any], lines: Lines) -> dict[str, Any]:
    """The records after these lines, by their ids, as far as plain upserts and deletions go."""
    known = dict(before)
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        name = event.get("record_id")
        if event.get("op") in ("upsert", "erase"):
            known[name] = {**event["record"], "id": name}
        elif event.get("op") == "delete" and name in known:
            known[name] = {**known[name], "status": "tombstone"}
    return known


def redacted(line: bytes) -> bytes:
    """What is left of a line."""
    event = json.loads(line)
    return f'{{"erased":{event["seq"]},"hash":"{event["hash"]}"}}\n'.encode()


def spoken_of(line: bytes) -> str | None:
    """The record that a line is of; none if it was erased, or is no line."""
    try:
        name = json.loads(line).get("record_id")
    except ValueError:
        return None
    return None if name is None else str(name)


def hash_of(line: bytes) -> str:
    return str(json.loads(line)["hash"])


def trail_after(start: bytes, lines: Lines) -> str:
    """The trail behind these lines; none of the logs here has as many as would make it begin anew."""
    return hashlib.sha256(start + b"".join(bytes.fromhex(hash_of(line)) for line in lines)).hexdigest()


@dataclass
class Retired:
    """A log that was retired: its lines as they are now, its file, and the records that it started from."""

    lines: Lines
    name: str
    digest: str
    first: int
    last: int
    before: dict[str, Any]
    base: str | None
    erased: int = 0


class ErasedStore:
    """A store of version 2: its live log, the logs before it, and the files beside them."""

    def __init__(self, chain: Chain, with_trail: bool = True) -> None:
        self.chain, self.with_trail = chain, with_trail
        self.past: list[Retired] = []
        self.records: dict[str, Any] = {}
        self.base: str | None = None
        self.start, self.start_seq = ZEROS, chain.next_seq - len(chain.lines)
        self.files: dict[str, bytes] = {}

    def _retire(self, lines: Lines, erased: int, plain: bool = False) -> Retired:
        """Pack the live log, with these lines in the place of its own."""
        first, last = self.chain.next_seq - len(self.chain.lines), self.chain.next_seq - 1
        content = b"".join(lines) if plain else frame(b"".join(lines))
        name = f"archive/{first}-{last}-{sha256(content)[:16]}.wal{'' if plain else '.zst'}"
        self.files[name + ".erased" * bool(erased)] = content
        return Retired(lines, name, sha256(content), first, last, self.records, self.base, erased)

    def _base(self, records: dict[str, Any]) -> str:
        content = state_file(self.chain.next_seq - 1, self.chain.head, [*records.values()])
        self.files[f"base/{sha256(content)}.json"] = content
        return sha256(content)

    def _begin(self, retired: Retired | None, base: str, honest: str, **more: Any) -> None:
        first = self.chain.next_seq - len(self.chain.lines)
        data: dict[str, Any] = {
            "previous_head": self.chain.head,
            "first_seq": first,
            "last_seq": self.chain.next_seq - 1,
            "events": len(self.chain.lines),
            "base_sha256": base,
            "archive": retired.name if retired else None,
            "archive_sha256": retired.digest if retired else None,
        }
        if self.with_trail:
            data |= {"trail": honest, "trail_from": self.start_seq}
        data = {key: value for key, value in {**data, **more}.items() if value is not ...}
        record = {"id": "__compact__", "kind": "fact", "data": data}
        self.chain = Chain(self.chain.next_seq).add(op="compact", record_id="__compact__", record=record)
        if "trail" in data:
            self.start, self.start_seq = bytes.fromhex(honest), data["trail_from"]
        else:
            self.start, self.start_seq = ZEROS, self.chain.next_seq - 1
        self.base = base

    def compact(self, keep: bool = True, plain: bool = False, **more: Any) -> ErasedStore:
        """An ordinary compaction of version 2."""
        trail = trail_after(self.start, self.chain.lines)
        retired = self._retire([*self.chain.lines], 0, plain) if keep else None
        self.past = [*self.past, retired] if retired else []
        self.records = added_up(self.records, self.chain.lines)
        records = more.pop("records", self.records)
        self._begin(retired, self._base(records), trail, **more)
        return self

    def _redact_past(self, ids: set[str]) -> tuple[list[dict[str, Any]], int]:
        """Rewrite archives and bases of the past that hold any of these records."""
        replaced, lines = list[dict[str, Any]](), 0
        for number, one in enumerate(self.past):
            hit = [spoken_of(line) in ids for line in one.lines]
            if one.base and ids & one.before.keys():
                old = self.files.pop(f"base/{one.base}.json", None)
                one.before = {name: record for name, record in one.before.items() if name not in ids}
                new = None
                if number == 0 and old:
                    told = json.loads(old)
                    content = state_file(told["seq"], told["last_hash"], [*one.before.values()])
                    new = sha256(content)
                    self.files[f"base/{new}.json"] = content
                replaced.append({"old": one.base, "new": new})
                one.base = new
            if any(hit):
                del self.files[one.name + ".erased" * bool(one.erased)]
                pairs = zip(one.lines, hit, strict=True)
                one.lines = [redacted(line) if is_hit else line for line, is_hit in pairs]
                content = frame(b"".join(one.lines))
                one.erased += sum(hit)
                replaced.append({"old": one.digest, "new": sha256(content), "erased": one.erased})
                one.digest = sha256(content)
                one.name = f"archive/{one.first}-{one.last}-{one.digest[:16]}.wal.zst"
                self.files[one.name + ".erased"] = content
                lines += sum(hit)
        return replaced, lines

    def erase(
        self,
        *ids: str,
        spoil: Callable[[Lines], Lines] = lambda lines: lines,
        event: dict[str, Any] | None = None,
        records: Callable[[dict[str, Any]], dict[str, Any]] = lambda known: known,
        listed: Callable[[list[dict[str, Any]]], list[dict[str, Any]]] = lambda all: all,
        history: str = "redacted",
        follows: bool = True,
        **more: Any,
    ) -> ErasedStore:
        """An erasure; what is given makes it another than it should be."""
        gone, live = set(ids), self.chain.lines
        honest = trail_after(self.start, live)
        hit = [json.loads(line)["record_id"] in gone for line in live]
        seqs = [json.loads(line)["seq"] for line, is_hit in zip(live, hit, strict=True) if is_hit]
        pairs = zip(live, hit, strict=True)
        left = spoil([redacted(line) if is_hit else line for line, is_hit in pairs])
        known = added_up(self.records, live)
        replaced, lines = ([], 0) if history == "dropped" else self._redact_past(gone)
        if self.base and history == "redacted" and gone & self.records.keys():
            self.records = {name: record for name, record in self.records.items() if name not in gone}
            replaced += self._replace_base()
        retired = self._retire(left, sum(hit)) if history == "redacted" else None
        if retired is None:
            self.files, self.past, replaced = {}, [], []
        self.past = [*self.past, retired] if retired else []
        self.records = {name: record for name, record in known.items() if name not in gone}
        told = {"erased": sum(hit) if retired else 0, "replaced": listed(replaced), "repaired": []}
        self._begin(retired, self._base(records(self.records)), honest, **{**told, **more})
        data = {
            "records": len(gone),
            "lines": sum(hit) + lines,
            "unsalted": sum(hit) + lines,
            "first_seq": min(seqs, default=None),
            "last_seq": max(seqs, default=None),
            "history": history,
            "removed": REMOVED,
            **(event or {}),
        }
        name = f"erasure:{self.chain.next_seq}"
        record = {"id": name, "kind": "erasure", "label": "asked for", "data": data}
        if follows:
            self.chain.add(op="erase", record_id=name, record=record)
        return self

    def _replace_base(self) -> list[dict[str, Any]]:
        """The base of the log that is being retired: rewritten if nothing is kept before it, else dropped."""
        old, content = self.base, self.files.pop(f"base/{self.base}.json")
        self.base = None
        if not self.past:
            told = json.loads(content)
            content = state_file(told["seq"], told["last_hash"], [*self.records.values()])
            self.base = sha256(content)
            self.files[f"base/{self.base}.json"] = content
        return [{"old": old, "new": self.base}]

    def case(self, name: str, note: str, *found: Any, files: dict[str, bytes] | None = None) -> Case:
        """A case in which the lines of the live log are sound."""
        beside = self.files if files is None else files
        return folder_case(name, self.chain.lines, beside, "anchored", note, *found)
