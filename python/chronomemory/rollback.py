"""Withdraws a belief that turned out to be wrong, with all that rests on it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from chronomemory._core import Engine
from chronomemory.deps import DepGraph, edges_to, resting_on
from chronomemory.errors import IdTaken, InvalidArgument, OutOfScope, UnknownRecord
from chronomemory.event import WalEvent
from chronomemory.face.arguments import contents, string
from chronomemory.face.results import Fields
from chronomemory.record import ChronoRecord
from chronomemory.scope import Scope
from chronomemory.selection import query
from chronomemory.types import EngineHolder, HasEngine, Linked
from chronomemory.updates import Look, numbered, run

#: An edge of these types says that its beginning stands on its end.
_RESTS_ON = ("depends_on", "derived_from")

REPORT_KIND = "rollback_event"

#: Hears what the record is that is to fall.
Check = Callable[[ChronoRecord | None], None]

#: Says what else belongs into the batch, once it is known what falls; it may look, and refuse.
Note = Callable[[Look, "RollbackReport"], Sequence[ChronoRecord]]

#: What was withdrawn stays withdrawn: a cascade must not bring it back as a hypothesis.
WITHDRAWN = frozenset({"tombstone", "invalidated"})


@dataclass(frozen=True, slots=True)
class RecordStatusChange(Fields):
    """What a rollback did to one record."""

    record_id: str
    previous_status: str
    new_status: str
    previous_confidence: float
    new_confidence: float
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

    Without a graph the edges of the store are followed. ``check`` may refuse the record, ``note`` may add to
    the batch.
    """
    string("id", record_id, empty=False)
    with contents:
        string("reason", reason)
    engine = store.engine
    is_scoped = dep_graph is None and engine.scope_names() is not None and engine.get(record_id) is not None
    if is_scoped and not engine.are_own([record_id])[0]:
        raise OutOfScope(
            f'id "{record_id}": it is not of this scope, which may read it but not change it', id=record_id
        )

    def work(look: Look) -> RollbackReport:
        target = look.get(record_id)
        if check is not None:
            check(target)
        report = RollbackReport(record_id, reason)
        if is_scoped:
            if target is not None:  # else it was erased meanwhile
                _withdraw(look, engine, report, target, _resting_on(engine, record_id), note)
        elif dep_graph is None:
            _withdraw(look, None, report, target, resting_on(engine, record_id, _RESTS_ON), note)
        else:
            _withdraw(look, None, report, target, dep_graph.dependents_in_order(record_id, _RESTS_ON), note)
        return report

    return run(EngineHolder(engine.acting()) if is_scoped else store, work)


def _withdraw(
    look: Look,
    scoped: Engine | None,
    report: RollbackReport,
    target: ChronoRecord | None,
    falling: Iterable[str],
    note: Note | None,
) -> None:
    """Invalidate a record and doubt the ids that rest on it, in one batch with a report for each scope."""
    changed: list[ChronoRecord] = []
    hidden: dict[Scope, list[tuple[ChronoRecord, RecordStatusChange]]] = {}
    if target is not None:
        report.direct_change = _change(target, "invalidated", target.confidence)
        changed.append(target)
    # A record that has expired falls too: a clock that is put back brings it back.
    seen = None if scoped is None else scoped.with_expired()
    for dependent_id in falling:
        dependent = look.get(dependent_id)
        if dependent is None or dependent.status in WITHDRAWN:
            continue
        change = _change(dependent, "hypothesis", dependent.confidence / 2)
        dependent.is_hypothesis = True
        if seen is not None and seen.get(dependent_id) is None:
            hidden.setdefault(dependent.scope or Scope(), []).append((dependent, change))
        else:
            report.cascaded.append(change)
            changed.append(dependent)
    below = [dependent for doubted in hidden.values() for dependent, _ in doubted]
    taken = {record.id for record in [*changed, *below]}
    name = _free_id(look if scoped is None else Look(EngineHolder(scoped)), report.target_id, taken)
    notice = _event_record(report, name)
    batch: list[ChronoRecord] = []
    if scoped is not None:
        if look.get(name) is not None and scoped.get(name) is None:
            raise IdTaken(f'id "{name}": taken in this store', field="id", id=name)
        if names := Scope(*(scoped.scope_names() or ())).to_dict():
            notice.data["@scope"] = names
        for scope, doubted in hidden.items():
            part = RollbackReport(report.target_id, report.reason, cascaded=[change for _, change in doubted])
            there = Look(EngineHolder(scoped.scoped(scope.names)))
            own = _event_record(part, _free_id(there, report.target_id, taken))
            own.data["@scope"] = scope.to_dict()
            batch += [*(dependent for dependent, _ in doubted), own]
    # The records that a report lists stand right before it, in its order: reinstating counts on that.
    noted = [] if note is None else note(look, report)
    look.upsert([*noted, *batch, *changed, notice])


