"""The shapes that profiles, nodes, edges, paths, events, plans, actions and findings have."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, ClassVar, TypeVar

from chronomemory._core import canonical_json, parse_json
from chronomemory.errors import InvalidArgument
from chronomemory.face.arguments import HIDDEN
from chronomemory.face.moments import instant, parse_instant
from chronomemory.graph.errors import GraphError, ModelError

OPS = ("put_node", "put_edge", "delete_node", "delete_edge", "supersede", "compact_path", "set_phase")
REVIEWED = frozenset({"delete_node", "delete_edge", "supersede", "compact_path"})


def spellings(item_id: str) -> tuple[str, ...]:
    """Return an id as it is given and in NFC, the Unicode form of ids; earlier versions kept any form."""
    return (item_id,) if item_id.isascii() else (item_id, unicodedata.normalize("NFC", item_id))


_IDS = frozenset({"id", "source", "target", "parent_id", "merged_into", "path_id", "profile_id", "action_id"})
_SCALARS = frozenset({str, int, float, bool})

Own = TypeVar("Own", bound="Model")


def exact(cls: type[Own], items: Iterable[Own], error: type[GraphError] = ModelError) -> list[Own]:
    """Return items that are all of exactly this class: a subclass could answer differently each time."""
    listed = list(items)
    for item in listed:
        if type(item) is not cls:
            raise error(f"{cls.__name__} expected, got {type(item).__name__}")
    return listed


def moment_of(given: datetime | str) -> str:
    """Return a moment as it is written down: ISO 8601 in UTC if it is a datetime, a text as it is.

    >>> moment_of(datetime(2026, 5, 18, 9, tzinfo=timezone.utc))
    '2026-05-18T09:00:00.000000Z'
    """
    if isinstance(given, datetime):
        text = instant("ts", given).astimezone(timezone.utc).isoformat(timespec="microseconds")
        return text.replace("+00:00", "Z")
    parse_instant("ts", given)
    return given


class Model:
    """A value that is written down as JSON; a field that it does not have is a mistake."""

    __slots__ = ()

    #: What it is called in messages, which fields are texts that are not empty, and which are lists.
    called: ClassVar[str] = "value"
    required: ClassVar[tuple[str, ...]] = ("id",)
    listed: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON can carry them; nothing inside is shared with the value."""
        names: tuple[str, ...] = self.__slots__
        return {name: _fresh(getattr(self, name)) for name in names}

    def shown(self) -> dict[str, Any]:
        """Return all fields for encoding; containers are shared with the value."""
        names: tuple[str, ...] = self.__slots__
        shown = {name: getattr(self, name) for name in names}
        for name in self.listed:
            shown[name] = list(shown[name])
        return shown

    @classmethod
    def from_dict(cls: type[Own], given: Mapping[str, Any]) -> Own:
        """Build a value from a mapping; missing fields have defaults, unknown ones are refused."""
        if not isinstance(given, Mapping):
            raise ModelError(f"{cls.called}: an object expected, got {type(given).__name__}")
        if strange := sorted(str(name) for name in given if name not in cls.__slots__):
            raise ModelError(f"{cls.called}: there is no field {strange[0]!r}", field=strange[0])
        try:
            made: Own = cls(**{name: _fresh(value) for name, value in given.items()})
        except TypeError as error:
            lacking = [name for name in cls.required if name not in given]
            if not lacking:
                raise ModelError(f"{cls.called}: {error}") from None
            raise ModelError(f"{cls.called}: {lacking[0]} is missing", field=lacking[0]) from None
        return made

    @classmethod
    def known(cls: type[Own], fields: dict[str, Any]) -> Own:
        """Build a value from fields of the log; only required texts are checked."""
        for name in cls.required:
            if type(fields[name]) is not str:
                raise ModelError(f"{cls.called}: {name} must be a text", field=name)
        made = cls.__new__(cls)
        for name in cls.__slots__:
            value = fields[name]
            object.__setattr__(made, name, tuple(value) if name in cls.listed else value)
        return made

    def _check(self, *, texts: Iterable[str] = (), objects: Iterable[str] = ()) -> None:
        for name in self.required:
            if not self._text(name):
                raise self._refused(name, "must not be empty")
        for name in texts:
            self._text(name)
        for name in objects:
            value = getattr(self, name)
            if not isinstance(value, Mapping):
                raise self._refused(name, f"must be an object, got {type(value).__name__}")
            if value:
                self._json(name, value)

    def _text(self, name: str) -> str:
        value = getattr(self, name)
        if not isinstance(value, str):
            raise self._refused(name, f"must be a text, got {type(value).__name__}")
        if type(value) is not str:
            # A subclass may compare as it likes; the log writes the characters that it holds.
            value = str.__str__(value)
            object.__setattr__(self, name, value)
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise self._refused(name, "has half of a surrogate pair") from None
        if name in _IDS and not (value.isascii() and value.isprintable()):
            value = self._normalised(name, value)
            object.__setattr__(self, name, value)
        return value

    def _normalised(self, name: str, given: str) -> str:
        """Return an id in NFC, so that two Unicode forms of it are one; refuse invisible controls."""
        if hidden := HIDDEN.search(given):
            raise self._refused(name, f"must not have the invisible character U+{ord(hidden[0]):04X} in it")
        return spellings(given)[-1]

    def _text_or_none(self, name: str) -> None:
        if getattr(self, name) is not None and not self._text(name):
            raise self._refused(name, "must be None or a text that is not empty")

    def _texts(self, name: str) -> None:
        given = getattr(self, name)
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise self._refused(name, "must be a list of texts")
        listed = tuple(given)
        if not all(isinstance(one, str) and one for one in listed):
            raise self._refused(name, "must be a list of texts that are not empty")
        object.__setattr__(self, name, tuple(self._normalised(name, one) for one in listed))

    def _flag(self, name: str) -> None:
        if not isinstance(getattr(self, name), bool):
            raise self._refused(name, "must be True or False")

    def _json(self, name: str, value: object) -> None:
        try:
            canonical_json(value)
        except (ValueError, TypeError) as error:
            raise self._refused(name, str(error)) from None

    def _refused(self, name: str, reason: str) -> ModelError:
        return ModelError(f"{self.called}.{name} {reason}", field=name)


