"""The commands for Markdown pages."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text
from typer import Argument, Option

from chronomemory.cli.loading import command, command_group
from chronomemory.cli.options import Force, Yes
from chronomemory.cli.output import Output, clean, spelled
from chronomemory.cli.session import FINDING, NamedTarget, NotFoundError, RefusedError
from chronomemory.cli.tables import pairs, table
from chronomemory.cli.targets import check_target, write_target
from chronomemory.pages import (
    Entry,
    Indexed,
    PageConflict,
    PageError,
    Pages,
    Rebuilt,
    Synced,
    UnknownEntry,
    UnknownFolder,
    UnknownPage,
)
from chronomemory.pages.layout import FREE, find_layout, is_vault
from chronomemory.pages.syncing import CLEANED
from chronomemory.types import Progress

pages = command_group(
    "Keep Markdown pages that a person can read and edit, over the chained log.",
    epilog="Exit codes: 0 fine, 1 findings or not found, 2 bad arguments or refused input.",
)

STDIN = "-"
Folder = Annotated[
    Path | None,
    Option(
        "--folder",
        "-f",
        metavar="DIR",
        file_okay=False,
        help="Where the pages or notes are, seen from the project; memory unless told.",
    ),
]
PageName = Annotated[str, Argument(metavar="PAGE", help="Its name, such as topic-rust; .md may be left out.")]
Content = Annotated[str, Argument(metavar="TEXT", help="What it says; - reads stdin.")]
Tags = Annotated[list[str] | None, Option("--tag", "-t", metavar="TAG", help="A tag; may be given again.")]
Since = Annotated[str | None, Option("--since", metavar="DAY|TIME", help="From then on; a day is all of it.")]
Until = Annotated[str | None, Option("--until", metavar="DAY|TIME", help="Up to then; a day is all of it.")]
Limit = Annotated[int, Option("--limit", "-n", min=0, help="At most so many.")]
Superseded = Annotated[bool, Option("--superseded", "-s", help="Also what was superseded.")]
Prefixes = Annotated[
    list[str] | None, Option("--prefix", metavar="PREFIX", help="Only these pages; may be given again.")
]
Reason = Annotated[str, Option("--reason", "-r", help="Why.")]

Report = Synced | Rebuilt | Indexed


@dataclass(frozen=True)
class PageTarget(NamedTarget):
    """The options of a command on a folder of pages."""

    folder: Folder = None


@contextmanager
def opened(
    at: PageTarget, *, create: bool = False, attach: bool = False, layout: str | None = None
) -> Iterator[tuple[Pages, Output]]:
    """Open the pages; with ``attach`` a folder of notes that was never opened is taken in."""
    with at.open() as here:
        if attach:
            root = here.store.project_root / (at.folder or "")
            is_free = at.folder is not None and root.is_dir() and find_layout(root) == FREE
            create = is_free or is_vault(root) or layout is not None
        try:
            with Pages(here.store, at.folder, must_exist=not create, layout=layout, **at.names) as made:
                yield made, here.out
        except (UnknownPage, UnknownEntry, UnknownFolder) as error:
            raise NotFoundError(str(error), recovery=error.recovery) from None
        except PageConflict:
            raise
        except PageError as error:
            raise RefusedError(str(error), recovery=error.recovery) from None


def _content(given: str) -> str:
    if given != STDIN:
        return given
    try:
        return sys.stdin.buffer.read().decode("utf-8").rstrip("\n")
    except UnicodeDecodeError:
        raise RefusedError("what came from stdin is not UTF-8") from None


def _list_entries(out: Output, entries: Iterable[Entry], *, page: bool, nothing: str = "no entries") -> None:
    found = list(entries)
    out.listing(found, Text("\n").join(_rendered(found, page=page)), nothing)


def _rendered(entries: Iterable[Entry], *, page: bool) -> Iterator[Text]:
    for entry in entries:
        style = "dim" if entry.superseded else "bold"
        parts = [(entry.timestamp, style), ("  ", ""), (entry.id or "above the entries", "cyan")]
        if page:
            parts += [("  ", ""), (clean(entry.page), "bold")]
        parts += [("".join(f"  #{clean(tag)}" for tag in entry.tags), "green")]
        if entry.superseded:
            parts.append((f"  superseded by {entry.superseded_by or 'nothing'}", "yellow"))
        yield Text.assemble(*parts)
        yield Text.assemble((clean(entry.content, keep="\n"), "dim strike" if entry.superseded else ""), "\n")


def _show_report(out: Output, report: Report) -> None:
    if out.as_json:
        out.document(report.to_dict())
    elif report.problems:
        out.warn(report.summary)
        rows = (
            (Text(one.kind, style="yellow"), clean(one.file), clean(one.message)) for one in report.problems
        )
        out.show(table("what", "file", "why", rows=rows))
    else:
        out.done(clean(report.summary))


@command(pages, "create")
def create(
    page: PageName,
    description: Annotated[str, Argument(metavar="ABOUT", help="What it is about.")],
    tags: Tags = None,
    title: Annotated[str | None, Option("--title", help="Its heading.")] = None,
    *,
    at: PageTarget,
) -> None:
    """Make a page; its name begins with user- project- tool- topic- person- org- or event-.

    In a folder of notes it may have any name, such as Projects/Tea.
    """
    with opened(at, create=True) as (made, out):
        name = made.create(page, description, tags or (), title=title)
        out.answer({"page": name}, "made ", (clean(name), "bold"))


@command(pages, "append")
def append(page: PageName, content: Content, tags: Tags = None, *, at: PageTarget) -> None:
    """Write an entry at the end of a page, with up to three tags."""
    with opened(at, create=True) as (made, out):
        entry_id = made.append(page, _content(content), tags or ())
        document = {"page": page.removesuffix(".md"), "id": entry_id}
        out.answer(document, "appended ", (entry_id, "cyan"), " to ", (clean(page), "bold"))


@command(pages, "supersede")
def supersede(
    page: PageName,
    old_id: Annotated[str, Argument(metavar="ID", help="The entry that holds no more.")],
    content: Content,
    reason: Reason,
    tags: Tags = None,
    *,
    at: PageTarget,
) -> None:
    """Strike an entry, and write the one that holds instead."""
    with opened(at) as (made, out):
        new_id = made.supersede(page, old_id, _content(content), reason, tags or None)
        document = {"page": page.removesuffix(".md"), "id": new_id, "superseded": old_id}
        out.answer(document, (clean(old_id), "cyan"), " is superseded by ", (new_id, "cyan"))


@command(pages, "flag-compact")
def flag_compact(page: PageName, reason: Reason, at: PageTarget) -> None:
    """Ask for a page to be compacted."""
    with opened(at) as (made, out):
        made.flag_compact(page, reason)
        document = {"page": page.removesuffix(".md"), "needs_compact": True}
        out.answer(document, (clean(page), "bold"), " is to be compacted")


@command(pages, "compact")
def compact(
    page: Annotated[
        str | None, Argument(metavar="PAGE", help="Only this one; else all that are flagged.")
    ] = None,
    *,
    at: PageTarget,
) -> None:
    """Make notes of what was superseded on flagged pages, without losing a fact."""
    with opened(at) as (made, out):
        reports = made.compact_flagged() if page is None else [made.compact(page)]
        if at.as_json:
            out.listing(reports, "", "")
        for report in [] if at.as_json else reports:
            (out.done if report.accepted else out.warn)(clean(report.summary))
        if not reports and not at.as_json:
            out.hint("no page is flagged")
    if not all(report.accepted for report in reports):
        raise typer.Exit(FINDING)


@command(pages, "list")
def list_(
    dormant: Annotated[bool, Option("--dormant", help="Also dormant pages.")] = False,
    archived: Annotated[bool, Option("--archived", help="Also archived pages.")] = False,
    prefixes: Prefixes = None,
    *,
    at: PageTarget,
) -> None:
    """List the pages."""
    with opened(at) as (made, out):
        found = made.list(include_dormant=dormant, include_archived=archived, prefixes=prefixes)
        rows = (
            (
                clean(one.name),
                f"{one.entry_count:,}",
                Text(one.status, style="green" if one.status == "active" else "dim"),
                one.updated[:10],
                clean(one.description),
            )
            for one in found
        )
        shown = table("page", "entries", "status", "updated", "about", right=("entries",), rows=rows)
        out.listing(found, shown, "no pages")


@command(pages, "read")
def read(
    page: PageName,
    since: Since = None,
    until: Until = None,
    tags: Tags = None,
    tail: Annotated[int | None, Option("--tail", "-n", min=0, help="Only the last so many.")] = None,
    superseded: Superseded = False,
    chain: Annotated[
        str | None, Option("--chain", metavar="ID", help="What this entry replaced, and what replaced it.")
    ] = None,
    raw: Annotated[bool, Option("--raw", help="The page itself, as it stands in its file.")] = False,
    *,
    at: PageTarget,
) -> None:
    """Read a page."""
    with opened(at) as (made, out):
        if raw and not at.as_json:
            out.bytes([made.text(page).encode().removesuffix(b"\n")])
            return
        if chain is not None:
            found = made.chain(page, chain)
        else:
            found = made.read(
                page, since=since, until=until, tags=tags, tail_n=tail, include_superseded=superseded
            )
        if raw:
            out.document({"page": page.removesuffix(".md"), "text": made.text(page)})
        else:
            _list_entries(out, found, page=False)


@command(pages, "search")
def search(
    query: Annotated[str, Argument(metavar="TEXT", help="What to look for.")],
    page: Annotated[str | None, Option("--page", metavar="GLOB", help="Only pages such as topic-*.")] = None,
    prefix: Annotated[str | None, Option("--prefix", help="Only pages with it.")] = None,
    tags: Tags = None,
    since: Since = None,
    until: Until = None,
    status: Annotated[str | None, Option("--status", help="Only active, dormant or archived pages.")] = None,
    superseded: Superseded = False,
    limit: Limit = 10,
    *,
    at: PageTarget,
) -> None:
    """Find entries by their words and tags, the best first."""
    with opened(at) as (made, out):
        hits = made.search(
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
        shown = Text("\n").join(_rendered((hit.entry for hit in hits), page=True))
        out.listing(hits, shown, "nothing found")


@command(pages, "recent")
def recent(since: Since = None, limit: Limit = 20, prefixes: Prefixes = None, *, at: PageTarget) -> None:
    """Show what was written last, on all pages."""
    with opened(at) as (made, out):
        _list_entries(out, made.recent(since=since, limit=limit, prefixes=prefixes), page=True)


@command(pages, "links")
def links(page: PageName, at: PageTarget) -> None:
    """Show what a page links to, and what links to it."""
    with opened(at) as (made, out):
        found = made.links(page)
        ways = [("to", link) for link in found.links] + [("from", link) for link in found.backlinks]
        rows = (
            (
                way,
                clean(link.page) if link.page else Text("no page", style="dim"),
                clean(link.target),
                link.entry or "",
            )
            for way, link in ways
        )
        shown = table("way", "page", "link", "entry", rows=rows) if ways else "no links"
        out.report(found.to_dict(), shown)


@command(pages, "status")
def status(
    page: PageName,
    set_to: Annotated[
        str | None, Option("--set", metavar="STATUS", help="Make it active, dormant or archived.")
    ] = None,
    *,
    at: PageTarget,
) -> None:
    """Show how a page is, or say that it is active, dormant or archived."""
    with opened(at) as (made, out):
        if set_to is not None:
            made.set_status(page, set_to)
        info = made.info(page)
        flagged = f"yes: {info.compact_reason}" if info.compact_reason else "yes"
        facts = {
            "page": info.name,
            "about": info.description,
            "tags": ", ".join(info.tags),
            "status": info.status,
            "created": info.created,
            "updated": info.updated,
            "entries": f"{info.entry_count:,}",
            "tokens": f"about {info.tokens:,}",
            "to be compacted": flagged if info.needs_compact else "no",
        }
        out.report(info.to_dict(), pairs({name: clean(value) for name, value in facts.items()}))


@command(pages, "rebuild")
def rebuild(at: PageTarget) -> None:
    """Write all pages that are missing or behind, byte for byte as they were."""
    _run(at, "writing pages", lambda made, progress: made.rebuild(progress=progress))


@command(pages, "rebuild-index")
def rebuild_index(at: PageTarget) -> None:
    """Read all pages, correct what is known of their entries, and write index.md."""
    _run(at, "reading pages", lambda made, progress: made.rebuild_index(progress=progress))


@command(pages, "sync")
def sync(
    forget_missing: Annotated[
        bool, Option("--forget-missing", help="Let go of pages whose files are gone.")
    ] = False,
    layout: Annotated[
        str | None,
        Option(
            "--layout",
            metavar="free|prefixed",
            help="How a new folder is kept: as it is, with any notes, or as pages with prefixes.",
        ),
    ] = None,
    *,
    at: PageTarget,
) -> None:
    """Take in what was edited by hand, and report what cannot be; a folder of notes is taken in as it is."""

    def work(made: Pages, progress: Progress | None) -> Report:
        return made.first_sync or made.sync(forget_missing=forget_missing, progress=progress)

    _run(at, "reading pages", work, attach=True, layout=layout)


def _run(
    at: PageTarget,
    title: str,
    work: Callable[[Pages, Progress | None], Report],
    *,
    attach: bool = False,
    layout: str | None = None,
) -> None:
    """Do something to all pages and report it; a problem that is left is a finding."""
    with opened(at, attach=attach, layout=layout) as (made, out):
        with out.progress(title) as progress:
            report = work(made, progress)
        _show_report(out, report)
    if report.problems:
        raise typer.Exit(FINDING)


@command(pages, "watch")
def watch(at: PageTarget) -> None:
    """Take in what is edited by hand as it happens, until it is interrupted."""
    with opened(at) as (made, out):
        made.watch(lambda report: _show_report(out, report))


def _cleanable(given: str) -> str:
    if given not in CLEANED:
        raise typer.BadParameter(f"{given!r} is none of {', '.join(CLEANED)}")
    return given


@command(pages, "clean")
def clean_(
    what: Annotated[
        str, Argument(metavar="memory|all", callback=_cleanable, help="The pages, or also when was synced.")
    ],
    yes: Yes = False,
    *,
    at: PageTarget,
) -> None:
    """Take all pages away; the chained history and the configuration stay."""
    with opened(at) as (made, out):
        if not yes:
            count = len(made.list(include_dormant=True, include_archived=True))
            typer.echo(f"This takes {count:,} pages away. The chained history of the log stays.", err=True)
            typer.confirm("Take them away?", abort=True, err=True)
        report = made.clean(what)
        out.answer(report.to_dict(), report.summary, "; the chained history stays")


@command(pages, "picture")
def picture(
    html: Annotated[Path, Argument(metavar="FILE", dir_okay=False, help="The page to write.")],
    force: Force = False,
    *,
    at: PageTarget,
) -> None:
    """Draw the pages and the links between them, as a page for a browser."""
    with opened(at) as (made, out):
        root = made.store.project_root
        check_target(html, root, force=force)
        write_target(html, [made.picture().encode()], root, force=force)
        out.answer({"path": spelled(html)}, "drawn in ", clean(html))
