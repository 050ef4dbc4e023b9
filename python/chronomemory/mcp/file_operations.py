"""Keeps which edits of files were done, beside the pages: one that is repeated is not done again.

A batch belongs to one face, so what the tools of memories keep beside blocks is kept here in the record of
the folder, in the same batch as the edit. It holds the latest ones: who repeats a call does it soon.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chronomemory.face.batch import Connection
from chronomemory.mcp.once import Operation
from chronomemory.mcp.served_store import ServedStore
from chronomemory.pages.ids import folder_key
from chronomemory.pages.storage.home import Home

__all__ = ["KEPT_OPERATIONS", "FileOperation"]

#: How many are kept of a folder.
KEPT_OPERATIONS = 50
_FIELD = "operations"


@dataclass(frozen=True)
class FileOperation:
    """One edit under its operation id; without an id nothing is kept of it."""

    operation: Operation

    @classmethod
    def of(cls, served: ServedStore, operation_id: str, tool: str, **asked: Any) -> FileOperation:
        """Take an operation id as a caller gives it; an empty one is none."""
        return cls(Operation.of(operation_id, served.scope, tool, asked))

    def check(self, home: Home) -> None:
        """Raise if it was done before; who comes here is the only writer of the folder."""
        if self.operation.operation_id:
            known = _kept(home.books() or {}).get(self.operation.name)
            self.operation.compare(known[1] if known else None)

    def keep(self, home: Home, conn: Connection, result: str) -> None:
        """Write it down in the batch, with what the call will answer; the oldest are let go."""
        if not self.operation.operation_id:
            return
        key = folder_key(home.digits)
        record = conn.record(key)
        kept = _kept({} if record is None else record.data)
        oldest = sorted(kept, key=lambda name: kept[name][0])[: max(len(kept) - KEPT_OPERATIONS + 1, 0)]
        number = max((number for number, _ in kept.values()), default=0) + 1
        said = [number, self.operation.said({"result": result})]
        changed = {**dict.fromkeys(oldest), self.operation.name: said}
        conn.patch(key, {"data": {_FIELD: changed}})


def _kept(books: dict[str, Any]) -> dict[str, tuple[int, str]]:
    """Return number and words of each; what somebody else put there is none."""
    told = books.get(_FIELD)
    pairs = told.items() if isinstance(told, dict) else ()
    return {
        name: (said[0], said[1])
        for name, said in pairs
        if isinstance(said, list) and len(said) == 2 and isinstance(said[0], int) and isinstance(said[1], str)
    }
