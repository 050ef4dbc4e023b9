"""The commands that draw a graph workspace."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from chronomemory.cli.options import AgentName, AsJson, SessionName, UserName
from chronomemory.cli.output import clean, counted, spelled
from chronomemory.cli.session import RefusedError
from chronomemory.cli.targets import check_target, write_target
from chronomemory.cli.workspaces import Folder, Opened, names_of, opened
from chronomemory.graph import pictures

__all__ = ["Force", "HtmlFile", "graph", "write_page"]

HtmlFile = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", dir_okay=False, help="Draw it: a page for a browser."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")]


def graph(
    folder: Folder,
    html: HtmlFile = None,
    dot: Annotated[bool, typer.Option("--dot", help="Print it for Graphviz.")] = False,
    graphml: Annotated[bool, typer.Option("--graphml", help="Print it as GraphML.")] = False,
    force: Force = False,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    as_json: AsJson = False,
) -> None:
    """Draw nodes and edges as one page for a browser, or print them for other tools."""
    with opened(folder, as_json, names_of(user, agent, in_session)) as here:
        if (html is not None) + dot + graphml != 1:
            raise RefusedError("one of --html FILE, --dot and --graphml is needed")
        if html is None:
            made = pictures.to_dot(here.it.graph) if dot else pictures.to_graphml(here.it.graph)
            typer.echo(made.encode("utf-8"), nl=not made.endswith("\n"))
            return
        counts = {"nodes": len(here.it.graph.nodes()), "edges": len(here.it.graph.edges())}
        write_page(here, html, lambda: pictures.graph_page(here.it.graph), counts, force=force)


def write_page(
    here: Opened, html: Path, page: Callable[[], str], counts: dict[str, int], *, force: bool
) -> None:
    """Write a page where nothing is yet, and say what is drawn in it."""
    check_target(html, here.it.folder, force=force)
    write_target(html, [page().encode("utf-8")], here.it.folder, force=force)
    if here.out.as_json:
        here.out.document({"path": spelled(html), **counts})
    else:
        drawn = ", ".join(counted(number, name[:-1]) for name, number in counts.items())
        here.out.done(f"{drawn} drawn in {clean(html)}")
