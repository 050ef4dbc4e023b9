"""The list in which an answer comes: it knows who asked, and whether anything was ever written for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

from chronomemory.scope import SHARED, Scope

__all__ = ["Answer", "Asked", "answered"]

_Found = TypeVar("_Found")


class Asked(Protocol):
    """Who is asked: an engine, or a look at the past."""

    def scope_names(self) -> tuple[str | None, str | None, str | None] | None:
        """The names that were given; None for everyone."""

    def is_known(self) -> bool:
        """Whether there is anything of one's own."""


class Answer(list[_Found]):
    """What was found.

    ``scope`` has the names that were given, None for everyone. ``known`` says whether anything was ever
    written for them, tombstones too: a misspelled name finds nothing, and is not known.
    """

    __slots__ = ("known", "scope")

    def __init__(
        self, found: Iterable[_Found] = (), *, scope: Scope | None = None, known: bool = True
    ) -> None:
        super().__init__(found)
        self.scope = scope
        self.known = known


def answered(asked: Asked, found: Iterable[_Found], *, is_any: bool) -> Answer[_Found]:
    """Say of what was found, if it was anything, who asked."""
    names = asked.scope_names()
    if names == SHARED.names:
        # What is found without names is shared, and so one's own: nobody has to be asked.
        return Answer(found, scope=SHARED, known=is_any or asked.is_known())
    return Answer(found, scope=None if names is None else Scope(*names), known=asked.is_known())
