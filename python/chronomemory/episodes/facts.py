"""Facts of many users, for scripts: how a fact is kept as a record, and pin, query, unpin and apply."""

from __future__ import annotations

import hashlib
import math
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

from chronomemory._core import canonical_json
from chronomemory.episodes.errors import ConsolidationRuleError, FactConflictError, MemoryScopeError
from chronomemory.episodes.ids import FACT, RULE, episode_key, fact_key, lineage_key, plain_id, taken
from chronomemory.episodes.kept import Kept, columns_of, keep_noop
from chronomemory.episodes.models import (
    AddDelta,
    DeleteDelta,
    Fact,
    FactPattern,
    MemoryDelta,
    NoopDelta,
    UpdateDelta,
)
from chronomemory.errors import InvalidArgument, InvalidRecord, RecordTooLarge
from chronomemory.face.arguments import contents, string, within
from chronomemory.face.batch import Connection
from chronomemory.face.moments import instant, is_instant, parse_instant
from chronomemory.record import ChronoRecord, is_same
from chronomemory.scope import Scope
from chronomemory.store import ScopedStore

Step: TypeAlias = dict[str, Any]

_MOST_STEPS = 32
#: A piece is no knowledge: it stays out of answers, and the log has it.
_STATUS = "archived"


@dataclass(frozen=True)
class Lineage:
    """Steps, and the record ids of the pieces whose steps come before them."""

    steps: list[Step]
    earlier: list[str] = field(default_factory=list)


def lineage_in(record: ChronoRecord) -> Lineage:
    """Return what a fact or a piece says itself; another tool may have written anything there."""
    return Lineage(_listed(record.data.get("lineage"), dict), _listed(record.data.get("earlier"), str))


def _listed(found: object, kind: type[Any]) -> list[Any]:
    return [one for one in found if isinstance(one, kind)] if isinstance(found, list) else []


def whole(lineage: Lineage, look: Callable[[str], ChronoRecord | None]) -> list[Step]:
    """Return all steps, the first first and each once; ``look`` reads a piece, or None if it is not there."""
    steps: dict[bytes, Step] = {}
    seen: set[str] = set()
    waiting: list[str | list[Step]] = [lineage.steps, *reversed(lineage.earlier)]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            _add(steps, part)
        elif part not in seen:
            seen.add(part)
            if (record := look(part)) is not None:
                lineage = lineage_in(record)
                waiting += [lineage.steps, *reversed(lineage.earlier)]
    return list(steps.values())


def joined(lineages: Iterable[Lineage], scope: Scope) -> tuple[Lineage, list[ChronoRecord]]:
    """Return several one behind the other, and the pieces to be written of what is too long for a fact."""
    pieces: list[ChronoRecord] = []
    earlier: list[str] = []
    steps: dict[bytes, Step] = {}
    for lineage in lineages:
        new = [name for name in lineage.earlier if name not in earlier]
        if new and steps:
            pieces.append(_piece(Lineage(list(steps.values()), earlier), scope))
            earlier, steps = [pieces[-1].id], {}
        earlier = [*earlier, *new]
        _add(steps, lineage.steps)
    latest = list(steps.values())
    if len(latest) > _MOST_STEPS:
        pieces.append(_piece(Lineage(latest[:-1], earlier), scope))
        earlier, latest = [pieces[-1].id], latest[-1:]
    return Lineage(latest, earlier), pieces


def _add(steps: dict[bytes, Step], more: Iterable[Step]) -> None:
    for step in more:
        steps.setdefault(canonical_json(step), step)


def _piece(lineage: Lineage, scope: Scope) -> ChronoRecord:
    data = {"@scope": scope.to_dict(), "earlier": lineage.earlier, "lineage": lineage.steps}
    return ChronoRecord(
        # Drawn, not a digest: an erased episode could be guessed from that.
        id=lineage_key(uuid.uuid4().hex),
        kind=RULE,
        status=_STATUS,
        label=f"earlier steps of a lineage, {len(lineage.steps)}",
        source_type="inferred",
        evidence=evidence_of(lineage),
        data=data,
    )


def evidence_of(lineage: Lineage) -> list[str]:
    """Return what these steps rest on: the pieces before them, and their episodes."""
    sources = (episode_key(source) for step in lineage.steps for source in sources_of(step))
    return list(dict.fromkeys([*lineage.earlier, *sources]))


def sources_of(step: Step) -> list[str]:
    return _listed(step.get("source_episode_ids"), str)


_PREFIX = fact_key("")
_MOST_BYTES = 16 * 1024 * 1024 - 1024
_TIMES_LARGER = 3


