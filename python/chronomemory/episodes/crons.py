"""Reads a cron expression of five fields, in UTC."""

from __future__ import annotations

from datetime import datetime, timezone

try:
    from cronsim import CronSim, CronSimError
except ImportError as error:  # pragma: no cover (the tests have it)
    raise ImportError("a cron cadence needs cronsim: pip install 'chronomemory-rs[episodes]'") from error

_FIELDS = 5


def check(expression: str) -> str | None:
    if len(expression.split()) != _FIELDS:
        return f"{_FIELDS} fields expected, got {expression!r}"
    try:
        CronSim(expression, datetime(2000, 1, 1, tzinfo=timezone.utc))
    except CronSimError as error:
        return f"{error} in {expression!r}"
    return None


def next_after(expression: str, moment: datetime) -> datetime | None:
    """Return the first time after a moment, or None if there is none.

    >>> next_after("0 3 * * *", datetime(2026, 5, 18, 9, tzinfo=timezone.utc)).isoformat()
    '2026-05-19T03:00:00+00:00'
    """
    try:
        return next(CronSim(expression, moment.astimezone(timezone.utc)), None)
    except OverflowError:
        # Beyond the calendar in UTC: before its first day all times are to come, and behind its last none.
        first = datetime.min.replace(tzinfo=timezone.utc)
        return next(CronSim(expression, first), None) if moment.year == first.year else None
