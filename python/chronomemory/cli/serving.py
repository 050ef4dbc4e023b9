"""The command that serves a store to assistants over the Model Context Protocol."""

from __future__ import annotations

import gc
import os
import secrets
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import BaseModel

from chronomemory.cli.installing import install, uninstall
from chronomemory.cli.loading import Command, CommandGroup, loaded
from chronomemory.cli.options import (
    HERE,
    AgentName,
    EmbedderName,
    Endpoint,
    Model,
    ServedProject,
    SessionName,
    UserName,
)
from chronomemory.cli.projects import resolve_project
from chronomemory.cli.session import RefusedError, session
from chronomemory.errors import ChronoError
from chronomemory.mcp.served_store import ServedStore, checked_project
from chronomemory.scope import Scope

if TYPE_CHECKING:
    from chronomemory.embedders import Embedder

__all__ = ["mcp", "server_module"]

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
mcp.command("install", cls=Command)(install)
mcp.command("uninstall", cls=Command)(uninstall)


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
    """Let models be made without what checks them, which is then made when one is first used.

    The SDK has more than 500 models, for every version of the protocol; a conversation uses a few of them.
    """
    BaseModel.model_config["defer_build"] = True
    try:
        yield
    finally:
        del BaseModel.model_config["defer_build"]


@mcp.callback()
def serve(
    ctx: typer.Context,
    profile: Annotated[
        str, typer.Option(metavar="NAME", help="Which tools: memories, reference, files or chatgpt.")
    ] = "memories",
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Refuse every write.")] = False,
    must_exist: Annotated[
        bool,
        typer.Option(
            "--must-exist", help="Refuse every call while nothing was ever written for these names."
        ),
    ] = False,
    endpoint: Endpoint = None,
    model: Model = None,
    embedder: EmbedderName = None,
    http: Annotated[
        bool, typer.Option("--http", help="Serve HTTP on this machine instead of stdio.")
    ] = False,
    host: Annotated[str, typer.Option(metavar="HOST", help="127.0.0.1, ::1 or localhost.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=1, max=65535, help="The port for HTTP.")] = 8765,
    project: ServedProject = HERE,
) -> None:
    """Serve the memory of a project to assistants, for these names, until the client hangs up.

    Whose memories they are is said here, and never by a model. Over HTTP a client needs a token: the one in
    CHRONOMEMORY_MCP_TOKEN, or one that is made and shown at the start.
    """
    if ctx.invoked_subcommand is not None:
        return
    project = resolve_project(ctx, project)
    given = {"user": user, "agent": agent, "session": in_session}
    with session(project, False) as here:
        scope = Scope.of(**{level: name for level, name in given.items() if name is not None})
        checked_project(project)
        chosen = _embedder(endpoint, model, embedder)
        served = ServedStore(here.store, scope, read_only=read_only, must_exist=must_exist, embedder=chosen)
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


def _embedder(endpoint: str | None, model: str | None, name: str | None) -> Embedder | None:
    """Return the embedder that was asked for; what it prints while it is made must not reach a client."""
    if endpoint is model is name is None:
        return None
    with redirect_stdout(sys.stderr):
        chosen: Embedder | None = loaded("chronomemory.cli.embedding").Embeds(endpoint, model, name).chosen()
    return chosen


@contextmanager
def _beside(work: Callable[[], None]) -> Iterator[None]:
    """Let something be done beside a block, and wait for it: the store must not be closed under it."""
    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        thread.join()