@contents
def record_of(fact: Fact, scope: Scope, lineage: Lineage) -> ChronoRecord:
    """Return the record of a fact: its evidence are the episodes of its steps, and the pieces before them."""
    pinned_at = instant("pinned_at", fact.pinned_at)
    fact_id = string("id", fact.id, empty=False)
    if not fact_id.strip():
        raise InvalidRecord("id must not be blank", field="id")
    data: dict[str, Any] = {
        "@scope": scope.to_dict(),
        **({"earlier": lineage.earlier} if lineage.earlier else {}),
        "lineage": lineage.steps,
        "metadata": fact.metadata,
        "payload": fact.payload,
        "timestamp": pinned_at.isoformat(),
    }
    return ChronoRecord(
        id=fact_key(fact_id),
        kind=FACT,
        label=statement_of(fact.payload),
        confidence=within("confidence", fact.confidence),
        source_type="inferred",
        evidence=evidence_of(lineage),
        data=data,
    )


def is_fact(record: ChronoRecord) -> bool:
    """Say whether a record is a fact as this face writes it: plain ones of its kind are none."""
    data, scope = record.data, record.scope
    steps = data.get("lineage")
    return (
        record.id.startswith(_PREFIX)
        and bool(plain_id(record.id).strip())
        and scope is not None
        and set(scope.to_dict()) == {"user", "agent"}
        and isinstance(steps, list)
        and all(isinstance(step, dict) for step in steps)
        and is_instant(data.get("timestamp"))
        and all(isinstance(data.get(name), dict) for name in ("metadata", "payload"))
    )


def fact_of(
    record: ChronoRecord, look: Callable[[str], ChronoRecord | None], columns: Iterable[str] = ()
) -> Fact:
    """Return the fact of a record; ``look`` reads pieces of its lineage, added ``columns`` are None."""
    data = record.data
    return Fact(
        id=plain_id(record.id),
        payload=data["payload"],
        lineage=whole(lineage_in(record), look),
        confidence=record.confidence,
        pinned_at=datetime.fromisoformat(data["timestamp"]),
        metadata={**dict.fromkeys(columns), **data["metadata"]},
        **data["@scope"],
    )


def statement_of(payload: dict[str, Any]) -> str:
    """Return what a fact says, in words that are searched."""
    if isinstance(content := payload.get("content"), str) and content.strip():
        return content
    parts = (payload.get(name) for name in ("subject", "predicate", "object"))
    return " ".join(str(part) for part in parts if part is not None)


#: By the class, for deltas that no validation has seen.
_KINDS = {AddDelta: "add", UpdateDelta: "update", DeleteDelta: "delete", NoopDelta: "noop"}


def check_provenance(delta: MemoryDelta) -> None:
    """Refuse a delta that does not say which rule made it of which episodes, when, and how sure it is."""
    violation = _violation(delta)
    if violation is not None:
        raise ConsolidationRuleError(
            rule_id=delta.rule_id, delta_type=_KINDS.get(type(delta), ""), violation=violation
        )


def _violation(delta: MemoryDelta) -> str | None:
    if not delta.rule_id.strip():
        return "rule_id must not be blank"
    if not delta.source_episode_ids:
        return "source_episode_ids must not be empty"
    if not all(source.strip() for source in delta.source_episode_ids):
        return "source_episode_ids must not hold a blank id"
    if delta.promotion_ts.utcoffset() is None:
        return "promotion_ts must have a time zone"
    if not math.isfinite(delta.confidence) or not 0.0 <= delta.confidence <= 1.0:
        return f"confidence must be from 0 to 1, got {delta.confidence!r}"
    if isinstance(delta, UpdateDelta | DeleteDelta):
        if not delta.replaces:
            return "replaces must not be empty"
        if not all(fact_id.strip() for fact_id in delta.replaces):
            return "replaces must not hold a blank id"
    return None


def step_violation(step: dict[str, Any]) -> str | None:
    """Return what is wrong with a step that was written by hand, or None."""
    rule_id, sources = step.get("rule_id"), step.get("source_episode_ids")
    if not isinstance(rule_id, str) or not rule_id.strip():
        return "rule_id must be text that is not blank"
    if not isinstance(sources, list) or not all(isinstance(one, str) and one.strip() for one in sources):
        return "source_episode_ids must be a list of ids that are not blank"
    try:
        parse_instant("promotion_ts", step.get("promotion_ts"))
    except InvalidArgument as error:
        return str(error)
    return None


_SLOTS = ("subject", "predicate", "object")
_MADE_ID_DIGITS = 32


