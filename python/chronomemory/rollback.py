"""Withdraws a belief that turned out to be wrong, with all that rests on it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain, count
from typing import Any

from chronomemory._core import Engine
from chronomemory.deps import DepGraph, edges_to, resting_on
from chronomemory.errors import IdTaken, OutOfScope
from chronomemory.face.arguments import contents, string
from chronomemory.record import ChronoRecord
from chronomemory.scope import Scope
from chronomemory.types import Linked
from chronomemory.updates import Look, run

__all__ = [
    "REPORT_KIND",
    "WITHDRAWN",
    "RecordStatusChange",
    "RollbackReport",
    "invalidate",
    "invalidate_in",
    "withdraw",
]

#: An edge of these types says that its beginning stands on its end.
_RESTS_ON = ("depends_on", "derived_from")

#: The kind of a report.
REPORT_KIND = "rollback_event"

#: Hears what the record is that is to fall.
Check = Callable[[ChronoRecord | None], None]

#: Says what else belongs into the batch, once it is known what falls; it may look, and refuse.
Note = Callable[[Look, "RollbackReport"], Sequence[ChronoRecord]]

#: What was withdrawn stays withdrawn: a cascade must not bring it back as a hypothesis.
WITHDRAWN = frozenset({"tombstone", "invalidated"})


@dataclass(frozen=True, slots=True)
class RecordStatusChange:
    """What a rollback did to one record."""

    record_id: str
    previous_status: str
    new_status: str
    previous_confidence: float
    new_confidence: float
    #: Whether it was marked as a hypothesis before.
    was_hypothesis: bool = False


@dataclass(slots=True)
class RollbackReport:
    """What a rollback did; ``direct_change`` is None when the store did not know the target."""

    target_id: str
    reason: str
    direct_change: RecordStatusChange | None = None
    cascaded: list[RecordStatusChange] = field(default_factory=list)

    @property
    def affected_ids(self) -> list[str]:
        """The ids that changed, the target first."""
        direct = [] if self.direct_change is None else [self.direct_change.record_id]
        return [*direct, *(change.record_id for change in self.cascaded)]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON can carry it."""
        return {
            "target_id": self.target_id,
            "reason": self.reason,
            "affected": self.affected_ids,
            "cascaded_count": len(self.cascaded),
        }


def invalidate(
    record_id: str,
    reason: str,
    store: Linked,
    dep_graph: DepGraph | None = None,
    *,
    check: Check | None = None,
    note: Note | None = None,
) -> RollbackReport:
    """Invalidate a record and turn all that rests on it into hypotheses, in one atomic batch.

    The cascade also starts from an id that the store does not know (a paper, a person):
    what rests on it has lost its ground all the same. Without a graph, that of the edges in the
    store is followed. What another process writes meanwhile to one of the records is kept: all is
    read again then.
    ``check`` may refuse it by what the record is, or None, at that moment; ``note`` may add to the batch.
    """
    string("id", record_id, empty=False)
    with contents:
        string("reason", reason)
    engine = store.engine
    if dep_graph is None and engine.scope_names() is not None and engine.get(record_id) is not None:
        return withdraw(engine, record_id, reason, check, note)

    def work(look: Look) -> RollbackReport:
        if check is not None:
            check(look.get(record_id))
        if dep_graph is None:
            falling: Iterable[str] = resting_on(engine, record_id, _RESTS_ON)
        else:
            falling = dep_graph.dependents_in_order(record_id, _RESTS_ON)
        return invalidate_in(look, record_id, reason, falling, note)

    return run(store, work)


def invalidate_in(
    look: Look, record_id: str, reason: str, falling: Iterable[str], note: Note | None = None
) -> RollbackReport:
    """Do the same through a look that has noted what else it was decided from; ``falling`` rests on it."""
    report = RollbackReport(record_id, reason)
    changed: list[ChronoRecord] = []
    target = look.get(record_id)
    if target is not None:
        report.direct_change = _change(target, "invalidated", target.confidence)
        changed.append(target)
    for dependent_id in falling:
        dependent = look.get(dependent_id)
        if dependent is None or dependent.status in WITHDRAWN:
            continue
        report.cascaded.append(_change(dependent, "hypothesis", dependent.confidence / 2))
        dependent.is_hypothesis = True
        changed.append(dependent)
    changed_ids = {record.id for record in changed}
    noted = [] if note is None else note(look, report)
    look.upsert([*noted, *changed, _event_record(report, _free_id(look, record_id, changed_ids))])
    return report


