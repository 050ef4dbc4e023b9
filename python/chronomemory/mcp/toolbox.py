"""Makes tools of functions: arguments checked strictly, errors with what to do next, both channels filled."""

from __future__ import annotations

import functools
import inspect
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import anyio.to_thread
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase, FuncMetadata, func_metadata
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field, ValidationError

from chronomemory.errors import ChronoError
from chronomemory.mcp.reading import Answer
from chronomemory.mcp.served_store import ServedStore
from chronomemory.mcp.shapes import OPERATION_LETTERS, slim

#: Where a memory can be read as a resource.
MEMORY_URI = "memory://record/"
#: Where a page can.
PAGE_URI = "memory://page/"

#: A tool that only reads; one that adds; one after which something is not found any more.
READS = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
WRITES = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
RETRACTS = ToolAnnotations(
    read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False
)

OperationId = Annotated[
    str,
    Field(
        max_length=OPERATION_LETTERS,
        description="Unique per call; repeat a call with the same one and it is written once",
    ),
]

#: What a model need not know of an argument, for it is told when it oversteps a length; and of an answer, in
#: which all fields are there that say something. Whoever lists the tools pays for every word.
_UNSHOWN = ("title", "maxLength", "minLength", "maxItems")
_UNSHOWN_OF_ANSWERS = ("title", "description", "required", "additionalProperties")

#: Argument names by which models ask for another scope, and the answer.
_WHOSE = re.compile(r"(user|agent|app|session|run|group|project)(_?id)?|scope|namespace|store", re.IGNORECASE)
_CHOSEN = "whose memories are asked was chosen when the server was started, and no call changes it"

#: How much of a refused argument is shown, and how many of them.
_SHOWN_LETTERS, _SHOWN_ERRORS = 80, 8


@dataclass(frozen=True)
class Row:
    """One tool of a profile: its function, title, output schema and annotations."""

    work: Callable[..., Answer]
    title: str
    output: Any
    annotations: ToolAnnotations

    @property
    def name(self) -> str:
        """What the tool is called: as the function is."""
        return self.work.__name__


def failure(error: Exception) -> str:
    """Say what went wrong and, in one sentence, what to do next."""
    if isinstance(error, ChronoError):
        return f"{str(error).rstrip('.')}. {error.recovery}"
    if isinstance(error, OSError):
        place = f": {error.filename}" if error.filename is not None else ""
        reason = error.strerror or str(error) or type(error).__name__
        return f"{reason}{place}. See to the folder or the disk of the store, then call again."
    return f"{type(error).__name__}: {error}. Report it with what you called."


class StrictTool(Tool):
    """A tool whose refusals name the bad and the expected arguments."""

    async def run(
        self, arguments: dict[str, Any], context: Context[Any, Any], convert_result: bool = False
    ) -> Any:
        """Run it, and tell a refusal of arguments in a few words."""
        try:
            return await super().run(arguments, context, convert_result)
        except ToolError as error:
            if not isinstance(error.__cause__, ValidationError):
                raise
            raise ToolError(self._refusal(error.__cause__)) from error.__cause__

    def _refusal(self, error: ValidationError) -> str:
        problems = []
        for found in error.errors(include_url=False)[:_SHOWN_ERRORS]:
            path = ".".join(str(part)[:_SHOWN_LETTERS] for part in found["loc"]) or "arguments"
            given = repr(found["input"])
            shown = given if len(given) <= _SHOWN_LETTERS else f"{given[:_SHOWN_LETTERS]}…"
            if found["type"] == "extra_forbidden":
                problems.append(f"{path}: there is no such argument")
            elif found["type"] == "missing":
                problems.append(f"{path}: it is required")
            else:
                problems.append(f"{path}: {found['msg']}, got {shown}")
            if found["type"] == "extra_forbidden" and _WHOSE.fullmatch(path):
                problems.append(_CHOSEN)
        known = ", ".join(self.parameters.get("properties", {}))
        then = f"call again with these arguments: {known}" if known else "call again without arguments"
        return f"{self.name}: {'; '.join(problems)}. Nothing was done; {then}."


def _tool(served: ServedStore, row: Row) -> Tool:
    work = functools.partial(row.work, served)
    vars(work)["__name__"] = row.name  # by which the SDK calls what holds the arguments
    model = func_metadata(work, structured_output=False).arg_model
    # What the SDK does not know it would drop without a word: a misspelled limit would be no limit.
    model.model_config["extra"] = "forbid"
    model.model_rebuild(force=True)

    async def call(ctx: Context[Any, Any], **arguments: Any) -> CallToolResult:
        answer = await anyio.to_thread.run_sync(functools.partial(_answer, served, work, arguments))
        for memory_id in answer.changed:
            await ctx.notify_resource_updated(MEMORY_URI + memory_id)
        for page in answer.changed_pages:
            await ctx.notify_resource_updated(PAGE_URI + page)
        return CallToolResult(
            content=[TextContent(type="text", text=answer.text)], structured_content=answer.structured
        )

    return StrictTool(
        fn=call,
        is_async=True,
        context_kwarg="ctx",
        name=row.name,
        title=row.title,
        description=inspect.getdoc(row.work) or "",
        annotations=row.annotations,
        parameters=slim(model.model_json_schema(by_alias=True), *_UNSHOWN),
        fn_metadata=FuncMetadata(
            arg_model=model, output_model=row.output, output_schema=_shown_schema(row.output)
        ),
    )


@functools.cache
def _shown_schema(output: Any) -> dict[str, Any]:
    """Return the schema of an answer, as a client lists it; several tools may answer alike."""
    made = FuncMetadata(arg_model=ArgModelBase, output_model=output)
    return dict(slim(made.output_schema, *_UNSHOWN_OF_ANSWERS))


def _answer(served: ServedStore, work: Callable[..., Answer], arguments: dict[str, Any]) -> Answer:
    # INVARIANT: only the text of a ToolError reaches a model, so whatever goes wrong becomes one.
    try:
        served.check_scope()
        return work(**arguments)
    except (ChronoError, OSError, Warning) as error:
        raise ToolError(failure(error)) from error


def tools_of(served: ServedStore, rows: list[Row]) -> list[Tool]:
    """Return the tools of a profile."""
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", UserWarning
        )  # of pydantic: an argument may be called as a method of its models
        return [_tool(served, row) for row in rows]
