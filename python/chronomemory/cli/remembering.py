"""The commands that remember, edit, forget, show and embed blocks, and the memory they work on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError
from rich.text import Text

from chronomemory.blocks import Blocks, LearnResult, Memory, sync
from chronomemory.cli.embedding import BY_WORDS, Embeds
from chronomemory.cli.options import (
    HERE,
    AgentName,
    AsJson,
    EmbedderName,
    Endpoint,
    Model,
    Project,
    SessionName,
    UserName,
    text,
)
from chronomemory.cli.output import Output, clean, counted
from chronomemory.cli.session import NotFoundError, RefusedError, Whose, session
from chronomemory.cli.tables import pairs
from chronomemory.face.handle import open_handle
from chronomemory.scope import Scope

__all__ = [
    "Content",
    "Tags",
    "edit",
    "forget",
    "memory_of",
    "reembed",
    "remember",
    "show",
    "tell",
]

Content = Annotated[str, typer.Argument(metavar="TEXT", callback=text, help="What there is to know.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", "-t", help="A tag; may be given again.")]
BlockId = Annotated[str, typer.Argument(metavar="ID", callback=text, help="The block's id.")]


@contextmanager
def memory_of(
    project: Path, as_json: bool, whose: Whose, embeds: Embeds = BY_WORDS
) -> Iterator[tuple[Memory, Output]]:
    with session(project, as_json) as here:
        try:
            blocks = open_handle(Blocks, here.store, scope=Scope.of(**whose.names))
            yield Memory(blocks, embedder=embeds.embedder()), here.out
        except ValidationError as error:
            raise RefusedError(f"the frame makes no sense: {error.errors()[0]['msg']}") from None


def remember(
    content: Content,
    tag: Tags = None,
    category: Annotated[str, typer.Option(help="What kind of thing it is.")] = "knowledge",
    supersedes: Annotated[
        str | None, typer.Option(metavar="ID", help="The block whose place it takes.")
    ] = None,
    endpoint: Endpoint = None,
    model: Model = None,
    embedder: EmbedderName = None,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    project: Project = HERE,
    as_json: AsJson = False,
) -> None:
    """Learn something and consolidate at once, so that it can be recalled."""
    embeds = Embeds(endpoint, model, embedder)
    with memory_of(project, as_json, Whose(user, agent, in_session), embeds) as (memory, out):
        tell(out, memory.remember(content, tag or [], category, "cli", supersedes=supersedes), as_json)


def tell(out: Output, learned: LearnResult, as_json: bool) -> None:
    """Say what became of something that was learned."""
    if as_json:
        out.document(asdict(learned))
    else:
        out.done(f"{learned.status.replace('_', ' ')}: ", (learned.block_id, "bold"))


def edit(
    block_id: BlockId,
    content: Content,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    project: Project = HERE,
    as_json: AsJson = False,
) -> None:
    """Say a block in other words; the new one takes over tags and links, and waits for dream."""
    with memory_of(project, as_json, Whose(user, agent, in_session)) as (memory, out):
        tell(out, memory.edit(_plain(block_id), content), as_json)


def forget(
    block_id: BlockId,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    project: Project = HERE,
    as_json: AsJson = False,
) -> None:
    """Put a block away: it is no longer found, and the log keeps it."""
    with memory_of(project, as_json, Whose(user, agent, in_session)) as (memory, out):
        gone = memory.forget(_plain(block_id))
        if as_json:
            out.document(asdict(gone))
        else:
            out.done("forgotten: ", (gone.block_id, "bold"))


def reembed(
    endpoint: Endpoint = None,
    model: Model = None,
    embedder: EmbedderName = None,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    project: Project = HERE,
    as_json: AsJson = False,
) -> None:
    """Embed the active blocks that have no embedding of this model, so that meaning finds them too."""
    embeds = Embeds(endpoint, model, embedder)
    with memory_of(project, as_json, Whose(user, agent, in_session), embeds) as (memory, out):
        told = memory.reembed()
        if as_json:
            out.document(told.to_dict())
        else:
            out.done(told.summary)


def show(
    block_id: BlockId,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    project: Project = HERE,
    as_json: AsJson = False,
) -> None:
    """Show a block with its tags and links."""
    with memory_of(project, as_json, Whose(user, agent, in_session)) as (memory, out):
        name = _plain(block_id)
        with memory.blocks.connect() as conn:
            block = sync.get_block(conn, name)
            if block is None:
                raise NotFoundError(f"there is no block {name!r}", recovery="blocks ls lists them.")
            del block["embedding"]
            tags, edges = sync.get_tags(conn, name), sync.get_edges_for_block(conn, name)
        if as_json:
            out.document({**block, "tags": tags, "edges": edges})
            return
        facts: dict[str, str | Text] = {
            "block": Text(block["id"], style="bold"),
            "content": clean(block["content"], keep="\n"),
            "status": block["status"],
            "category": clean(block["category"]),
            "tags": clean(", ".join(tags)) or "none",
            "believed": f"{block['confidence']:.2f}",
            "used": counted(block["reinforcement_count"], "time"),
            "created": block["created_at"],
        }
        out.show(pairs(facts))
        for edge in edges:
            other = edge["to_id"] if edge["from_id"] == name else edge["from_id"]
            out.show(f"linked with {other}, weight {edge['weight']:.2f}")


def _plain(block_id: str) -> str:
    """Return an id as blocks ls prints it, also where search printed it."""
    return block_id.removeprefix("block:")
