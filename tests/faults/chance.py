"""Lets two stores draw the same ids and read the same clocks, where a face draws and reads for itself."""

from __future__ import annotations

import os
import random
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta, timezone
from unittest import mock

from chronomemory.face import moments

START = datetime(2026, 1, 1, tzinfo=timezone.utc)


def moment(step: int) -> datetime:
    """When a step of a life happens."""
    return START + timedelta(minutes=step)


class Hours:
    """A clock that goes on whenever it is asked, and so goes alike whoever hurries."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        self.seconds += 7.0
        return self.seconds


@contextmanager
def alike(seed: str, step: int) -> Iterator[None]:
    """Let everything that is drawn meanwhile come from a seed, and the clock stand still."""
    dice = random.Random(f"{seed} {step}")
    with ExitStack() as stack:
        for place, name, drawn in (
            (uuid, "uuid4", lambda: uuid.UUID(int=dice.getrandbits(128))),
            (os, "urandom", dice.randbytes),
            (moments, "utc_now", lambda: moment(step)),
        ):
            stack.enter_context(mock.patch.object(place, name, drawn))
        yield
