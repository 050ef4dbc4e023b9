"""Can every error be caught as callers expect, and does it survive a trip between processes?"""

from __future__ import annotations

import pickle

import pytest
from chronomemory import errors

WITH_DETAILS = [
    errors.ChronoError("no", recovery="try again"),
    errors.StoreLocked("held by 7", recovery="wait"),
    errors.StoreClosed("closed", recovery="open it"),
    errors.StorePoisoned("sync failed", recovery="repair"),
    errors.FormatUnsupported("version 9", recovery="upgrade"),
    errors.LogCorrupted("bad line", path="events.wal", offset=10, seq=3, damage="altered", recovery="repair"),
    errors.InvalidRecord("out of range", field="confidence", recovery="use 0..1"),
    errors.HistoryUnavailable("compacted", first_seq=40, recovery="ask for 40 or later"),
]


@pytest.mark.parametrize("error", WITH_DETAILS, ids=lambda error: type(error).__name__)
def test_every_error_pickles_with_its_details(error: errors.ChronoError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)
    assert again.recovery


@pytest.mark.parametrize("name", errors.__all__)
def test_every_error_needs_only_a_message(name: str) -> None:
    error = getattr(errors, name)("what happened")
    assert isinstance(error, errors.ChronoError)
    assert str(error) == "what happened"
    assert error.recovery == ""


def test_errors_are_what_callers_already_catch() -> None:
    assert issubclass(errors.StoreLocked, TimeoutError)
    assert issubclass(errors.InvalidRecord, ValueError)
    assert issubclass(errors.HistoryUnavailable, LookupError)
