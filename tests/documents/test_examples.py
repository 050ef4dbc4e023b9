"""The examples in the documentation of the modules run."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest
from chronomemory import deps, record, store
from chronomemory.blocks import engine, everyone, ids, memory, system, types
from chronomemory.blocks.life import bridges, documents, negation
from chronomemory.blocks.recall import explain, frames
from chronomemory.blocks.storage import secrets, tags
from chronomemory.drawing import communities, formats, graphs, paths, wording
from chronomemory.embedders import calling, lexical
from chronomemory.episodes import crons, filters, names, rails, session, stores
from chronomemory.episodes import ids as episode_ids
from chronomemory.episodes.storage import episodes as stored_episodes
from chronomemory.face import arguments, awaited, moments, results, spaces
from chronomemory.graph import ids as graph_ids
from chronomemory.graph import models, spelling, workspace
from chronomemory.graph import paths as graph_paths
from chronomemory.mcp import quoting, shapes
from chronomemory.pages import ids as page_ids
from chronomemory.pages import pages, writing
from chronomemory.pages.text import escaping, frontmatter, headings, links, scalars

FACE = [arguments, awaited, moments, results, spaces]
BLOCKS = [
    engine,
    everyone,
    ids,
    memory,
    system,
    types,
    bridges,
    documents,
    negation,
    explain,
    frames,
    secrets,
    tags,
]
DRAWING = [communities, formats, graphs, paths, wording]
EPISODES = [crons, episode_ids, filters, names, rails, session, stored_episodes, stores]


GRAPH = [graph_ids, models, graph_paths, spelling, workspace]
PAGES = [page_ids, pages, writing, escaping, frontmatter, headings, links, scalars]


@pytest.mark.parametrize(
    "module",
    [
        record,
        deps,
        store,
        *FACE,
        *BLOCKS,
        *DRAWING,
        *EPISODES,
        *GRAPH,
        *PAGES,
        calling,
        lexical,
        quoting,
        shapes,
    ],
    ids=lambda module: module.__name__,
)
def test_the_examples_of_a_module(module: ModuleType) -> None:
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
