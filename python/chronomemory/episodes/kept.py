"""What stores of episodes and of facts share: lifecycle, added columns, and the books about rules."""

from __future__ import annotations

import fcntl
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from chronomemory._core import Engine
from chronomemory.episodes.errors import MigrationNotSupported
from chronomemory.episodes.ids import FACE, RULE, columns_key, noop_key, run_key
from chronomemory.episodes.models import MigrationPlan, NoopDelta, StoreHealth
from chronomemory.face.arguments import LAST_SEQ, public_names
from chronomemory.face.batch import Connection, Face
from chronomemory.face.handle import Closing, Handle, open_handle
from chronomemory.face.moments import is_instant
from chronomemory.layout import file_system, log_folder, network_file_system
from chronomemory.record import ChronoRecord
from chronomemory.scope import Scope, carrying
from chronomemory.selection import page_of, query_terms
from chronomemory.store import ChronoStore

FIRST_VERSION = 1
_STATUS = "archived"


@dataclass(frozen=True)
class Columns:
    """The columns that were added, and the version that they make."""

    version: int = FIRST_VERSION
    names: tuple[str, ...] = ()


def columns_of(engine: Engine, kind: str) -> Columns:
    return _columns_in(engine.get(columns_key(kind)))


def _columns_in(record: ChronoRecord | None) -> Columns:
    if record is None or record.status == "tombstone":
        return Columns()
    match record.data:
        case {"target_version": int(version), "columns": [*names]} if all(
            type(name) is str for name in names
        ):
            return Columns(version, tuple(names))
    return Columns()


def add_columns(conn: Connection, store: str, kind: str, plan: MigrationPlan) -> None:
    """Put a plan on record, or refuse it: only columns that may be empty can be added."""
    # Two plans at once: the second finds this changed, and begins again.
    known = _columns_in(conn.record(columns_key(kind)))
    if not min(max(known.version, FIRST_VERSION), LAST_SEQ) <= plan.target_version <= LAST_SEQ:
        raise MigrationNotSupported(
            store=store,
            operation=f"target_version {plan.target_version}",
            reason=f"a version goes up from {known.version}, to 2**63 - 1 at most",
        )
    names = list(known.names)
    for operation in plan.operations:
        op = operation.get("op", operation.get("kind", operation.get("operation", "")))
        if op != "add_column":
            raise MigrationNotSupported(store=store, operation=str(op), reason="v1-add-column-only")
        if operation.get("nullable") is not True:
            raise MigrationNotSupported(store=store, operation=op, reason="non-nullable-add")
        name = operation.get("name", operation.get("column"))
        if not isinstance(name, str) or not name.strip():
            raise MigrationNotSupported(store=store, operation=op, reason="a column needs a name")
        if name not in names:
            names.append(name)
    data = {"target_version": plan.target_version, "operations": plan.operations, "columns": names}
    _put(conn, columns_key(kind), data)


def _put(conn: Connection, record_id: str, data: dict[str, Any], **fields: Any) -> None:
    # What belongs to the store is seen by all: words in it would change what words are worth to each.
    fields = {"label": "", **fields}
    conn.put(ChronoRecord(id=record_id, kind=RULE, status=_STATUS, data=data, **fields))


def keep_noop(conn: Connection, delta: NoopDelta, user: str | None) -> None:
    """Put on record that a rule looked at something and left it: the history of one record has them all."""
    scope = Scope() if user is None else Scope(user=user)
    data = carrying(scope, delta.model_dump(mode="json"))
    label = f"noop of rule {delta.rule_id}"
    _put(conn, noop_key(delta.rule_id, user), data, label=label, confidence=delta.confidence)


@dataclass(frozen=True)
class Progress:
    """How far a rule got: up to which event, and when it ran, or was seen first, last."""

    seq: int
    at: str
    #: The hash of that event, which tells it from that of a store that went back to a copy.
    head: str | None = None


def progress_of(conn: Connection, runner: str, rule_id: str) -> Progress | None:
    """Return how far a rule got; None if it was never seen. It must stay so until the batch is written."""
    return _progress_in(conn.record(run_key(runner, rule_id)))


def progress_of_all(conn: Connection, rule_id: str) -> list[Progress]:
    """Return how far a rule got under each name of a runner; all books are gone through for it."""
    where = {"data.rule_id": rule_id, "data.runner": {"exists": True}}
    terms = query_terms(kind=RULE, status=_STATUS, where=where)
    found = map(_progress_in, page_of(conn.store.engine, terms, None, None))
    return [progress for progress in found if progress is not None]


def _progress_in(record: ChronoRecord | None) -> Progress | None:
    match None if record is None else record.data:
        case {"seq": int(seq), "at": str(at), **more} if seq >= 0 and is_instant(at):
            head = more.get("head")
            return Progress(seq, at, head if isinstance(head, str) else None)
    return None


def put_progress(conn: Connection, runner: str, rule_id: str, progress: Progress) -> None:
    _put(conn, run_key(runner, rule_id), {"runner": runner, "rule_id": rule_id, **asdict(progress)})


class EpisodesHandle(Handle):
    """Episodes and facts of one project, of all users: every call above names a user."""

    face = Face(name=FACE)


_LOCK = "lock"


def health_of(handle: EpisodesHandle, kind: str) -> StoreHealth:
    """Ask the engine and the file system; no log is read for it."""
    store = handle.project
    health = store.health()
    folder = log_folder(store.project_root)
    network = network_file_system(folder)
    warnings = []
    if network is not None:
        warnings.append(f"the store lies on {network}: locks between machines cannot be relied on")
    if health.damaged_places:
        warnings.append(f"{health.damaged_places} places are damaged: verify() names them")
    if health.poisoned is not None:
        warnings.append(f"a sync failed, and nothing is written any more: {health.poisoned}")
    engine = handle.store.engine
    return StoreHealth(
        ok=health.ok,
        version=columns_of(engine, kind).version,
        fragment_count=handle.look().count(kind, "active"),
        node_count=0,
        embedding_hash=None,
        fs_type=file_system(folder) or "unknown",
        lock_state=_lock_state(folder),
        warnings=warnings,
    )


def _lock_state(folder: Path) -> str:
    try:
        file = os.open(folder / _LOCK, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return "none"
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return "held"
    else:
        return "free"
    finally:
        os.close(file)


@public_names
class Kept(Closing):
    """Records of one kind of this face, of all users."""

    kind: ClassVar[str]
    called: ClassVar[str]

    def __init__(self, path: str | os.PathLike[str] | ChronoStore) -> None:
        self.handle = open_handle(EpisodesHandle, path, everyone=True)

    @property
    def store(self) -> ChronoStore:
        """The project behind it: its log, its search, its evidence."""
        return self.handle.project

    @property
    def _engine(self) -> Engine:
        return self.handle.store.engine

    def close(self) -> None:
        """Let go of the store, if it was opened here; closing twice is fine."""
        self.handle.close()

    def bootstrap(self) -> None:
        """Make the folder, with those above it, and open the store; doing so twice is fine."""
        self.store.project_root.mkdir(parents=True, exist_ok=True)
        self.store.open()

    def health(self) -> StoreHealth:
        """Say how the store is, and how many records of this kind it has."""
        return health_of(self.handle, self.kind)

    def migrate(self, plan: MigrationPlan) -> None:
        """Add columns: they live in the metadata, where each reads as None until it is filled."""
        self.handle.run(lambda conn: add_columns(conn, self.called, self.kind, plan))