@dataclass(frozen=True, slots=True)
class Profile(Model):
    """The owner of a memory: a name and any other data."""

    called: ClassVar[str] = "profile"
    id: str
    name: str = ""
    data: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._check(texts=("name",), objects=("data",))


@dataclass(frozen=True, slots=True)
class Node(Model):
    """Something that is remembered; ``phase`` is how far it has come, such as fluid or stable."""

    called: ClassVar[str] = "node"
    required: ClassVar[tuple[str, ...]] = ("id", "kind")
    id: str
    kind: str
    label: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    phase: str | None = None

    def __post_init__(self) -> None:
        self._check(texts=("label",), objects=("data",))
        self._text_or_none("phase")


@dataclass(frozen=True, slots=True)
class Edge(Model):
    """What joins two nodes, from one to the other."""

    called: ClassVar[str] = "edge"
    required: ClassVar[tuple[str, ...]] = ("id", "source", "target", "kind")
    id: str
    source: str
    target: str
    kind: str
    data: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._check(objects=("data",))


@dataclass(frozen=True, slots=True)
class MemoryPath(Model):
    """A line of a conversation: the events on it, where it branched off, and how it ended."""

    called: ClassVar[str] = "path"
    listed: ClassVar[tuple[str, ...]] = ("event_ids",)
    id: str
    parent_id: str | None = None
    event_ids: tuple[str, ...] = ()
    active: bool = True
    merged_into: str | None = None
    abandoned_reason: str | None = None
    #: How many events were compacted, their digest and the node that sums them up; None if none were.
    compaction: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        self._check()
        for name in ("parent_id", "merged_into", "abandoned_reason"):
            self._text_or_none(name)
        self._texts("event_ids")
        self._flag("active")
        if self.compaction is not None:
            self._check(objects=("compaction",))


@dataclass(frozen=True, slots=True)
class MemoryEvent(Model):
    """Something that happened; an id that is empty is given one when the event is appended."""

    called: ClassVar[str] = "event"
    listed: ClassVar[tuple[str, ...]] = ("refs",)
    required: ClassVar[tuple[str, ...]] = ("kind",)
    id: str
    kind: str
    ts: str
    path_id: str | None = None
    refs: tuple[str, ...] = ()
    data: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "ts", moment_of(self.ts))
        except InvalidArgument as error:
            raise ModelError(f"event.{error}", field="ts") from None
        self._check(texts=("id",), objects=("data",))
        self._text_or_none("path_id")
        self._texts("refs")


