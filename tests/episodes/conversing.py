"""What the tests of episodes share: episodes and rules in one line."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from chronomemory.episodes import ConsolidationRule, Episode, Episodes

START = datetime(2026, 5, 18, 9, tzinfo=timezone.utc)


def episode(
    name: str,
    content: str = "",
    *,
    user: str = "ann",
    session: str = "s1",
    agent: str = "helper",
    minute: float = 0,
    source_node: str = "chat",
    **metadata: Any,
) -> Episode:
    return Episode(
        id=name,
        content=content or name,
        timestamp=START + timedelta(minutes=minute),
        source_node=source_node,
        user=user,
        session=session,
        agent=agent,
        metadata=metadata,
    )


def put(episodes: Episodes, *given: Episode) -> None:
    for one in given:
        episodes.put(one, user=one.user, session=one.session, agent=one.agent)


def rule(
    when_filter: str = "", *, name: str = "rule", then_emits: list[str] | None = None, **cadence: Any
) -> ConsolidationRule:
    return ConsolidationRule(
        id=name, cadence=cadence or {"every": 1}, when_filter=when_filter, then_emits=then_emits or []
    )
