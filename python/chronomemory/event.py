"""What does one line of the log say?"""

from __future__ import annotations

from typing import Any

from chronomemory._core import canonical_json, event_hash, parse_json
from chronomemory.errors import InvalidRecord

__all__ = ["WalEvent"]

_FIELDS = ("seq", "ts", "op", "record_id", "record", "prev_hash", "hash", "recursion_depth")

#: Line ends to careless readers: written escaped in the line, though raw in the hashed payload.
_CARELESS_LINE_ENDS = str.maketrans({"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})


class WalEvent:
    """One event: what happened to which record, chained to the event before.

    An event that comes from the log keeps its line and reads it at the first look at a field:
    a writer who ignores what ``upsert`` returns does not pay for parsing it.
    """

    __slots__ = (*_FIELDS, "_line")

    seq: int
    ts: str
    op: str
    record_id: str
    record: dict[str, Any] | None
    prev_hash: str
    hash: str
    recursion_depth: int
    _line: bytes

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
        self.seq = seq
        self.ts = ts
        self.op = op
        self.record_id = record_id
        self.record = record
        self.prev_hash = prev_hash
        self.hash = hash
        self.recursion_depth = recursion_depth

    @classmethod
    def _of_line(cls, line: bytes) -> WalEvent:
        """Wrap a line that the engine vouches for; it is parsed when someone looks."""
        event = cls.__new__(cls)
        event._line = line
        return event

    @classmethod
    def from_json_line(cls, line: str | bytes) -> WalEvent:
        """Read a line of either dialect, with or without its line end; other keys are ignored."""
        return cls(**_fields_of(line.encode("utf-8") if isinstance(line, str) else line))

    def to_json_line(self) -> str:
        """Write the event as our own log does: hash first, keys sorted, without the newline."""
        text = canonical_json({name: getattr(self, name) for name in _FIELDS}).decode("utf-8")
        return text.translate(_CARELESS_LINE_ENDS)

    def compute_hash(self) -> str:
        """Return the hash that the seven other fields ask for; ``hash`` itself stays as it is."""
        return event_hash({name: getattr(self, name) for name in _FIELDS if name != "hash"})

    def __getattr__(self, name: str) -> Any:
        # Reached only for a slot that is not filled yet. A field that was assigned before the
        # line was read must keep what it was given.
        if name not in _FIELDS:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        fields = _fields_of(object.__getattribute__(self, "_line"))
        for field in _FIELDS:
            try:
                object.__getattribute__(self, field)
            except AttributeError:
                setattr(self, field, fields[field])
        return fields[name]

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in _FIELDS)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WalEvent):
            return NotImplemented
        return self._values() == other._values()

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[type[WalEvent], tuple[Any, ...]]:
        return (type(self), self._values())

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={getattr(self, name)!r}" for name in _FIELDS)
        return f"WalEvent({inside})"


def _fields_of(line: bytes) -> dict[str, Any]:
    parsed = parse_json(line)
    if not isinstance(parsed, dict):
        raise InvalidRecord("the line is no JSON object, so it is no event")
    for name in _FIELDS:
        if name not in parsed:
            raise InvalidRecord(f"the line has no field {name!r}", field=name)
    return {name: parsed[name] for name in _FIELDS}
