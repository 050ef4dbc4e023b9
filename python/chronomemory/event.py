"""One event of the log as a Python object."""

from __future__ import annotations

import re
from typing import Any

from chronomemory._core import canonical_json, event_hash, parse_json
from chronomemory.errors import InvalidRecord

_FIELDS = ("seq", "ts", "op", "record_id", "record", "prev_hash", "hash", "recursion_depth")

#: The key of the salt in a record, and what a salt looks like.
_SALT_KEY, _SALT = "~", re.compile("[A-Za-z0-9_-]{16}")

#: Some readers take these for line ends: they are escaped in a line, and raw in the hashed payload.
_LINE_ENDS = str.maketrans({end: f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"})


class WalEvent:
    """One event: what happened to which record, chained to the event before.

    The line of an event that comes from the log is parsed when a field is read first.
    """

    __slots__ = ("_line", "_record", *(name for name in _FIELDS if name != "record"))

    seq: int
    ts: str
    op: str
    record_id: str
    prev_hash: str
    hash: str
    recursion_depth: int
    _record: dict[str, Any] | None
    #: The line, or its fields once it is parsed.
    _line: bytes | dict[str, Any]

    def __init__(
        self,
        seq: int = 0,
        ts: str = "",
        op: str = "upsert",
        record_id: str = "",
        record: dict[str, Any] | None = None,
        prev_hash: str = "",
        hash: str = "",
        recursion_depth: int = 0,
    ) -> None:
        self.seq, self.ts, self.op, self.record_id, self._record = seq, ts, op, record_id, record
        self.prev_hash, self.hash, self.recursion_depth = prev_hash, hash, recursion_depth

    def __getattr__(self, name: str) -> Any:
        field = name.removeprefix("_")
        if name not in self.__slots__ or field not in _FIELDS:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if isinstance(self._line, bytes):
            self._line = _fields_of(self._line)
        value = self._line[field]
        setattr(self, name, value)
        return value

    @property
    def record(self) -> dict[str, Any] | None:
        """The record that the event writes, without the salt, which belongs to the line."""
        record = self._record
        if (
            isinstance(record, dict)
            and isinstance(salt := record.get(_SALT_KEY), str)
            and _SALT.fullmatch(salt)
        ):
            return {key: value for key, value in record.items() if key != _SALT_KEY}
        return record

    @record.setter
    def record(self, record: dict[str, Any] | None) -> None:
        self._record = record

    @classmethod
    def _of_line(cls, line: bytes) -> WalEvent:
        """Wrap a line that the engine has checked."""
        event = cls.__new__(cls)
        event._line = line
        return event

    @classmethod
    def from_json_line(cls, line: str | bytes) -> WalEvent:
        """Read a line of either dialect, with or without its line end; other keys are ignored."""
        return cls(**_fields_of(line.encode() if isinstance(line, str) else line))

    def to_json_line(self) -> str:
        """Write the event as our own log does: hash first, keys sorted, without the newline."""
        return canonical_json(self._fields()).decode().translate(_LINE_ENDS)

    def compute_hash(self) -> str:
        """Return the hash of the seven other fields; ``hash`` itself stays as it is."""
        return event_hash(self._fields())

    def _fields(self) -> dict[str, Any]:
        values = (self._record if name == "record" else getattr(self, name) for name in _FIELDS)
        return dict(zip(_FIELDS, values, strict=True))

    def __eq__(self, other: object) -> bool:
        return self._fields() == other._fields() if isinstance(other, WalEvent) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[type[WalEvent], tuple[Any, ...]]:
        return type(self), tuple(self._fields().values())

    def __repr__(self) -> str:
        fields = (f"{name}={value!r}" for name, value in self._fields().items())
        return f"{type(self).__name__}({', '.join(fields)})"


def _fields_of(line: bytes) -> dict[str, Any]:
    parsed = parse_json(line)
    if not isinstance(parsed, dict):
        raise InvalidRecord("line: it is no JSON object, so it is no event", field="line", path="line")
    for name in _FIELDS:
        if name not in parsed:
            raise InvalidRecord(f"{name}: the line does not have it", field=name, path=name)
    return {name: parsed[name] for name in _FIELDS}
