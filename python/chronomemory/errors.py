"""The errors of this package, by what a caller should do next. All details survive pickling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar


class ChronoError(Exception):
    """The root of the tree; ``recovery`` says in one sentence what to do next."""

    #: The recovery of an error that was raised without one.
    usual_recovery: ClassVar[str] = "Read the message, correct what it names and try again."
    #: The message if none is given, with the details of the error as ``{0.detail}``.
    template: ClassVar[str] = ""

    def __init__(self, message: str = "", *, recovery: str = "", **details: Any) -> None:
        for name, value in details.items():
            # The class declares each detail with its default.
            if not hasattr(type(self), name):
                raise TypeError(f"{type(self).__name__} has no detail {name!r}")
            setattr(self, name, value)
        super().__init__(message or self.template.format(self))
        self.recovery = recovery or self.usual_recovery


class Busy(ChronoError):
    """Another writer is at work; nothing was written, and the same call may succeed later."""

    usual_recovery = "Try again in a moment: nothing is wrong with the call or the store."


class CallInProgress(Busy, RuntimeError):
    """A progress callback used the store whose call it reports."""

    usual_recovery = "Use the store when the call has come back, or open it a second time."


class StoreLocked(Busy, TimeoutError):
    """Another writer held the lock for longer than ``lock_timeout``; nothing was written."""

    usual_recovery = (
        "Wait for the other writer, or raise lock_timeout; never remove the lock file, or two writers "
        "destroy each other's work."
    )


class StoreClosed(ChronoError):
    """The handle behind the call was closed meanwhile, or belongs to the parent of a fork."""

    usual_recovery = "Open the store again; after a fork the child opens its own."


class StorePoisoned(ChronoError):
    """A sync failed: what the disk holds is unknown, so every write is refused."""

    usual_recovery = "Check the disk, then open the store again: what was acknowledged before is still read."


class StoreReadOnly(ChronoError):
    """The folder is a backup: it is read, and never written."""

    usual_recovery = "Restore it into a project: store.restore(path), or 'chronomemory restore'."


class FormatUnsupported(ChronoError):
    """The files are of a format that this version does not know, or cannot read on this machine."""

    usual_recovery = "Open it with the version that wrote it, or update chronomemory."


class Limit(ChronoError):
    """Something is as large as it can become; nothing was written."""

    usual_recovery = (
        "Go on in another store or space: this one cannot become larger. All that it holds stays readable."
    )


class OutOfMemory(ChronoError, MemoryError):
    """More memory is needed than the process may have; nothing was changed."""

    usual_recovery = "Give the process more memory, or ask for less at a time; nothing was changed."


class WriteConflict(Busy):
    """A record that a change was computed from was changed meanwhile; nothing was written."""

    usual_recovery = "Read again what the change is made from, and write it once more."


class LogCorrupted(ChronoError):
    """Damage that ``strict=True`` refuses, or that leaves nothing to go on with."""

    usual_recovery = "Run verify() to see what is damaged, then repair() or restore a backup."

    path: str | None = None
    offset: int | None = None
    seq: int | None = None
    damage: str | None = None


class InvalidArgument(ChronoError, ValueError):
    """An argument that the call does not take; ``field`` names it, ``path`` the place inside of it."""

    usual_recovery = "Correct the argument and call again."

    field: str | None = None
    path: str | None = None
    #: Which record it is about, and which row of a batch or line of a file, if that is known.
    id: str | None = None
    row: int | None = None
    line: int | None = None

    def __init__(self, message: str = "", **details: Any) -> None:
        super().__init__(message, **details)
        if self.path is None:
            self.path = self.field


class InvalidRecord(InvalidArgument):
    """A value that the log must not carry; nothing was written. ``path`` is the place in the ``field``."""

    usual_recovery = "Correct the value and write it again."


class IdTaken(InvalidRecord):
    """The id belongs to a record that this handle does not see; nothing was written."""

    usual_recovery = "Leave the id out, or use that of handle.id(name) in Python: no other scope can take it."


class OutOfScope(InvalidArgument):
    """The record is wider than this handle: it is read, and not changed; nothing was written."""

    usual_recovery = "Change it through a handle of the scope that it carries."


class ScopeRequired(InvalidArgument):
    """The store requires a name that this handle does not give; nothing was written. ``field`` says which."""

    usual_recovery = "Write through store.scoped(…) with that name; through store.shared() what is for all."


class Conflict(ChronoError):
    """The record is not the version that the change was made from; nothing was written."""

    usual_recovery = "Read the record again, and make the change from what it says now."

    id: str | None = None
    expected: str | None = None
    found: str | None = None


class UnknownRecord(ChronoError, KeyError):
    """There is no such record, or this handle does not see it; nothing was written."""

    usual_recovery = "Look the id up with query() or search(), or write the record first."

    id: str | None = None

    # A KeyError would show its message as the repr of a key.
    __str__ = Exception.__str__


class UnknownScope(ChronoError, LookupError):
    """Nothing was ever written for these names."""

    usual_recovery = "Check the spelling of the names, or write something for them first."


class StaleCursor(InvalidArgument):
    """Something that this handle sees has changed since the page that the cursor came with."""

    usual_recovery = "Search again from the first page: scores may have changed."


class RecordTooLarge(Limit, InvalidRecord):
    """A record that no line of the log can hold; nothing was written."""

    usual_recovery = "Divide the record into several: a line of the log holds at most 16 MiB."


class HistoryUnavailable(ChronoError, LookupError):
    """The past asked for was compacted away; ``first_seq`` is the first that can be reached."""

    usual_recovery = "Ask for a later moment: first_seq is the first that can be reached."

    first_seq: int | None = None


class EmbeddingMismatch(InvalidRecord):
    """An embedding space is bound to another model or dimension; nothing was written."""

    usual_recovery = "Embed with the bound model, or name another space."

    space: str | None = None
    model: str | None = None
    dim: int | None = None
    field: str | None = "vector"


class UnknownSpace(ChronoError, LookupError):
    """No embedding space has this name; ``known`` lists those there are."""

    usual_recovery = "Attach an embedding to create it, or name one of those there are."

    space: str | None = None
    known: Sequence[str] = ()