class Facts(Kept):
    """The plain verbs of ``ChronoFactStore``: the same arguments, the same answers, not awaited."""

    kind, called = FACT, "facts"

    def pin(self, fact: Fact) -> None:
        """Keep a fact, in place of the one with its id; one of another owner is not replaced."""
        for place, step in enumerate(fact.lineage):
            if violation := step_violation(step):
                raise ConsolidationRuleError(delta_type="pin", violation=f"lineage[{place}]: {violation}")
        self.handle.run(lambda conn: conn.put(_pinnable(conn, fact, "pin")))

    def query(self, pattern: FactPattern, *, as_of: int | datetime | None = None) -> list[Fact]:
        """Return the facts that fit a pattern, by pinning time and id, now or ``as_of`` a moment."""
        tests: list[dict[str, Any]] = [
            {"path": ["data", "payload", slot], "eq": wanted}
            for slot in _SLOTS
            if (wanted := getattr(pattern, slot)) is not None
        ]
        if pattern.channel is not None:
            tests.append({"path": ["data", "metadata", "channels"], "any": [pattern.channel]})
        if pattern.agent is not None:
            agent = taken("query", user="any", agent=pattern.agent).agent
            tests.append({"path": ["data", "@scope", "agent"], "eq": agent})
        door: Any = self.handle.store
        if pattern.user is not None:
            # One user costs what that user has, however many there are.
            door = ScopedStore(self.store, taken("query", user=pattern.user), shared=False)
        if as_of is not None:
            door = door.as_of(as_of)
        found = door.query(kind=FACT, where={"and": tests})
        columns = columns_of(self._engine, FACT).names
        facts = [fact_of(record, door.get, columns) for record in found if is_fact(record)]
        return sorted(facts, key=lambda fact: (fact.pinned_at, fact.id))

    def get(self, fact_id: str) -> Fact | None:
        """Return a fact that is pinned, or None."""
        look = self.handle.look()
        record = look.record(fact_key(string("fact_id", fact_id)))
        columns = columns_of(self._engine, FACT).names
        return None if record is None or not is_fact(record) else fact_of(record, look.glimpse, columns)

    def unpin(self, fact_id: str, *, user: str | None = None, missing_ok: bool = False) -> None:
        """Take a fact away, of this user if one is named; the log keeps it."""
        owner = None if user is None else taken("unpin", user=user).user
        self.handle.run(lambda conn: _unpin(conn, [fact_id], owner, "unpin", missing_ok))

    def apply_delta(
        self,
        delta: MemoryDelta,
        *,
        missing_ok: bool = False,
        user: str | None = None,
        channels: Sequence[str] = (),
    ) -> None:
        """Do what a delta of one owner says in one atomic batch; a noop leaves only its event."""
        self.handle.run(lambda conn: apply(conn, delta, missing_ok=missing_ok, user=user, channels=channels))


@dataclass(frozen=True)
class Applied:
    """What became of a delta."""

    done: bool = True
    missing: list[str] = field(default_factory=list)
    over: str | None = None


def apply(
    conn: Connection,
    delta: MemoryDelta,
    *,
    missing_ok: bool = False,
    user: str | None = None,
    channels: Sequence[str] = (),
    bring_back: bool = True,
    again: bool = False,
) -> Applied:
    """Do what a delta says as part of a batch; ``bring_back`` may pin a removed fact again."""
    check_provenance(delta)
    if user is not None:
        owner = taken("apply_delta", user=user).user
    else:
        sources = [conn.store.engine.get(episode_key(name)) for name in delta.source_episode_ids]
        owners = {one.scope.user for one in sources if one is not None and one.scope is not None}
        if len(owners) > 1:
            raise MemoryScopeError(
                scope="", operation="apply_delta", violation="the episodes are of several users"
            )
        owner = owners.pop() if owners else None
    if isinstance(delta, NoopDelta):
        keep_noop(conn, delta, owner)
        return Applied()
    if isinstance(delta, DeleteDelta):
        missing = _unpin(conn, delta.replaces, owner, "delete", missing_ok)
        return Applied(len(missing) < len(delta.replaces), missing)
    fact, scope = _fact_of_delta(delta)
    if owner is not None and scope.user != owner:
        raise MemoryScopeError(
            scope=str(scope), operation=delta.kind, violation="the fact is of another user than its episodes"
        )
    replaced = delta.replaces if isinstance(delta, UpdateDelta) else []
    others = [name for name in replaced if name != fact.id]
    before = conn.record(fact_key(fact.id))
    names = dict.fromkeys([*replaced, fact.id]) if replaced or before is not None else ()
    records = [record for name in names if (record := conn.record(fact_key(name))) and is_fact(record)]
    known = [lineage_in(one) for one in records if one.scope is not None and one.scope.user == scope.user]
    lineages = [*known, Lineage(fact.lineage)]
    lineage, pieces = joined(lineages, scope)
    had = before.data["metadata"].get("channels") if before is not None and is_fact(before) else None
    if all_channels := list(dict.fromkeys([*_listed(had, str), *channels])):
        fact.metadata = {"channels": all_channels}
    # Checked before anything is taken away: a runner goes on with its batch when a delta is refused.
    record = _pinnable(conn, fact, delta.kind, lineage)
    is_over = before is None and (again or (not bring_back and _is_over(conn, record, lineages)))
    missing = _unpin(conn, others, scope.user, delta.kind, missing_ok)
    if is_over:
        # What it was to replace goes all the same: it is older still.
        return Applied(len(missing) < len(others), missing, over=fact.id)
    for part in [*pieces, record]:
        conn.put(part)
    return Applied(missing=missing)


