"""What can go wrong, and what should a caller do next?

Every error of this package is a ``ChronoError``; several also inherit what callers already
catch (``TimeoutError``, ``ValueError``, ``LookupError``). Plain I/O failures stay ``OSError``.
All details are keyword arguments with defaults, so that every error survives pickling.
"""

# The names say what happened; the base class already says that it is an error.
# ruff: noqa: N818

from __future__ import annotations

__all__ = [
    "ChronoError",
    "EmbeddingMismatch",
    "FormatUnsupported",
    "HistoryUnavailable",
    "InvalidRecord",
    "LogCorrupted",
    "OutOfMemory",
    "StoreClosed",
    "StoreLocked",
    "StorePoisoned",
    "UnknownSpace",
    "WriteConflict",
]


class ChronoError(Exception):
    """The root of the tree; ``recovery`` says in one sentence what to do next."""

    def __init__(self, message: str = "", *, recovery: str = "") -> None:
        super().__init__(message)
        self.recovery = recovery


class StoreLocked(ChronoError, TimeoutError):
    """Another writer held the lock for longer than ``lock_timeout``; nothing was written."""


class StoreClosed(ChronoError):
    """The handle behind the call was closed meanwhile, or belongs to the parent of a fork."""


class StorePoisoned(ChronoError):
    """A sync failed: what the disk holds is unknown, so every write is refused."""


class FormatUnsupported(ChronoError):
    """The files were written in a format that this version does not know."""


class OutOfMemory(ChronoError, MemoryError):
    """A file needs more memory to be read than the process may have; nothing was changed."""


class WriteConflict(ChronoError):
    """Other writers kept changing what a change was made from; nothing of it was written."""


class LogCorrupted(ChronoError):
    """Damage that ``strict=True`` refuses, or that leaves nothing to go on with."""

    def __init__(
        self,
        message: str = "",
        *,
        path: str | None = None,
        offset: int | None = None,
        seq: int | None = None,
        damage: str | None = None,
        recovery: str = "",
    ) -> None:
        super().__init__(message, recovery=recovery)
        self.path = path
        self.offset = offset
        self.seq = seq
        self.damage = damage


class InvalidRecord(ChronoError, ValueError):
    """A value that the log must not carry; ``field`` names it, and nothing was written."""

    def __init__(self, message: str = "", *, field: str | None = None, recovery: str = "") -> None:
        super().__init__(message, recovery=recovery)
        self.field = field


class HistoryUnavailable(ChronoError, LookupError):
    """The past asked for was compacted away; ``first_seq`` is the first that can be reached."""

    def __init__(self, message: str = "", *, first_seq: int | None = None, recovery: str = "") -> None:
        super().__init__(message, recovery=recovery)
        self.first_seq = first_seq


class EmbeddingMismatch(ChronoError, ValueError):
    """An embedding space is bound to another model or dimension; nothing was written."""

    def __init__(
        self,
        message: str = "",
        *,
        space: str | None = None,
        model: str | None = None,
        dim: int | None = None,
        recovery: str = "",
    ) -> None:
        super().__init__(message, recovery=recovery)
        self.space = space
        self.model = model
        self.dim = dim


class UnknownSpace(ChronoError, LookupError):
    """No embedding space has this name; ``known`` lists those there are."""

    def __init__(
        self,
        message: str = "",
        *,
        space: str | None = None,
        known: list[str] | None = None,
        recovery: str = "",
    ) -> None:
        super().__init__(message, recovery=recovery)
        self.space = space
        self.known = known or []
