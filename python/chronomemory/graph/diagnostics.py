"""Says what is wrong with the graph of a workspace, its files and the chain behind them; writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from chronomemory.face.files import Folder, is_draft
from chronomemory.graph.changes import Look
from chronomemory.graph.jsonl import Line, read_lines, read_object
from chronomemory.graph.models import AuditRecord, Diagnostic, MemoryEvent, Model
from chronomemory.graph.replaying import FAMILIES, misnamed, replayed, snapshot_of
from chronomemory.graph.spelling import PAGE, SCHEMAS, WORKSPACE
from chronomemory.graph.view import (
    AUDIT_FILE,
    EVENTS_FILE,
    META_FILE,
    Shown,
    View,
    expected_pages,
    lines,
)
from chronomemory.record import is_same
from chronomemory.types import VerifyReport

__all__ = ["CODES", "chain_findings", "event_findings", "hanging", "replay_findings", "view_findings"]

#: Every code there is.
CODES = (
    "missing-endpoint",
    "orphan-event",
    "orphan-plan",
    "unknown-schema",
    "malformed-line",
    "duplicate-id",
    "view-drift",
    "chain-break",
    "replay-drift",
)
#: What the kinds of things are called in front of an id, where a reference says which one it means.
_PREFIXES = ("profile", "node", "edge", "path", "plan", "event")


def hanging(look: Look) -> list[Diagnostic]:
    """Return the edges that end in nothing, and the events and plans that name nothing that exists."""
    profiles = {item.id for item in look.profiles()}
    nodes = {item.id for item in look.nodes()}
    edges = look.edges()
    paths = {item.id for item in look.paths()}
    plans = look.plans()
    events = look.events()
    found = []
    for edge in edges:
        for side, end in (("source", edge.source), ("target", edge.target)):
            if end not in nodes:
                message = f"the {side} {end!r} of edge {edge.id!r} is no node"
                found.append(Diagnostic("missing-endpoint", "warning", "edges", None, edge.id, message))
    for plan in plans:
        lost = [name for name in plan.node_ids if name not in nodes]
        if plan.profile_id not in profiles:
            lost.insert(0, plan.profile_id)
        if lost:
            message = f"plan {plan.id!r} names {', '.join(map(repr, lost))}, which is not there"
            found.append(Diagnostic("orphan-plan", "warning", "activation_plans", None, plan.id, message))
    edge_ids, plan_ids, event_ids = ({item.id for item in items} for items in (edges, plans, events))
    named = (profiles, nodes, edge_ids, paths, plan_ids, event_ids)
    known = set().union(*named)
    known |= {f"{prefix}:{name}" for prefix, names in zip(_PREFIXES, named, strict=True) for name in names}
    for event in events:
        lost = [ref for ref in event.refs if ref not in known]
        if event.path_id is not None and event.path_id not in paths:
            lost.insert(0, event.path_id)
        if lost:
            message = f"event {event.id!r} names {', '.join(map(repr, lost))}, which is not there"
            found.append(Diagnostic("orphan-event", "warning", EVENTS_FILE, None, event.id, message))
    return found


def replay_findings(look: Look) -> list[Diagnostic]:
    """Return where the graph that the events lead to differs from the one that is kept."""
    events = look.events()
    kept, replay = snapshot_of(look), replayed(events)
    found = []
    for where in FAMILIES:
        stored, told = getattr(kept, where), getattr(replay, where)
        for name in sorted({*stored, *told}):
            if name not in told:
                reason = "is in the store, but not in the replay of the events"
            elif name not in stored:
                reason = "is in the replay of the events, but not in the store"
            elif not is_same(stored[name].shown(), told[name].shown()):
                reason = "differs from the replay of the events"
            else:
                continue
            found.append((where, name, f"{where.removesuffix('s')} {name!r} {reason}"))
    unreadable = set(replay.unreadable_ids)
    for event in events:
        if event.id in unreadable:
            found.append(
                (EVENTS_FILE, event.id, f"event {event.id!r}: its change of the graph cannot be read")
            )
        if reason := misnamed(event):
            found.append((EVENTS_FILE, event.id, reason))
    return [Diagnostic("replay-drift", "error", where, None, name, reason) for where, name, reason in found]


def chain_findings(report: VerifyReport) -> list[Diagnostic]:
    """Return where the chain of the log breaks, or ends too early."""
    found = [
        Diagnostic("chain-break", "error", damage.path, damage.line or None, None, damage.reason)
        for damage in report.damage
    ]
    if report.remembered == "lost":
        message = report.remembered_reason or "the log ends before the head that was seen here last"
        found.append(Diagnostic("chain-break", "error", "events.wal", None, None, message))
    if not report.valid and not found:
        found.append(Diagnostic("chain-break", "error", "events.wal", None, None, "the chain is not valid"))
    return found


def event_findings(where: str, read: Iterable[Line[MemoryEvent]]) -> list[Diagnostic]:
    """Return what is wrong with the lines of a log that stands alone."""
    return list(_line_findings(where, list(read)))


def _line_findings(
    where: str, read: list[Line[MemoryEvent]] | list[Line[AuditRecord]]
) -> Iterator[Diagnostic]:
    seen: dict[str, int] = {}
    for line in read:
        if line.item is None:
            yield Diagnostic(line.code, "error", where, line.number, line.id, line.reason)
        elif line.item.id in seen:
            message = f"the id {line.item.id!r} is on line {seen[line.item.id]} already"
            yield Diagnostic("duplicate-id", "error", where, line.number, line.item.id, message)
        else:
            seen[line.item.id] = line.number


def view_findings(view: View, look: Look | None, shown: Shown | None) -> list[Diagnostic]:
    """Return where the files are not what the log says, or cannot be read.

    Without a look, since the log itself is damaged, nobody can tell what they should say; what can be told
    of the files alone still is.
    """
    folder = view.folder
    found: list[Diagnostic] = []
    if look is None:
        for name, cls in ((EVENTS_FILE, MemoryEvent), (AUDIT_FILE, AuditRecord)):
            content = _read(folder, name)
            if content is not None:
                found += _line_findings(name, _lines(name, content, cls))
        return found
    for within, expected in expected_pages(look):
        found += _page_findings(folder, within, expected)
    found += _log_findings(folder, EVENTS_FILE, MemoryEvent, list(lines(EVENTS_FILE, look.events())))
    found += _log_findings(folder, AUDIT_FILE, AuditRecord, list(lines(AUDIT_FILE, look.audits())))
    if shown is not None:
        found += _meta_findings(view, shown)
    return found


def _meta_findings(view: View, shown: Shown) -> Iterator[Diagnostic]:
    content = _read(view.folder, META_FILE)
    if not shown.log_head and (said := view.shown()) is not None:
        # The log has lost the line that the hash is of: what the view says of it cannot be held against it.
        shown = Shown(shown.revision, shown.log_seq, said.log_head)
    if content != view.meta_page(shown):
        said_at = view.shown()
        behind = said_at is not None and said_at.revision < shown.revision
        message = (
            f"it shows revision {said_at.revision}, the log is at {shown.revision}"
            if behind and said_at
            else ""
        )
        yield _drift(META_FILE, content, WORKSPACE, message)


def _page_findings(folder: Folder, within: str, expected: Mapping[str, bytes]) -> Iterator[Diagnostic]:
    try:
        names = folder.names(within)
    except OSError as error:
        yield Diagnostic("view-drift", "error", within, None, None, f"it cannot be read: {error.strerror}")
        return
    for name in sorted({*names, *expected}):
        where = f"{within}/{name}"
        content = _read(folder, name, within)
        if name not in expected and not is_draft(name) and not _is_page(name, content):
            continue  # somebody else's
        if name not in expected:
            yield _drift(where, content, SCHEMAS[within], "the log has nothing that this file shows")
        elif content != expected[name]:
            yield _drift(where, content, SCHEMAS[within])


def _is_page(name: str, content: bytes | None) -> bool:
    """Say whether a file is called as ours are and tells how it is to be read, be it in an unknown way."""
    fields = None if content is None or not name.endswith(PAGE) else read_object(content)
    return isinstance(fields, dict) and "schema" in fields


def _drift(where: str, content: bytes | None, schema: str, message: str = "") -> Diagnostic:
    """Say of a file that is not what it should be whether another program wrote it, or whether it drifted."""
    if content is None:
        return Diagnostic("view-drift", "error", where, None, None, "the file is missing or cannot be read")
    fields = read_object(content)
    said = fields if isinstance(fields, dict) else {}
    given = said.get("id")
    item_id = given if isinstance(given, str) else None
    if "schema" in said and said["schema"] != schema:
        reason = f"the schema {said['schema']!r} is not known"
        return Diagnostic("unknown-schema", "error", where, None, item_id, reason)
    return Diagnostic("view-drift", "error", where, None, item_id, message or "it is not what the log says")


def _log_findings(
    folder: Folder, name: str, cls: type[MemoryEvent] | type[AuditRecord], expected: list[bytes]
) -> list[Diagnostic]:
    """Return the lines that cannot be read, and those that are not the ones of the log, in its order."""
    content = _read(folder, name)
    if content == b"".join(expected):
        return []
    if content is None:
        return [Diagnostic("view-drift", "error", name, None, None, "the file is missing or cannot be read")]
    read = _lines(name, content, cls)
    found = list(_line_findings(name, read))
    wrong = {finding.line for finding in found}
    # A line that cannot be read stands for one that is missed, and so does one that says something else.
    missed = len(expected) - sum(finding.code != "duplicate-id" for finding in found)
    places = {line.rstrip(b"\n"): place for place, line in enumerate(expected)}
    last = -1
    for line in read:
        if line.item is None or line.number in wrong:
            continue
        missed -= 1
        place = places.get(line.content, -1)
        if place > last:
            last = place
            continue
        message = "the log has no such line" if place < 0 else "it is not in its place"
        found.append(Diagnostic("view-drift", "error", name, line.number, line.item.id, message))
    if missed > 0:
        message = f"{missed} of {len(expected)} lines are missing"
        found.append(Diagnostic("view-drift", "error", name, None, None, message))
    return found or [Diagnostic("view-drift", "error", name, None, None, "it is not what the log says")]


def _lines(name: str, content: bytes, cls: type[Model]) -> list[Line[MemoryEvent]]:
    return list(read_lines(content, cls, SCHEMAS[name.removesuffix(".jsonl")]))  # type: ignore[arg-type]


def _read(folder: Folder, name: str, within: str = "") -> bytes | None:
    try:
        return folder.read(name, within)
    except OSError:
        # Whatever stands there instead of a file that can be read is told as a drift.
        return None
