"""The file ``index.md``: which pages there are, and what happened last."""

from __future__ import annotations

from chronomemory.pages.ids import INDEX_FILE, file_of
from chronomemory.pages.reading import list_pages, recent
from chronomemory.pages.storage.home import Home
from chronomemory.pages.storage.owners import OUR_MARK, owner_line
from chronomemory.pages.text.escaping import escape
from chronomemory.pages.types import PageInfo

__all__ = ["OF_OTHERS", "index_text", "write_index"]

OF_OTHERS = "somebody else wrote it, so it is left alone"
_RECENT = 20
_LETTERS = 120
_SECTIONS = (("Active", "active"), ("Dormant", "dormant"), ("Archived", "archived"))


def index_text(home: Home) -> str:
    """Spell the list of all pages; it depends on what the log says and on nothing else."""
    pages = list_pages(home, include_dormant=True, include_archived=True)
    lines = ["# Memory", "", OUR_MARK, owner_line(home.handle.scope)]
    for title, state in _SECTIONS:
        listed = [page for page in pages if page.status == state]
        lines += ["", f"## {title}", "", *(map(_of_page, listed) if listed else ["None."])]
    lines += ["", "## Recent activity", ""]
    entries = recent(home, limit=_RECENT)
    for entry in entries:
        lines.append(f"- {entry.timestamp} [{entry.page}]({_way(entry.page)}): {_short(entry.content)}")
    return "\n".join([*lines, *([] if entries else ["None."]), ""])


def write_index(home: Home) -> str | None:
    """Write the file where it is not as it should be; say why it is not ours to write, or cannot be.

    A free folder has none, nor has one whose pages were erased with its record.
    """
    if home.is_free or home.books() is None:
        return None
    try:
        there = home.folder.read(INDEX_FILE)
    except FileNotFoundError:
        there = None
    except OSError as error:
        return f"it cannot be read as a file of this folder: {error.strerror or error}"
    if there is not None and OUR_MARK.encode() not in there:
        return OF_OTHERS
    text = index_text(home).encode()
    try:
        if there != text:
            home.folder.write(INDEX_FILE, text)
    except OSError as error:
        # It only repeats what is in the log: nobody's work is to fail for it.
        return f"it cannot be written: {error.strerror or error}"
    return None


def _of_page(page: PageInfo) -> str:
    entries = "1 entry" if page.entry_count == 1 else f"{page.entry_count:,} entries"
    told = f"- [{_short(page.title)}]({_way(page.name)}): {_short(page.description)} ({entries})"
    flagged = " **to be compacted**" if page.needs_compact else ""
    return told + "".join(f" #{tag}" for tag in page.tags) + flagged


def _way(name: str) -> str:
    way = file_of(name)
    return f"<{way}>" if set(way) & set(" ()") else way


def _short(text: str) -> str:
    line = " ".join(text.split())
    line = line if len(line) <= _LETTERS else f"{line[: _LETTERS - 1]}…"
    return escape(line).replace("[", "\\[").replace("]", "\\]") if line else ""
