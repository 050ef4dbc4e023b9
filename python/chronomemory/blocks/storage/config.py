"""How are settings read and changed, and how far has the clock of active hours come?"""

from __future__ import annotations

import re

from chronomemory.blocks.connection import Connection, check_finite
from chronomemory.blocks.ids import CONFIG, config_key
from chronomemory.errors import InvalidRecord
from chronomemory.record import ChronoRecord

__all__ = ["get_config", "get_total_active_hours", "set_config", "set_total_active_hours"]

TOTAL_ACTIVE_HOURS = "total_active_hours"

#: Names and values that only a secret has: a log that is never rewritten is no place for one.
_SECRET_NAME = re.compile(
    r"api[_-]?key|secret|password|credential|(access|auth|bearer)[_-]?token", re.IGNORECASE
)
_SECRET_VALUE = re.compile(r"^(sk|pk|ghp|xoxb|AKIA)[-_A-Za-z0-9]{16,}$")


def get_config(conn: Connection, key: str) -> str | None:
    """Return a setting, or None."""
    record = conn.record(config_key(key))
    return None if record is None else str(record.data["value"])


def set_config(conn: Connection, key: str, value: str) -> None:
    """Write a setting. Keys of services are refused: they belong into the environment."""
    if not isinstance(key, str) or not key or not isinstance(value, str):
        raise InvalidRecord(f"value: {key!r} and {value!r} must be strings", field="value")
    if _SECRET_NAME.search(key) or _SECRET_VALUE.match(value):
        raise InvalidRecord(
            f"key: {key!r} looks like a secret, and the log keeps everything",
            field="key",
            recovery="Keep secrets in environment variables.",
        )
    conn.put(ChronoRecord(id=config_key(key), kind=CONFIG, data={"value": value}))


def get_total_active_hours(conn: Connection) -> float:
    """Return how many hours sessions have lasted so far."""
    value = get_config(conn, TOTAL_ACTIVE_HOURS)
    return 0.0 if value is None else float(value)


def set_total_active_hours(conn: Connection, hours: float) -> None:
    """Set the clock of active hours."""
    set_config(conn, TOTAL_ACTIVE_HOURS, repr(check_finite("hours", hours, least=0.0)))