def withdraw(
    engine: Engine, record_id: str, reason: str, check: Check | None = None, note: Note | None = None
) -> RollbackReport:
    """Invalidate an own record, and doubt what rests on it in its scope and in narrower ones, in one batch.

    What somebody built on what is shared has lost its ground when that falls. The report counts what the
    asker sees; of the rest nothing is told here, but each scope has a report of its own that names what was
    doubted in it, and that can be taken back there.
    """
    if not engine.are_own([record_id])[0]:
        raise OutOfScope(
            f'id "{record_id}": it is not of this scope, which may read it but not change it', id=record_id
        )
    # What has expired is out of sight, and falls all the same: a clock that is put back brings it back.
    seen = engine.with_expired()

    def work(look: Look) -> RollbackReport:
        report = RollbackReport(record_id, reason)
        target = look.get(record_id)
        if check is not None:
            check(target)
        if target is None:  # it was erased meanwhile
            return report
        report.direct_change = _change(target, "invalidated", target.confidence)
        changed = [target]
        hidden: dict[Scope, list[tuple[ChronoRecord, RecordStatusChange]]] = {}
        for dependent_id in _resting_on(engine, record_id):
            dependent = look.get(dependent_id)
            if dependent is None or dependent.status in WITHDRAWN:
                continue
            change = _change(dependent, "hypothesis", dependent.confidence / 2)
            dependent.is_hypothesis = True
            if seen.get(dependent_id) is None:
                hidden.setdefault(dependent.scope or Scope(), []).append((dependent, change))
                continue
            report.cascaded.append(change)
            changed.append(dependent)
        below = [dependent for doubted in hidden.values() for dependent, _ in doubted]
        taken = {record.id for record in [*changed, *below]}
        name = _free_id(Look(_Holder(engine)), record_id, taken)
        if look.get(name) is not None and engine.get(name) is None:
            raise IdTaken(f'id "{name}": taken in this store', field="id", id=name)
        told = _event_record(report, name)
        if names := Scope(*(engine.scope_names() or ())).to_dict():
            told.data["@scope"] = names
        batch: list[ChronoRecord] = []
        for scope, doubted in hidden.items():
            part = RollbackReport(record_id, reason, cascaded=[change for _, change in doubted])
            own = _event_record(part, _free_id(Look(_Holder(engine.scoped(*scope.names))), record_id, taken))
            own.data["@scope"] = scope.to_dict()
            batch += [*(dependent for dependent, _ in doubted), own]
        # What a report lists stands right before it, in its order: who takes it back counts on that.
        noted = [] if note is None else note(look, report)
        look.upsert([*noted, *batch, *changed, told])
        return report

    return run(_Holder(engine.acting()), work)


def _resting_on(engine: Engine, record_id: str) -> Iterator[str]:
    """Yield what rests on a record, nearest first, in its scope and in narrower ones.

    An edge counts if who wrote it sees both ends. What rests on something sees it, too: nothing that is
    shared falls for what one user said. An end that is no record, such as a paper, is seen by all; but who
    goes on from there must see the edge that led to it.
    """
    whole = engine.everyone()
    # An edge that has expired leads nowhere; a record that has stands between others still.
    records = whole.with_expired()

    def sees(scope: Scope | None, name: str) -> bool:
        if scope is None:
            return False
        return engine.scoped(*scope.names).with_expired().get(name) is not None or records.get(name) is None

    seen: set[str] = {record_id}
    waiting: deque[tuple[str, str | None]] = deque([(record_id, None)])
    while waiting:
        ground, via = waiting.popleft()
        for edge, edge_record in edges_to(whole, ground, _RESTS_ON):
            scope, dependent_id = edge_record.scope, edge.from_id
            if dependent_id in seen or not (sees(scope, ground) and sees(scope, dependent_id)):
                continue
            dependent = records.get(dependent_id)
            if via is not None and not sees(scope, via):
                continue
            if dependent is not None and not sees(dependent.scope, ground):
                continue
            seen.add(dependent_id)
            waiting.append((dependent_id, edge_record.id if dependent is None else None))
            yield dependent_id


@dataclass(frozen=True, slots=True)
class _Holder:
    """Holds an engine, for who looks through one."""

    engine: Engine


def _change(record: ChronoRecord, status: str, confidence: float) -> RecordStatusChange:
    before = record.status, record.confidence
    change = RecordStatusChange(record.id, before[0], status, before[1], confidence, record.is_hypothesis)
    record.status = status
    record.confidence = confidence
    return change


def _free_id(look: Look, target_id: str, taken: set[str]) -> str:
    """Return where the report goes: over nothing, for a rollback is taken back by the id of its report."""
    first = f"ROLLBACK-{target_id}"
    for name in map(look.own_id, chain([first], (f"{first}-{number}" for number in count(2)))):
        if look.get(name) is None and name not in taken:
            return name
    raise AssertionError("numbers do not end")


def _event_record(report: RollbackReport, record_id: str) -> ChronoRecord:
    direct = [] if report.direct_change is None else [report.direct_change]
    return ChronoRecord(
        id=record_id,
        kind=REPORT_KIND,
        label=f"Rollback of {report.target_id}: {report.reason}",
        confidence=1.0,
        data={
            **report.to_dict(),
            "changes": [asdict(change) for change in (*direct, *report.cascaded)],
        },
    )
