"""What the ground must know of the pages face."""

from __future__ import annotations

from chronomemory.face.batch import Face
from chronomemory.face.handle import Handle
from chronomemory.pages.ids import FACE

__all__ = ["PAGES", "PagesHandle"]

PAGES = Face(name=FACE)


class PagesHandle(Handle):
    """The pages of one project, as one scope sees them."""

    face = PAGES
