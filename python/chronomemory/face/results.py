"""What a verb says it did: in one line for people, and as a dict for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any

from chronomemory.scope import Scope


class Fields:
    """A dataclass whose fields are a dict for JSON."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON can carry them."""
        own: Any = self
        return {item.name: plain(getattr(self, item.name)) for item in fields(own)}


class Result(Fields):
    """What a verb returns: ``summary`` is one line, ``str()`` gives it, ``to_dict()`` has all the fields."""

    __slots__ = ()

    @property
    def summary(self) -> str:
        """What happened, in one line."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.summary


def plain(value: Any) -> Any:
    """Return a value as JSON can carry it, with what it holds."""
    if isinstance(value, Fields):
        return value.to_dict()
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Scope):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number of things in words.

    >>> counted(1, "block"), counted(2, "block"), counted(2, "entry", "entries")
    ('1 block', '2 blocks', '2 entries')
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
