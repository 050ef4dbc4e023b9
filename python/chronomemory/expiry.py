"""Hides records whose time is over, and sweeps them.

``data.expires_at`` says when that is. From then on a record is left out of answers; it is there until it is
swept, for whoever asks with ``expired=True``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from chronomemory._core import Engine
from chronomemory.erasure import Erased, HasProject, erase_due
from chronomemory.face.arguments import flag, string
from chronomemory.face.moments import Now, micros

__all__ = ["Swept", "seen_through", "set_now", "sweep"]

#: Why records are erased that have expired, unless the caller says why.
_WHY = "expired"


class HasEngine(Protocol):
    """Something that has an engine."""

    @property
    def engine(self) -> Engine:
        """The open store."""


@dataclass(frozen=True, slots=True)
class Swept:
    """The ids of the records that had expired, and what an erasure tells of them, if they were erased."""

    ids: tuple[str, ...]
    erased: Erased | None = None
    dry_run: bool = False


def seen_through(store: HasEngine, expired: bool) -> Engine:
    """Return the engine to ask, which shows what has expired if that is wanted."""
    return store.engine.with_expired() if flag("expired", expired) else store.engine


def set_now(store: HasEngine, moment: datetime | None) -> None:
    """Let it be this moment for all expiries, for all stores of this process on the same folder.

    None lets the clock of the machine say it again. It is for tests, and for looking ahead.
    """
    store.engine.set_moment(None if moment is None else micros("moment", moment))


def sweep(
    store: HasProject,
    *,
    erase: bool = False,
    reason: str = _WHY,
    now: Now | None = None,
    backup: bool = True,
    dry_run: bool = False,
) -> Swept:
    """Delete the handle's own records that have expired, as one batch; return which.

    With ``erase`` all of them are erased in one erasure, for this ``reason``: nobody reads them any more.
    If that takes copies away, one new is made unless ``backup=False``.
    ``now()`` says which moment it is. ``dry_run`` writes nothing.
    """
    moment = None if now is None else micros("now", now())
    engine, dry = store.engine, flag("dry_run", dry_run)
    why, wants_copy = string("reason", reason), flag("backup", backup)
    if not flag("erase", erase):
        return Swept(tuple(engine.due(moment) if dry else engine.sweep(moment)), dry_run=dry)
    moment = engine.moment() if moment is None else moment
    due = engine.due(moment)
    if not due:
        return Swept((), dry_run=dry)
    # What is written anew until then lives: the erasure looks once more, while nobody writes.
    told = erase_due(store, due, moment, why, backup=wants_copy, dry_run=dry)
    return Swept(told.ids, told, dry_run=dry)