def _resting_on(engine: Engine, record_id: str) -> Iterator[str]:
    """Yield what rests on a record, nearest first, in its scope and in narrower ones.

    An edge counts if its writer sees both ends, so that nothing shared falls for what one user said.
    """
    whole = engine.unscoped()
    # An edge that has expired leads nowhere; a record that has stands between others still.
    records = whole.with_expired()

    def sees(scope: Scope | None, name: str) -> bool:
        if scope is None:
            return False
        return engine.scoped(scope.names).with_expired().get(name) is not None or records.get(name) is None

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


def _change(record: ChronoRecord, status: str, confidence: float) -> RecordStatusChange:
    before = record.status, record.confidence
    change = RecordStatusChange(record.id, before[0], status, before[1], confidence, record.is_hypothesis)
    record.status = status
    record.confidence = confidence
    return change


def _free_id(look: Look, target_id: str, taken: set[str]) -> str:
    """Return where the report goes: over nothing, for a rollback is taken back by the id of its report."""
    names = map(look.own_id, numbered(f"ROLLBACK-{target_id}"))
    return next(name for name in names if look.get(name) is None and name not in taken)


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


_REINSTATED = "reinstated"
#: Events that say everything of a record; the others say what they change.
WHOLE_OPS = frozenset({"upsert", "migrate"})


@dataclass(frozen=True, slots=True)
class Rollback(Fields):
    """How a rollback touched one record, and whether that was taken back."""

    rollback_id: str
    target_id: str
    reason: str
    change: RecordStatusChange
    seq: int | None
    at: datetime | None
    #: Why the record was put back, and by which event; None while the rollback stands.
    reinstated: str | None = None
    reinstated_seq: int | None = None


@dataclass(frozen=True, slots=True)
class LeftAlone(Fields):
    """A record that was not put back, and why."""

    record_id: str
    why: str


@dataclass(frozen=True, slots=True)
class ReinstateReport(Fields):
    """What was put back, and what was left alone."""

    rollback_id: str
    reason: str
    restored: tuple[RecordStatusChange, ...] = ()
    left: tuple[LeftAlone, ...] = ()


def rollbacks(store: HasEngine, record_id: str) -> list[Rollback]:
    """Return the rollbacks that touched a record, the oldest first: which ones, why, and what they changed.

    >>> import tempfile
    >>> from chronomemory import ChronoStore
    >>> with ChronoStore(tempfile.mkdtemp()) as store:
    ...     _ = store.upsert({"id": "FACT-1", "label": "The door is shut"})
    ...     _ = store.invalidate("FACT-1", "it was left ajar")
    ...     [(each.rollback_id, each.reason) for each in store.rollbacks("FACT-1")]
    [('ROLLBACK-FACT-1', 'it was left ajar')]
    """
    return rollbacks_of(store, [string("id", record_id)]).get(record_id, [])


