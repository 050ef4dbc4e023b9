"""The commands that write, recall and maintain blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from rich.text import Text
from typer import Argument, Option

from chronomemory.blocks import (
    Blocks,
    CurateResult,
    DreamResult,
    LearnResult,
    Memory,
    each_memory,
    sync,
)
from chronomemory.blocks.page import block_graph
from chronomemory.blocks.retrieval import explained
from chronomemory.blocks.storage.frames import load_frame
from chronomemory.cli.loading import command, command_group
from chronomemory.cli.options import Force, WhereJson, share, where_of
from chronomemory.cli.output import Output, clean, spelled
from chronomemory.cli.session import FINDING, Embeds, NamedTarget, NotFoundError, RefusedError, ScopedTarget
from chronomemory.cli.tables import pairs, table
from chronomemory.cli.targets import check_target, write_target
from chronomemory.embedders import LexicalEmbedder
from chronomemory.errors import ChronoError
from chronomemory.face.handle import open_handle
from chronomemory.face.results import counted
from chronomemory.scope import Scope
from chronomemory.store import ScopedStore

blocks = command_group("Look at the blocks themselves.")

Content = Annotated[str, Argument(metavar="TEXT", help="What there is to know.")]
Tags = Annotated[list[str] | None, Option("--tag", "-t", help="A tag; may be given again.")]
Category = Annotated[str, Option(help="What kind of thing it is.")]
BlockId = Annotated[str, Argument(metavar="ID", help="The block's id.")]
BlockIds = Annotated[list[str], Argument(metavar="ID…", help="The blocks' ids.")]
Query = Annotated[str | None, Argument(metavar="[QUERY]", help="What it is about; without it, what matters.")]
TopK = Annotated[int | None, Option("--top-k", "-k", min=1, max=1000, help="How many blocks at most.")]
Explain = Annotated[bool, Option("--explain", help="Show what each score is made of.")]

Care = Callable[[Memory], DreamResult | CurateResult]


@contextmanager
def memory_of(
    at: NamedTarget | ScopedTarget, embeds: Embeds | None = None
) -> Iterator[tuple[Memory, Output]]:
    """Open the memory of the named scope; without an embedder words are compared."""
    with at.open() as here:
        try:
            handle = open_handle(Blocks, here.store, scope=Scope.of(**at.names))
            embedder = None if embeds is None else embeds.chosen()
            yield Memory(handle, embedder=embedder or LexicalEmbedder()), here.out
        except ValidationError as error:
            raise RefusedError(f"the frame makes no sense: {error.errors()[0]['msg']}") from None


def _one_line(content: str) -> str:
    return clean(" ".join(content.split()))


def _plain(block_id: str) -> str:
    """Return an id as ``blocks ls`` prints it, also where search printed it."""
    return block_id.removeprefix("block:")


def _answer_learned(out: Output, learned: LearnResult) -> None:
    out.answer(asdict(learned), f"{learned.status.replace('_', ' ')}: ", (learned.block_id, "bold"))


def learn(content: Content, tag: Tags = None, category: Category = "knowledge", *, at: NamedTarget) -> None:
    """Put something into the inbox; dream makes it part of the memory."""
    with memory_of(at) as (memory, out):
        _answer_learned(out, memory.learn(content, tag or [], category, "cli"))


@command(blocks, "remember")
def remember(
    content: Content,
    tag: Tags = None,
    category: Category = "knowledge",
    supersedes: Annotated[str | None, Option(metavar="ID", help="The block whose place it takes.")] = None,
    *,
    embeds: Embeds,
    at: NamedTarget,
) -> None:
    """Learn something and consolidate at once, so that it can be recalled."""
    with memory_of(at, embeds) as (memory, out):
        _answer_learned(out, memory.remember(content, tag or [], category, "cli", supersedes=supersedes))


@command(blocks, "edit")
def edit(block_id: BlockId, content: Content, at: NamedTarget) -> None:
    """Say a block in other words; the new one takes over tags and links, and waits for dream."""
    with memory_of(at) as (memory, out):
        _answer_learned(out, memory.edit(_plain(block_id), content))


@command(blocks, "forget")
def forget(block_id: BlockId, at: NamedTarget) -> None:
    """Put a block away: it is no longer found, and the log keeps it."""
    with memory_of(at) as (memory, out):
        gone = memory.forget(_plain(block_id))
        out.answer(asdict(gone), "forgotten: ", (gone.block_id, "bold"))


@command(blocks, "reembed")
def reembed(embeds: Embeds, at: NamedTarget) -> None:
    """Embed the active blocks that have no embedding of this model, so that meaning finds them too."""
    with memory_of(at, embeds) as (memory, out):
        report = memory.reembed()
        out.answer(report.to_dict(), report.summary)


def outcome(
    block_ids: BlockIds,
    signal: Annotated[float, Option(callback=share, help="How it went: 0 is bad, 1 is good.")],
    weight: Annotated[float, Option(min=0.001, help="How much that says.")] = 1.0,
    *,
    at: NamedTarget,
) -> None:
    """Tell blocks how it went: their confidence moves, and those that helped are linked."""
    with memory_of(at) as (memory, out):
        report = memory.outcome(block_ids, signal, weight)
        if at.as_json:
            out.document(report.to_dict())
        else:
            for block_id, confidence in report.confidence.items():
                out.done((block_id, "bold"), f" is believed {confidence:.3f} now")
            for block_id in report.unknown:
                out.warn(f"{block_id} is not an active block")
            for block_id in report.wider:
                out.warn(f"{block_id} is not yours to change")
    if not report.confidence:
        raise typer.Exit(FINDING)


def recall(
    query: Query = None,
    top_k: TopK = None,
    explain: Explain = False,
    frame: Annotated[str, Option(help="Whose weights and filters count.")] = "attention",
    where: WhereJson = None,
    *,
    embeds: Embeds,
    at: NamedTarget,
) -> None:
    """Find the blocks that matter here; nothing is changed by asking."""
    with memory_of(at, embeds) as (memory, out):
        found = memory.recall(query, top_k=top_k, frame=frame, where=where_of(where))
        with memory.blocks.connect() as conn:
            weights = load_frame(conn, frame).weights
        weights = weights if query else weights.without_similarity()
        if found and not _is_known(memory):
            # Shared blocks are found under any name, and a name may be misspelled.
            out.warn(f"nothing was ever written for {memory.blocks.scope}")
        if at.as_json:
            out.document({"blocks": [block.to_dict() for block in found], "weights": weights.model_dump()})
        elif not found:
            out.show(_nothing_found(memory))
        elif explain:
            out.show(Text(clean(explained(found, weights), keep="\n")))
        else:
            rows = ((f"{block.score:.3f}", block.id, _one_line(block.content)) for block in found)
            out.show(table("score", "block", "content", right=("score",), rows=rows))


def _is_known(memory: Memory) -> bool:
    """Return whether anything was ever written for the named scope, if one was named."""
    return not isinstance(memory.blocks.store, ScopedStore) or memory.blocks.store.known


def _nothing_found(memory: Memory) -> str:
    if not _is_known(memory):
        return f"nothing was ever written for {memory.blocks.scope}"
    status = memory.status()
    if status.inbox:
        wait = f"{counted(status.inbox, 'block')} wait{'s' if status.inbox == 1 else ''} in the inbox"
        return f"nothing that is active fits; {wait} for: chronomemory dream"
    if status.active:
        return "nothing that is active fits"
    return "nothing is known yet: chronomemory learn takes something in, chronomemory dream makes it findable"


def frame(
    name: Annotated[str, Argument(metavar="FRAME", help="self, attention, task, simulate or your own.")],
    query: Query = None,
    top_k: TopK = None,
    budget: Annotated[int | None, Option(min=0, help="How many tokens at most.")] = None,
    explain: Explain = False,
    where: WhereJson = None,
    *,
    embeds: Embeds,
    at: NamedTarget,
) -> None:
    """Render a frame for a prompt, and reinforce the blocks in it."""
    with memory_of(at, embeds) as (memory, out):
        result = memory.frame(
            name, query, top_k=top_k, token_budget=budget, explain=explain, where=where_of(where)
        )
        if at.as_json:
            out.document(result.to_dict())
            return
        if result.text:
            out.show(Text(clean(result.text, keep="\n")))
        else:
            out.warn(f"the frame is empty: {_nothing_found(memory)}")
        if result.explanation:
            out.show("")
            out.show(Text(clean(result.explanation, keep="\n")))
        for item in result.dropped:
            out.hint(f"left out: {item.block_id} ({item.reason})")
        for warning in result.warnings:
            out.warn(warning)


@command(blocks, "ls")
def list_blocks(
    status: Annotated[str, Option(help="inbox, active, archived, or all.")] = "active",
    tag: Annotated[str | None, Option(help="Only with this tag.")] = None,
    tag_pattern: Annotated[
        str | None, Option(help="Only with a tag like this; % is any text, _ one character.")
    ] = None,
    limit: Annotated[int, Option(min=1, help="At most so many.")] = 50,
    *,
    at: NamedTarget,
) -> None:
    """List blocks."""
    with memory_of(at) as (memory, out):
        found = memory.list(
            status=None if status == "all" else status, tag=tag, tag_pattern=tag_pattern, limit=limit
        )
        rows = (
            (
                item.id,
                item.status,
                f"{item.confidence:.2f}",
                clean(", ".join(item.tags)),
                _one_line(item.content),
            )
            for item in found
        )
        shown = table("block", "status", "believed", "tags", "content", right=("believed",), rows=rows)
        out.report({"blocks": [item.to_dict() for item in found]}, shown if found else "no blocks")


@command(blocks, "show")
def show(block_id: BlockId, at: NamedTarget) -> None:
    """Show a block with its tags and links."""
    with memory_of(at) as (memory, out):
        name = _plain(block_id)
        with memory.blocks.connect() as conn:
            block = sync.get_block(conn, name)
            if block is None:
                raise NotFoundError(f"there is no block {name!r}", recovery="blocks ls lists them.")
            del block["embedding"]
            tags, edges = sync.get_tags(conn, name), sync.get_edges_for_block(conn, name)
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
        others = (edge["to_id"] if edge["from_id"] == name else edge["from_id"] for edge in edges)
        links = [
            f"linked with {other}, weight {edge['weight']:.2f}"
            for edge, other in zip(edges, others, strict=True)
        ]
        out.report({**block, "tags": tags, "edges": edges}, pairs(facts), *links)


@command(blocks, "status")
def block_status(at: NamedTarget) -> None:
    """Say what there is, how late it is, and what could be done next."""
    with memory_of(at) as (memory, out):
        status = memory.status()
        facts = {
            "blocks": f"{status.active:,} active, {status.inbox:,} inbox, {status.archived:,} archived",
            "graph": f"{counted(status.edges, 'link')}, {counted(status.contradictions, 'contradiction')}",
            "active hours": f"{status.active_hours:.2f}",
            "next": status.suggestion,
        }
        out.report(asdict(status), pairs(facts))


@command(blocks, "graph")
def draw_graph(
    html: Annotated[Path, Option("--html", metavar="FILE", dir_okay=False, help="Where to write the page.")],
    limit: Annotated[int, Option(min=1, help="At most so many blocks, those with the most links.")] = 2000,
    force: Force = False,
    *,
    at: NamedTarget,
) -> None:
    """Draw blocks and their links as one page for a browser."""
    with memory_of(at) as (memory, out):
        check_target(html, at.project, force=force)
        with memory.blocks.connect() as conn:
            graph = block_graph(conn, limit=limit)
        counts = {name: len(getattr(graph, name)) for name in ("blocks", "edges", "contradictions")}
        write_target(html, [graph.page().encode("utf-8")], at.project, force=force)
        drawn = (
            f"{counted(counts['blocks'], 'block')}, {counted(counts['edges'], 'link')} drawn in {clean(html)}"
        )
        empty = f"there are no blocks to draw yet; the page in {clean(html)} says so"
        out.answer({"path": spelled(html), **counts}, drawn if counts["blocks"] else empty)


def dream(embeds: Embeds, at: ScopedTarget) -> None:
    """Consolidate the inbox, and let go of what has faded."""
    _maintain(at, Memory.dream, embeds)


def curate(at: ScopedTarget) -> None:
    """Archive what has faded, and take weak links away."""
    _maintain(at, Memory.curate, Embeds())


def _maintain(at: ScopedTarget, work: Care, embeds: Embeds) -> None:
    """Maintain the memory of a scope, or of each; a failure in one does not stop the others."""
    if not at.everyone:
        with memory_of(at, embeds) as (memory, out):
            result = work(memory)
            out.answer(_document(result), result.summary)
        return
    with at.open() as here:
        done: list[dict[str, Any]] = []
        failed = 0
        for scope, memory in each_memory(here.store, embedder=embeds.chosen() or LexicalEmbedder()):
            try:
                result = work(memory)
            except ChronoError as error:
                here.out.fail(f"{scope}: {error}", error.recovery, type(error).__name__)
                failed += 1
                continue
            done.append({"scope": scope.to_dict(), **_document(result)})
            if not at.as_json:
                here.out.done(f"{scope}: {result.summary}")
        if at.as_json:
            here.out.document({"scopes": done})
        elif not done and not failed:
            here.out.done("nobody has any blocks here")
    if failed:
        raise typer.Exit(FINDING)


def _document(result: DreamResult | CurateResult) -> dict[str, Any]:
    if isinstance(result, CurateResult):
        return result.to_dict()
    return {**result.consolidated.to_dict(), "curated": result.curated.to_dict()}
