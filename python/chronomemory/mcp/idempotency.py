"""Operation ids: a repeated call answers with the result of the first one.

The operation is written in the same atomic batch as the write, and the batch fails if another process wrote
that operation. Beside blocks it is a record of their face, beside plain records a plain one, because a batch
belongs to one face.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chronomemory._core import canonical_json
from chronomemory.blocks.ids import CONFIG, config_key
from chronomemory.errors import InvalidArgument
from chronomemory.face.arguments import must
from chronomemory.face.batch import Connection
from chronomemory.mcp.served_store import OPERATION_LETTERS
from chronomemory.record import OPERATION_KIND, ChronoRecord
from chronomemory.scope import Scope, carrying
from chronomemory.store import Records
from chronomemory.updates import Look

_DIGITS = 32

#: Where a result names memories, and where it lists them.
_NAMING, _LISTING = ("memory_id", "superseded_id"), "doubted"


class RepeatedError(Exception):
    """The operation was done before; ``result`` is what the first call answered."""

    def __init__(self, result: dict[str, Any]) -> None:
        super().__init__("the operation was done before")
        self.result = result


@dataclass(frozen=True, slots=True)
class Operation:
    """One call under its operation id; without an id nothing is kept of it."""

    operation_id: str
    scope: Scope
    #: The tool and the digest of what it was asked: the same id with another question is a mistake.
    tool: str
    call: str

    @classmethod
    def of(cls, operation_id: str, scope: Scope, tool: str, asked: Mapping[str, Any]) -> Operation:
        """Take an operation id as a caller gives it; an empty one is none."""
        if len(operation_id) > OPERATION_LETTERS:
            raise must("operation_id", f"have at most {OPERATION_LETTERS} characters", operation_id)
        call = hashlib.sha256(canonical_json({"tool": tool, "asked": dict(asked)})).hexdigest()
        return cls(operation_id, scope, tool, call[:_DIGITS])

    @property
    def name(self) -> str:
        return hashlib.sha256(self.operation_id.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]

    @property
    def _block_key(self) -> str:
        return config_key(f"operation.{self.name}", self.scope)

    @property
    def _plain_key(self) -> str:
        digits = self.scope.digits
        return f"OPERATION-{self.name}@{digits}" if digits else f"OPERATION-{self.name}"

    @property
    def keys(self) -> list[str]:
        """The ids under which the operation may be stored; none without an operation id."""
        return [self._block_key, self._plain_key] if self.operation_id else []

    def check(self, door: Records) -> None:
        """Raise if the operation was done before."""
        for key in self.keys:
            self._compare(door.get(key))

    def begin_blocks(self, conn: Connection) -> None:
        """Raise if the operation was done before, and fail the batch if another writer does it meanwhile.

        The batch has fetched ``keys``: without that a face does not see plain records.
        """
        for key in self.keys:
            self._compare(conn.record(key))

    def keep_beside_blocks(self, conn: Connection, result: Mapping[str, Any]) -> None:
        """Write it down in the batch, with what the call will answer."""
        if self.operation_id:
            data = self._kept(result)
            conn.put(ChronoRecord(id=self._block_key, kind=CONFIG, data=data))

    def beside_records(self, look: Look, result: Mapping[str, Any]) -> list[ChronoRecord]:
        """Mind it in a batch of plain records, and return what belongs into that batch."""
        if not self.operation_id:
            return []
        for key in (self._plain_key, self._block_key):
            self._compare(look.get(key))
        data = self._kept(result)
        return [ChronoRecord(id=self._plain_key, kind=OPERATION_KIND, confidence=1.0, data=data)]

    def _kept(self, result: Mapping[str, Any]) -> dict[str, Any]:
        """Return the data of its record: scope, content, and the memories it is erased with."""
        wrote = [*(result[name] for name in _NAMING if name in result), *result.get(_LISTING, ())]
        return carrying(self.scope, {"value": self.content(result), "wrote": wrote})

    def content(self, result: Mapping[str, Any]) -> str:
        """Return the stored content: the call and its result."""
        return canonical_json({"tool": self.tool, "call": self.call, "result": dict(result)}).decode()

    def _compare(self, known: ChronoRecord | None) -> None:
        self.compare(None if known is None or known.status == "tombstone" else known.data["value"])

    def compare(self, kept: str | None) -> None:
        """Raise if the stored operation is this call, or another one."""
        if kept is None:
            return
        stored = json.loads(kept)
        if stored.get("call") != self.call:
            raise InvalidArgument(
                f"operation_id: it was used for another call, of {stored.get('tool')}",
                field="operation_id",
                recovery="Give each call an operation_id of its own; repeat a call with the same arguments.",
            )
        raise RepeatedError(stored["result"])
