"""Counts and lists blocks, and finds records that are no usable blocks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from chronomemory.blocks.errors import FrameError
from chronomemory.blocks.ids import BLOCK, CONFIG, FRAME, called, config_key, frame_key
from chronomemory.blocks.life.embedding import lacking
from chronomemory.blocks.storage.config import check_setting
from chronomemory.blocks.storage.frames import frame_of
from chronomemory.blocks.storage.sessions import get_active_session
from chronomemory.blocks.types import BlockStatus
from chronomemory.embedders import Embedder
from chronomemory.errors import InvalidArgument, InvalidRecord
from chronomemory.face.batch import Connection
from chronomemory.face.results import Result, counted
from chronomemory.types import HasEngine

#: The texts of a frame that hold JSON; one more may be missing.
_FRAME_TEXTS = ("weights_json", "filters_json", "guarantees_json")


def unusable(store: HasEngine) -> list[tuple[str, str, str]]:
    """Return every record of the face that is left out of all answers: id, field, reason."""
    found = store.engine.blocks.misfits()
    for kind in (CONFIG, FRAME):
        for record in store.engine.blocks.records(kind, None, None):
            try:
                check_saying(record.id, record.data)
            except InvalidArgument as error:
                reason = re.sub(f"^{re.escape(str(error.field))}:? ", "", str(error))
                found.append((record.id, error.field or "data", reason))
    return found


def check_saying(name: str, data: Mapping[str, Any]) -> None:
    """Refuse a frame or a setting of a sound shape that makes no sense; of shapes the engine knows."""
    if name.startswith(config_key("")) and isinstance(data.get("value"), str):
        check_setting(called(name, data), data["value"])
    if name.startswith(frame_key("")):
        texts = [data.get("cache_json", ""), *(data.get(part) for part in _FRAME_TEXTS)]
        if not all(isinstance(text, str) for text in texts):
            return
        try:
            frame_of(called(name, data), {"token_budget": 0, "template": "", **data})
        except (FrameError, ValidationError) as error:
            reason = " ".join(str(error).split())
            raise InvalidRecord(
                f"weights_json: {name!r} is no frame: {reason}", field="weights_json"
            ) from None


@dataclass(frozen=True, slots=True)
class MemoryStatus(Result):
    """What there is, how late it is, and what could be done next."""

    inbox: int
    active: int
    archived: int
    edges: int
    contradictions: int
    active_hours: float
    session: str | None
    embedding_model: str
    suggestion: str
    #: Active blocks that have no embedding of this model, or no codes of its tokens: words alone find them.
    not_embedded: int = 0
    #: Links that were seen in too few sessions to count.
    forming: int = 0
    #: Blocks of one's own that lie in a session, and are known there alone until they are kept.
    in_sessions: int = 0
    #: So many blocks in the inbox are worth a dream.
    inbox_threshold: int = 0
    #: What lies under an id of this face and no verb can use, each with the reason: left out of every answer.
    unusable: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        apart = f" ({self.in_sessions:,} in sessions, known there alone)" if self.in_sessions else ""
        return (
            f"{self.active:,} active, {self.inbox:,} in the inbox, {self.archived:,} archived{apart}; "
            f"{counted(self.edges, 'link')}, {counted(self.contradictions, 'contradiction')}. "
            f"Embedder: {self.embedding_model}. {self.suggestion}"
        )


def survey(
    conn: Connection, *, hours: float, embedder: Embedder, session_id: str | None, threshold: int
) -> MemoryStatus:
    """Count what is shown: links and contradictions of archived blocks are not.

    The session is the memory's own, however long it lasts, or else the one that others have open.
    """
    inbox, active, archived = (conn.count(BLOCK, status.value) for status in BlockStatus)
    if conn.scope.to_dict():
        inbox = conn.count(BLOCK, BlockStatus.INBOX.value, own=True)
    edges, contradictions, forming, in_sessions = conn.store.engine.blocks.census()
    not_embedded = len(lacking(conn.store, embedder)) if active else 0
    if session_id is None and (others := get_active_session(conn)) is not None:
        session_id = str(others["id"])
    return MemoryStatus(
        inbox=inbox,
        active=active,
        archived=archived,
        edges=edges,
        contradictions=contradictions,
        active_hours=hours,
        session=session_id,
        embedding_model=embedder.model_name,
        suggestion=_suggestion(inbox, active, threshold, not_embedded),
        not_embedded=not_embedded,
        forming=forming,
        in_sessions=in_sessions,
        inbox_threshold=threshold,
        unusable=tuple(f"{name}: {field}: {reason}" for name, field, reason in unusable(conn.store)),
    )


def _suggestion(inbox: int, active: int, threshold: int, not_embedded: int) -> str:
    if not inbox and not active:
        return "Nothing is known yet: learn something."
    if inbox >= threshold or (inbox and not active):
        wait = "1 block waits" if inbox == 1 else f"{inbox} blocks wait"
        return f"{wait} in the inbox: dream, so that {'it' if inbox == 1 else 'they'} can be recalled."
    if not_embedded:
        return f"{counted(not_embedded, 'block')} found by words alone: reembed, so that meaning counts too."
    return "All is well."
