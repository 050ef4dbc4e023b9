"""Drafts that a killed writer has left in the folder: ours are taken away, what may be a person's is told."""

from __future__ import annotations

from collections.abc import Mapping

from chronomemory.pages.ids import SUFFIX
from chronomemory.pages.storage.home import Home
from chronomemory.pages.storage.records import PageState, digest_of
from chronomemory.pages.types import Problem

__all__ = ["clear_drafts"]


def clear_drafts(home: Home, known: Mapping[str, PageState]) -> list[Problem]:
    """Take away drafts that hold what the log has; say which hold something else.

    A draft and its page change places, and what came out is looked at. Who was killed before that look has
    left there what somebody may have saved in the same moment.
    """
    problems = []
    folders = {"", *(name.rpartition("/")[0] for name in known)} if home.is_free else {""}
    drafts = [(within, *draft) for within in sorted(folders) for draft in home.folder.drafts(within)]
    for within, file, of in drafts:
        page = known.get(f"{within}/{of}".removeprefix("/").removesuffix(SUFFIX))
        if page is None:
            continue
        try:
            if _is_ours(home.folder.read(file, within), home, page):
                home.folder.remove([file], within)
                continue
            told = (
                f"a writer was killed while {of} was edited: this may be what was saved; take it over by hand"
            )
        except OSError as error:
            told = f"a killed writer left it, and it cannot be taken away: {error.strerror or error}"
        problems.append(Problem("strange", f"{within}/{file}".removeprefix("/"), told))
    return problems


def _is_ours(content: bytes, home: Home, page: PageState) -> bool:
    """Say whether a draft holds a text of its page, or a beginning of one, as a crash leaves it."""
    if digest_of(content) in (page.digest, *page.earlier):
        return True
    return home.look.text(page).encode().startswith(content.rstrip(b"\x00"))
