"""The command that serves a store over MCP, and installs the server into clients."""

from __future__ import annotations

import difflib
import gc
import os
import secrets
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel
from typer import Argument, Option

from chronomemory.cli.loading import CommandGroup, command, loaded, with_options
from chronomemory.cli.options import HERE, Project, ServedProject, Yes, resolve_project
from chronomemory.cli.output import Output, clean
from chronomemory.cli.session import Embeds, Names, RefusedError, Target
from chronomemory.cli.targets import write_target
from chronomemory.errors import ChronoError
from chronomemory.layout import read_bounded
from chronomemory.mcp.clients import CLIENTS, Client, command_of, entry_of
from chronomemory.mcp.served_store import ServedStore, checked_project
from chronomemory.scope import Scope

_NAMES = ", ".join(CLIENTS)
_MOST_BYTES = 1 << 20

ClientName = Annotated[str, Argument(metavar="CLIENT", help=f"One of: {_NAMES}.")]
ServerName = Annotated[str, Option("--name", metavar="NAME", help="What the server is called there.")]
ConfigFile = Annotated[
    Path | None, Option("--config", metavar="FILE", help="Another settings file than the usual one.")
]


def install(
    client: ClientName,
    profile: Annotated[str | None, Option(metavar="NAME", help="Which tools it offers.")] = None,
    read_only: Annotated[bool, Option("--read-only", help="Offer no writes.")] = False,
    must_exist: Annotated[
        bool, Option("--must-exist", help="Refuse every call for names that nobody wrote for.")
    ] = False,
    name: ServerName = "chronomemory",
    config: ConfigFile = None,
    only_print: Annotated[bool, Option("--print", help="Show the lines, and write nothing.")] = False,
    yes: Yes = False,
    *,
    scope: Names,
    embeds: Embeds,
    project: Project = HERE,
) -> None:
    """Enter the server into a client's settings: shows the change, asks, and keeps a backup."""
    with Target(project=project).open() as here:
        known = _client(client)
        given = {"--profile": profile, **{f"--{level}": value for level, value in scope.names.items()}}
        given |= {f"--{option}": value for option, value in asdict(embeds).items()}
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
    with Target(project=project).open() as here:
        known = _client(client)
        path = (config or known.file(project.absolute())).expanduser()
        before = _text(path)
        known.check_project(before, name, project.absolute())
        after = known.without_entry(before, name)
        if after is None:
            message = f"there is no server {clean(name)!r} in {clean(path)}; nothing was written"
            here.out.console.print(message, soft_wrap=True)
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
    write_target(target, [after.encode()], target.parent, force=True)
    return kept


#: Where a token for HTTP is taken from; a command line can be seen by everyone on the machine.
TOKEN_VARIABLE = "CHRONOMEMORY_MCP_TOKEN"
_TOKEN_BYTES = 32

mcp = typer.Typer(
    cls=CommandGroup,
    help="Serve the memory to assistants (Model Context Protocol), over stdio unless told otherwise.",
    invoke_without_command=True,
    add_completion=False,
    rich_markup_mode="markdown",
)
command(mcp, "install")(install)
command(mcp, "uninstall")(uninstall)


def server_module() -> Any:
    """Return the module that needs the SDK, which is loaded here and nowhere else."""
    try:
        with _checked_later():
            return loaded("chronomemory.mcp.server")
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types", "anyio", "starlette"):
            raise
        raise ChronoError(
            "the MCP server needs the package mcp, from 2.2 on and below 3",
            recovery='Install it with: pip install "chronomemory-rs[mcp]"',
        ) from None


@contextmanager
def _checked_later() -> Iterator[None]:
    """Defer the validators of the SDK's 500 models until one is used."""
    BaseModel.model_config["defer_build"] = True
    try:
        yield
    finally:
        del BaseModel.model_config["defer_build"]


def serve(
    ctx: typer.Context,
    profile: Annotated[
        str, Option(metavar="NAME", help="Which tools: memories, pages, reference, files or chatgpt.")
    ] = "memories",
    read_only: Annotated[bool, Option("--read-only", help="Refuse every write.")] = False,
    must_exist: Annotated[
        bool, Option("--must-exist", help="Refuse every call while nothing was ever written for these names.")
    ] = False,
    structured: Annotated[
        bool, Option("--structured", help="Add structured content to every answer, for programs.")
    ] = False,
    http: Annotated[bool, Option("--http", help="Serve HTTP on this machine instead of stdio.")] = False,
    host: Annotated[str, Option(metavar="HOST", help="127.0.0.1, ::1 or localhost.")] = "127.0.0.1",
    port: Annotated[int, Option(metavar="N", min=1, max=65535, help="The port for HTTP.")] = 8765,
    *,
    names: Names,
    embeds: Embeds,
    project: ServedProject = HERE,
) -> None:
    """Serve the memory of a project to assistants, for these names, until the client hangs up.

    Whose memories they are is said here, and never by a model. Over HTTP a client needs a token: the one in
    CHRONOMEMORY_MCP_TOKEN, or one that is made and shown at the start.
    """
    if ctx.invoked_subcommand is not None:
        return
    project = resolve_project(ctx, project)
    with Target(project=project).open() as here:
        scope = Scope.of(**names.names)
        checked_project(project)
        with redirect_stdout(sys.stderr):  # what an embedder prints must not reach a client
            embedder = embeds.chosen()
        served = ServedStore(
            here.store,
            scope,
            read_only=read_only,
            must_exist=must_exist,
            embedder=embedder,
            structured=structured,
        )
        with _beside(served.warm_up):
            module = server_module()
            if profile not in module.PROFILES:
                known = ", ".join(module.PROFILES)
                raise RefusedError(f"there is no profile {profile!r}", recovery=f"Give one of: {known}.")
            gc.freeze()  # what was loaded stays as long as the server does
            if http:
                kept = os.environ.get(TOKEN_VARIABLE, "")
                token = module.checked_token(kept or secrets.token_urlsafe(_TOKEN_BYTES))
                place = f"[{host}]" if ":" in module.checked_host(host) else host
                shown = f"serving http://{place}:{port}/mcp with the token"
                here.out.errors.print(shown, f"of {TOKEN_VARIABLE}" if kept else token, soft_wrap=True)
                module.serve_http(served, profile, host=host, port=port, token=token)
            else:
                module.serve_stdio(served, profile)


mcp.callback()(with_options(serve))


@contextmanager
def _beside(work: Callable[[], None]) -> Iterator[None]:
    """Let something be done beside a block, and wait for it: the store must not be closed under it."""
    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        thread.join()