@dataclass(frozen=True, slots=True)
class ActivationPlan(Model):
    """Which nodes a profile brings to mind, in this order."""

    called: ClassVar[str] = "plan"
    listed: ClassVar[tuple[str, ...]] = ("node_ids",)
    required: ClassVar[tuple[str, ...]] = ("id", "profile_id")
    id: str
    profile_id: str
    node_ids: tuple[str, ...] = ()
    data: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._check(objects=("data",))
        self._texts("node_ids")


@dataclass(frozen=True, slots=True)
class Action(Model):
    """A proposed change; an approval is bound to its ``digest``."""

    called: ClassVar[str] = "action"
    required: ClassVar[tuple[str, ...]] = ("id", "op", "target")
    id: str
    op: str
    target: str
    payload: dict[str, Any] = field(default_factory=dict)
    #: True asks for a review where none is due by default; False never lifts one that is.
    requires_review: bool = False

    def __post_init__(self) -> None:
        self._check(objects=("payload",))
        # A copy of plain values: a reviewer and the runtime read the same, whatever class was given.
        object.__setattr__(self, "payload", parse_json(canonical_json(self.payload)))
        self._flag("requires_review")
        if self.op not in OPS:
            raise self._refused("op", f"must be one of {', '.join(OPS)}, got {self.op!r}")

    @property
    def digest(self) -> str:
        """The SHA-256 of the whole action: change anything in it, and it is another."""
        return hashlib.sha256(canonical_json(self.to_dict())).hexdigest()


@dataclass(frozen=True, slots=True)
class Approval(Model):
    """The approval of exactly one action."""

    called: ClassVar[str] = "approval"
    required: ClassVar[tuple[str, ...]] = ("action_id", "reviewer", "action_digest")
    action_id: str
    reviewer: str
    action_digest: str
    note: str = ""

    def __post_init__(self) -> None:
        self._check(texts=("note",))
        # The Hangul fillers count as letters, but are invisible.
        letters = unicodedata.normalize("NFKC", self.reviewer).translate({0x115F: None, 0x1160: None})
        if not any(map(str.isalnum, letters)) or not self.reviewer.isprintable():
            raise self._refused("reviewer", f"must be a name of visible characters, got {self.reviewer!r}")

    @classmethod
    def of(cls, action: Action, reviewer: str, note: str = "") -> Approval:
        return cls(action.id, reviewer, action.digest, note)

    def covers(self, action: Action) -> bool:
        return self.action_id == action.id and self.action_digest == action.digest


@dataclass(frozen=True, slots=True)
class AuditRecord(Model):
    """The outcome of an apply: applied, denied, refused, applying or failed."""

    called: ClassVar[str] = "audit record"
    listed: ClassVar[tuple[str, ...]] = ("actions",)
    required: ClassVar[tuple[str, ...]] = ("outcome",)
    id: str
    ts: str
    outcome: str
    #: Of each action its id, op, target, digest, whether it needed a review, and who approved it.
    actions: tuple[dict[str, Any], ...] = ()
    reason: str = ""

    def __post_init__(self) -> None:
        self._check(texts=("id", "ts", "reason"))
        object.__setattr__(self, "actions", tuple(self.actions))
        self._json("actions", list(self.actions))


@dataclass(frozen=True, slots=True)
class Diagnostic(Model):
    """One thing that is wrong: its code, how bad it is, in which file and line, and of what."""

    called: ClassVar[str] = "diagnostic"
    code: str
    #: ``error`` for what is lost or cannot be believed, ``warning`` for what hangs in the air.
    level: str
    where: str
    line: int | None
    id: str | None
    message: str

    def __str__(self) -> str:
        place = self.where if self.line is None else f"{self.where}:{self.line}"
        return f"{place}: {self.code}: {self.message}"


def _fresh(value: Any) -> Any:
    if value is None or type(value) in _SCALARS:
        return value
    if isinstance(value, Mapping):
        return {key: _fresh(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_fresh(item) for item in value]
    return value
