"""The files of a workspace: their JSON, writing them from the log, and diagnostics of files and chain."""

from __future__ import annotations

import errno
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from chronomemory._core import canonical_json, indented_json, parse_json
from chronomemory.errors import ChronoError
from chronomemory.face.files import Folder, is_draft
from chronomemory.graph.changes import FAMILIES, Changes, Look, misnamed, replayed, snapshot_of
from chronomemory.graph.errors import ModelError, WorkspaceError
from chronomemory.graph.models import AuditRecord, Diagnostic, MemoryEvent, Model
from chronomemory.graph.paths import origins_of
from chronomemory.record import is_same
from chronomemory.scope import Scope
from chronomemory.types import VerifyReport

#: The schema of the workspace itself, of what is exported, and of each kind of file and line.
WORKSPACE = "chronomemory.workspace/1"
ENVELOPE = "chronomemory.graph/1"
SCHEMAS = {
    "profiles": "chronomemory.profile/1",
    "nodes": "chronomemory.node/1",
    "edges": "chronomemory.edge/1",
    "paths": "chronomemory.path/1",
    "activation_plans": "chronomemory.activation-plan/1",
    "events": "chronomemory.event/1",
    "audit": "chronomemory.audit/1",
}

PAGE = ".json"
#: Characters that a file name keeps. Capitals are encoded: some file systems ignore case.
_PLAIN = re.compile(rb"[^a-z0-9_-]")
_LONGEST_NAME = 180
_CUT_NAME = 100
#: Careless readers take these for the end of a line.
_LINE_ENDS = (("\x85", "\\u0085"), ("\u2028", "\\u2028"), ("\u2029", "\\u2029"))


def file_name(item_id: str, suffix: str = PAGE) -> str:
    """Return a file name that no other id has, on any file system.

    >>> file_name("a/b"), file_name("Ann"), file_name("..")
    ('a%2Fb.json', '%41nn.json', '%2E%2E.json')
    """
    spelled = item_id.encode()
    name = _PLAIN.sub(lambda found: b"%%%02X" % found[0][0], spelled).decode()
    if len(name) > _LONGEST_NAME:
        name = f"{name[:_CUT_NAME]}~{hashlib.sha256(spelled).hexdigest()}"
    return f"{name}{suffix}"


def page_of(value: Mapping[str, Any]) -> bytes:
    """Spell a value as a file of its own: sorted keys, two spaces, a newline at the end."""
    return indented_json(dict(value)) + b"\n"


def line_of(value: Mapping[str, Any]) -> bytes:
    """Spell a value as one line: sorted keys, no spaces, nothing in it that ends a line elsewhere."""
    spelled = canonical_json(dict(value))
    if not spelled.isascii():
        text = spelled.decode()
        for raw, escaped in _LINE_ENDS:
            text = text.replace(raw, escaped)
        spelled = text.encode()
    return spelled + b"\n"


def tagged(schema: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"schema": schema, **fields}


One = TypeVar("One", bound=Model)
_MOST_BAD = 1_000


@dataclass(frozen=True, slots=True)
class Line(Generic[One]):
    """One line: the item on it, or a code and a reason why there is none."""

    number: int
    content: bytes
    item: One | None = None
    code: str = ""
    reason: str = ""
    id: str | None = None


def read_object(content: bytes) -> dict[str, object] | str:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"it is not UTF-8 at byte {error.start}"
    try:
        value = parse_json(content)
    except (ValueError, RecursionError) as error:
        return f"it is not JSON: {error}"
    return value if isinstance(value, dict) else f"it is no object but {type(value).__name__}"


def read_lines(content: bytes, cls: type[One], schema: str) -> Iterator[Line[One]]:
    """Yield every line that is not blank; of those that are no items only the first, and a count."""
    parts, bad = content.split(b"\n"), 0
    for number, part in enumerate(parts, 1):
        if not part.strip():
            continue
        line = _read(number, part, cls, schema, torn=number == len(parts))
        bad += line.item is None
        if line.item is not None or bad <= _MOST_BAD:
            yield line
    if bad > _MOST_BAD:
        reason = f"{bad - _MOST_BAD:,} more lines cannot be read"
        yield Line(len(parts), b"", code="malformed-line", reason=reason)


