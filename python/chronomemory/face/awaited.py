"""Awaited twins of plain functions and verbs, on the spot or in a thread of the loop."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
Plain = TypeVar("Plain")


def awaited(function: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Return the same function as a coroutine function that runs on the spot."""

    @functools.wraps(function)
    async def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return function(*args, **kwargs)

    return call


class Awaited(Generic[Plain]):
    """A door whose verbs are awaited; behind it is an object with the plain ones.

    >>> class Plain:
    ...     def double(self, number: int) -> int:
    ...         return 2 * number
    >>> class Door(Awaited[Plain]):
    ...     double = awaited_verb(Plain.double)
    >>> asyncio.run(Door(Plain()).double(number=2))
    4
    """

    def __init__(self, plain: Plain) -> None:
        self._plain = plain

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, verb in vars(cls).items():
            if hasattr(verb, _IS_TWIN):
                verb.__name__, verb.__qualname__ = name, f"{cls.__qualname__}.{name}"
                verb.__module__ = cls.__module__
                # Once: another door may offer the same twin under a name of its own.
                delattr(verb, _IS_TWIN)


_IS_TWIN = "__awaited_verb__"


def awaited_verb(
    verb: Callable[Concatenate[Any, P], T],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Return the twin of a plain verb, for the class body of a door: it runs in a thread of the loop."""
    name = verb.__name__

    @functools.wraps(verb)
    async def call(door: Awaited[Any], /, *args: P.args, **kwargs: P.kwargs) -> T:
        # By its name: the plain object may be of a subclass with a verb of its own.
        result: T = await asyncio.to_thread(getattr(door._plain, name), *args, **kwargs)
        return result

    setattr(call, _IS_TWIN, True)
    return call


def awaited_at_once(
    verb: Callable[Concatenate[Any, P], None], at_once: Callable[Concatenate[Any, P], bool]
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, None]]:
    """Return a twin that tries another verb first, which never waits and says whether it did the work."""
    name, first = verb.__name__, at_once.__name__

    @functools.wraps(verb)
    async def call(door: Awaited[Any], /, *args: P.args, **kwargs: P.kwargs) -> None:
        if not getattr(door._plain, first)(*args, **kwargs):
            await asyncio.to_thread(getattr(door._plain, name), *args, **kwargs)

    setattr(call, _IS_TWIN, True)
    return call


@asynccontextmanager
async def entered(enter: Callable[[], object], leave: Callable[[], object]) -> AsyncIterator[None]:
    """Be inside something for the length of a block; a task that is cancelled never stays inside."""
    entry = _Entry(enter, leave)
    try:
        await asyncio.to_thread(entry.enter)
        yield
    finally:
        # Neither a task that is cancelled at the door nor one that is cancelled twice stays inside.
        await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, entry.leave))


class _Entry:
    """One way in: a thread goes on entering when its task has been cancelled."""

    def __init__(self, enter: Callable[[], object], leave: Callable[[], object]) -> None:
        self._enter = enter
        self._leave = leave
        self._turn = threading.Lock()
        self._inside = self._over = False

    def enter(self) -> None:
        """Enter, unless the task has left already."""
        with self._turn:
            if self._over:
                raise asyncio.CancelledError
            self._enter()
            self._inside = True

    def leave(self) -> None:
        """Leave if it is inside, and let it never come in again."""
        with self._turn:
            self._over = True
            if self._inside:
                self._inside = False
                self._leave()
