"""The commands that bring pages and log together, compact pages, and draw them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from chronomemory.cli.options import HERE, AgentName, AsJson, Project, SessionName, UserName, text
from chronomemory.cli.output import clean, spelled
from chronomemory.cli.page_folders import Folder, PageName, Reported, Whose, listed, opened, tell_of
from chronomemory.cli.session import FINDING
from chronomemory.cli.targets import check_target, write_target
from chronomemory.pages import Pages
from chronomemory.pages.syncing import CLEANED
from chronomemory.types import Progress

__all__ = ["CARE"]


def flag_compact(
    page: PageName,
    reason: Annotated[str, typer.Option("--reason", "-r", callback=text, help="Why.")],
    project: Project = HERE,
    folder: Folder = None,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    as_json: AsJson = False,
) -> None:
    """Ask for a page to be compacted."""
    with opened(Whose(project, folder, user, agent, in_session), as_json) as here:
        here.it.flag_compact(page, reason)
        if as_json:
            here.out.document({"page": page.removesuffix(".md"), "needs_compact": True})
        else:
            here.out.done((clean(page), "bold"), " is to be compacted")


def compact(
    page: Annotated[
        str | None,
        typer.Argument(metavar="PAGE", callback=text, help="Only this one; else all that are flagged."),
    ] = None,
    project: Project = HERE,
    folder: Folder = None,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    as_json: AsJson = False,
) -> None:
    """Make notes of what was superseded on flagged pages, without losing a fact."""
    with opened(Whose(project, folder, user, agent, in_session), as_json) as here:
        told = here.it.compact_flagged() if page is None else [here.it.compact(page)]
        if as_json:
            listed(here.out, told)
        for one in [] if as_json else told:
            (here.out.done if one.accepted else here.out.warn)(clean(one.summary))
        if not told and not as_json:
            here.out.hint("no page is flagged")
    if not all(one.accepted for one in told):
        raise typer.Exit(FINDING)


def rebuild(
    project: Project = HERE,
    folder: Folder = None,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    as_json: AsJson = False,
) -> None:
    """Write all pages that are missing or behind, byte for byte as they were."""
    whose = Whose(project, folder, user, agent, in_session)
    _reported(whose, as_json, "writing pages", lambda pages, progress: pages.rebuild(progress=progress))


def rebuild_index(
    project: Project = HERE,
    folder: Folder = None,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    as_json: AsJson = False,
) -> None:
    """Read all pages, correct what is known of their entries, and write index.md."""
    whose = Whose(project, folder, user, agent, in_session)
    _reported(whose, as_json, "reading pages", lambda pages, progress: pages.rebuild_index(progress=progress))


def sync(
    forget_missing: Annotated[
        bool, typer.Option("--forget-missing", help="Let go of pages whose files are gone.")
    ] = False,
    layout: Annotated[
        str | None,
        typer.Option(
            "--layout",
            metavar="free|prefixed",
            callback=text,
            help="How a new folder is kept: as it is, with any notes, or as pages with prefixes.",
        ),
    ] = None,
    project: Project = HERE,
    folder: Folder = None,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    as_json: AsJson = False,
) -> None:
    """Take in what was edited by hand, and report what cannot be; a folder of notes is taken in as it is."""
    _reported(
        Whose(project, folder, user, agent, in_session, layout),
        as_json,
        "reading pages",
        lambda pages, progress: (
            pages.first_sync or pages.sync(forget_missing=forget_missing, progress=progress)
        ),
        attach=True,
    )


def _reported(
    whose: Whose,
    as_json: bool,
    title: str,
    work: Callable[[Pages, Progress | None], Reported],
    *,
    attach: bool = False,
) -> None:
    """Do something to all pages and tell of it; a problem that is left is a finding."""
    with opened(whose, as_json, attach=attach) as here:
        with here.out.progress(title) as progress:
            told = work(here.it, progress)
        tell_of(here.out, told)
    _end(told)


def _end(told: Reported) -> None:
    if told.problems:
        raise typer.Exit(FINDING)


def watch(
    project: Project = HERE,
    folder: Folder = None,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    as_json: AsJson = False,
) -> None:
    """Take in what is edited by hand as it happens, until it is interrupted."""
    with opened(Whose(project, folder, user, agent, in_session), as_json) as here:
        here.it.watch(lambda told: tell_of(here.out, told))


def _cleaned(given: str) -> str:
    """Take what is to be cleaned: a slip is refused before anything is asked."""
    if given not in CLEANED:
        raise typer.BadParameter(f"{given!r} is none of {', '.join(CLEANED)}")
    return given


def clean_(
    what: Annotated[
        str,
        typer.Argument(metavar="memory|all", callback=_cleaned, help="The pages, or also when was synced."),
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    project: Project = HERE,
    folder: Folder = None,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    as_json: AsJson = False,
) -> None:
    """Take all pages away; the chained history and the configuration stay."""
    with opened(Whose(project, folder, user, agent, in_session), as_json) as here:
        if not yes:
            pages = len(here.it.list(include_dormant=True, include_archived=True))
            typer.echo(f"This takes {pages:,} pages away. The chained history of the log stays.", err=True)
            typer.confirm("Take them away?", abort=True, err=True)
        told = here.it.clean(what)
        if as_json:
            here.out.document(told.to_dict())
        else:
            here.out.done(told.summary, "; the chained history stays")


def picture(
    html: Annotated[Path, typer.Argument(metavar="FILE", dir_okay=False, help="The page to write.")],
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
    project: Project = HERE,
    folder: Folder = None,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    as_json: AsJson = False,
) -> None:
    """Draw the pages and the links between them, as a page for a browser."""
    with opened(Whose(project, folder, user, agent, in_session), as_json) as here:
        check_target(html, here.it.store.project_root, force=force)
        write_target(html, [here.it.picture().encode()], here.it.store.project_root, force=force)
        if as_json:
            here.out.document({"path": spelled(html)})
        else:
            here.out.done("drawn in ", clean(html))


#: The commands, to be put beside those that read and write.
CARE: dict[str, Callable[..., None]] = {
    "flag-compact": flag_compact,
    "compact": compact,
    "rebuild": rebuild,
    "rebuild-index": rebuild_index,
    "sync": sync,
    "watch": watch,
    "clean": clean_,
    "picture": picture,
}
