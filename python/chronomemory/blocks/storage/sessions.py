"""Reads and changes sessions."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from chronomemory.blocks.errors import IntegrityError
from chronomemory.blocks.ids import SESSION, plain_id, session_key
from chronomemory.face.arguments import contents, finite, string
from chronomemory.face.batch import Connection
from chronomemory.face.moments import now
from chronomemory.record import ChronoRecord

#: The statuses of a session.
OPEN, ENDED = "active", "ended"
#: Who was killed ends no session: one that began longer ago is taken to be abandoned.
_LONGEST = timedelta(days=1)


@contents
def start_session(
    conn: Connection, *, session_id: str, task_type: str = "general", start_active_hours: float
) -> None:
    """Write down that a session began; IntegrityError if the id is taken."""
    string("session_id", session_id, empty=False)
    if conn.record(session_key(session_id)) is not None:
        raise IntegrityError(f"there is a session {session_id!r} already", recovery="Use another id.")
    data = {
        "task_type": string("task_type", task_type),
        "started_at": now(),
        "start_active_hours": finite("start_active_hours", start_active_hours),
    }
    conn.put(ChronoRecord(id=session_key(session_id), kind=SESSION, status=OPEN, data=data))


def has_session(conn: Connection, session_id: str) -> bool:
    """Say whether a session is known, open or ended; one that was erased is not."""
    return conn.record(session_key(session_id)) is not None


def end_session(conn: Connection, session_id: str) -> None:
    """Write down that a session ended; IntegrityError if it never began."""
    if not has_session(conn, session_id):
        raise IntegrityError(f"there is no session {session_id!r}", recovery="Check the id.")
    conn.patch(session_key(session_id), {"status": ENDED, "data": {"ended_at": now()}})


def get_active_session(conn: Connection) -> dict[str, Any] | None:
    """Return the session that is open, the latest if there are several, or None.

    One that began more than a day ago was abandoned, by a process that was killed, and is not returned.
    """
    found = conn.records(SESSION, OPEN, own=True)
    if not found or _is_abandoned(found[-1]):
        return None
    record = found[-1]
    data = record.data
    return {
        "id": plain_id(record.id),
        "task_type": data["task_type"],
        "started_at": data["started_at"],
        "ended_at": data.get("ended_at"),
        "start_active_hours": data["start_active_hours"],
    }


def _is_abandoned(session: ChronoRecord) -> bool:
    try:
        began = datetime.fromisoformat(session.data["started_at"])
    except ValueError:  # a day that no month has: another tool wrote it
        return True
    return began < datetime.fromisoformat(now()) - _LONGEST
