"""Moments in time: parsing, checking, comparing, and the clocks that a face takes as an argument."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import TypeAlias

from chronomemory.face.arguments import must, string

#: A clock that tells moments, and one that only tells how much time has passed.
Now: TypeAlias = Callable[[], datetime]
Seconds: TypeAlias = Callable[[], float]

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def utc_now() -> datetime:
    return datetime.now(timezone.utc)


def now() -> str:
    return utc_now().isoformat()


def instant(field: str, given: object) -> datetime:
    """Take a datetime that names a moment: one without a time zone does not."""
    if not isinstance(given, datetime):
        raise must(field, "be a datetime", given)
    if given.utcoffset() is None:
        raise must(field, "have a time zone, such as timezone.utc", str(given))
    return given


def is_instant(text: object) -> bool:
    """Say whether something is the text of a moment with its time zone, as ``isoformat`` writes it.

    >>> is_instant("2026-05-18T09:00:00+02:00"), is_instant("2026-05-18T09:00:00"), is_instant("today")
    (True, False, False)
    """
    if type(text) is not str:
        return False
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def micros(field: str, given: object) -> int:
    """Take the same, and return it as the engine counts: in microseconds since 1970."""
    return (instant(field, given) - EPOCH) // timedelta(microseconds=1)


def parse_instant(field: str, given: object) -> datetime:
    """Take a moment that is written down as ISO 8601, with its time zone.

    >>> parse_instant("at", "2026-05-18T09:00:00Z") == parse_instant("at", "2026-05-18T11:00:00+02:00")
    True
    """
    text = string(field, given)
    try:
        # Python 3.10 reads no Z.
        moment = datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)
    except ValueError:
        raise must(field, "be a moment in ISO 8601", given) from None
    return instant(field, moment)
