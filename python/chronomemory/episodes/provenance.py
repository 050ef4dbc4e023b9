"""Checks where a delta says it comes from."""

from __future__ import annotations

import math
from typing import Any

from chronomemory.episodes.errors import ConsolidationRuleError
from chronomemory.episodes.models import (
    AddDelta,
    DeleteDelta,
    MemoryDelta,
    NoopDelta,
    UpdateDelta,
)
from chronomemory.errors import InvalidArgument
from chronomemory.face.moments import parse_instant

__all__ = ["check_provenance", "step_of", "step_violation"]

#: By the class, for deltas that no validation has seen.
_KINDS = {AddDelta: "add", UpdateDelta: "update", DeleteDelta: "delete", NoopDelta: "noop"}


def check_provenance(delta: MemoryDelta) -> None:
    """Refuse a delta that does not say which rule made it of which episodes, when, and how sure it is."""
    violation = _violation(delta)
    if violation is not None:
        raise ConsolidationRuleError(
            rule_id=delta.rule_id, delta_type=_KINDS.get(type(delta), ""), violation=violation
        )


def _violation(delta: MemoryDelta) -> str | None:
    if not delta.rule_id.strip():
        return "rule_id must not be blank"
    if not delta.source_episode_ids:
        return "source_episode_ids must not be empty"
    if not all(source.strip() for source in delta.source_episode_ids):
        return "source_episode_ids must not hold a blank id"
    if delta.promotion_ts.utcoffset() is None:
        return "promotion_ts must have a time zone"
    if not math.isfinite(delta.confidence) or not 0.0 <= delta.confidence <= 1.0:
        return f"confidence must be from 0 to 1, got {delta.confidence!r}"
    if isinstance(delta, UpdateDelta | DeleteDelta):
        if not delta.replaces:
            return "replaces must not be empty"
        if not all(fact_id.strip() for fact_id in delta.replaces):
            return "replaces must not hold a blank id"
    return None


def step_of(delta: MemoryDelta) -> dict[str, Any]:
    """Return what a delta adds to the lineage of a fact."""
    return {
        "rule_id": delta.rule_id,
        "source_episode_ids": list(delta.source_episode_ids),
        "promotion_ts": delta.promotion_ts.isoformat(),
    }


def step_violation(step: dict[str, Any]) -> str | None:
    """Return what is wrong with a step that somebody wrote by hand, or None."""
    rule_id, sources = step.get("rule_id"), step.get("source_episode_ids")
    if not isinstance(rule_id, str) or not rule_id.strip():
        return "rule_id must be text that is not blank"
    if not isinstance(sources, list) or not all(isinstance(one, str) and one.strip() for one in sources):
        return "source_episode_ids must be a list of ids that are not blank"
    try:
        parse_instant("promotion_ts", step.get("promotion_ts"))
    except InvalidArgument as error:
        return str(error)
    return None