def rollbacks_of(store: HasEngine, ids: Iterable[str]) -> dict[str, list[Rollback]]:
    """Return the same for several records at once; one that no rollback touched is left out."""
    asked = list(ids)
    found: dict[str, list[Rollback]] = {}
    for report in query(store, kind=REPORT_KIND, status=None, where={"data.affected": {"any": asked}}):
        changes, taken_back = _changes(report), _taken_back(report)
        began, ended = _seqs(store, report) if changes else (None, [])
        for place, change in enumerate(changes):
            back, back_seq = None, None
            for number, each in enumerate(taken_back):
                restored = each["restored"]
                if change.record_id in restored:
                    back = str(each.get("reason", ""))
                    behind = number - len(taken_back)
                    if len(ended) >= -behind:
                        back_seq = ended[behind] - len(restored) + restored.index(change.record_id)
            one = Rollback(
                rollback_id=report.id,
                target_id=str(report.data.get("target_id", "")),
                reason=str(report.data.get("reason", "")),
                change=change,
                seq=None if began is None else began + place - len(changes),
                at=report.created_at if began == report.created_seq else report.updated_at,
                reinstated=back,
                reinstated_seq=back_seq,
            )
            found.setdefault(change.record_id, []).append(one)
    for touched in found.values():
        touched.sort(key=lambda each: (each.seq is None, each.seq))
    return found


def reinstate(store: HasEngine, rollback_id: str, reason: str) -> ReinstateReport:
    """Put back what a rollback changed, in one batch; what has changed since is left alone and named."""
    string("rollback_id", rollback_id, empty=False)
    with contents:
        string("reason", reason)
    return run(store, lambda look: _reinstated(store, look, rollback_id, reason))


def _reinstated(store: HasEngine, look: Look, rollback_id: str, reason: str) -> ReinstateReport:
    report = look.get(rollback_id)
    if report is None:
        raise UnknownRecord(f"there is no rollback {rollback_id!r}", recovery="Check the id of the report.")
    changes = _changes(report)
    if report.kind != REPORT_KIND or not changes:
        raise _refused(f"{rollback_id!r} does not tell what a rollback changed", "Give the id of a report.")
    taken_back = _taken_back(report)
    back = {record_id for each in taken_back for record_id in each["restored"]}
    if all(change.record_id in back for change in changes):
        raise _refused(f"{rollback_id!r} was taken back already", "There is nothing left to take back.")
    began = _seqs(store, report)[0]
    restored, records, left, kept = [], [], [], []
    for place, change in enumerate(changes):
        if change.record_id in back:
            continue
        record = look.get(change.record_id)
        written_seq = None if began is None else began - len(changes) + place
        why, later = _obstacle(store, record, change, written_seq, rollback_id)
        was = None if why or record is None else _was_hypothesis(store, report, place, written_seq)
        if record is None or was is None:
            why = why or "what it was before is not kept"
            advice = f", by {later}: take that back first" if later else ""
            left.append(LeftAlone(change.record_id, why + advice))
            # The id of the later rollback names its target: in a text that is kept no erasure would find it.
            kept.append({"record_id": change.record_id, "why": why})
            continue
        restored.append(_change(record, change.previous_status, change.previous_confidence))
        record.is_hypothesis = was
        records.append(record)
    if restored:
        report.status = _REINSTATED
        now = {
            "reason": reason,
            "restored": [change.record_id for change in restored],
            "left": kept,
        }
        report.data["reinstated"] = [*taken_back, now]
        look.upsert([*records, report])
    return ReinstateReport(rollback_id, reason, tuple(restored), tuple(left))


def _refused(message: str, recovery: str) -> InvalidArgument:
    return InvalidArgument(f"rollback_id: {message}", field="rollback_id", recovery=recovery)


def _obstacle(
    store: HasEngine,
    record: ChronoRecord | None,
    change: RecordStatusChange,
    written_seq: int | None,
    own: str,
) -> tuple[str, str | None]:
    """Say why a record cannot be put back, and which later rollback changed it, if one did."""
    if record is None:
        return "it is not there any more", None
    if record.updated_seq is None or written_seq is None:
        return "it is not known when it changed last", None
    if not _is_in_this_log(record, change, written_seq):
        return "its rollback was brought here without its events: it is not known what changed since", None
    if record.updated_seq == written_seq:
        return "", None
    others = [each for each in rollbacks(store, change.record_id) if each.rollback_id != own]
    last = _before_what_was_taken_back(store, record.id, record.updated_seq, others)
    if last == written_seq:
        return "", None
    later = next((each.rollback_id for each in others if each.seq == last), None)
    return f"it changed since, with event {record.updated_seq}", later


