"""Serves frames over stdio; one that cannot be read is answered, so that nobody waits for it for ever."""

from __future__ import annotations

import json
import re
from typing import Any

import anyio
from mcp.server import MCPServer
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError

__all__ = ["run_frames"]

#: Where clients put the id of a call: before its params, or at the end. What stands deeper is not ours.
_ID = r'"id"\s*:\s*(-?\d{1,15}|"[^"\\]{1,100}")\s*'
_FIRST = re.compile(r'\s*\{(?:\s*"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"\s*,)*\s*' + _ID + "[,}]")
_LAST = re.compile(
    r'(?:\}|"jsonrpc"\s*:\s*"2\.0")\s*,\s*' + _ID + r'(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z'
)
_END_LETTERS = 300

_TOLD = (
    "the call cannot be read: it is no JSON, is nested too deeply, or has half of a surrogate pair in it. "
    "Nothing was done; correct the text and call again."
)


def refusal(error: Exception) -> JSONRPCError | None:
    """Return what to answer to a frame that could not be read; nothing if nobody asked for an answer."""
    if not isinstance(error, ValidationError):
        return None
    frame = error.errors(include_url=False)[0]["input"]
    if not isinstance(frame, str):
        return None
    found = _FIRST.match(frame) or _LAST.search(frame[-_END_LETTERS:])
    if found is None:
        return None
    return JSONRPCError(
        jsonrpc="2.0", id=json.loads(found[1]), error=ErrorData(code=PARSE_ERROR, message=_TOLD)
    )


async def run_frames(server: MCPServer[Any]) -> None:
    """Serve until the client hangs up, as the SDK does; what it passes over is answered as well."""
    # The SDK keeps it to itself; its own way to serve over stdio is these lines without the relay.
    inner = server._lowlevel_server
    sending, receiving = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    async with stdio_server() as (frames, answers), anyio.create_task_group() as group:

        async def relay() -> None:
            async with sending:
                async for item in frames:
                    told = refusal(item) if isinstance(item, Exception) else None
                    if told is None:
                        await sending.send(item)
                    else:
                        await answers.send(SessionMessage(told))

        group.start_soon(relay)
        await inner.run(receiving, answers, inner.create_initialization_options())
        group.cancel_scope.cancel()
