"""The commands that keep memories in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from chronomemory.blocks import CurateResult, Memory, each_memory
from chronomemory.cli.embedding import BY_WORDS, Embeds
from chronomemory.cli.options import (
    HERE,
    AgentName,
    AsJson,
    EmbedderName,
    Endpoint,
    Model,
    OfEveryone,
    Project,
    SessionName,
    UserName,
)
from chronomemory.cli.output import Output, counted
from chronomemory.cli.remembering import memory_of
from chronomemory.cli.session import FINDING, Whose, session
from chronomemory.errors import ChronoError

__all__ = ["curate", "dream"]

#: Does something for a memory: what JSON says of it, and the lines for a person.
Care = Callable[[Memory], tuple[dict[str, Any], list[str]]]


def dream(
    endpoint: Endpoint = None,
    model: Model = None,
    embedder: EmbedderName = None,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    everyone: OfEveryone = False,
    project: Project = HERE,
    as_json: AsJson = False,
) -> None:
    """Consolidate the inbox, and let go of what has faded."""
    embeds = Embeds(endpoint, model, embedder)
    whose = Whose(user, agent, in_session, everyone)
    if everyone:
        _for_everyone(project, as_json, whose, _dreamt, embeds)
        return
    with memory_of(project, as_json, whose, embeds) as (memory, out):
        _tell(out, *_dreamt(memory), as_json)


def curate(
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    everyone: OfEveryone = False,
    project: Project = HERE,
    as_json: AsJson = False,
) -> None:
    """Archive what has faded, and take weak links away."""
    whose = Whose(user, agent, in_session, everyone)
    if everyone:
        _for_everyone(project, as_json, whose, _curated)
        return
    with memory_of(project, as_json, whose) as (memory, out):
        _tell(out, *_curated(memory), as_json)


def _for_everyone(project: Path, as_json: bool, whose: Whose, care: Care, embeds: Embeds = BY_WORDS) -> None:
    """Care for the memory of each; what goes wrong with one keeps nobody else waiting."""
    with session(project, as_json, whose=whose) as here:
        done: list[dict[str, Any]] = []
        failed = 0
        for scope, memory in each_memory(here.store, embedder=embeds.embedder()):
            try:
                document, said = care(memory)
            except ChronoError as error:
                here.out.fail(f"{scope}: {error}", error.recovery, type(error).__name__)
                failed += 1
                continue
            done.append({"scope": scope.to_dict(), **document})
            if not as_json:
                here.out.done(f"{scope}: {'; '.join(said)}")
        if as_json:
            here.out.document({"scopes": done})
        elif not done and not failed:
            here.out.done("nobody has any blocks here")
    if failed:
        raise typer.Exit(FINDING)


def _tell(out: Output, document: dict[str, Any], said: list[str], as_json: bool) -> None:
    if as_json:
        out.document(document)
        return
    for line in said:
        out.done(line)


def _dreamt(memory: Memory) -> tuple[dict[str, Any], list[str]]:
    consolidated, curated = memory.dream()
    said = (
        f"{counted(len(consolidated.promoted), 'block')} became active, "
        f"{len(consolidated.duplicates)} known already, {len(consolidated.superseded)} superseded, "
        f"{counted(consolidated.edges, 'link')}, {counted(consolidated.contradictions, 'contradiction')}"
    )
    return asdict(consolidated) | {"curated": _document(curated)}, [said, *_said(curated)]


def _curated(memory: Memory) -> tuple[dict[str, Any], list[str]]:
    curated = memory.curate()
    return _document(curated), _said(curated)


def _document(curated: CurateResult) -> dict[str, Any]:
    return {**asdict(curated), "archived": list(curated.archived)}


def _said(curated: CurateResult) -> list[str]:
    archived, pruned = len(curated.archived), curated.edges_pruned
    return [f"{counted(archived, 'block')} archived, {counted(pruned, 'weak link')} taken away"]