def _is_in_this_log(record: ChronoRecord, change: RecordStatusChange, written_seq: int) -> bool:
    """Say whether the event of a rollback can be one of this log: an import brings records, not events."""
    if record.updated_seq is None or record.updated_seq < written_seq:
        return False
    if record.updated_seq > written_seq:
        return True
    was_there_before = record.created_seq is None or record.created_seq < written_seq
    return was_there_before and record.status == change.new_status


def _before_what_was_taken_back(
    store: HasEngine, record_id: str, last: int | None, others: list[Rollback]
) -> int | None:
    """Return the event that made a record what it is: a rollback that was taken back made nothing of it."""
    undone = {each.reinstated_seq: each.seq for each in others if each.reinstated_seq is not None}
    if last not in undone:
        return last
    seqs = [event.seq for event in _history(store, record_id)]
    while last in undone:
        fell = undone[last]
        place = seqs.index(fell) if fell in seqs else 0
        last = seqs[place - 1] if place else None
    return last


def _was_hypothesis(
    store: HasEngine, report: ChronoRecord, place: int, written_seq: int | None
) -> bool | None:
    """Say whether a record was marked as a hypothesis before; reports of earlier versions do not tell."""
    kept: Any = report.data["changes"][place].get("was_hypothesis")
    if isinstance(kept, bool):
        return kept
    before: bool | None = None
    for event in _history(store, _changes(report)[place].record_id):
        if event.seq == written_seq:
            return before
        if event.op in WHOLE_OPS and event.record is not None:
            before = event.record.get("is_hypothesis") is True
    return None


def _changes(report: ChronoRecord) -> list[RecordStatusChange]:
    """Read what a report says it changed; another tool may have written anything there, or nothing."""
    listed = report.data.get("changes")
    read = [_parsed_change(item) for item in listed] if isinstance(listed, list) else []
    changes = [change for change in read if change is not None]
    return changes if len(changes) == len(read) else []


def _parsed_change(item: Any) -> RecordStatusChange | None:
    known = item if isinstance(item, dict) else {}
    texts = [known.get(name) for name in ("record_id", "previous_status", "new_status")]
    given = [known.get(name) for name in ("previous_confidence", "new_confidence")]
    shares = [float(share) for share in given if isinstance(share, int | float) and 0 <= share <= 1]
    if len(shares) != len(given) or not all(isinstance(text, str) for text in texts):
        return None
    record_id, before, now = map(str, texts)
    was, became = shares
    return RecordStatusChange(record_id, before, now, was, became, known.get("was_hypothesis") is True)


def _taken_back(report: ChronoRecord) -> list[dict[str, Any]]:
    listed = report.data.get("reinstated")
    items = listed if isinstance(listed, list) else []
    return [each for each in items if isinstance(each, dict) and isinstance(each.get("restored"), list)]


def _seqs(store: HasEngine, report: ChronoRecord) -> tuple[int | None, list[int]]:
    """Return the event of a report, the last of its batch, and those by which it was taken back."""
    if report.created_seq == report.updated_seq:
        return report.created_seq, []
    # Written over since: earlier versions put a second report of the same target over the first.
    began, changes, backs = report.created_seq, None, 0
    ended: list[int] = []
    events = _history(store, report.id)
    for event in events:
        version = ChronoRecord.from_dict(event.record or {})
        if event.op not in WHOLE_OPS or not isinstance(version.data, dict):
            continue
        if version.data.get("changes") != changes:
            began, changes = event.seq, version.data.get("changes")
        taken_back = _taken_back(version)
        # The record that was put back last is before it in its batch, unless an erasure wrote it again.
        last = taken_back[-1]["restored"][-1:] if len(taken_back) > backs else []
        if any(before.seq == event.seq - 1 for record_id in last for before in _history(store, record_id)):
            ended.append(event.seq)
        backs = len(taken_back)
    if not events and _taken_back(report) and report.updated_seq is not None:
        ended.append(report.updated_seq)
    return began, ended


def _history(store: HasEngine, record_id: str) -> list[WalEvent]:
    return [WalEvent._of_line(line) for line in store.engine.history(record_id)]
