"""What was known then?"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from chronomemory._core import Engine
from chronomemory._core import View as EngineView
from chronomemory.record import RAG_CONFIDENCE, ChronoRecord

__all__ = ["StoreView", "confidence_threshold", "look_back"]

_LAST_SEQ = 2**63 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def confidence_threshold(min_confidence: float, rag_filter: bool) -> float:
    """Return the larger of what was asked for and what a prompt may hold."""
    return max(min_confidence, RAG_CONFIDENCE) if rag_filter else min_confidence


def look_back(engine: Engine, when: int | datetime) -> StoreView:
    """Look at a store as it was after event ``when``, or at that moment.

    A datetime without a time zone names no moment and is refused.
    """
    if isinstance(when, datetime):
        if when.utcoffset() is None:
            raise ValueError(f"as_of({when!r}): a datetime needs a time zone, e.g. timezone.utc")
        return StoreView(engine.as_of(ts_us=(when - _EPOCH) // timedelta(microseconds=1)))
    if not isinstance(when, int) or isinstance(when, bool):
        raise TypeError(f"as_of() takes a seq or a datetime, not {type(when).__name__}")
    return StoreView(engine.as_of(seq=min(max(when, 0), _LAST_SEQ)))


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
        return self._view.get(record_id)

    def query(
        self,
        *,
        kind: str | None = None,
        status: str | None = "active",
        rag_filter: bool = False,
        min_confidence: float = 0.0,
        limit: int | None = None,
        faces: bool = False,
    ) -> list[ChronoRecord]:
        """Return what ``ChronoStore.query`` would have returned then."""
        return self._view.query(
            kind=kind,
            status=status,
            min_confidence=confidence_threshold(min_confidence, rag_filter),
            limit=limit,
            faces=faces,
        )

    def record_count(self) -> int:
        """Return how many plain records were active."""
        return self._view.count()

    def __repr__(self) -> str:
        return f"<StoreView as of seq {self.seq}>"
