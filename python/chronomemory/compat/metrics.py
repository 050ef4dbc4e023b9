"""Records what the work cost, and finds the skills that fit it."""

from __future__ import annotations

import secrets
import time
from typing import Any

from chronomemory.face.arguments import contents, count, string
from chronomemory.record import ChronoRecord, words
from chronomemory.types import Readable, Writable

__all__ = [
    "find_skills",
    "get_token_metrics",
    "record_skill_run",
    "record_token_metric",
    "token_efficiency_report",
]


@contents
def record_token_metric(
    store: Writable,
    task_id: str,
    context_tokens: int,
    input_tokens: int,
    output_tokens: int,
    tool_calls: int = 0,
    elapsed_ms: int = 0,
    success: bool = True,
    duplicates_blocked: int = 0,
    claims_rejected: int = 0,
) -> ChronoRecord:
    """Write down what one task cost; return the record as it was written."""
    string("task_id", task_id, empty=False)
    counted = {
        "context_tokens": context_tokens,
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
        "tool_calls": tool_calls,
        "elapsed_ms": elapsed_ms,
        "duplicates_blocked": duplicates_blocked,
        "claims_rejected": claims_rejected,
    }
    counted = {name: count(name, value, most=None) for name, value in counted.items()}
    data = {
        "task_id": task_id,
        **counted,
        "success": bool(success),
        "total_tokens": sum(counted[f"{name}_tokens"] for name in ("context", "input", "output")),
    }
    record = ChronoRecord(
        id=_new_id("METRIC", task_id),
        kind="token_metric",
        label=f"Tokens of {task_id}",
        confidence=1.0,
        data=data,
    )
    store.upsert(record)
    return record


def get_token_metrics(store: Readable, task_id: str) -> list[ChronoRecord]:
    """Return the metrics of one task, oldest first."""
    return [r for r in store.query(kind="token_metric") if r.data.get("task_id") == task_id]


def token_efficiency_report(store: Readable) -> dict[str, float]:
    """Summarise all metrics; tokens per success are of successful tasks, the others are means."""
    metrics = [record.data for record in store.query(kind="token_metric")]
    won = [_number(data, "total_tokens") for data in metrics if data.get("success") is True]
    return {
        "tokens_per_success": _mean(won),
        "avg_tool_calls": _mean([_number(data, "tool_calls") for data in metrics]),
        "duplicate_block_rate": _mean([_number(data, "duplicates_blocked") for data in metrics]),
    }


def find_skills(store: Readable, label: str) -> list[ChronoRecord]:
    """Return the skills that one of the label's words activates."""
    wanted = words(string("label", label))
    found = []
    for record in store.query(kind="skill"):
        given = record.data.get("activation")
        phrases = given if isinstance(given, list) else [given]
        if wanted & words(" ".join(phrase for phrase in phrases if isinstance(phrase, str))):
            found.append(record)
    return found


@contents
def record_skill_run(
    store: Writable, skill_id: str, success: bool, tokens_used: int, output: Any
) -> ChronoRecord:
    """Write down one run of a skill; a failed one is believed half."""
    string("skill_id", skill_id, empty=False)
    tokens_used = count("tokens_used", tokens_used, most=None)
    record = ChronoRecord(
        id=_new_id("SKILLRUN", skill_id),
        kind="skill_run",
        label=f"Run of {skill_id}",
        confidence=1.0 if success else 0.5,
        data={
            "skill_id": skill_id,
            "success": bool(success),
            "tokens_used": tokens_used,
            "output": output,
        },
    )
    store.upsert(record)
    return record


def _new_id(prefix: str, name: str) -> str:
    """Return an id that does not depend on what other scopes hold: the millisecond and random digits."""
    return f"{prefix}-{name}-{time.time_ns() // 1_000_000}-{secrets.token_hex(8)}"


def _number(data: dict[str, Any], name: str) -> float:
    value = data.get(name, 0)
    return value if isinstance(value, int | float) else 0


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0
