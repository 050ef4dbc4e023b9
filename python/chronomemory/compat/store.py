"""The methods of stores that are kept for the tools whose API this package took over."""

from __future__ import annotations

import os
from typing import Any, Protocol

from chronomemory.compat import metrics, migrate
from chronomemory.face.arguments import public_names
from chronomemory.filters import Where
from chronomemory.selection import engine_of, query_terms
from chronomemory.types import HasEngine, Progress, VerifyReport
from chronomemory.upkeep import BackedUp, Compacted, Upkeep

__all__ = ["RecordNames", "StoreNames"]


class _Store(HasEngine, Protocol):
    @property
    def upkeep(self) -> Upkeep: ...

    def verify(self) -> VerifyReport: ...


@public_names
class RecordNames:
    """The methods that a handle of a scope has too."""

    def record_count(self: HasEngine, *, expired: bool = False) -> int:
        """Return how many plain records are active."""
        return engine_of(self, expired).count()

    def export_records(
        self: HasEngine, *, status: str | None = "active", faces: bool = False, where: Where | None = None
    ) -> list[dict[str, Any]]:
        """Return own plain records of a status as dicts, expired ones too, for which ``where`` holds."""
        engine = self.engine.with_expired()
        terms = query_terms("export_records", status=status, faces=faces, where=where)
        found = engine.export(terms)
        if not any(engine.scope_names() or ()):
            return found
        owned = engine.are_own([record["id"] for record in found])
        return [record for record, is_own in zip(found, owned, strict=True) if is_own]

    record_token_metric = metrics.record_token_metric
    get_token_metrics = metrics.get_token_metrics
    token_efficiency_report = metrics.token_efficiency_report
    find_skills = metrics.find_skills
    record_skill_run = metrics.record_skill_run


@public_names
class StoreNames:
    """The methods that only a store has."""

    def wal_seq(self: HasEngine) -> int:
        """Return the seq of the last event, 0 when there is none."""
        return self.engine.last_seq()

    def chain_valid(self: _Store) -> bool:
        """Return whether the files on disk are unaltered as far as a chain can prove it."""
        return self.verify().valid

    def compact(self: _Store, *, keep_history: bool = True, progress: Progress | None = None) -> Compacted:
        """Start a new log from the present state; see ``Upkeep.compact``."""
        return self.upkeep.compact(keep_history=keep_history, progress=progress)

    def backup(
        self: _Store,
        *,
        to: str | os.PathLike[str] | None = None,
        keep: int | None = None,
        progress: Progress | None = None,
    ) -> BackedUp:
        """Make a consistent copy and return where it is; see ``Upkeep.backup``."""
        return self.upkeep.backup(to=to, keep=keep, progress=progress)

    migrate_from_json = migrate.migrate_from_json
    _governance_to_esdb_status = staticmethod(migrate._governance_to_esdb_status)
