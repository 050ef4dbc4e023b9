"""The commands that make, fill, check and replay a graph workspace, and apply what was reviewed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from chronomemory.cli.loading import Command, CommandGroup
from chronomemory.cli.options import AgentName, AsJson, SessionName, UserName, json_object, text
from chronomemory.cli.output import clean, spelled
from chronomemory.cli.picturing import Force, HtmlFile, graph, write_page
from chronomemory.cli.reviewing import apply
from chronomemory.cli.session import FINDING, NotFoundError, RefusedError
from chronomemory.cli.tables import pairs, table
from chronomemory.cli.targets import check_target, write_target
from chronomemory.cli.workspaces import Folder, JsonFile, listed_as_json, names_of, opened, read_json
from chronomemory.face.moments import utc_now
from chronomemory.graph import Diagnostic, MemoryEvent, MemoryPath
from chronomemory.graph.models import moment_of
from chronomemory.graph.pictures import paths_page

__all__ = ["workspace"]

workspace = typer.Typer(
    cls=CommandGroup,
    help="Keep a graph in a folder: nodes, edges, events and paths, changed behind a review gate.",
    epilog="Exit codes: 0 clean, 1 findings, 2 usage.",
    no_args_is_help=True,
    add_completion=False,
)

Limit = Annotated[int | None, typer.Option("--limit", "-n", min=1, help="Only the last so many.")]


@workspace.command("init", cls=Command)
def init(
    folder: Folder,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    as_json: AsJson = False,
) -> None:
    """Make a workspace; one that is there is left as it is."""
    known = (folder / "workspace.json").exists()
    with opened(folder, as_json, names_of(user, agent, in_session), create=True) as here:
        if as_json:
            here.out.document({"folder": spelled(here.it.folder), "made": not known})
        else:
            here.out.done("it is there: " if known else "made: ", (clean(spelled(folder)), "bold"))


@workspace.command("import", cls=Command)
def import_(
    folder: Folder,
    file: JsonFile,
    keys: Annotated[
        str | None,
        typer.Option(
            "--keys", metavar="JSON", help='What fields are called there: {"nodes": {"kind": "type"}}.'
        ),
    ] = None,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    as_json: AsJson = False,
) -> None:
    """Take in a graph or profile: an envelope that export wrote, or a fixture of another tool by --keys."""
    key_map = None if keys is None else json_object(keys, "--keys")
    with opened(folder, as_json, names_of(user, agent, in_session)) as here:
        told = here.it.import_graph(read_json(file), keys=key_map)
        if as_json:
            here.out.document(told.to_dict())
        else:
            here.out.done(told.summary)


@workspace.command("export", cls=Command)
def export(
    folder: Folder,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="FILE", help="Into a file, not to stdout.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    as_json: AsJson = False,
) -> None:
    """Write the graph as one JSON envelope; the same graph gives the same bytes."""
    with opened(folder, as_json, names_of(user, agent, in_session)) as here:
        if to is None:
            here.out.bytes([here.it.export_graph().rstrip(b"\n")])
            return
        check_target(to, folder, force=force)
        _, written = write_target(to, [here.it.export_graph()], here.it.folder, force=force)
        if as_json:
            here.out.document({"file": spelled(to), "bytes": written})
        else:
            here.out.done("exported to ", (clean(spelled(to)), "bold"))


@workspace.command("diagnose", cls=Command)
def diagnose(
    folder: Folder,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    as_json: AsJson = False,
) -> None:
    """Say what is wrong with the log, the graph and the files; nothing is written."""
    with opened(folder, as_json, names_of(user, agent, in_session)) as here:
        found = here.it.diagnose()
        if as_json:
            listed_as_json(here.out, found)
        elif found:
            here.out.show(_findings(found))
        else:
            here.out.done("nothing is wrong")
    if found:
        raise typer.Exit(FINDING)


def _findings(found: list[Diagnostic]) -> Any:
    rows = table("code", "where", "line", "what", right=("line",))
    for one in found:
        style = "bold red" if one.level == "error" else "yellow"
        line = "" if one.line is None else str(one.line)
        rows.add_row(Text(one.code, style=style), clean(one.where), line, clean(one.message))
    return rows


@workspace.command("rebuild", cls=Command)
def rebuild(
    folder: Folder,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    as_json: AsJson = False,
) -> None:
    """Write the files anew where they do not show what the log says."""
    with opened(folder, as_json, names_of(user, agent, in_session)) as here:
        told = here.it.rebuild()
        if as_json:
            here.out.document(told.to_dict())
        else:
            here.out.done(told.summary)


@workspace.command("events", cls=Command)
def events(
    folder: Folder,
    kind: Annotated[str | None, typer.Option("--kind", callback=text, help="Only of this kind.")] = None,
    limit: Limit = None,
    add: Annotated[
        str | None,
        typer.Option("--add", metavar="JSON", help='Append one: {"kind": "said", "path_id": "main"}.'),
    ] = None,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    as_json: AsJson = False,
) -> None:
    """List the events in the order of their appending, or append one."""
    new = None if add is None else json_object(add, "--add")
    with opened(folder, as_json, names_of(user, agent, in_session)) as here:
        if new is not None:
            listed = [here.it.events.append(_event_of(new))]
        else:
            listed = here.it.events.events(kind)[-(limit or 0) :]
        if as_json:
            listed_as_json(here.out, listed)
            return
        rows = table("when", "kind", "id", "path", "refs")
        for one in listed:
            rows.add_row(*map(clean, (one.ts[:19], one.kind, one.id, one.path_id or "", ", ".join(one.refs))))
        here.out.show(rows if listed else "no events")


def _event_of(fields: dict[str, Any]) -> MemoryEvent:
    return MemoryEvent.from_dict({"id": "", "ts": moment_of(utc_now()), **fields})


@workspace.command("paths", cls=Command)
def paths(
    folder: Folder,
    path_id: Annotated[
        str | None, typer.Option("--id", metavar="ID", callback=text, help="Only this one, with its events.")
    ] = None,
    active: Annotated[bool, typer.Option("--active", help="Only those that have not ended.")] = False,
    html: HtmlFile = None,
    force: Force = False,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    as_json: AsJson = False,
) -> None:
    """List the paths, or draw them: where each branched off, and how it ended."""
    with opened(folder, as_json, names_of(user, agent, in_session)) as here:
        listed = [path for path in here.it.graph.paths() if path.active or not active]
        if path_id is not None:
            listed = [path for path in listed if path.id == path_id]
            if not listed:
                raise NotFoundError(f"there is no path {path_id!r}", recovery="Leave --id out to list them.")
        if html is not None:
            counts = {"paths": len(listed), "events": sum(len(path.event_ids) for path in listed)}
            write_page(here, html, lambda: paths_page(listed, here.it.events.events()), counts, force=force)
        elif as_json:
            listed_as_json(here.out, listed)
        elif path_id is not None:
            here.out.show(_card(listed[0]))
        else:
            rows = table("path", "from", "events", "state", right=("events",))
            for one in listed:
                said = (one.id, one.parent_id or "", f"{len(one.event_ids):,}", _state(one))
                rows.add_row(*map(clean, said))
            here.out.show(rows if listed else "no paths")


@workspace.command("path", cls=Command)
def path(
    folder: Folder,
    path_id: Annotated[str, typer.Argument(metavar="ID", callback=text, help="The id of the path.")],
    branch: Annotated[bool, typer.Option("--branch", help="Begin it.")] = False,
    parent: Annotated[
        str | None, typer.Option("--from", metavar="ID", callback=text, help="The path it branches off.")
    ] = None,
    record: Annotated[
        list[str] | None,
        typer.Option("--record", metavar="JSON", help='Append an event to it: {"kind": "said"}; repeatable.'),
    ] = None,
    merge_into: Annotated[
        str | None, typer.Option("--merge-into", metavar="ID", callback=text, help="End it in another path.")
    ] = None,
    abandon: Annotated[
        str | None, typer.Option("--abandon", metavar="REASON", callback=text, help="End it for a reason.")
    ] = None,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    as_json: AsJson = False,
) -> None:
    """Show a path, or change it: begin it, append events to it, merge it, or abandon it."""
    new = [json_object(one, "--record") for one in record or ()]
    with opened(folder, as_json, names_of(user, agent, in_session)) as here:
        if branch + bool(new) + (merge_into is not None) + (abandon is not None) > 1:
            raise RefusedError("only one of --branch, --record, --merge-into and --abandon can be given")
        if parent is not None and not branch:
            raise RefusedError("--from needs --branch")
        runtime = here.it.runtime
        if branch:
            found = runtime.branch(path_id, parent)
        elif new:
            found = runtime.record(path_id, map(_event_of, new))
        elif merge_into is not None:
            found = runtime.merge(path_id, merge_into)
        elif abandon is not None:
            found = runtime.abandon(path_id, abandon)
        elif (known := here.it.graph.path(path_id)) is not None:
            found = known
        else:
            raise NotFoundError(f"there is no path {path_id!r}", recovery="workspace paths lists them.")
        if as_json:
            here.out.document(found.to_dict())
        else:
            here.out.show(_card(found))


def _card(path: MemoryPath) -> Any:
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


workspace.command("graph", cls=Command)(graph)
workspace.command("apply", cls=Command)(apply)


@workspace.command("replay", cls=Command)
def replay(
    folder: Folder,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    as_json: AsJson = False,
) -> None:
    """Replay the events, and say whether they lead to the graph as it is kept."""
    with opened(folder, as_json, names_of(user, agent, in_session)) as here:
        told, kept = here.it.replay(), here.it.snapshot()
        counts = {name: len(getattr(told, name)) for name in ("profiles", "nodes", "edges", "paths")} | {
            "applied": told.applied,
            "skipped": told.skipped,
            "unreadable": told.unreadable,
        }
        if as_json:
            here.out.document({"equal": told == kept, **counts})
        else:
            here.out.show(pairs({name: f"{number:,}" for name, number in counts.items()}))
            if told == kept:
                here.out.done("the events lead to the graph")
            else:
                here.out.warn("the events do not lead to the graph as it is kept")
    if told != kept:
        raise typer.Exit(FINDING)
