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
from chronomemory.drawing import formats, graphs, layout, page, paths
from chronomemory.embedders import calling, lexical
from chronomemory.episodes import crons, filters, names, rails, session, stores
from chronomemory.episodes import ids as episode_ids
from chronomemory.episodes.storage import episodes as stored_episodes
from chronomemory.face import arguments, awaited, moments, results, spaces
from chronomemory.graph import json_files, log_home, models, workspace
from chronomemory.graph import paths as graph_paths
from chronomemory.mcp import rendering, shapes
from chronomemory.pages import ids as page_ids
from chronomemory.pages import pages, writing
from chronomemory.pages.text import entries, frontmatter, links
from chronomemory.pages.text import page as page_text

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
DRAWING = [formats, graphs, layout, page, paths]
EPISODES = [crons, episode_ids, filters, names, rails, session, stored_episodes, stores]


GRAPH = [json_files, log_home, models, graph_paths, workspace]
PAGES = [page_ids, pages, writing, entries, frontmatter, links, page_text]


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
        rendering,
        shapes,
    ],
    ids=lambda module: module.__name__,
)
def test_the_examples_of_a_module(module: ModuleType) -> None:
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
