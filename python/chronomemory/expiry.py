"""Hides records whose time is over, and sweeps them.

``data.expires_at`` says when that is. From then on a record is left out of answers; it is there until it is
swept, for whoever asks with ``expired=True``.
"""

from __future__ import annotations

from dataclasses import dataclass

from chronomemory.erasure import Erased, erase_due
from chronomemory.face.arguments import flag, string
from chronomemory.face.moments import Now, micros
from chronomemory.types import HasEngine

__all__ = ["Swept", "sweep"]

#: Why records are erased that have expired, unless the caller says why.
_WHY = "expired"


@dataclass(frozen=True, slots=True)
class Swept:
    """The ids of the records that had expired, and what an erasure tells of them, if they were erased."""

    ids: tuple[str, ...]
    erased: Erased | None = None
    dry_run: bool = False


def sweep(
    store: HasEngine,
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
    erased = erase_due(engine, due, moment, why, backup=wants_copy, dry_run=dry)
    return Swept(erased.ids, erased, dry_run=dry)
