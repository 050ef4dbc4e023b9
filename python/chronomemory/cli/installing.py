"""The commands that enter the MCP server into the settings of a client, and take it out again."""

from __future__ import annotations

import difflib
import os
import shutil
import sys
import tempfile
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated

import typer

from chronomemory.cli.options import (
    HERE,
    AgentName,
    EmbedderName,
    Endpoint,
    Model,
    Project,
    SessionName,
    UserName,
)
from chronomemory.cli.output import Output, clean
from chronomemory.cli.session import RefusedError, session
from chronomemory.layout import read_bounded
from chronomemory.mcp.clients import CLIENTS, Client, command_of, entry_of

__all__ = ["install", "uninstall"]

_NAMES = ", ".join(CLIENTS)
#: A larger settings file is not read.
_MOST_BYTES = 1 << 20

ClientName = Annotated[str, typer.Argument(metavar="CLIENT", help=f"One of: {_NAMES}.")]
ServerName = Annotated[str, typer.Option("--name", metavar="NAME", help="What the server is called there.")]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Another settings file than the usual one.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


def install(
    client: ClientName,
    profile: Annotated[str | None, typer.Option(metavar="NAME", help="Which tools it offers.")] = None,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Offer no writes.")] = False,
    must_exist: Annotated[
        bool, typer.Option("--must-exist", help="Refuse every call for names that nobody wrote for.")
    ] = False,
    endpoint: Endpoint = None,
    model: Model = None,
    embedder: EmbedderName = None,
    name: ServerName = "chronomemory",
    config: ConfigFile = None,
    only_print: Annotated[bool, typer.Option("--print", help="Show the lines, and write nothing.")] = False,
    yes: Yes = False,
    project: Project = HERE,
) -> None:
    """Enter the server into a client's settings: shows the change, asks, and keeps a backup.

    Comments and other servers stay as they are. Paths are absolute, for a client starts it from anywhere.
    """
    with session(project, False) as here:
        known = _client(client)
        given = {"--profile": profile, "--user": user, "--agent": agent, "--session": in_session}
        given |= {"--endpoint": endpoint, "--model": model, "--embedder": embedder}
        options = [word for option, value in given.items() if value is not None for word in (option, value)]
        flags = {"--read-only": read_only, "--must-exist": must_exist}
        command = command_of(project, [*options, *(flag for flag, wanted in flags.items() if wanted)])
        if only_print:
            typer.echo(entry_of(known, command, name), nl=False)
            return
        path = (config or known.file(project.absolute())).expanduser()
        before = _text(path)
        known.check_project(before, name, project.absolute())
        _change(here.out, known, path, before, known.with_entry(before, name, known.entry(command)), yes=yes)


def uninstall(
    client: ClientName,
    name: ServerName = "chronomemory",
    config: ConfigFile = None,
    yes: Yes = False,
    project: Project = HERE,
) -> None:
    """Take the server out of a client's settings: shows the change, asks, and keeps a backup."""
    with session(project, False) as here:
        known = _client(client)
        path = (config or known.file(project.absolute())).expanduser()
        before = _text(path)
        known.check_project(before, name, project.absolute())
        after = known.without_entry(before, name)
        if after is None:
            told = f"there is no server {clean(name)!r} in {clean(path)}; nothing was written"
            here.out.console.print(told, soft_wrap=True)
            return
        _change(here.out, known, path, before, after, yes=yes)


def _client(name: str) -> Client:
    if name not in CLIENTS:
        raise RefusedError(f"there is no client {name!r}", recovery=f"Give one of: {_NAMES}.")
    return CLIENTS[name]


def _text(path: Path) -> str:
    try:
        return read_bounded(path, _MOST_BYTES).decode("utf-8-sig") if path.exists() else ""
    except UnicodeDecodeError:
        raise RefusedError(f"{path} is not UTF-8", recovery="Correct it by hand, or use --print.") from None


def _change(out: Output, client: Client, path: Path, before: str, after: str, *, yes: bool) -> None:
    if before == after:
        out.console.print(f"{clean(path)} says so already; nothing was written", soft_wrap=True)
        return
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), str(path), str(path), lineterm="", n=2
    )
    for line in lines:
        out.console.print(clean(line), soft_wrap=True)
    if not yes:
        if not sys.stdin.isatty():
            raise RefusedError("nobody is there to be asked; nothing was written", recovery="Give --yes.")
        typer.confirm("Write this?", abort=True)
    kept = _write(path, before, after)
    out.done(f"written: {clean(path)}")
    if kept is not None:
        out.hint(f"before it was: {clean(kept)}")
    out.hint(client.then)


def _write(path: Path, before: str, after: str) -> Path | None:
    """Write a settings file whole or not at all; return where the old one is kept."""
    # Settings are often links into a folder of one's own: the link stays, and what it leads to is changed.
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    if _text(target) != before:
        raise RefusedError(f"{path} was changed meanwhile; nothing was written", recovery="Do it again.")
    kept = None
    if target.exists():
        stamp = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%S%fZ")
        kept = target.with_name(f"{target.name}.backup-{stamp}")
        shutil.copy2(target, kept)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    draft = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(after)
        if kept is not None:
            shutil.copymode(kept, draft)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    return kept
