"""What is on record beside episodes and facts: added columns, what rules left as it was, how far they got."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chronomemory._core import Engine
from chronomemory.episodes.errors import MigrationNotSupported
from chronomemory.episodes.ids import RULE, columns_key, noop_key, run_key
from chronomemory.episodes.models import MigrationPlan, NoopDelta
from chronomemory.face.arguments import LAST_SEQ
from chronomemory.face.batch import Connection
from chronomemory.face.moments import is_instant
from chronomemory.record import ChronoRecord
from chronomemory.scope import Scope, carrying
from chronomemory.selection import page_of, query_terms

#: What a store is before any migration.
FIRST_VERSION = 1
#: These are no knowledge: they stay out of answers, and the log has them.
_STATUS = "archived"
#: What belongs to the store is seen by all: words in it would change what words are worth to each.
_NO_WORDS = ""


@dataclass(frozen=True)
class Columns:
    """The columns that were added, and the version that they make."""

    version: int = FIRST_VERSION
    names: tuple[str, ...] = ()


def columns_of(engine: Engine, kind: str) -> Columns:
    """Return the columns of episodes or facts."""
    return _columns_in(engine.get(columns_key(kind)))


def _columns_in(record: ChronoRecord | None) -> Columns:
    if record is None or record.status == "tombstone":
        return Columns()
    match record.data:
        case {"target_version": int(version), "columns": [*names]} if all(
            type(name) is str for name in names
        ):
            return Columns(version, tuple(names))
    # Another tool wrote it: nobody can say what it added.
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
    conn.put(
        ChronoRecord(
            id=columns_key(kind),
            kind=RULE,
            status=_STATUS,
            label=_NO_WORDS,
            data={"target_version": plan.target_version, "operations": plan.operations, "columns": names},
        )
    )


def keep_noop(conn: Connection, delta: NoopDelta, user: str | None) -> None:
    """Put on record that a rule looked at something and left it: the history of one record has them all."""
    scope = Scope() if user is None else Scope(user=user)
    conn.put(
        ChronoRecord(
            id=noop_key(delta.rule_id, user),
            kind=RULE,
            status=_STATUS,
            label=f"noop of rule {delta.rule_id}",
            confidence=delta.confidence,
            data=carrying(scope, delta.model_dump(mode="json")),
        )
    )


@dataclass(frozen=True)
class Progress:
    """How far a rule got: up to which event, and when it ran, or was seen first, last."""

    seq: int
    at: str
    #: The hash of that event: a store that went back to a copy and on again has another with this seq.
    #: Earlier versions noted none.
    head: str | None = None


def progress_of(conn: Connection, runner: str, rule_id: str) -> Progress | None:
    """Return how far a rule got; None if it was never seen. It must stay so until the batch is written."""
    return _progress_in(conn.record(run_key(runner, rule_id)))


def progress_of_all(conn: Connection, rule_id: str) -> list[Progress]:
    """Return how far a rule got under each name of a runner; all books are gone through for it."""
    terms = query_terms(
        kind=RULE,
        status=_STATUS,
        rag_filter=False,
        min_confidence=0.0,
        limit=None,
        faces=False,
        where={
            "and": [
                {"path": ["data", "rule_id"], "eq": rule_id},
                {"path": ["data", "runner"], "exists": True},
            ]
        },
    )
    found = map(_progress_in, page_of(conn.store.engine, terms, None, None))
    return [progress for progress in found if progress is not None]


def _progress_in(record: ChronoRecord | None) -> Progress | None:
    match None if record is None else record.data:
        case {"seq": int(seq), "at": str(at), **more} if seq >= 0 and is_instant(at):
            head = more.get("head")
            return Progress(seq, at, head if isinstance(head, str) else None)
    return None


def put_progress(conn: Connection, runner: str, rule_id: str, progress: Progress) -> None:
    """Put on record how far a rule got, with what it made."""
    data: dict[str, Any] = {
        "runner": runner,
        "rule_id": rule_id,
        "seq": progress.seq,
        "at": progress.at,
        "head": progress.head,
    }
    conn.put(
        ChronoRecord(
            id=run_key(runner, rule_id),
            kind=RULE,
            status=_STATUS,
            label=_NO_WORDS,
            data=data,
        )
    )
