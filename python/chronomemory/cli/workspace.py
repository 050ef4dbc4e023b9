"""The commands for a graph workspace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text
from typer import Argument, Option

from chronomemory._core import parse_json
from chronomemory.cli.loading import command, command_group
from chronomemory.cli.options import Force, json_object
from chronomemory.cli.output import Output, clean, spelled
from chronomemory.cli.session import FINDING, JsonOption, Names, NotFoundError, RefusedError, Target
from chronomemory.cli.tables import pairs, table
from chronomemory.cli.targets import check_target, write_target
from chronomemory.face.moments import utc_now
from chronomemory.face.results import counted
from chronomemory.graph import (
    Action,
    Approval,
    ApprovalRequired,
    GraphError,
    MemoryEvent,
    MemoryPath,
    Workspace,
    pictures,
)
from chronomemory.graph.models import moment_of
from chronomemory.layout import read_bounded

workspace = command_group(
    "Keep a graph in a folder: nodes, edges, events and paths, changed behind a review gate.",
    epilog="Exit codes: 0 clean, 1 findings, 2 usage.",
)

Folder = Annotated[Path, Argument(metavar="DIR", file_okay=False, help="The folder of the workspace.")]
JsonFile = Annotated[Path, Argument(metavar="FILE", exists=True, dir_okay=False, help="A JSON file.")]
HtmlFile = Annotated[
    Path | None, Option("--html", metavar="FILE", dir_okay=False, help="Draw it: a page for a browser.")
]
Limit = Annotated[int | None, Option("--limit", "-n", min=1, help="Only the last so many.")]
_MOST_BYTES = 64 << 20


@dataclass(frozen=True)
class Options(Names, JsonOption):
    """The options of every workspace command."""


@contextmanager
def opened(folder: Path, at: Options, *, create: bool = False) -> Iterator[tuple[Workspace, Output]]:
    """Open a workspace; its refusals are errors of the arguments."""
    with Target(project=folder, as_json=at.as_json).open() as here:
        try:
            opener = Workspace.create if create else Workspace.open
            with opener(folder, **at.names) as made:
                yield made, here.out
        except ApprovalRequired:
            raise
        except GraphError as error:
            raise RefusedError(str(error), recovery=error.recovery) from None


def read_json(path: Path) -> Any:
    try:
        return parse_json(read_bounded(path, _MOST_BYTES))
    except ValueError as error:
        raise RefusedError(f"{path} is not JSON: {error}") from None


@command(workspace, "init")
def init(folder: Folder, at: Options) -> None:
    """Make a workspace; one that is there is left as it is."""
    known = (folder / "workspace.json").exists()
    with opened(folder, at, create=True) as (made, out):
        document = {"folder": spelled(made.folder), "made": not known}
        out.answer(document, "it is there: " if known else "made: ", (clean(spelled(folder)), "bold"))


@command(workspace, "import")
def import_(
    folder: Folder,
    file: JsonFile,
    keys: Annotated[
        str | None,
        Option("--keys", metavar="JSON", help='What fields are called there: {"nodes": {"kind": "type"}}.'),
    ] = None,
    *,
    at: Options,
) -> None:
    """Take in a graph or profile: an envelope that export wrote, or a fixture of another tool by --keys."""
    key_map = None if keys is None else json_object(keys, "--keys")
    with opened(folder, at) as (made, out):
        report = made.import_graph(read_json(file), keys=key_map)
        out.answer(report.to_dict(), report.summary)


@command(workspace, "export")
def export(
    folder: Folder,
    to: Annotated[Path | None, Option("--to", metavar="FILE", help="Into a file, not to stdout.")] = None,
    force: Force = False,
    *,
    at: Options,
) -> None:
    """Write the graph as one JSON envelope; the same graph gives the same bytes."""
    with opened(folder, at) as (made, out):
        if to is None:
            out.bytes([made.export_graph().rstrip(b"\n")])
            return
        check_target(to, folder, force=force)
        _, written = write_target(to, [made.export_graph()], made.folder, force=force)
        out.answer({"file": spelled(to), "bytes": written}, "exported to ", (clean(spelled(to)), "bold"))


@command(workspace, "diagnose")
def diagnose(folder: Folder, at: Options) -> None:
    """Say what is wrong with the log, the graph and the files; nothing is written."""
    with opened(folder, at) as (made, out):
        found = made.diagnose()
        rows = (
            (
                Text(one.code, style="bold red" if one.level == "error" else "yellow"),
                clean(one.where),
                "" if one.line is None else str(one.line),
                clean(one.message),
            )
            for one in found
        )
        if found or at.as_json:
            out.listing(found, table("code", "where", "line", "what", right=("line",), rows=rows), "")
        else:
            out.done("nothing is wrong")
    if found:
        raise typer.Exit(FINDING)


@command(workspace, "rebuild")
def rebuild(folder: Folder, at: Options) -> None:
    """Write the files anew where they do not show what the log says."""
    with opened(folder, at) as (made, out):
        report = made.rebuild()
        out.answer(report.to_dict(), report.summary)


@command(workspace, "events")
def events(
    folder: Folder,
    kind: Annotated[str | None, Option("--kind", help="Only of this kind.")] = None,
    limit: Limit = None,
    add: Annotated[
        str | None, Option("--add", metavar="JSON", help='Append one: {"kind": "said", "path_id": "main"}.')
    ] = None,
    *,
    at: Options,
) -> None:
    """List the events in the order of their appending, or append one."""
    new = None if add is None else json_object(add, "--add")
    with opened(folder, at) as (made, out):
        if new is not None:
            listed = [made.events.append(_event_of(new))]
        else:
            listed = made.events.events(kind)[-(limit or 0) :]
        rows = (
            map(clean, (one.ts[:19], one.kind, one.id, one.path_id or "", ", ".join(one.refs)))
            for one in listed
        )
        out.listing(listed, table("when", "kind", "id", "path", "refs", rows=rows), "no events")


def _event_of(fields: dict[str, Any]) -> MemoryEvent:
    return MemoryEvent.from_dict({"id": "", "ts": moment_of(utc_now()), **fields})


@command(workspace, "paths")
def paths(
    folder: Folder,
    path_id: Annotated[
        str | None, Option("--id", metavar="ID", help="Only this one, with its events.")
    ] = None,
    active: Annotated[bool, Option("--active", help="Only those that have not ended.")] = False,
    html: HtmlFile = None,
    force: Force = False,
    *,
    at: Options,
) -> None:
    """List the paths, or draw them: where each branched off, and how it ended."""
    with opened(folder, at) as (made, out):
        listed = [path for path in made.graph.paths() if path.active or not active]
        if path_id is not None:
            listed = [path for path in listed if path.id == path_id]
            if not listed:
                raise NotFoundError(f"there is no path {path_id!r}", recovery="Leave --id out to list them.")
        if html is not None:
            counts = {"paths": len(listed), "events": sum(len(path.event_ids) for path in listed)}
            events = made.events.events
            _write_page(made, out, html, lambda: pictures.paths_page(listed, events()), counts, force=force)
        elif path_id is not None and not at.as_json:
            out.show(_card(listed[0]))
        else:
            rows = (
                map(clean, (one.id, one.parent_id or "", f"{len(one.event_ids):,}", _state(one)))
                for one in listed
            )
            shown = table("path", "from", "events", "state", right=("events",), rows=rows)
            out.listing(listed, shown, "no paths")


@command(workspace, "path")
def path(
    folder: Folder,
    path_id: Annotated[str, Argument(metavar="ID", help="The id of the path.")],
    branch: Annotated[bool, Option("--branch", help="Begin it.")] = False,
    parent: Annotated[str | None, Option("--from", metavar="ID", help="The path it branches off.")] = None,
    record: Annotated[
        list[str] | None,
        Option("--record", metavar="JSON", help='Append an event to it: {"kind": "said"}; repeatable.'),
    ] = None,
    merge_into: Annotated[
        str | None, Option("--merge-into", metavar="ID", help="End it in another path.")
    ] = None,
    abandon: Annotated[str | None, Option("--abandon", metavar="REASON", help="End it for a reason.")] = None,
    *,
    at: Options,
) -> None:
    """Show a path, or change it: begin it, append events to it, merge it, or abandon it."""
    new = [json_object(one, "--record") for one in record or ()]
    with opened(folder, at) as (made, out):
        if branch + bool(new) + (merge_into is not None) + (abandon is not None) > 1:
            raise RefusedError("only one of --branch, --record, --merge-into and --abandon can be given")
        if parent is not None and not branch:
            raise RefusedError("--from needs --branch")
        if branch:
            found = made.runtime.branch(path_id, parent)
        elif new:
            found = made.runtime.record(path_id, map(_event_of, new))
        elif merge_into is not None:
            found = made.runtime.merge(path_id, merge_into)
        elif abandon is not None:
            found = made.runtime.abandon(path_id, abandon)
        elif (known := made.graph.path(path_id)) is not None:
            found = known
        else:
            raise NotFoundError(f"there is no path {path_id!r}", recovery="workspace paths lists them.")
        out.report(found.to_dict(), _card(found))


def _card(path: MemoryPath) -> Table:
    facts = {"path": path.id, "from": path.parent_id or "", "state": _state(path)}
    listed = clean("\n".join(path.event_ids), keep="\n")
    return pairs({name: clean(fact) for name, fact in facts.items()} | {"events": listed})


def _state(path: MemoryPath) -> str:
    if path.merged_into is not None:
        state = f"merged into {path.merged_into}"
    elif not path.active:
        state = f"abandoned: {path.abandoned_reason}"
    else:
        state = "active"
    return state if path.compaction is None else f"{state}, compacted"


@command(workspace, "graph")
def graph(
    folder: Folder,
    html: HtmlFile = None,
    dot: Annotated[bool, Option("--dot", help="Print it for Graphviz.")] = False,
    graphml: Annotated[bool, Option("--graphml", help="Print it as GraphML.")] = False,
    force: Force = False,
    *,
    at: Options,
) -> None:
    """Draw nodes and edges as one page for a browser, or print them for other tools."""
    with opened(folder, at) as (made, out):
        if (html is not None) + dot + graphml != 1:
            raise RefusedError("one of --html FILE, --dot and --graphml is needed")
        if html is None:
            printed = pictures.to_dot(made.graph) if dot else pictures.to_graphml(made.graph)
            typer.echo(printed.encode("utf-8"), nl=not printed.endswith("\n"))
            return
        counts = {"nodes": len(made.graph.nodes()), "edges": len(made.graph.edges())}
        _write_page(made, out, html, lambda: pictures.graph_page(made.graph), counts, force=force)


def _write_page(
    made: Workspace, out: Output, html: Path, page: Callable[[], str], counts: dict[str, int], *, force: bool
) -> None:
    check_target(html, made.folder, force=force)
    write_target(html, [page().encode("utf-8")], made.folder, force=force)
    drawn = ", ".join(counted(number, name[:-1]) for name, number in counts.items())
    out.answer({"path": spelled(html), **counts}, f"{drawn} drawn in {clean(html)}")


@command(workspace, "apply")
def apply(
    folder: Folder,
    file: JsonFile,
    approve: Annotated[
        list[str] | None,
        Option("--approve", metavar="DIGEST", help="Approve the action with this digest, and no other."),
    ] = None,
    reviewer: Annotated[str | None, Option("--reviewer", metavar="NAME", help="Who approves.")] = None,
    *,
    at: Options,
) -> None:
    """Apply the actions in a JSON file, all of them or none; a denial shows which digests to approve."""
    with opened(folder, at) as (made, out):
        actions, approvals = _proposed(read_json(file))
        approvals += _approved(actions, approve or [], reviewer)
        try:
            applied = made.runtime.apply(actions, approvals)
        except ApprovalRequired as denied:
            _show_denied(out, [action for action in actions if action.id in denied.action_ids])
            raise ApprovalRequired(
                action_ids=denied.action_ids,
                recovery="Review them, and repeat with --approve DIGEST --reviewer NAME for each digest.",
            ) from None
        document = {"applied": [action.id for action in actions], "events": [one.id for one in applied]}
        out.answer(document, f"applied {counted(len(actions), 'action')}")


def _proposed(content: Any) -> tuple[list[Action], list[Approval]]:
    parts = content if isinstance(content, dict) else {"actions": content}
    if strange := sorted(set(parts) - {"actions", "approvals"}):
        raise RefusedError(f'the file has "actions" and "approvals", not {strange[0]!r}')
    actions, approvals = parts.get("actions", []), parts.get("approvals", [])
    if not isinstance(actions, list) or not isinstance(approvals, list):
        raise RefusedError("actions and approvals must be lists")
    return [Action.from_dict(one) for one in actions], [Approval.from_dict(one) for one in approvals]


def _approved(actions: list[Action], digests: list[str], reviewer: str | None) -> list[Approval]:
    if digests and not reviewer:
        raise RefusedError("--approve needs --reviewer: an approval says who gave it")
    by_digest = {action.digest: action for action in actions}
    for digest in digests:
        if digest not in by_digest:
            raise RefusedError(f"no action in the file has the digest {digest}")
    return [Approval.of(by_digest[digest], reviewer or "") for digest in digests]


def _show_denied(out: Output, lacking: list[Action]) -> None:
    if out.as_json:
        denied = [
            {"id": action.id, "op": action.op, "target": action.target, "digest": action.digest}
            for action in lacking
        ]
        out.document({"applied": [], "denied": denied})
        return
    for action in lacking:
        # Whole lines, however narrow the terminal is: the digest is copied into the next command.
        lines = f"{clean(action.id)}: {action.op} {clean(action.target)}\n  --approve {action.digest}"
        out.console.print(lines, soft_wrap=True)


@command(workspace, "replay")
def replay(folder: Folder, at: Options) -> None:
    """Replay the events, and say whether they lead to the graph as it is kept."""
    with opened(folder, at) as (made, out):
        replayed, kept = made.replay(), made.snapshot()
        counts = {name: len(getattr(replayed, name)) for name in ("profiles", "nodes", "edges", "paths")}
        counts |= {name: getattr(replayed, name) for name in ("applied", "skipped", "unreadable")}
        if at.as_json:
            out.document({"equal": replayed == kept, **counts})
        else:
            out.show(pairs({name: f"{number:,}" for name, number in counts.items()}))
            if replayed == kept:
                out.done("the events lead to the graph")
            else:
                out.warn("the events do not lead to the graph as it is kept")
    if replayed != kept:
        raise typer.Exit(FINDING)