def _read(number: int, part: bytes, cls: type[One], schema: str, *, torn: bool) -> Line[One]:
    fields = read_object(part)
    if isinstance(fields, str):
        reason = "the last line was not finished" if torn else fields
        return Line(number, part, code="malformed-line", reason=reason)
    given = fields.get("id")
    item_id = given if isinstance(given, str) and given else None
    if fields.get("schema", schema) != schema:
        reason = f"the schema {fields['schema']!r} is not known"
        return Line(number, part, code="unknown-schema", reason=reason, id=item_id)
    if item_id is None:
        return Line(number, part, code="malformed-line", reason="there is no id")
    try:
        item = cls.from_dict({name: value for name, value in fields.items() if name != "schema"})
    except ModelError as error:
        return Line(number, part, code="malformed-line", reason=str(error), id=item_id)
    return Line(number, part, item)


META_FILE = "workspace.json"
EVENTS_FILE = "events.jsonl"
AUDIT_FILE = "audit.jsonl"
FOLDERS = {**{name: name for name in FAMILIES}, "activation_plans": "plans"}
#: The files that stand in the folder itself, and the schema of each, or of its lines.
_SINGLE = {META_FILE: WORKSPACE, EVENTS_FILE: SCHEMAS["events"], AUDIT_FILE: SCHEMAS["audit"]}
_AT_ONCE = 20_000


@dataclass(frozen=True, slots=True)
class Shown:
    """Which batch of the log a view shows: its number, its last event, and the hash of that."""

    revision: int
    log_seq: int
    log_head: str


