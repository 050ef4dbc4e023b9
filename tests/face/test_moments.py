"""A moment has a time zone, and is compared by instant."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from chronomemory import InvalidArgument
from chronomemory.face import moments

NOON = datetime(2026, 5, 18, 12, tzinfo=timezone.utc)


def test_moments_are_instants() -> None:
    elsewhere = NOON.astimezone(timezone(timedelta(hours=2)))
    assert moments.micros("at", NOON) == moments.micros("at", elsewhere) == 1_779_105_600_000_000
    for text in ("2026-05-18T14:00:00+02:00", "2026-05-18T12:00:00Z"):
        assert moments.parse_instant("at", text) == NOON
    assert moments.parse_instant("at", moments.now()) <= moments.utc_now()


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (
            NOON.replace(tzinfo=None),
            "at must have a time zone, such as timezone.utc, got '2026-05-18 12:00:00'",
        ),
        ("2026", "at must be a datetime, got '2026'"),
        (None, "at must be a datetime, got None"),
    ],
)
def test_what_names_no_moment_is_refused(given: object, reason: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        moments.micros("at", given)
    assert str(refused.value) == reason


@pytest.mark.parametrize("text", ["", "noon", "2026-05-18T12:00:00", "2026-02-30T00:00:00Z", "Z"])
def test_a_text_that_names_no_moment_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match=r"^at must .+, got '"):
        moments.parse_instant("at", text)
