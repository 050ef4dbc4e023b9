"""Makes logs by hand, honest or not: the building blocks of the corpus; no verifier is in them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

UNLOADED = ("unreadable", "malformed", "altered")


def compact(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def spaced(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, ensure_ascii=False).encode()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass
class Case:
    """A log (or folder) and its verdict by hand; lines are counted from 1 and written as offsets."""

    name: str
    lines: list[bytes]
    note: str
    damage: list[tuple[int, str]] = field(default_factory=list)
    tail_line: int | None = None
    events: int = 0
    synced: bytes | None = None
    base: str = "none"
    files: dict[str, bytes] = field(default_factory=dict)  # beside the log, for folders
    folder_damage: list[Any] = field(default_factory=list)  # kinds found outside the log, or (kind, offset)
    scopes: list[list[Any]] = field(default_factory=list)  # kind, id and seq of records whose scope is wrong
    returned: list[str] = field(default_factory=list)  # files that an erasure took away, and that are back
    damaged_synced: bool = False  # `synced` is there, and not whole

    def without_events(self) -> Case:
        """The same, for lines that hold no event."""
        self.events = 0
        return self

    def offset(self, line: int) -> int:
        return sum(map(len, self.lines[: line - 1]))

    def verdict(self) -> dict[str, Any]:
        damage = [[self.offset(line), kind] for line, kind in self.damage]
        damage += [
            [0, found] if isinstance(found, str) else [found[1], found[0]] for found in self.folder_damage
        ]
        tail = None if self.tail_line is None else self.offset(self.tail_line)
        found = {
            "valid": not damage,
            "damage": damage,
            "tail_offset": tail,
            "events": self.events,
            "note": self.note,
        }
        if self.scopes:
            found["scopes"] = self.scopes
        if self.returned:
            found["returned"] = self.returned
        if self.damaged_synced:
            found["damaged_synced"] = True
        return {**found, "base": self.base} if self.files else found


def payload(seq: int, prev_hash: str, **changes: Any) -> dict[str, Any]:
    """The seven hashed fields of an ordinary upsert, with changes."""
    name = changes.get("record_id", f"r{seq}")
    usual = {
        "seq": seq,
        "ts": "2026-01-01T00:00:00.000000Z",
        "op": "upsert",
        "record_id": name,
        "record": {"id": name, "kind": "fact", "label": f"fact {seq}"},
        "prev_hash": prev_hash,
        "recursion_depth": 0,
    }
    return {**usual, **changes}


def own_line(fields: dict[str, Any], digest: str | None = None) -> bytes:
    """The line as we write it: hash first, canonical, the three line-end lookalikes escaped."""
    text = compact(fields)
    line = b'{"hash":"' + (digest or sha256(text)).encode() + b'",' + text[1:]
    for character in "\x85\u2028\u2029":
        line = line.replace(character.encode(), f"\\u{ord(character):04x}".encode())
    return line + b"\n"


class Chain:
    """A log under construction: knows the next seq and the hash the next line links to."""

    def __init__(self, first_seq: int = 1, head: str = "") -> None:
        self.lines: list[bytes] = []
        self.next_seq, self.head = first_seq, head

    def fields(self, **changes: Any) -> dict[str, Any]:
        """The payload of the next event; takes its seq."""
        seq = changes.pop("seq", self.next_seq)
        self.next_seq = seq + 1 if type(seq) is int else self.next_seq + 1
        return payload(seq, changes.pop("prev_hash", self.head), **changes)

    def put(self, line: bytes, digest: str | None = None) -> Chain:
        """Append a line as it is; with a digest, the next line links to it."""
        self.lines.append(line)
        self.head = digest or self.head
        return self

    def add(self, **changes: Any) -> Chain:
        """Append an honest line of ours."""
        fields = self.fields(**changes)
        return self.put(own_line(fields), sha256(compact(fields)))

    def add_many(self, count: int) -> Chain:
        for _ in range(count):
            self.add()
        return self

    def begin(self, events: int, **changes: Any) -> Chain:
        return self.add(op="begin", record_id="__begin__", record={"events": events}, **changes)

    def foreign(
        self, hashed_as: Any = compact, extra: dict[str, Any] | None = None, end: bytes = b"\n"
    ) -> Chain:
        """Append an honest line as other tools write it: insertion order, spaces, unknown fields if any."""
        fields = self.fields()
        digest = sha256(hashed_as(fields))
        line = json.dumps({**fields, "hash": digest, **(extra or {})}, ensure_ascii=False).encode()
        return self.put(line + end, digest)

    def spell(self, token: bytes, meaning: Any = ..., *, whole: bytes = b"%s\n") -> Chain:
        """Append a line of our form in which `token` stands for record.data.x.

        Its hash is right for `meaning`; without one it is the hash of the bytes as they are spelled, which a
        reader that hashes the line without understanding it would accept.
        """
        fields = self.fields()
        fields["record"]["data"] = {"x": "@"}
        text = compact(fields).replace(b'"@"', token)
        fields["record"]["data"] = {"x": meaning}
        digest = sha256(text if meaning is ... else compact(fields))
        return self.put(whole % (b'{"hash":"' + digest.encode() + b'",' + text[1:]), digest)


def sandwich(name: str, middle: Chain, kind: str | None, note: str) -> Case:
    """An honest line, the line in question, an honest line: only the second may be damaged."""
    damage = [(2, kind)] if kind else []
    return Case(name, middle.add().lines, note, damage, events=2 if kind in UNLOADED else 3)


def one() -> Chain:
    return Chain().add()


def synced_mark(offset: int, first: str, head: str, seq: int = 1, magic: bytes = b"CMSYNC\x00\x01") -> bytes:
    mark = (
        magic
        + offset.to_bytes(8, "little")
        + seq.to_bytes(8, "little")
        + bytes.fromhex(first)
        + bytes.fromhex(head)
    )
    return mark + hashlib.sha256(mark).digest()