class View:
    """The files of a workspace."""

    def __init__(self, folder: Folder, scope: Scope) -> None:
        self.folder = folder
        self._scope = scope

    def make(self) -> None:
        self.folder.make(*FOLDERS)

    def check_strangers(self) -> None:
        """Refuse a folder with foreign files under the names of ours."""
        for name, schema in _SINGLE.items():
            if self._is_strange(name, "", schema):
                raise WorkspaceError(
                    f"{self.folder.root / name} was not written by a workspace",
                    recovery="Take another folder, or move that file.",
                )

    def begin(self) -> None:
        for name in (EVENTS_FILE, AUDIT_FILE):
            self.folder.append(name, b"")

    def shown(self) -> Shown | None:
        """Return which batch the files say they show, or None if they say nothing that makes sense."""
        try:
            meta = json.loads(self.folder.read(META_FILE))
            shown = Shown(meta["revision"], meta["log_seq"], meta["log_head"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
        types = (type(shown.revision), type(shown.log_seq), type(shown.log_head))
        return shown if types == (int, int, str) and meta.get("schema") == WORKSPACE else None

    def scope_shown(self) -> Scope | None:
        """Return the names that the files belong to, or None if they do not say so."""
        try:
            return Scope(**json.loads(self.folder.read(META_FILE))["scope"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError, ChronoError):
            return None

    def is_of_scope(self) -> bool:
        return self.scope_shown() == self._scope

    def meta_page(self, shown: Shown) -> bytes:
        return page_of(
            {
                "schema": WORKSPACE,
                "scope": self._scope.to_dict(),
                "revision": shown.revision,
                "log_seq": shown.log_seq,
                "log_head": shown.log_head,
            }
        )

    def follow(self, changes: Changes, shown: Shown | None) -> None:
        """Show a batch that was written; None leaves what the files say they show as it is."""
        for within, name in FOLDERS.items():
            self._write(dict(pages(within, getattr(changes, name))), within, SCHEMAS[within])
        self.folder.remove([file_name(name) for name in changes.gone_nodes], "nodes")
        self.folder.remove([file_name(name) for name in changes.gone_edges], "edges")
        for name, items in ((EVENTS_FILE, changes.events), (AUDIT_FILE, changes.audits)):
            if items:
                self.folder.append(name, b"".join(lines(name, items)))
        if shown is not None:
            self._write({META_FILE: self.meta_page(shown)}, "", WORKSPACE)

    def _write(self, files: dict[str, bytes], within: str, schema: str) -> None:
        there = {name: page for name, page in files.items() if self.folder.has(name, within)}
        self.folder.write_all({name: page for name, page in files.items() if name not in there}, within)
        left = self.folder.write_all(
            there, within, is_known=lambda _, content: not content or is_ours(content, schema)
        )
        if left:
            where = f"{within}/{left[0]}" if within else left[0]
            raise FileExistsError(
                errno.EEXIST, "somebody else's file stands in the place of one of ours", where
            )

    def rebuild(self, look: Look, shown: Shown) -> tuple[int, int, tuple[str, ...]]:
        """Correct all files; return how many were written and removed, and the new names of foreign files."""
        written = removed = 0
        aside: list[str] = []
        self.make()
        for within, expected in expected_pages(look):
            names = self.folder.names(within)
            wrong = {
                name: page for name, page in expected.items() if _content(self.folder, name, within) != page
            }
            for start in range(0, len(wrong), _AT_ONCE):
                some = list(wrong.items())[start : start + _AT_ONCE]
                aside += self._put(dict(some), within, SCHEMAS[within])
            strange = [name for name in names if name not in expected and self.is_left_over(name, within)]
            self.folder.remove(strange, within)
            written, removed = written + len(wrong), removed + len(strange)
        whole = {
            EVENTS_FILE: b"".join(lines(EVENTS_FILE, look.events())),
            AUDIT_FILE: b"".join(lines(AUDIT_FILE, look.audits())),
            META_FILE: self.meta_page(shown),
        }
        for name, content in whole.items():
            if _content(self.folder, name) != content:
                aside += self._put({name: content}, "", _SINGLE[name])
                written += 1
        return written, removed, tuple(aside)

    def _put(self, files: dict[str, bytes], within: str, schema: str) -> list[str]:
        """Write files; foreign files in the way are renamed, and their new names returned."""
        strange = [name for name in sorted(files) if self._is_strange(name, within, schema)]
        aside = [self.folder.set_aside(name, within) for name in strange]
        self.folder.write_all(files, within)
        return [f"{within}/{name}" if within else name for name in aside]

    def _is_strange(self, name: str, within: str, schema: str) -> bool:
        """Return whether a foreign file has this name; an empty file counts as ours."""
        content = _content(self.folder, name, within)
        if content is None:
            return self.folder.has(name, within)
        first = content.partition(b"\n")[0] if name.endswith(".jsonl") else content
        return bool(content) and not is_ours(first, schema)

    def is_left_over(self, name: str, within: str) -> bool:
        """Return whether a file unknown to the log was written by a workspace."""
        if is_draft(name):
            return True
        content = _content(self.folder, name, within) if name.endswith(PAGE) else None
        return content is not None and is_ours(content, SCHEMAS[within])


def is_ours(content: bytes, schema: str) -> bool:
    fields = read_object(content)
    return isinstance(fields, dict) and fields.get("schema") == schema


def expected_pages(look: Look) -> Iterator[tuple[str, dict[str, bytes]]]:
    for within, name in FOLDERS.items():
        yield within, dict(pages(within, getattr(look, name)()))


def pages(within: str, items: Iterable[Model]) -> Iterator[tuple[str, bytes]]:
    for item in items:
        fields = item.shown()
        yield file_name(fields["id"]), page_of(tagged(SCHEMAS[within], fields))


def lines(name: str, items: Iterable[Model]) -> Iterator[bytes]:
    schema = SCHEMAS[name.removesuffix(".jsonl")]
    for item in items:
        yield line_of(tagged(schema, item.shown()))


def _content(folder: Folder, name: str, within: str = "") -> bytes | None:
    try:
        return folder.read(name, within)
    except OSError:
        # Whatever stands there instead of a file that can be read, it is not what it should be.
        return None


#: What the kinds of things are called in front of an id, where a reference says which one it means.
_PREFIXES = ("profile", "node", "edge", "path", "plan", "event")


def hanging(look: Look) -> list[Diagnostic]:
    """Return the edges, paths, plans and events that name something that does not exist."""
    profiles = {item.id for item in look.profiles()}
    nodes = {item.id for item in look.nodes()}
    edges = look.edges()
    paths = {item.id: item for item in look.paths()}
    plans = look.plans()
    events = look.events()
    found = []
    for edge in edges:
        for side, end in (("source", edge.source), ("target", edge.target)):
            if end not in nodes:
                message = f"the {side} {end!r} of edge {edge.id!r} is no node"
                found.append(Diagnostic("missing-endpoint", "warning", "edges", None, edge.id, message))
    for path in paths.values():
        origins = origins_of(path, paths)
        lost = [name for name in (path.parent_id, path.merged_into) if name not in (None, *paths)]
        if lost or path.id in origins:
            reason = f"names {lost[0]!r}, which is not there" if lost else "comes from itself"
            message = f"path {path.id!r} {reason}"
            found.append(Diagnostic("orphan-path", "warning", "paths", None, path.id, message))
    for plan in plans:
        lost = [name for name in plan.node_ids if name not in nodes]
        if plan.profile_id not in profiles:
            lost.insert(0, plan.profile_id)
        if lost:
            message = f"plan {plan.id!r} names {', '.join(map(repr, lost))}, which is not there"
            found.append(Diagnostic("orphan-plan", "warning", "activation_plans", None, plan.id, message))
    edge_ids, plan_ids, event_ids = ({item.id for item in items} for items in (edges, plans, events))
    named = (profiles, nodes, edge_ids, set(paths), plan_ids, event_ids)
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
        stored, replayed_items = getattr(kept, where), getattr(replay, where)
        for name in sorted({*stored, *replayed_items}):
            if name not in replayed_items:
                reason = "is in the store, but not in the replay of the events"
            elif name not in stored:
                reason = "is in the replay of the events, but not in the store"
            elif not is_same(stored[name].shown(), replayed_items[name].shown()):
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


def line_findings(
    where: str, read: Iterable[Line[MemoryEvent]] | Iterable[Line[AuditRecord]]
) -> Iterator[Diagnostic]:
    """Yield the problems of lines: those that cannot be read, and ids that are there twice."""
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
    """Return files that differ from the log; without a look, only lines that cannot be read."""
    folder = view.folder
    found: list[Diagnostic] = []
    if look is None:
        for name, cls in ((EVENTS_FILE, MemoryEvent), (AUDIT_FILE, AuditRecord)):
            content = _content(folder, name)
            if content is not None:
                found += line_findings(name, _lines(name, content, cls))
        return found
    for within, expected in expected_pages(look):
        found += _page_findings(folder, within, expected)
    found += _log_findings(folder, EVENTS_FILE, MemoryEvent, list(lines(EVENTS_FILE, look.events())))
    found += _log_findings(folder, AUDIT_FILE, AuditRecord, list(lines(AUDIT_FILE, look.audits())))
    if shown is not None:
        found += _meta_findings(view, shown)
    return found


def _meta_findings(view: View, shown: Shown) -> Iterator[Diagnostic]:
    content = _content(view.folder, META_FILE)
    if not shown.log_head and (claimed := view.shown()) is not None:
        # The log has lost the line that the hash is of: what the view says of it cannot be held against it.
        shown = Shown(shown.revision, shown.log_seq, claimed.log_head)
    if content != view.meta_page(shown):
        claimed, message = view.shown(), ""
        if claimed is not None and claimed.revision < shown.revision:
            message = f"it shows revision {claimed.revision}, the log is at {shown.revision}"
        yield _drift(META_FILE, content, WORKSPACE, message)


def _page_findings(folder: Folder, within: str, expected: Mapping[str, bytes]) -> Iterator[Diagnostic]:
    try:
        names = folder.names(within)
    except OSError as error:
        yield Diagnostic("view-drift", "error", within, None, None, f"it cannot be read: {error.strerror}")
        return
    for name in sorted({*names, *expected}):
        where = f"{within}/{name}"
        content = _content(folder, name, within)
        fields = read_object(content) if content is not None and name.endswith(PAGE) else ""
        has_schema = isinstance(fields, dict) and "schema" in fields
        if name not in expected and not is_draft(name) and not has_schema:
            continue  # a foreign file
        if name not in expected:
            yield _drift(where, content, SCHEMAS[within], "the log has nothing that this file shows")
        elif content != expected[name]:
            yield _drift(where, content, SCHEMAS[within])


def _drift(where: str, content: bytes | None, schema: str, message: str = "") -> Diagnostic:
    if content is None:
        return Diagnostic("view-drift", "error", where, None, None, "the file is missing or cannot be read")
    fields = read_object(content)
    known = fields if isinstance(fields, dict) else {}
    given = known.get("id")
    item_id = given if isinstance(given, str) else None
    if "schema" in known and known["schema"] != schema:
        reason = f"the schema {known['schema']!r} is not known"
        return Diagnostic("unknown-schema", "error", where, None, item_id, reason)
    return Diagnostic("view-drift", "error", where, None, item_id, message or "it is not what the log says")


def _log_findings(
    folder: Folder, name: str, cls: type[MemoryEvent] | type[AuditRecord], expected: list[bytes]
) -> list[Diagnostic]:
    """Return the lines that cannot be read, and those that are not the ones of the log, in its order."""
    content = _content(folder, name)
    if content == b"".join(expected):
        return []
    if content is None:
        return [Diagnostic("view-drift", "error", name, None, None, "the file is missing or cannot be read")]
    read = _lines(name, content, cls)
    found = list(line_findings(name, read))
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
