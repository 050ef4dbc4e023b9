"""A real browser draws the graph of blocks, without a complaint."""

from __future__ import annotations

import re
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from chronomemory.blocks import Memory
from chronomemory.blocks.page import block_graph

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None
)


def test_many_blocks_are_cut_to_those_with_the_most_links(memory: Memory) -> None:
    ids = [memory.remember(f"Fact {angle}").block_id for angle in (0, 90, 180, 270)]
    memory.connect(ids[1], ids[2])
    with memory.blocks.connect() as conn:
        graph = block_graph(conn, limit=2)
    assert {block.id for block in graph.blocks} == {ids[1], ids[2]}
    assert (len(graph.edges), graph.left_out) == (1, 2)


def test_the_page_says_what_its_marks_mean(memory: Memory) -> None:
    with memory.blocks.connect() as conn:
        page = block_graph(conn).page()
    assert '<p id="key">A larger dot is believed more, a dashed red line is a contradiction.</p>' in page
    assert "There are no blocks to draw yet" in page


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium here")
def test_a_browser_draws_it(memory: Memory, tmp_path: Path) -> None:
    ids = [memory.remember(f"<b>Fact</b> {angle}", [f"tag{angle}"]).block_id for angle in range(0, 350, 27)]
    for one, other in pairwise(ids):
        memory.connect(one, other)
    with memory.blocks.connect() as conn:
        graph = block_graph(conn)
        (tmp_path / "graph.html").write_text(graph.page(), encoding="utf-8")
    assert BROWSER is not None
    done = subprocess.run(
        [
            BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0",
            "--virtual-time-budget=8000", "--window-size=1200,800", f"--user-data-dir={tmp_path / 'profile'}",
            f"--screenshot={tmp_path / 'graph.png'}", "--dump-dom", f"file://{tmp_path / 'graph.html'}",
        ],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert re.findall(r"CONSOLE.*", done.stderr) == []
    assert f'data-dots="{len(graph.blocks)}"' in done.stdout
    assert f'data-lines="{len(graph.edges) + len(graph.contradictions)}"' in done.stdout
    assert 'data-drawn="true"' in done.stdout
    assert "&lt;b&gt;Fact&lt;/b&gt; 27" in done.stdout
    assert f"{len(graph.blocks)} blocks, {len(graph.edges)} links" in done.stdout
