"""Erases records from the whole history of a store, and sweeps those whose ``data.expires_at`` is over."""

from __future__ import annotations

import importlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from chronomemory.errors import ChronoError
from chronomemory.face.arguments import flag, function_or_none, log_reason, must, string, word
from chronomemory.face.moments import EPOCH, Now, micros
from chronomemory.filters import Where, where_json
from chronomemory.page_files import PageFiles
from chronomemory.types import HasProject, Progress
from chronomemory.watching import watched

#: Which lines carry a salt: all, none, or all but those that are sure to be of a record for everyone.
Salt = bool | Literal["scope"]

_HISTORY = ("redact", "drop")
_LEVELS = ("user", "agent", "session")
_NAMING = ("ids", "belonging", "mentions", "removed_files", "page_files")


_SHOWN_BY_WORKSPACE = {"profile", "node", "gedge", "path", "plan", "event", "audit"}


@dataclass(frozen=True, slots=True)
class LogHead:
    """The last event of a log; ``log`` is the hash of its first event, which tells one log from another."""

    seq: int
    hash: str
    log: str


@dataclass(frozen=True, slots=True)
class Erased:
    """What was erased, or with ``dry_run`` would be.

    ``seq`` is the event that records it. ``unsalted`` of the ``lines`` had no salt: a guess of their text can
    be confirmed by the hash that is kept. ``belonging`` went with the ``ids``, ``mentions`` stay and refer to
    one of them. ``backups`` and ``quarantine`` held it or could not be read, and are gone; ``unread`` files
    stay. ``copies`` outside hold it too, ``missing_copies`` are not there now. ``new_backup`` was made in
    place of the ``backups``, or ``backup_fault`` says why not. ``removed_files`` are page files that went,
    ``page_files`` still hold it and a sync reads them in again.
    """

    seq: int | None
    ids: tuple[str, ...]
    belonging: tuple[str, ...]
    mentions: tuple[str, ...]
    lines: int
    unsalted: int
    logs: tuple[tuple[str, int], ...]
    replaced: int
    again: int
    backups: tuple[str, ...]
    quarantine: tuple[str, ...]
    unread: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()
    missing_copies: tuple[str, ...] = ()
    new_backup: str | None = None
    backup_fault: str | None = None
    dry_run: bool = False
    removed_files: tuple[str, ...] = ()
    page_files: tuple[str, ...] = ()
    reason: str = ""
    history: str = "redact"
    asked: Mapping[str, Any] = field(default_factory=dict, hash=False)
    at: datetime | None = None
    before: LogHead | None = None
    after: LogHead | None = None

    def to_dict(self, *, ids: bool = True) -> dict[str, Any]:
        """Return the certificate of an erasure as JSON can carry it; without ``ids`` it has only counts."""
        certificate = {**asdict(self), "logs": dict(self.logs), "at": self.at and self.at.isoformat()}
        certificate |= {name: list(value) for name, value in certificate.items() if isinstance(value, tuple)}
        counts = {name: len(certificate[name]) for name in _NAMING}
        certificate["asked"] = {
            name: self.asked.get(name) if ids else None for name in ("ids", "scope", "where")
        }
        if not ids:
            certificate |= dict.fromkeys(_NAMING)
        return {"certificate": "chronomemory erasure", "version": 1, **certificate, "counts": counts}


def salting(given: Salt) -> str:
    if isinstance(given, bool):
        return "always" if given else "never"
    if given != "scope":
        raise must("salt", "be True, False or 'scope'", given)
    return given