def _pinnable(conn: Connection, fact: Fact, operation: str, lineage: Lineage | None = None) -> ChronoRecord:
    """Return the record of a fact that may be pinned here; its lineage is its own unless one is given."""
    scope = taken(operation, user=fact.user, agent=fact.agent)
    if scope.agent is None or not fact.lineage:
        raise ConsolidationRuleError(
            delta_type=operation, violation="a fact has an agent and a lineage that is not empty"
        )
    record = record_of(fact, scope, lineage or Lineage(fact.lineage))
    # No line of the log holds a fact that is too long: it has the text of its episode twice.
    is_small = _TIMES_LARGER * len(canonical_json(record.data)) < _MOST_BYTES
    if not is_small and len(canonical_json(record.to_dict())) > _MOST_BYTES:
        raise RecordTooLarge(f"fact {plain_id(record.id)!r}: no line of the log can hold it", field="data")
    known = conn.store.engine.get(record.id)
    if known is not None and known.scope != scope:
        raise MemoryScopeError(
            scope=str(scope), operation=operation, violation=f"the id {fact.id!r} is taken in this store"
        )
    return record


def _unpin(
    conn: Connection, fact_ids: Iterable[str], owner: str | None, operation: str, missing_ok: bool
) -> list[str]:
    """Take facts of one owner away: of the named one, else of the owner of the first."""
    missing, found = [], []
    for fact_id in fact_ids:
        record = conn.record(fact_key(string("fact_id", fact_id)))
        if record is None:
            if not missing_ok:
                raise FactConflictError(fact_id=fact_id, operation=operation)
            missing.append(fact_id)
            continue
        user = record.scope.user if record.scope is not None else None
        if owner is not None and user != owner:
            raise MemoryScopeError(
                scope=f"user={owner}",
                operation=operation,
                violation=f"the fact {fact_id!r} is of another owner",
            )
        owner = user
        found.append(record.id)
    for record_id in found:
        conn.delete(record_id)
    return missing


def _is_over(conn: Connection, record: ChronoRecord, lineages: Iterable[Lineage]) -> bool:
    """Say whether a fact was taken away that said the same, of episodes that were not written since."""
    engine = conn.store.engine
    known = engine.get(record.id)
    if known is None or known.status != "tombstone":
        return False
    if not is_same(known.data.get("payload"), record.data["payload"]):
        return False
    steps = (step for lineage in lineages for step in whole(lineage, conn.glimpse))
    sources = (engine.get(episode_key(name)) for step in steps for name in sources_of(step))
    return all(source is None or (source.updated_seq or 0) < (known.updated_seq or 0) for source in sources)


def _fact_of_delta(delta: AddDelta | UpdateDelta) -> tuple[Fact, Scope]:
    payload = delta.fact_payload
    for name in ("user", "agent"):
        if not isinstance(payload.get(name), str):
            raise ConsolidationRuleError(
                rule_id=delta.rule_id, delta_type=delta.kind, violation=f"fact_payload.{name} must be text"
            )
    fact_id = payload.get("id")
    if fact_id is None:
        # The same delta makes the same fact, however often it is applied.
        key = canonical_json([delta.rule_id, delta.source_episode_ids, payload])
        fact_id = hashlib.sha256(key).hexdigest()[:_MADE_ID_DIGITS]
    if not isinstance(fact_id, str) or not fact_id.strip():
        raise ConsolidationRuleError(
            rule_id=delta.rule_id, delta_type=delta.kind, violation="fact_payload.id must be text"
        )
    scope = taken(delta.kind, user=payload["user"], agent=payload["agent"])
    fact = Fact(
        id=fact_id,
        user=payload["user"],
        agent=payload["agent"],
        payload=payload,
        lineage=[
            {
                "rule_id": delta.rule_id,
                "source_episode_ids": list(delta.source_episode_ids),
                "promotion_ts": delta.promotion_ts.isoformat(),
            }
        ],
        confidence=delta.confidence,
        pinned_at=delta.promotion_ts,
    )
    return fact, scope
