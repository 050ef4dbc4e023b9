"""Says when a rule is due: after so many new episodes, or at times that a cron expression names."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from chronomemory.episodes.errors import ConsolidationRuleError
from chronomemory.episodes.models import ConsolidationRule

__all__ = ["Cadence", "Cron", "Every", "cadence_of"]

#: A module of its own, since it needs a parser that not everybody has.
_CRONS = "chronomemory.episodes.crons"


@dataclass(frozen=True)
class Every:
    """After so many new episodes that match."""

    episodes: int

    def is_due(self, new: int) -> bool:
        """Say whether there are enough."""
        return new >= self.episodes


@dataclass(frozen=True)
class Cron:
    """At the times of a cron expression, in UTC."""

    expression: str

    def is_due(self, since: datetime, now: datetime) -> bool:
        """Say whether one of its times has come since a moment; a wrong clock told one that is ahead."""
        if since > now:
            return True
        following: datetime | None = importlib.import_module(_CRONS).next_after(self.expression, since)
        return following is not None and following <= now


Cadence: TypeAlias = Every | Cron


def cadence_of(rule: ConsolidationRule) -> Cadence:
    """Take the cadence of a rule, and check what else a runner needs of it."""
    if not rule.id.strip():
        raise ConsolidationRuleError(rule_id=rule.id, violation="id must not be blank")
    if any(not channel.strip() for channel in rule.then_emits):
        raise ConsolidationRuleError(rule_id=rule.id, violation="then_emits must not hold a blank channel")
    return _taken(rule.id, rule.cadence)


def _taken(rule_id: str, cadence: dict[str, Any]) -> Cadence:
    match cadence:
        case {"every": int(number), **rest} if not rest and not isinstance(number, bool) and number >= 1:
            return Every(number)
        case {"cron": str(expression), **rest} if not rest:
            fault = importlib.import_module(_CRONS).check(expression)
            if fault is None:
                return Cron(expression)
            raise ConsolidationRuleError(rule_id=rule_id, violation=f"cadence.cron: {fault}")
        case _:
            raise ConsolidationRuleError(
                rule_id=rule_id,
                violation=f'cadence must be {{"every": N}}, N from 1 on, or {{"cron": "…"}}, got {cadence}',
            )
