"""What can go wrong with episodes and facts, and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chronomemory.errors import ChronoError


class StoreError(ChronoError):
    """The root of these: ``message``, ``context`` with the details by name, ``recovery``."""

    usual_recovery = "Look at context for what it is about, correct it and call again."

    def __init__(self, message: str = "", *, recovery: str = "", **details: Any) -> None:
        super().__init__(message, recovery=recovery, **details)
        self.message = str(self)
        self.context: dict[str, Any] = details


class MigrationNotSupported(StoreError):
    """A plan has an operation other than adding a column that may be empty; nothing was changed."""

    usual_recovery = "Plan add_column operations with nullable=True, and nothing else."
    template = "{0.store}: {0.operation!r} is not supported: {0.reason}"

    store: str = ""
    operation: str = ""
    reason: str = ""


class MemoryScopeError(StoreError):
    """A name that is none, or something of another owner; nothing was written."""

    usual_recovery = "Name the user, session and agent whose episode or fact it is."
    template = "{0.operation}: {0.violation}"

    scope: str = ""
    operation: str = ""
    violation: str = ""


class ConsolidationRuleError(StoreError):
    """A bad rule or delta; ``deltas`` are the good ones, ``report`` is of the runner's other rules."""

    usual_recovery = "Correct what the message names in the rule or in the episodes, and consolidate again."

    rule_id: str = ""
    violation: str = ""
    delta_type: str = ""
    episode_ids: Sequence[str] = ()

    def __init__(
        self,
        message: str = "",
        *,
        rule_id: str = "",
        violation: str = "",
        delta_type: str = "",
        deltas: Sequence[Any] = (),
        episode_ids: Sequence[str] = (),
        report: Any = None,
        recovery: str = "",
    ) -> None:
        details: dict[str, Any] = {"delta_type": delta_type, "episode_ids": list(episode_ids)}
        given = {name: detail for name, detail in details.items() if detail}
        subject = f"{delta_type} of rule {rule_id!r}" if delta_type and rule_id else delta_type
        message = message or f"{subject or f'rule {rule_id!r}'}: {violation}"
        super().__init__(message, rule_id=rule_id, violation=violation, recovery=recovery, **given)
        self.deltas, self.episode_ids, self.report = list(deltas), list(episode_ids), report


class FactConflictError(StoreError):
    """A fact that is to be replaced or unpinned is not there; nothing was written."""

    usual_recovery = "Look the fact up with query(), or give missing_ok=True."
    template = "{0.operation}: there is no fact {0.fact_id!r}"

    fact_id: str = ""
    operation: str = ""
