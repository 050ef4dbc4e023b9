"""What can go wrong with episodes and facts, and nowhere else."""

# The names say what happened; the base class already says that it is an error.
# ruff: noqa: N818

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chronomemory.errors import ChronoError

__all__ = [
    "ConsolidationRuleError",
    "FactConflictError",
    "MemoryScopeError",
    "MigrationNotSupported",
    "StoreError",
]


class StoreError(ChronoError):
    """The root of these: ``message``, ``context`` with the details by name, ``recovery``."""

    usual_recovery = "Look at context for what it is about, correct it and call again."

    def __init__(
        self, message: str = "", *, context: dict[str, Any] | None = None, recovery: str = ""
    ) -> None:
        super().__init__(message, recovery=recovery)
        self.message = message
        self.context: dict[str, Any] = context or {}


class MigrationNotSupported(StoreError):
    """A plan has an operation other than adding a column that may be empty; nothing was changed."""

    usual_recovery = "Plan add_column operations with nullable=True, and nothing else."

    def __init__(
        self, message: str = "", *, store: str = "", operation: str = "", reason: str = "", recovery: str = ""
    ) -> None:
        context = {"store": store, "operation": operation, "reason": reason}
        super().__init__(
            message or f"{store}: {operation!r} is not supported: {reason}",
            context=context,
            recovery=recovery,
        )
        self.store, self.operation, self.reason = store, operation, reason


class MemoryScopeError(StoreError):
    """A name that is none, or something of another owner; nothing was written."""

    usual_recovery = "Name the user, session and agent whose episode or fact it is."

    def __init__(
        self,
        message: str = "",
        *,
        scope: str = "",
        operation: str = "",
        violation: str = "",
        recovery: str = "",
    ) -> None:
        context = {"scope": scope, "operation": operation, "violation": violation}
        super().__init__(message or f"{operation}: {violation}", context=context, recovery=recovery)
        self.scope, self.operation, self.violation = scope, operation, violation


class ConsolidationRuleError(StoreError):
    """A rule or a delta that makes no sense; ``deltas`` are those of the same pass that do.

    ``report`` is what a runner did with its other rules; None where it is not from a runner.
    """

    usual_recovery = "Correct what the message names in the rule or in the episodes, and consolidate again."

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
        context: dict[str, Any] = {"rule_id": rule_id, "violation": violation}
        if delta_type:
            context["delta_type"] = delta_type
        if episode_ids:
            context["episode_ids"] = list(episode_ids)
        subject = f"{delta_type} of rule {rule_id!r}" if delta_type and rule_id else delta_type
        subject = subject or f"rule {rule_id!r}"
        super().__init__(message or f"{subject}: {violation}", context=context, recovery=recovery)
        self.rule_id, self.violation, self.delta_type = rule_id, violation, delta_type
        self.deltas, self.episode_ids = list(deltas), list(episode_ids)
        self.report = report


class FactConflictError(StoreError):
    """A fact that is to be replaced or unpinned is not there; nothing was written."""

    usual_recovery = "Look the fact up with query(), or give missing_ok=True."

    def __init__(
        self, message: str = "", *, fact_id: str = "", operation: str = "", recovery: str = ""
    ) -> None:
        context = {"fact_id": fact_id, "operation": operation}
        super().__init__(
            message or f"{operation}: there is no fact {fact_id!r}", context=context, recovery=recovery
        )
        self.fact_id, self.operation = fact_id, operation
