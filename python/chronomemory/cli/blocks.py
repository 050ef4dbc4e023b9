"""The commands that learn, recall, and list blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from chronomemory.blocks import Memory, ScoredBlock, ScoringWeights
from chronomemory.blocks.page import graph_data, page_of_graph
from chronomemory.blocks.retrieval import bar, shares
from chronomemory.blocks.storage.frames import load_frame
from chronomemory.cli.embedding import Embeds
from chronomemory.cli.loading import Command, CommandGroup
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
    WhereJson,
    share,
    text,
    where_of,
)
from chronomemory.cli.output import clean, counted, spelled
from chronomemory.cli.remembering import (
    Content,
    Tags,
    edit,
    forget,
    memory_of,
    reembed,
    remember,
    show,
    tell,
)
from chronomemory.cli.session import FINDING, Whose
from chronomemory.cli.tables import pairs, table
from chronomemory.cli.targets import check_target, write_target
from chronomemory.store import ScopedStore

__all__ = ["blocks", "frame", "learn", "outcome", "recall"]

blocks = typer.Typer(
    cls=CommandGroup, help="Look at the blocks themselves.", no_args_is_help=True, add_completion=False
)

Query = Annotated[
    str | None,
    typer.Argument(metavar="[QUERY]", callback=text, help="What it is about; without it, what matters."),
]
BlockIds = Annotated[list[str], typer.Argument(metavar="ID…", help="The blocks' ids.")]
TopK = Annotated[int | None, typer.Option("--top-k", "-k", min=1, max=1000, help="How many blocks at most.")]
Explain = Annotated[bool, typer.Option("--explain", help="Show what each score is made of.")]
_COLOURS = ("cyan", "green", "yellow", "magenta", "blue")


def learn(
    content: Content,
    tag: Tags = None,
    category: Annotated[str, typer.Option(help="What kind of thing it is.")] = "knowledge",
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    project: Project = HERE,
    as_json: AsJson = False,
) -> None:
    """Put something into the inbox; dream makes it part of the memory."""
    with memory_of(project, as_json, Whose(user, agent, in_session)) as (memory, out):
        tell(out, memory.learn(content, tag or [], category, "cli"), as_json)


def recall(
    query: Query = None,
    top_k: TopK = None,
    explain: Explain = False,
    frame: Annotated[str, typer.Option(help="Whose weights and filters count.")] = "attention",
    where: WhereJson = None,
    endpoint: Endpoint = None,
    model: Model = None,
    embedder: EmbedderName = None,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    project: Project = HERE,
    as_json: AsJson = False,
) -> None:
    """Find the blocks that matter here; nothing is changed by asking."""
    embeds = Embeds(endpoint, model, embedder)
    with memory_of(project, as_json, Whose(user, agent, in_session), embeds) as (memory, out):
        found = memory.recall(query, top_k=top_k, frame=frame, where=where_of(where))
        with memory.blocks.connect() as conn:
            weights = load_frame(conn, frame).weights
        weights = weights if query else weights.without_similarity()
        if found and not _is_known(memory):
            # What is shared is found under any name, and a name may be misspelled.
            out.warn(f"nothing was ever written for {memory.blocks.scope}")
        if as_json:
            out.document({"blocks": [block.to_dict() for block in found], "weights": weights.model_dump()})
        elif not found:
            out.show(_nothing_found(memory))
        elif explain:
            for place, block in enumerate(found, 1):
                out.show(*_explained(place, block, weights))
        else:
            rows = table("score", "block", "content", right=("score",))
            for block in found:
                rows.add_row(f"{block.score:.3f}", block.id, clean(" ".join(block.content.split())))
            out.show(rows)


def _is_known(memory: Memory) -> bool:
    """Say whether anything was ever written for those who were named, if anybody was."""
    return not isinstance(memory.blocks.store, ScopedStore) or memory.blocks.store.known


def _nothing_found(memory: Memory) -> str:
    """Say why there is no answer, and what can be done about it."""
    if not _is_known(memory):
        return f"nothing was ever written for {memory.blocks.scope}"
    told = memory.status()
    if told.inbox:
        wait = f"{counted(told.inbox, 'block')} wait{'s' if told.inbox == 1 else ''} in the inbox"
        return f"nothing that is active fits; {wait} for: chronomemory dream"
    if told.active:
        return "nothing that is active fits"
    return "nothing is known yet: chronomemory learn takes something in, chronomemory dream makes it findable"


def _explained(place: int, block: ScoredBlock, weights: ScoringWeights) -> Iterator[Text]:
    marks = [
        mark for mark, is_so in (("guaranteed", block.guaranteed), ("by link", block.was_expanded)) if is_so
    ]
    remark = f"  ({', '.join(marks)})" if marks else ""
    yield Text.assemble(
        (f"{place}. {block.score:.3f}", "bold"),
        f"  {clean(' '.join(block.content.split()))}",
        (remark, "dim"),
    )
    made = "" if block.created_at is None else f" of {block.created_at:%Y-%m-%d}"
    yield Text(f"   block {block.id}{made}", style="dim")
    for (name, value, weight, added), colour in zip(shares(block, weights), _COLOURS, strict=True):
        yield Text.assemble(
            f"   {name:<13} {value:>6.3f} × {weight:.2f} = {added:>6.3f}  ", (bar(added), colour)
        )


def frame(
    name: Annotated[
        str, typer.Argument(metavar="FRAME", help="self, attention, task, simulate or your own.")
    ],
    query: Query = None,
    top_k: TopK = None,
    budget: Annotated[int | None, typer.Option(min=0, help="How many tokens at most.")] = None,
    explain: Explain = False,
    where: WhereJson = None,
    endpoint: Endpoint = None,
    model: Model = None,
    embedder: EmbedderName = None,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    project: Project = HERE,
    as_json: AsJson = False,
) -> None:
    """Render a frame for a prompt, and reinforce the blocks in it."""
    embeds = Embeds(endpoint, model, embedder)
    with memory_of(project, as_json, Whose(user, agent, in_session), embeds) as (memory, out):
        result = memory.frame(
            name, query, top_k=top_k, token_budget=budget, explain=explain, where=where_of(where)
        )
        if as_json:
            out.document(result.to_dict())
            return
        if result.text:
            out.show(Text(clean(result.text, keep="\n")))
        else:
            out.warn(f"the frame is empty: {_nothing_found(memory)}")
        if explain and result.weights is not None:
            out.show("")
            for place, block in enumerate(result.blocks, 1):
                out.show(*_explained(place, block, result.weights))
        for item in result.dropped:
            out.hint(f"left out: {item.block_id} ({item.reason})")
        for warning in result.warnings:
            out.warn(warning)


def outcome(
    block_ids: BlockIds,
    signal: Annotated[float, typer.Option(callback=share, help="How it went: 0 is bad, 1 is good.")],
    weight: Annotated[float, typer.Option(min=0.001, help="How much that says.")] = 1.0,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    project: Project = HERE,
    as_json: AsJson = False,
) -> None:
    """Tell blocks how it went: their confidence moves, and those that helped are linked."""
    with memory_of(project, as_json, Whose(user, agent, in_session)) as (memory, out):
        told = memory.outcome(block_ids, signal, weight)
        if as_json:
            out.document(told.to_dict())
        else:
            for block_id, confidence in told.confidence.items():
                out.done((block_id, "bold"), f" is believed {confidence:.3f} now")
            for block_id in told.unknown:
                out.warn(f"{block_id} is not an active block")
            for block_id in told.wider:
                out.warn(f"{block_id} is not yours to change")
    if not told.confidence:
        raise typer.Exit(FINDING)


@blocks.command("ls", cls=Command)
def list_blocks(
    status: Annotated[str, typer.Option(help="inbox, active, archived, or all.")] = "active",
    tag: Annotated[str | None, typer.Option(help="Only with this tag.")] = None,
    tag_pattern: Annotated[
        str | None, typer.Option(help="Only with a tag like this; % is any text, _ one character.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 50,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    project: Project = HERE,
    as_json: AsJson = False,
) -> None:
    """List blocks."""
    with memory_of(project, as_json, Whose(user, agent, in_session)) as (memory, out):
        found = memory.list(
            status=None if status == "all" else status, tag=tag, tag_pattern=tag_pattern, limit=limit
        )
        if as_json:
            out.document({"blocks": found})
            return
        rows = table("block", "status", "believed", "tags", "content", right=("believed",))
        for row in found:
            content = " ".join(row["content"].split())
            rows.add_row(
                row["id"],
                row["status"],
                f"{row['confidence']:.2f}",
                clean(", ".join(row["tags"])),
                clean(content),
            )
        out.show(rows if found else "no blocks")


@blocks.command("status", cls=Command)
def block_status(
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    project: Project = HERE,
    as_json: AsJson = False,
) -> None:
    """Say what there is, how late it is, and what could be done next."""
    with memory_of(project, as_json, Whose(user, agent, in_session)) as (memory, out):
        told = asdict(memory.status())
        if as_json:
            out.document(told)
            return
        facts: dict[str, str | Text] = {
            "blocks": f"{told['active']:,} active, {told['inbox']:,} inbox, {told['archived']:,} archived",
            "graph": f"{counted(told['edges'], 'link')}, {counted(told['contradictions'], 'contradiction')}",
            "active hours": f"{told['active_hours']:.2f}",
            "next": told["suggestion"],
        }
        out.show(pairs(facts))


@blocks.command("graph", cls=Command)
def draw_graph(
    html: Annotated[
        Path, typer.Option("--html", metavar="FILE", dir_okay=False, help="Where to write the page.")
    ],
    limit: Annotated[
        int, typer.Option(min=1, help="At most so many blocks, those with the most links.")
    ] = 2000,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    project: Project = HERE,
    as_json: AsJson = False,
) -> None:
    """Draw blocks and their links as one page for a browser."""
    with memory_of(project, as_json, Whose(user, agent, in_session)) as (memory, out):
        check_target(html, project, force=force)
        with memory.blocks.connect() as conn:
            data = graph_data(conn, limit=limit)
        told = {name: len(value) for name, value in data.items() if name != "left_out"}
        write_target(html, [page_of_graph(data).encode("utf-8")], project, force=force)
        if as_json:
            out.document({"path": spelled(html), **told})
        elif not told["blocks"]:
            out.done(f"there are no blocks to draw yet; the page in {clean(html)} says so")
        else:
            out.done(
                f"{counted(told['blocks'], 'block')}, {counted(told['edges'], 'link')} drawn in {clean(html)}"
            )


_VERBS: dict[str, Callable[..., None]] = {
    "remember": remember,
    "edit": edit,
    "forget": forget,
    "show": show,
    "reembed": reembed,
}
for _name, _verb in _VERBS.items():
    blocks.command(_name, cls=Command)(_verb)
