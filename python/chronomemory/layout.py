"""Where does a project keep its store, seen from Python?

The engine owns every other name inside the folder.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["FOLDER", "log_folder", "log_path"]

#: The folder of a store in its project.
FOLDER = ".chronomemory"


def log_folder(project_root: Path) -> Path:
    """Return the folder that holds a project's store, whether it exists or not.

    A folder that holds the files themselves, as a backup does, is a store's folder too.
    """
    folder = project_root / FOLDER
    return project_root if not folder.exists() and (project_root / "events.wal").is_file() else folder


def log_path(project_root: Path) -> Path:
    """Return the chained log itself, the only truth of a store."""
    return log_folder(project_root) / "events.wal"
