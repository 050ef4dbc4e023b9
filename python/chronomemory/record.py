"""What is one belief, and where does it come from?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["INFRASTRUCTURE_KINDS", "RAG_CONFIDENCE", "ChronoRecord", "words"]

#: A belief below this never reaches a prompt.
RAG_CONFIDENCE = 0.6

#: Kinds that keep the books; they are no knowledge and stay out of answers and prompts.
INFRASTRUCTURE_KINDS = frozenset({"edge", "rollback_event", "token_metric", "skill_run"})


def words(text: str) -> frozenset[str]:
    """Split a text into its words, regardless of case: how labels, goals and skills meet."""
    return frozenset(re.findall(r"\w+", text.casefold()))


def _fresh(value: Any) -> Any:
    """Copy the containers of a JSON value, so that two holders never share one."""
    if isinstance(value, dict):
        return {key: _fresh(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_fresh(item) for item in value]
    return value


@dataclass(slots=True)
class ChronoRecord:
    """One belief with its provenance. Only ``id`` has no usable default: a write needs one.

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

    def passes_rag_filter(self) -> bool:
        """Say whether this may be put into a prompt: active, and believed enough."""
        return self.status == "active" and self.confidence >= RAG_CONFIDENCE


_FIELDS = tuple(ChronoRecord.__dataclass_fields__)
