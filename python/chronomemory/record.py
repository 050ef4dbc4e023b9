"""A record: one belief, with where it comes from."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from chronomemory._core import canonical_json, sha256_hex, unset_attribute
from chronomemory.scope import Scope

#: A belief below this never reaches a prompt.
RAG_CONFIDENCE = 0.6

OPERATION_KIND = "mcp_operation"

#: Kinds that keep the books; they are no knowledge and stay out of answers and prompts.
INFRASTRUCTURE_KINDS = frozenset({"edge", "rollback_event", "token_metric", "skill_run", OPERATION_KIND})


def words(text: str) -> frozenset[str]:
    """Split a text into its words, regardless of case: how labels, goals and skills meet."""
    return frozenset(re.findall(r"\w+", text.casefold()))


def _fresh(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _fresh(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_fresh(item) for item in value]
    return value


#: Seq and moment of the event that made a record, of the last that spoke of it, and whether it is in doubt.
_MOMENTS = struct.Struct("<4qB")
_CREATED_SEQ, _CREATED, _UPDATED_SEQ, _UPDATED, _DOUBT = range(5)
_DOUBTS = (
    None,
    "a damaged line of the log names this record, and what it said cannot be read",
    "a later line of the log is damaged or missing, and may have changed this record",
)
_UNKNOWN = -(2**63)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_VERSION_BYTES = 8


def _moment(micros: int) -> datetime | None:
    try:
        return None if micros == _UNKNOWN else _EPOCH + timedelta(0, 0, micros)
    except OverflowError:  # another tool wrote it, and no calendar has it
        return None


def _version(packed: bytes) -> str:
    content = packed[_MOMENTS.size :]
    return content.hex() if len(content) == _VERSION_BYTES else sha256_hex(content)[: 2 * _VERSION_BYTES]


class _Stored:
    """What a store adds to the fields of a record that it returns."""

    # What the engine packed of the record: moments, doubt, and its canonical JSON or the beginning of its
    # digest. While it is in `_unread`, the fields are unset; then `_unread` is None.
    __slots__ = ("_origin", "_unread")
    _origin: bytes
    _unread: bytes | None

    if not TYPE_CHECKING:  # which would let a record have attributes of any name

        def __getattr__(self, name: str) -> Any:
            return unset_attribute(self, name)

    @property
    def created_at(self) -> datetime | None:
        """When the record was made; None if that is not known, or if no store handed it out."""
        return self._moment(_CREATED)

    @property
    def updated_at(self) -> datetime | None:
        """When an event spoke of it last, as of the answer that it came with; None as above."""
        return self._moment(_UPDATED)

    @property
    def created_seq(self) -> int | None:
        """The seq of the event that made it; None as above."""
        return self._seq(_CREATED_SEQ)

    @property
    def updated_seq(self) -> int | None:
        """The seq of the event that spoke of it last; None as above."""
        return self._seq(_UPDATED_SEQ)

    @property
    def in_doubt(self) -> str | None:
        """Why a later change of this record may be missing, until ``repair()`` or a new write; or None."""
        packed = self._packed()
        return None if packed is None else _DOUBTS[_MOMENTS.unpack_from(packed)[_DOUBT]]

    @property
    def version(self) -> str | None:
        """The stored record in 16 hex digits: the beginning of the SHA-256 of its canonical JSON."""
        packed = self._packed()
        return None if packed is None else _version(packed)

    def moments_and_version(self) -> tuple[datetime | None, datetime | None, str | None]:
        """Return ``created_at``, ``updated_at`` and ``version`` in one look: many results tell all three."""
        packed = self._packed()
        if packed is None:
            return None, None, None
        moments = _MOMENTS.unpack_from(packed)
        created, updated = moments[_CREATED], moments[_UPDATED]
        made = _moment(created)
        return made, made if updated == created else _moment(updated), _version(packed)

    def _packed(self) -> bytes | None:
        return getattr(self, "_unread", None) or getattr(self, "_origin", None)

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        """Return the fields, and what was packed of this record alone, to be copied or pickled."""
        slots = {name: getattr(self, name) for name in _FIELDS}
        packed = self._packed()
        return None, slots if packed is None else {**slots, "_origin": packed}

    def _seq(self, place: int) -> int | None:
        packed = self._packed()
        seq: int = -1 if packed is None else _MOMENTS.unpack_from(packed)[place]
        return None if seq < 0 else seq

    def _moment(self, place: int) -> datetime | None:
        packed = self._packed()
        return None if packed is None else _moment(_MOMENTS.unpack_from(packed)[place])


@dataclass(slots=True)
class ChronoRecord(_Stored):
    """One belief with its provenance. Only ``id`` has no usable default: a write needs one.

    What a store hands out also tells ``created_at``, ``updated_at``, ``created_seq``, ``updated_seq``,
    ``version`` and ``in_doubt``. They are no fields: not written, not compared, and None in a record that was
    made by hand.

    >>> ChronoRecord(id="FACT-1", label="Water freezes at 0 °C", confidence=1.0).kind
    'fact'
    """

    id: str = ""
    kind: str = "fact"
    status: str = "active"
    label: str = ""
    confidence: float = 0.7
    source_type: str = "observed"
    evidence: list[str] = field(default_factory=list)
    epistemic_boundary: list[str] = field(default_factory=list)
    is_hypothesis: bool = False
    model_assumptions: dict[str, Any] = field(default_factory=dict)
    recursion_depth: int = 0
    data: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return all twelve fields in their order; nothing inside is shared with the record."""
        return {name: _fresh(getattr(self, name)) for name in _FIELDS}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> ChronoRecord:
        """Make a record of a mapping: unknown keys are ignored, missing ones defaulted."""
        return cls(**{name: _fresh(fields[name]) for name in _FIELDS if name in fields})

    @property
    def scope(self) -> Scope | None:
        """Whose it is: the names that it carries, none for what all share, None for what is no scope."""
        return Scope.carried_by(self.data)

    def passes_rag_filter(self) -> bool:
        """Say whether this may be put into a prompt: active, and believed enough."""
        return self.status == "active" and self.confidence >= RAG_CONFIDENCE


_FIELDS = tuple(ChronoRecord.__dataclass_fields__)


def is_same(one: object, other: object) -> bool:
    """Say whether two values are the same bytes in the log; what cannot be written is like nothing.

    To Python ``1``, ``1.0`` and ``True`` are equal, and NumPy casts what it compares. To the log they differ.

    >>> is_same((1, 2), [1, 2]), is_same(1, 1.0), is_same(1, True), is_same(0.0, -0.0)
    (True, False, False, False)
    """
    try:
        return canonical_json(one) == canonical_json(other)
    except (ValueError, TypeError):
        return False


def leaves(value: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Return every value inside an object by its path.

    >>> leaves({"a": 1, "b": {"c": 2}})
    {'a': 1, 'b.c': 2}
    """
    found: dict[str, Any] = {}
    for name, inner in value.items():
        if isinstance(inner, dict):
            found |= leaves(inner, f"{path}{name}.")
        else:
            found[f"{path}{name}"] = inner
    return found
