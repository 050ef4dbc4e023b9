"""The commands that write and read pages."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.text import Text

from chronomemory.cli.loading import Command, CommandGroup
from chronomemory.cli.options import HERE, AgentName, AsJson, Project, SessionName, UserName, text
from chronomemory.cli.output import clean
from chronomemory.cli.page_care import CARE
from chronomemory.cli.page_folders import (
    Folder,
    PageName,
    Since,
    Tags,
    Until,
    Whose,
    content_of,
    entry_lines,
    listed,
    opened,
)
from chronomemory.cli.tables import pairs, table
from chronomemory.pages import Link

__all__ = ["pages"]

pages = typer.Typer(
    cls=CommandGroup,
    help="Keep Markdown pages that a person can read and edit, over the chained log.",
    epilog="Exit codes: 0 fine, 1 findings or not found, 2 bad arguments or refused input.",
    no_args_is_help=True,
    add_completion=False,
)

Limit = Annotated[int, typer.Option("--limit", "-n", min=0, help="At most so many.")]
Superseded = Annotated[bool, typer.Option("--superseded", "-s", help="Also what was superseded.")]
Content = Annotated[str, typer.Argument(metavar="TEXT", callback=text, help="What it says; - reads stdin.")]
Prefixes = Annotated[
    list[str] | None, typer.Option("--prefix", metavar="PREFIX", help="Only these pages; may be given again.")
]


@pages.command("create", cls=Command)
def create(
    page: PageName,
    description: Annotated[str, typer.Argument(metavar="ABOUT", callback=text, help="What it is about.")],
    tags: Tags = None,
    title: Annotated[str | None, typer.Option("--title", callback=text, help="Its heading.")] = None,
    project: Project = HERE,
    folder: Folder = None,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    as_json: AsJson = False,
) -> None:
    """Make a page; its name begins with user- project- tool- topic- person- org- or event-.

    In a folder of notes it may have any name, such as Projects/Tea.
    """
    with opened(Whose(project, folder, user, agent, in_session), as_json, create=True) as here:
        name = here.it.create(page, description, tags or (), title=title)
        if as_json:
            here.out.document({"page": name})
        else:
            here.out.done("made ", (clean(name), "bold"))


@pages.command("append", cls=Command)
def append(
    page: PageName,
    content: Content,
    tags: Tags = None,
    project: Project = HERE,
    folder: Folder = None,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    as_json: AsJson = False,
) -> None:
    """Write an entry at the end of a page, with up to three tags."""
    with opened(Whose(project, folder, user, agent, in_session), as_json, create=True) as here:
        entry_id = here.it.append(page, content_of(content), tags or ())
        if as_json:
            here.out.document({"page": page.removesuffix(".md"), "id": entry_id})
        else:
            here.out.done("appended ", (entry_id, "cyan"), " to ", (clean(page), "bold"))


@pages.command("supersede", cls=Command)
def supersede(
    page: PageName,
    old_id: Annotated[str, typer.Argument(metavar="ID", callback=text, help="The entry that holds no more.")],
    content: Content,
    reason: Annotated[str, typer.Option("--reason", "-r", callback=text, help="Why.")],
    tags: Tags = None,
    project: Project = HERE,
    folder: Folder = None,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    as_json: AsJson = False,
) -> None:
    """Strike an entry, and write the one that holds instead."""
    with opened(Whose(project, folder, user, agent, in_session), as_json) as here:
        new_id = here.it.supersede(page, old_id, content_of(content), reason, tags or None)
        if as_json:
            here.out.document({"page": page.removesuffix(".md"), "id": new_id, "superseded": old_id})
        else:
            here.out.done((clean(old_id), "cyan"), " is superseded by ", (new_id, "cyan"))


@pages.command("list", cls=Command)
def list_(
    dormant: Annotated[bool, typer.Option("--dormant", help="Also dormant pages.")] = False,
    archived: Annotated[bool, typer.Option("--archived", help="Also archived pages.")] = False,
    prefixes: Prefixes = None,
    project: Project = HERE,
    folder: Folder = None,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    as_json: AsJson = False,
) -> None:
    """List the pages."""
    with opened(Whose(project, folder, user, agent, in_session), as_json) as here:
        found = here.it.list(include_dormant=dormant, include_archived=archived, prefixes=prefixes)
        if as_json:
            listed(here.out, found)
            return
        rows = table("page", "entries", "status", "updated", "about", right=("entries",))
        for one in found:
            state = Text(one.status, style="green" if one.status == "active" else "dim")
            rows.add_row(
                clean(one.name), f"{one.entry_count:,}", state, one.updated[:10], clean(one.description)
            )
        here.out.show(rows if found else "no pages")


@pages.command("read", cls=Command)
def read(
    page: PageName,
    since: Since = None,
    until: Until = None,
    tags: Tags = None,
    tail: Annotated[int | None, typer.Option("--tail", "-n", min=0, help="Only the last so many.")] = None,
    superseded: Superseded = False,
    chain: Annotated[
        str | None,
        typer.Option(
            "--chain", metavar="ID", callback=text, help="What this entry replaced, and what replaced it."
        ),
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="The page itself, as it stands in its file.")] = False,
    project: Project = HERE,
    folder: Folder = None,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    as_json: AsJson = False,
) -> None:
    """Read a page."""
    with opened(Whose(project, folder, user, agent, in_session), as_json) as here:
        if raw and not as_json:
            here.out.bytes([here.it.text(page).encode().removesuffix(b"\n")])
            return
        if chain is not None:
            found = here.it.chain(page, chain)
        else:
            found = here.it.read(
                page, since=since, until=until, tags=tags, tail_n=tail, include_superseded=superseded
            )
        if as_json and raw:
            here.out.document({"page": page.removesuffix(".md"), "text": here.it.text(page)})
        elif as_json:
            listed(here.out, found)
        else:
            here.out.show(*(entry_lines(found, page=False) if found else ["no entries"]))


@pages.command("search", cls=Command)
def search(
    query: Annotated[str, typer.Argument(metavar="TEXT", callback=text, help="What to look for.")],
    page: Annotated[
        str | None, typer.Option("--page", metavar="GLOB", callback=text, help="Only pages such as topic-*.")
    ] = None,
    prefix: Annotated[str | None, typer.Option("--prefix", callback=text, help="Only pages with it.")] = None,
    tags: Tags = None,
    since: Since = None,
    until: Until = None,
    status: Annotated[
        str | None, typer.Option("--status", callback=text, help="Only active, dormant or archived pages.")
    ] = None,
    superseded: Superseded = False,
    limit: Limit = 10,
    project: Project = HERE,
    folder: Folder = None,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    as_json: AsJson = False,
) -> None:
    """Find entries by their words and tags, the best first."""
    with opened(Whose(project, folder, user, agent, in_session), as_json) as here:
        hits = here.it.search(
            query,
            path=page,
            prefix=prefix,
            tags=tags,
            since=since,
            until=until,
            status=status,
            include_superseded=superseded,
            limit=limit,
        )
        if as_json:
            listed(here.out, hits)
        else:
            found = [hit.entry for hit in hits]
            here.out.show(*(entry_lines(found, page=True) if found else ["nothing found"]))


@pages.command("recent", cls=Command)
def recent(
    since: Since = None,
    limit: Limit = 20,
    prefixes: Prefixes = None,
    project: Project = HERE,
    folder: Folder = None,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    as_json: AsJson = False,
) -> None:
    """Show what was written last, on all pages."""
    with opened(Whose(project, folder, user, agent, in_session), as_json) as here:
        found = here.it.recent(since=since, limit=limit, prefixes=prefixes)
        if as_json:
            listed(here.out, found)
        else:
            here.out.show(*(entry_lines(found, page=True) if found else ["no entries"]))


@pages.command("links", cls=Command)
def links(
    page: PageName,
    project: Project = HERE,
    folder: Folder = None,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    as_json: AsJson = False,
) -> None:
    """Show what a page links to, and what links to it."""
    with opened(Whose(project, folder, user, agent, in_session), as_json) as here:
        told = here.it.links(page)
        if as_json:
            here.out.document(told.to_dict())
            return
        rows = table("way", "page", "link", "entry")
        for way, found in (("to", told.links), ("from", told.backlinks)):
            for link in found:
                rows.add_row(*_row(way, link))
        here.out.show(rows if told.links or told.backlinks else "no links")


def _row(way: str, link: Link) -> tuple[Any, ...]:
    page = clean(link.page) if link.page else Text("no page", style="dim")
    return way, page, clean(link.target), link.entry or ""


@pages.command("status", cls=Command)
def status(
    page: PageName,
    set_to: Annotated[
        str | None, typer.Option("--set", metavar="STATUS", help="Make it active, dormant or archived.")
    ] = None,
    project: Project = HERE,
    folder: Folder = None,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    as_json: AsJson = False,
) -> None:
    """Show how a page is, or say that it is active, dormant or archived."""
    with opened(Whose(project, folder, user, agent, in_session), as_json) as here:
        if set_to is not None:
            here.it.set_status(page, set_to)
        told = here.it.info(page)
        if as_json:
            here.out.document(told.to_dict())
            return
        flagged = f"yes: {told.compact_reason}" if told.compact_reason else "yes"
        said: dict[str, str] = {
            "page": told.name,
            "about": told.description,
            "tags": ", ".join(told.tags),
            "status": told.status,
            "created": told.created,
            "updated": told.updated,
            "entries": f"{told.entry_count:,}",
            "tokens": f"about {told.tokens:,}",
            "to be compacted": flagged if told.needs_compact else "no",
        }
        here.out.show(pairs({name: clean(value) for name, value in said.items()}))


for name, command in CARE.items():
    pages.command(name, cls=Command)(command)
