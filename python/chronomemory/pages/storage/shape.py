"""The records of pages and entries that are as this face writes them.

Another tool, or an import, may have put anything under an id of this face. What would lead out of the folder,
or lacks what a page is made of, is left out of every answer, and no file is read or written for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chronomemory.pages.ids import ENTRY, PAGE, page_key
from chronomemory.record import ChronoRecord

__all__ = ["fits"]

_TEXT = (str,)
_PAGE: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("folder", "name", "state", "head", "tail", "eol", "digest", "written"), _TEXT),
    **dict.fromkeys(("description", "created", "updated", "compact_reason"), _TEXT),
    **dict.fromkeys(("tags", "aliases", "earlier"), (list,)),
    **dict.fromkeys(("count", "letters", "next_order"), (int,)),
    **dict.fromkeys(("needs_compact", "plain"), (bool,)),
}
_ENTRY: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("folder", "page", "id", "timestamp", "at", "content"), _TEXT),
    "tags": (list,),
}
#: What may be there.
_MORE: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("superseded_by", "reason", "raw", "title"), _TEXT),
    **dict.fromkeys(("order", "headed"), (int,)),
    **dict.fromkeys(("came", "source"), (list,)),
}
#: What these lists hold.
_LISTS: dict[str, tuple[tuple[type, ...], ...]] = {"came": (_TEXT, (int,)), "source": (_TEXT, _TEXT)}


def fits(record: ChronoRecord, is_name: Callable[[str], bool]) -> bool:
    """Say whether a record of a page, or of what stands in it, can be used; ``is_name`` checks its name."""
    data = record.data
    if not all(_is_of(data[name], types) for name, types in _MORE.items() if name in data):
        return False
    # An erasure empties lists that were computed from what it erased.
    if not all(_holds(data[name], types) for name, types in _LISTS.items() if data.get(name)):
        return False
    if record.kind == PAGE:
        return (
            all(_is_of(data.get(name), types) for name, types in _PAGE.items())
            and all(_are_texts(data[name]) for name in ("tags", "aliases", "earlier"))
            and is_name(data["name"])
            and record.id == page_key(data["folder"], data["name"])
        )
    return (
        all(_is_of(data.get(name), types) for name, types in _ENTRY.items())
        and _are_texts(data["tags"])
        and (record.kind != ENTRY or "order" in data)
        and data["page"].startswith(start := page_key(data["folder"], ""))
        and is_name(data["page"].removeprefix(start))
    )


def _is_of(value: Any, types: tuple[type, ...]) -> bool:
    """Say whether a value has one of these types: a truth value is no number here."""
    return type(value) in types


def _are_texts(values: list[Any]) -> bool:
    return all(type(value) is str for value in values)


def _holds(values: list[Any], types: tuple[tuple[type, ...], ...]) -> bool:
    return len(values) == len(types) and all(map(_is_of, values, types))
