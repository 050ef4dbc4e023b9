"""Changes records: in part, several at once, or only if they are unchanged since they were read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, count
from typing import Any, TypeVar

from chronomemory._core import canonical_json, parse_json
from chronomemory.errors import Conflict, InvalidArgument, UnknownRecord, WriteConflict
from chronomemory.event import WalEvent
from chronomemory.face.arguments import flag, string, string_or_none, strings
from chronomemory.filters import Where
from chronomemory.record import ChronoRecord, is_same
from chronomemory.selection import page_of, query_terms
from chronomemory.types import HasEngine

T = TypeVar("T")


class Look:
    """What a change is made from: the records that were read, and where the log ended before."""

    def __init__(self, store: HasEngine) -> None:
        # One engine for all of it: a store that is closed meanwhile opens another one.
        self._engine = store.engine
        self._since = self._engine.bookmark()
        self._read: set[str] = set()

    def own_id(self, name: str) -> str:
        """Return an id that no other scope can take; without a scope it is the name."""
        digits = self._engine.scope_digits()
        return f"{name}@{digits}" if digits else name

    def get(self, record_id: str) -> ChronoRecord | None:
        """Return a record, a tombstoned one too, or None; it must stay so until the change is written."""
        found = self._engine.get(record_id)
        if found is None:
            # A record that has expired is hidden but present: a change or replacement applies to it.
            found = self._engine.with_expired().get(record_id)
        self._read.add(record_id)
        return found

    def write(self, *changes: tuple[str, Any], face: str | None = None) -> WalEvent:
        """Write changes as one atomic batch, each a verb and what it takes; return the last event."""
        written = self._engine.write_unless_changed(changes, face, self._since, list(self._read))
        if written is None:
            raise WriteConflict(
                "a record that this change was computed from was changed meanwhile; nothing was written",
                recovery="Read the records again and write the change anew.",
            )
        return written[0]

    def upsert(self, records: Sequence[ChronoRecord | Mapping[str, Any]]) -> WalEvent:
        """Write records as one atomic batch; return the last event."""
        return self.write(*(("upsert", record) for record in records))


def numbered(name: str) -> Iterator[str]:
    """Yield a name, then the name with ``-2``, ``-3`` and so on."""
    return chain([name], (f"{name}-{number}" for number in count(2)))


def retry_in_turn(store: HasEngine, attempt: Callable[[], T]) -> T:
    """Make an attempt; if it loses a race, make it again while no other thread or process writes."""
    with suppress(WriteConflict):
        return attempt()
    return store.engine.in_turn(attempt)


def run(store: HasEngine, work: Callable[[Look], T]) -> T:
    """Let ``work`` read and write through a look; after a lost race again, through a fresh one."""
    return retry_in_turn(store, lambda: work(Look(store)))


def update_by(
    store: HasEngine,
    record_id: str,
    change: Callable[[ChronoRecord | None], ChronoRecord | Mapping[str, Any] | None],
) -> WalEvent | None:
    """Write what ``change`` makes of a record or None; after a concurrent write it is called once more.

    >>> import tempfile
    >>> from chronomemory import ChronoStore
    >>> def count(record):
    ...     record = record or ChronoRecord(id="VISITS")
    ...     record.data["visits"] = record.data.get("visits", 0) + 1
    ...     return record
    >>> with ChronoStore(tempfile.mkdtemp()) as store:
    ...     events = [store.update("VISITS", count) for _ in range(3)]
    ...     store.get("VISITS").data
    {'visits': 3}
    """

    def work(look: Look) -> WalEvent | None:
        changed = change(look.get(record_id))
        if changed is None:
            return None
        made = changed.id if isinstance(changed, ChronoRecord) else changed.get("id")
        if made and made != record_id:
            # Of another record nothing was read: whatever it says would be lost.
            raise InvalidArgument(
                f'change: it made a record with the id {made!r} of "{record_id}"',
                field="change",
                recovery="Return the record that was given, or None to write nothing.",
            )
        return look.upsert([changed])

    return run(store, work)


#: What ``update`` may change: the id is what a record is found by, and the store gives the depth.
_FIELDS = frozenset(ChronoRecord(id="x").to_dict()) - {"id", "recursion_depth"}
_SCOPE = "@scope"


def get_many(store: HasEngine, record_ids: Iterable[str]) -> list[ChronoRecord | None]:
    """Return the records of these ids, in their order; None for what is not there."""
    return store.engine.get_many(strings("ids", record_ids))


def update(
    store: HasEngine,
    record_id: str,
    change: Callable[[ChronoRecord | None], ChronoRecord | Mapping[str, Any] | None] | None = None,
    *,
    if_version: str | None = None,
    **fields: Any,
) -> WalEvent | None:
    """Change some fields of a record, or write what a function makes of it; return None if nothing changed.

    ``data`` is merged (RFC 7396): None removes a key, a list is replaced. With ``if_version`` another version
    is a ``Conflict``.

    >>> import tempfile
    >>> from chronomemory import ChronoStore
    >>> with ChronoStore(tempfile.mkdtemp()) as store:
    ...     _ = store.upsert({"id": "A", "label": "tea", "data": {"cups": 1, "milk": True}})
    ...     _ = store.update("A", confidence=0.9, data={"cups": 2, "milk": None})
    ...     store.get("A").label, store.get("A").confidence, store.get("A").data
    ('tea', 0.9, {'cups': 2})
    """
    if change is not None:
        if fields or if_version is not None:
            beside = next(iter(fields), "if_version")
            raise InvalidArgument(f"change must be given alone, got {beside} too", field="change")
        return update_by(store, record_id, change)
    name = string("id", record_id)
    is_named = store.engine.scope_names() is not None
    if unknown := sorted(set(fields) - _FIELDS):
        known = ", ".join(sorted(_FIELDS))
        raise InvalidArgument(f"fields must be among {known}, got {unknown[0]}", field=unknown[0])

    def work(look: Look) -> WalEvent | None:
        record = look.get(name)
        _check_version(name, record, if_version)
        if record is None:
            raise UnknownRecord(f'id "{name}": there is no such record', id=name)
        before = record.to_dict()
        after = {**before, **fields}
        if "data" in fields:
            after["data"] = merged(before["data"], fields["data"])
        if is_named:
            # Whose it is stays as it is: the engine knows, and says so of a record that is only read here.
            for side in (before, after):
                if isinstance(side["data"], dict) and side["data"].get(_SCOPE) == record.data.get(_SCOPE):
                    side["data"] = {key: value for key, value in side["data"].items() if key != _SCOPE}
        # What would be refused counts as a change.
        is_same_in_log = all(
            after[part] is before[part] or is_same(_spelled(part, before[part]), _spelled(part, after[part]))
            for part in before
        )
        return None if is_same_in_log else look.upsert([after])

    return run(store, work)


def upsert_if(
    store: HasEngine,
    record: ChronoRecord | Mapping[str, Any],
    *,
    if_version: str | None = None,
    if_new: bool = False,
) -> WalEvent:
    """Write a record if the one with its id is of a version, or there is none; else a ``Conflict`` tells."""
    if flag("if_new", if_new) and if_version is not None:
        raise InvalidArgument("if_new must be given without if_version, got both", field="if_new")
    given = (record.id or None) if isinstance(record, ChronoRecord) else record.get("id")
    if if_new and given is None:  # it gets a new id
        return store.engine.upsert(record)
    name = string("id", given)

    def work(look: Look) -> WalEvent:
        known = look.get(name)
        if if_new and known is not None:
            raise _conflict(name, None, known.version)
        _check_version(name, known, if_version)
        return look.upsert([record])

    return run(store, work)


def delete(store: HasEngine, record_id: str, *, if_version: str | None = None) -> WalEvent:
    """Tombstone a record: ``get`` still returns it, ``query`` hides it."""
    if if_version is None:
        return store.engine.delete(record_id)
    name = string("id", record_id)

    def work(look: Look) -> WalEvent:
        _check_version(name, look.get(name), if_version)
        return look.write(("delete", name))

    return run(store, work)


def delete_many(
    store: HasEngine,
    record_ids: Iterable[str] | None = None,
    *,
    where: Where | None = None,
    dry_run: bool = False,
    all: bool = False,
) -> list[str]:
    """Tombstone records, by their ids or by a ``where``, as one batch; return the ids that it was.

    Missing records are left out; wider ones are refused by id, and passed over by a ``where``.
    """
    if (record_ids is None) == (where is None):
        got = "neither" if where is None else "both"
        raise InvalidArgument(f"either ids or where must be given, got {got}", field="ids")
    if where is not None and not where and not flag("all", all):
        raise InvalidArgument(
            "where must not be empty unless all=True says that all is meant, got {}", field="where"
        )
    dry_run = flag("dry_run", dry_run)
    given = None if record_ids is None else strings("ids", record_ids)

    def work(look: Look) -> list[str]:
        if given is None:
            matching = page_of(store.engine, query_terms(status=None, where=where), None, None)
            found_ids = [record.id for record in matching]
            owned = zip(found_ids, store.engine.are_own(found_ids), strict=True)
            names = [name for name, is_own in owned if is_own]
        else:
            names = list(dict.fromkeys(given))
        found = [(name, look.get(name)) for name in names]
        known = [name for name, record in found if record is not None and record.status != "tombstone"]
        if known and not dry_run:
            look.write(*(("delete", name) for name in known))
        return known

    return run(store, work)


def _check_version(name: str, record: ChronoRecord | None, expected: str | None) -> None:
    expected = string_or_none("if_version", expected)
    found = None if record is None else record.version
    if expected is not None and found != expected:
        raise _conflict(name, expected, found)


def _conflict(name: str, expected: str | None, found: str | None) -> Conflict:
    wanted = "no record" if expected is None else f"version {expected}"
    there = "there is none" if found is None else f"it is version {found}"
    return Conflict(f'id "{name}": {wanted} expected, and {there}', id=name, expected=expected, found=found)


def _spelled(name: str, value: Any) -> Any:
    """Return a field as the log has it: a confidence is a float there, whatever number was given."""
    if name != "confidence":
        return value
    try:
        plain = parse_json(canonical_json(value))
        return float(plain) + 0.0 if type(plain) in (int, float) else value
    except (ValueError, TypeError, OverflowError):
        return value


def merged(value: Any, patch: Any) -> Any:
    """Apply an RFC 7396 merge patch, as the engine does."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(value) if isinstance(value, Mapping) else {}
    for name, part in patch.items():
        if part is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), part)
    return result
