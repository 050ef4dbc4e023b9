"""Turns tool definitions into tools of the SDK: annotations, errors as text, and one or both channels."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Annotated, Any

import anyio.to_thread
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase, FuncMetadata
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import ConfigDict, Field

from chronomemory.errors import ChronoError
from chronomemory.mcp.reading import Answer
from chronomemory.mcp.served_store import OPERATION_LETTERS, ServedStore
from chronomemory.tools import Definition, slim

MEMORY_URI = "memory://record/"
PAGE_URI = "memory://page/"

#: Annotations of tools that read, add, add again when repeated, and hide something.
READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
WRITES = ToolAnnotations(destructive_hint=False, idempotent_hint=True, open_world_hint=False)
ADDS = ToolAnnotations(destructive_hint=False, idempotent_hint=False, open_world_hint=False)
RETRACTS = ToolAnnotations(destructive_hint=True, idempotent_hint=True, open_world_hint=False)

OperationId = Annotated[
    str, Field(max_length=OPERATION_LETTERS, description="Unique per call; a repeat writes nothing")
]
MaxTokens = Annotated[int, Field(ge=300, le=20_000)]

_UNSHOWN = ("title", "description", "required", "additionalProperties")


@dataclass(frozen=True)
class Row(Definition):
    """One tool of a profile; with an ``output`` type its answers are in both channels."""

    title: str
    annotations: ToolAnnotations
    output: Any = None


def failure(error: Exception) -> str:
    """Say what went wrong and what to do next."""
    if isinstance(error, ChronoError):
        return f"{str(error).rstrip('.')}. {error.recovery}"
    if isinstance(error, OSError):
        place = f": {error.filename}" if error.filename is not None else ""
        reason = error.strerror or str(error) or type(error).__name__
        return f"{reason}{place}. See to the folder or the disk of the store, then call again."
    return f"{type(error).__name__}: {error}. Report it with what you called."


class _Arguments(ArgModelBase):
    """Passes any arguments on: ``Definition`` checks them, and the SDK would drop unknown ones."""

    model_config = ConfigDict(extra="allow")

    def model_dump_one_level(self) -> dict[str, Any]:
        return {"arguments": self.model_extra or {}}


def _tool(served: ServedStore, row: Row) -> Tool:
    is_structured = row.output is not None or served.structured

    async def call(ctx: Context[Any, Any], arguments: dict[str, Any]) -> CallToolResult:
        answer = await anyio.to_thread.run_sync(functools.partial(_answer, served, row, arguments))
        for memory_id in answer.changed:
            await ctx.notify_resource_updated(MEMORY_URI + memory_id)
        for page in answer.changed_pages:
            await ctx.notify_resource_updated(PAGE_URI + page)
        return CallToolResult(
            content=[TextContent(type="text", text=answer.text)],
            structured_content=answer.structured if is_structured else None,
        )

    return Tool(
        fn=call,
        is_async=True,
        context_kwarg="ctx",
        name=row.name,
        title=row.title,
        description=row.description,
        annotations=row.annotations,
        parameters=row.schema,
        fn_metadata=FuncMetadata(
            arg_model=_Arguments,
            output_model=row.output,
            output_schema=None if row.output is None else _output_schema(row.output),
        ),
    )


@functools.cache
def _output_schema(output: Any) -> dict[str, Any]:
    made = FuncMetadata(arg_model=ArgModelBase, output_model=output)
    return dict(slim(made.output_schema, *_UNSHOWN))


def _answer(served: ServedStore, row: Row, arguments: dict[str, Any]) -> Answer:
    # INVARIANT: only the text of a ToolError reaches a model, so every expected error becomes one.
    try:
        checked = row.checked(arguments)
        served.check_scope()
        answer: Answer = row.work(served, **checked)
        return answer
    except (ChronoError, OSError, Warning) as error:
        raise ToolError(failure(error)) from error


def tools_of(served: ServedStore, rows: list[Row]) -> list[Tool]:
    return [_tool(served, row) for row in rows]
