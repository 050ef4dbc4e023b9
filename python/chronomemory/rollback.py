"""What falls when a belief turns out to be wrong?"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from itertools import chain, count
from typing import Any

from chronomemory.deps import DepGraph
from chronomemory.face.arguments import contents, string
from chronomemory.record import ChronoRecord
from chronomemory.types import Writable
from chronomemory.updates import Look, run

__all__ = ["REPORT_KIND", "WITHDRAWN", "RecordStatusChange", "RollbackReport", "invalidate", "invalidate_in"]

#: An edge of these types says that its beginning stands on its end.
_RESTS_ON = ("depends_on", "derived_from")

#: The kind of a report.
REPORT_KIND = "rollback_event"

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
    record_id: str, reason: str, store: Writable, dep_graph: DepGraph | None = None
) -> RollbackReport:
    """Invalidate a record and turn all that rests on it into hypotheses, in one atomic batch.

    The cascade also starts from an id that the store does not know (a paper, a person):
    what rests on it has lost its ground all the same. Without a graph, that of the edges in the
    store is followed. What another process writes meanwhile to one of the records is kept: all is
    read again then, and if that goes on for too long, a ``WriteConflict`` tells and nothing is written.
    """
    string("id", record_id, empty=False)
    with contents:
        string("reason", reason)

    def work(look: Look) -> RollbackReport:
        return invalidate_in(look, record_id, reason, dep_graph or DepGraph.from_store(store))

    return run(store, work)


def invalidate_in(look: Look, record_id: str, reason: str, dep_graph: DepGraph) -> RollbackReport:
    """Do the same through a look that has noted what else the decision was made from."""
    report = RollbackReport(record_id, reason)
    changed: list[ChronoRecord] = []
    target = look.get(record_id)
    if target is not None:
        report.direct_change = _change(target, "invalidated", target.confidence)
        changed.append(target)
    for dependent_id in dep_graph.dependents_in_order(record_id, _RESTS_ON):
        dependent = look.get(dependent_id)
        if dependent is None or dependent.status in WITHDRAWN:
            continue
        report.cascaded.append(_change(dependent, "hypothesis", dependent.confidence / 2))
        dependent.is_hypothesis = True
        changed.append(dependent)
    changed_ids = {record.id for record in changed}
    look.upsert([*changed, _event_record(report, _free_id(look, record_id, changed_ids))])
    return report


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
