"""Draws the pages of a folder and the links between them."""

from __future__ import annotations

from chronomemory.drawing import Dot, Line, graph_page
from chronomemory.pages.ids import prefix_of
from chronomemory.pages.reading import links_from
from chronomemory.pages.storage.home import Home
from chronomemory.pages.storage.records import info_of

__all__ = ["picture"]


def picture(home: Home) -> str:
    """Return a page for a browser: the kind of a dot is the prefix of a page, or the folder of a note."""
    dots, lines = [], []
    for page in home.look.pages():
        info = info_of(page)
        facts = {"description": info.description, "tags": " ".join(info.tags), "updated": info.updated}
        kind = prefix_of(page.name) or page.name.rpartition("/")[0] or "note"
        dots.append(
            Dot(page.name, kind, info.title, tuple((key, text) for key, text in facts.items() if text))
        )
        targets = {link.page for link in links_from(home.look, page) if link.page}
        lines += [Line(page.name, target) for target in sorted(targets)]
    return graph_page(
        dots, lines, title=f"Pages in {home.folder.root.name}", dot_noun="page", line_noun="link"
    )