def erase(
    store: HasProject,
    *,
    ids: Iterable[str] | None = None,
    scope: Mapping[str, str] | None = None,
    where: Where | None = None,
    reason: str,
    history: str = "redact",
    again: Iterable[str] = (),
    derived: bool = False,
    backup: bool = True,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Erased:
    """Erase records from the store and from all of its past; the log still proves everything else.

    They are selected by ``ids``, by ``scope`` (every record that carries its names or ever did), or by
    ``where``. With ``history="drop"`` the history of all records goes; records in ``again`` lose only their
    past. What belongs to an erased record goes with it, with ``derived`` also facts that rest on it. The
    ``reason`` stays in the log. Backups that hold a record go; one new is made and verified, unless
    ``backup=False``.
    """
    given = [ids is not None, scope is not None, where is not None]
    if sum(given) != 1:
        raise must("ids, scope or where", "be exactly one of the three", f"{sum(given)} of them")
    for name, several in (("ids", ids), ("again", again)):
        if isinstance(several, str):
            raise must(name, "be several ids, not one text", repr(several))
    names = [string("ids", name) for name in ids or ()]
    if where is not None and not where:
        raise must("where", "say something: every record would do", repr(where))
    condition = where_json(where)
    # The records of a where are found while no one else writes: tombstones too, of any scope.
    engine = store.engine if where is None else store.engine.unscoped().with_expired()
    files, again = PageFiles.of(engine, store.project_root), [string("again", name) for name in again]
    with watched("erase", store.project_root, large=True):
        order = {
            "ids": list(dict.fromkeys(names)),
            "scope": None if scope is None else _spelled(scope),
            "reason": log_reason("reason", reason, empty=flag("dry_run", dry_run)),
            "drop_history": word("history", history, _HISTORY) == "drop",
            "again": again,
            "derived": flag("derived", derived),
            "new_backup": flag("backup", backup),
            "dry_run": flag("dry_run", dry_run),
            "condition": condition,
        }
        if files.folders and not order["dry_run"]:
            # Page files go first: if the process is killed in between, the log still restores them.
            planned = engine.upkeep.erase({**order, "dry_run": True})
            files.clear((*planned["ids"], *planned["belonging"]), again, dry_run=False)
        report = engine.upkeep.erase(order, function_or_none("progress", progress))
        asked = {"scope": scope and dict(scope), "where": condition and json.loads(condition)}
        asked |= {"ids": None if ids is None else names}
        _clear_files(store, report, files, again, dry_run=dry_run)
        return _erased(report, files, dry_run=dry_run, reason=reason, history=history, asked=asked)


def erase_seen(
    store: HasProject,
    ids: Sequence[str] = (),
    *,
    scope: Mapping[str, str] | None = None,
    due_at: int | None = None,
    reason: str,
    backup: bool = True,
    dry_run: bool = False,
) -> Erased:
    """Erase records by ids (with ``due_at`` those expired by then) or scope, within what the handle sees."""
    engine = store.engine
    files = PageFiles.of(engine, store.project_root)
    order = {
        "ids": list(ids),
        "scope": None if scope is None else _spelled(scope),
        "reason": reason,
        "due_at": due_at,
        "only_seen": True,
        "drop_history": False,
        "again": [],
        "derived": False,
        "new_backup": False,
    }
    found = engine.upkeep.erase({**order, "dry_run": True})
    files.clear((*found["ids"], *found["belonging"]), (), dry_run=dry_run)
    others = [*found["belonging"], *found["mentions"]]
    known = zip(others, engine.with_expired().get_many(others), strict=True)
    seen = {name for name, record in known if record is not None}
    report = found if dry_run else engine.upkeep.erase({**order, "dry_run": False, "new_backup": backup})
    _clear_files(store, report, files, (), dry_run=dry_run)
    for kind in ("belonging", "mentions"):
        report[kind] = [name for name in report[kind] if name in seen]
    asked = {"ids": None if scope else list(ids), "scope": scope and dict(scope)}
    return _erased(report, files, dry_run=dry_run, reason=reason, asked=asked)


def _clear_files(
    store: HasProject, report: dict[str, Any], files: PageFiles, kept: Collection[str], *, dry_run: bool
) -> None:
    """Clear the files outside the store's folder that show erased records: of pages, and of a workspace."""
    erased = (*report["ids"], *report["belonging"])
    files.clear(erased, kept, dry_run=dry_run)
    changed = {name.partition(":")[0] for name in (*erased, *report["mentions"])}
    if dry_run or report["seq"] is None or not changed & _SHOWN_BY_WORKSPACE:
        return
    try:
        # The graph depends on the store: it is loaded only here, where its files are to be cleared.
        importlib.import_module("chronomemory.graph.log_home").clear_erased(store)
    except (ChronoError, OSError):
        # What was erased is erased: the call must not look as if it were not.
        files.left.append(str(store.project_root))


def _erased(report: dict[str, Any], files: PageFiles, **order: Any) -> Erased:
    names = {"removed_files": files.removed, "page_files": files.left}
    order |= {name: tuple(dict.fromkeys(found)) for name, found in names.items()}
    done, logs = report.pop("done"), tuple(map(tuple, report.pop("logs")))
    for name, value in report.items():
        order[name] = tuple(value) if isinstance(value, list) else value
    if done is not None:
        order["at"] = EPOCH + timedelta(microseconds=done[0])
        order["before"], order["after"] = LogHead(*done[1]), LogHead(*done[2])
    return Erased(logs=logs, **order)


def _spelled(scope: Mapping[str, str]) -> bytes:
    names = {level: string(level, scope[level]) for level in sorted(scope)}
    if not names or not names.keys() <= set(_LEVELS):
        raise must("scope", "have some of user, agent and session", repr(dict(scope)))
    return json.dumps(names, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()


_WHY = "expired"


@dataclass(frozen=True, slots=True)
class Swept:
    """The ids of the records that had expired, and what an erasure tells of them, if they were erased."""

    ids: tuple[str, ...]
    erased: Erased | None = None
    dry_run: bool = False


def sweep(
    store: HasProject,
    *,
    erase: bool = False,
    reason: str = _WHY,
    now: Now | None = None,
    backup: bool = True,
    dry_run: bool = False,
) -> Swept:
    """Delete the handle's own expired records as one batch, or with ``erase`` erase them; return which."""
    moment = None if now is None else micros("now", now())
    engine, dry = store.engine, flag("dry_run", dry_run)
    why, wants_copy = log_reason("reason", reason), flag("backup", backup)
    if not flag("erase", erase):
        return Swept(tuple(engine.due(moment) if dry else engine.sweep(moment)), dry_run=dry)
    moment = engine.clock() if moment is None else moment
    due = engine.due(moment)
    if not due:
        return Swept((), dry_run=dry)
    # Records written until then are kept: the erasure looks once more, while no one writes.
    erased = erase_seen(store, due, due_at=moment, reason=why, backup=wants_copy, dry_run=dry)
    return Swept(erased.ids, erased, dry_run=dry)
