"""A view of a store as it was known at an earlier moment."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable
from datetime import datetime, timedelta

from chronomemory._core import Engine
from chronomemory._core import View as EngineView
from chronomemory.face.arguments import LAST_SEQ, count, must, string
from chronomemory.face.moments import EPOCH, micros
from chronomemory.paging import Page, page_of, query_terms
from chronomemory.record import ChronoRecord
from chronomemory.where import Where

__all__ = ["StoreView", "look_back", "warn_of_stamps"]

#: Clocks of machines that share a store differ by so much without anyone minding.
_CLOCKS_DIFFER_US = 2_000_000


def look_back(engine: Engine, when: int | datetime) -> StoreView:
    """Look at a store as it was after event ``when``, or at that moment, as ``view_of`` does."""
    return StoreView(view_of(engine, when))


def view_of(engine: Engine, when: int | datetime) -> EngineView:
    """Return the engine's view of a store as it was after event ``when``, or at that moment.

    A datetime without a time zone names no moment and is refused, and so is what has not happened yet.
    """
    if isinstance(when, datetime):
        moment = micros("as_of", when)
        latest, now = engine.latest_us(), time.time_ns() // 1000
        if moment > max(now + _CLOCKS_DIFFER_US, latest or now):
            raise must("as_of", "be a moment that has come", when.isoformat())
        warn_of_stamps("as_of", engine, moment)
        return engine.as_of(ts_us=moment)
    if not isinstance(when, int) or isinstance(when, bool):
        raise must("as_of", "be a seq or a datetime", when)
    if count("as_of", min(when, LAST_SEQ)) > engine.wal_seq():
        raise must("as_of", f"be at most {engine.wal_seq()}, the last event", when)
    return engine.as_of(seq=when)


def warn_of_stamps(asked: str, engine: Engine, moment_us: int, stacklevel: int = 4) -> None:
    """Warn whoever asks by time where times say little: a clock was ahead once, and stamps never go back."""
    latest, now = engine.latest_us(), time.time_ns() // 1000
    if latest is not None and latest > now + _CLOCKS_DIFFER_US and moment_us < latest:
        ahead = (EPOCH + timedelta(microseconds=latest)).isoformat(timespec="seconds")
        warnings.warn(
            f"{asked}: the latest events carry {ahead}, which is ahead of this machine's clock: one was "
            "wrong when they were written. Stamps never go back, so all events since then carry it too; "
            "as_of(seq) tells them apart, and verify() names the first",
            RuntimeWarning,
            stacklevel=stacklevel,
        )


class StoreView:
    """A store as it was: read-only, and unmoved by what is written later."""

    def __init__(self, view: EngineView) -> None:
        self._view = view

    @property
    def seq(self) -> int:
        """The last event that this view has seen."""
        return self._view.seq

    def get(self, record_id: str) -> ChronoRecord | None:
        """Return the record as it was then, a tombstoned one too, or None."""
        return self._view.get(string("id", record_id))

    def query(
        self,
        *,
        kind: str | Iterable[str] | None = None,
        status: str | None = "active",
        rag_filter: bool = False,
        min_confidence: float = 0.0,
        limit: int | None = None,
        faces: bool = False,
        where: Where | None = None,
        tags: Iterable[str] = (),
        since: datetime | None = None,
        until: datetime | None = None,
        order_by: str | None = None,
        after: str | None = None,
        explain: bool = False,
    ) -> Page:
        """Return what ``ChronoStore.query`` would have returned then."""
        terms = query_terms(
            kind=kind,
            status=status,
            rag_filter=rag_filter,
            min_confidence=min_confidence,
            limit=limit,
            faces=faces,
            where=where,
            tags=tags,
            since=since,
            until=until,
        )
        return page_of(self._view, terms, order_by, after, explain=explain)

    def record_count(self) -> int:
        """Return how many plain records were active."""
        return self._view.count()

    def __repr__(self) -> str:
        return f"<StoreView as of seq {self.seq}>"
