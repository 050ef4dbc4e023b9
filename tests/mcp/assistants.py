"""Talks to a server in the tests, with the SDK's own client, in both eras of the protocol."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

# By a module of it: this folder, too, is called mcp, and would do for a package without code.
pytest.importorskip("mcp.server", reason="the extra mcp is not installed")

from chronomemory.mcp.served_store import ServedStore
from chronomemory.mcp.server import make_server
from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult

T = TypeVar("T")
#: The stateless era, and the one that begins with a handshake.
ERAS = ("auto", "legacy")
Answered = tuple[dict[str, Any], str]


class RefusedCallError(Exception):
    """A tool answered with an error."""


class Talk:
    """A conversation with a server."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def raw(self, tool: str, **arguments: Any) -> CallToolResult:
        return await self.client.call_tool(tool, arguments)

    async def both(self, tool: str, **arguments: Any) -> Answered:
        """Call a tool; return what stands in the structured channel, and in the text."""
        result = await self.raw(tool, **arguments)
        text = "\n".join(block.text for block in result.content if block.type == "text")
        if result.is_error:
            raise RefusedCallError(text)
        assert result.structured_content is not None
        return result.structured_content, text

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return (await self.both(tool, **arguments))[0]

    async def refusal(self, tool: str, **arguments: Any) -> str:
        """Call a tool that must refuse, and return what it says."""
        with pytest.raises(RefusedCallError) as refused:
            await self.both(tool, **arguments)
        return str(refused.value)


def talk(server: Any, work: Callable[[Talk], Awaitable[T]], mode: str = "auto") -> T:
    """Let a client and a server talk, and return what the work returned."""

    async def run() -> T:
        async with Client(server, mode=mode) as client:
            return await work(Talk(client))

    return asyncio.run(run())


def with_served(
    served: ServedStore, work: Callable[[Talk], Awaitable[T]], mode: str = "auto", profile: str = "memories"
) -> T:
    """The same in this process; the server adds structured content, which the tests read."""
    return talk(make_server(replace(served, structured=True), profile), work, mode)


def command(project: Path, *options: str) -> list[str]:
    """The command of a server that adds structured content, which the tests read."""
    return [sys.executable, "-m", "chronomemory", "mcp", "--structured", "--project", str(project), *options]


def process(project: Path, *options: str) -> StdioServerParameters:
    """A server of its own, over stdio."""
    first, *rest = command(project, *options)
    return StdioServerParameters(command=first, args=rest, env=dict(os.environ))


def facts_in(value: Any) -> list[str]:
    """Every fact of a structured answer, as the text must show it."""
    if isinstance(value, dict):
        return [fact for part in value.values() for fact in facts_in(part)]
    if isinstance(value, list):
        return [fact for part in value for fact in facts_in(part)]
    if isinstance(value, str) and value:
        return [json.dumps(value, ensure_ascii=False)[1:-1]]
    return []
