"""Watches a folder of pages, and takes in what is edited by hand as it happens."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from chronomemory.pages.ids import SUFFIX, is_page_file
from chronomemory.pages.settings import Settings
from chronomemory.pages.storage.home import Home
from chronomemory.pages.syncing import sync
from chronomemory.pages.types import Synced

try:
    from watchfiles import watch as watch_files
except ImportError as error:  # pragma: no cover (the tests have it)
    raise ImportError("to watch pages needs watchfiles: pip install 'chronomemory-rs[pages]'") from error

__all__ = ["watch"]

#: Editors write a file in several steps: what comes within this time belongs together.
_TOGETHER_MS = 200
#: How often is looked whether to stop.
_LOOK_MS = 200


def watch(
    home: Home,
    settings: Settings,
    tell: Callable[[Synced], object],
    stop: threading.Event | None = None,
) -> None:
    """Sync once, and then each page that changes, until ``stop`` is set; ``tell`` hears what was done."""
    ending = stop or threading.Event()
    root = home.folder.root
    tell(sync(home, settings))
    changed = watch_files(
        root,
        stop_event=ending,
        recursive=home.is_free,
        debounce=_TOGETHER_MS,
        rust_timeout=_LOOK_MS,
        raise_interrupt=True,
        watch_filter=lambda _, place: _is_watched(home, Path(place).relative_to(root)),
    )
    for some in changed:
        # A folder of notes that is moved is reported without the notes in it: then all are looked at.
        names = None if home.is_free else sorted({Path(place).name.removesuffix(SUFFIX) for _, place in some})
        told = sync(home, settings, names)
        if told != Synced():
            tell(told)


def _is_watched(home: Home, path: Path) -> bool:
    """Say whether a change may concern a page; what is hidden in a free folder never does."""
    return not any(step.startswith(".") for step in path.parts) if home.is_free else is_page_file(path.name)
