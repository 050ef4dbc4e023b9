"""Whose the pages in a folder are, as its ``index.md`` tells: they stay theirs wherever it is moved to."""

from __future__ import annotations

import re

from chronomemory.page_files import OUR_MARK
from chronomemory.scope import Scope

__all__ = ["OUR_MARK", "owner_in", "owner_line"]

_OWNER = re.compile(rb"<!-- The pages of ([a-z]+|[0-9a-f]{16}) -->")
#: Stands for what all share.
_ALL = "all"


def owner_line(scope: Scope) -> str:
    """Return the line that says whose the pages are; names are not told, but can be compared."""
    return f"<!-- The pages of {_owner(scope)} -->"


def owner_in(index: bytes, scope: Scope) -> bool | None:
    """Say whether the pages beside an ``index.md`` are of these names; None if it does not say whose."""
    found = _OWNER.search(index) if OUR_MARK.encode() in index else None
    return None if found is None else found[1].decode() == _owner(scope)


def _owner(scope: Scope) -> str:
    return scope.digits if scope != Scope() else _ALL
