"""Collects the facts of the machine and the versions that a report names."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

_PACKAGES = (
    "chronomemory-rs numpy orjson lmdb rocksdict duckdb faiss-cpu usearch tantivy lancedb pyarrow sqlite-vec"
)


def _fact(path: str, name: str) -> str:
    lines = Path(path).read_text().splitlines() if Path(path).exists() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(name)), "unknown")


def _versions() -> dict[str, str]:
    import sqlite3  # noqa: PLC0415 - a Python may come without it

    found = {"sqlite": sqlite3.sqlite_version}
    for name in _PACKAGES.split():
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _commit(root: Path) -> str:
    # The page and its plots are written by this program, so they do not make a tree dirty.
    dirty = "git status --porcelain -uno -- . ':!docs/benchmarks.md' ':!docs/images'"
    words = ["sh", "-c", f"git rev-parse --short=8 HEAD && {dirty} | head -1"]
    shown = subprocess.run(words, cwd=root, capture_output=True, text=True, check=False).stdout.splitlines()
    return (shown[0] + (", changed" if len(shown) > 1 else "")) if shown else "unknown"


def facts(root: Path, build: str) -> dict[str, Any]:
    """Return what a reader has to know to judge the figures."""
    flags = _fact("/proc/cpuinfo", "flags").split() + _fact("/proc/cpuinfo", "Features").split()
    memory = _fact("/proc/meminfo", "MemTotal").split()[0]
    return {
        "cpu": _fact("/proc/cpuinfo", "model name"),
        "cores": os.cpu_count(),
        "sha_instructions": "sha_ni" in flags or "sha2" in flags,
        "memory_gb": round(int(memory) / 1e6, 1) if memory.isdigit() else None,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "commit": _commit(root),
        "build": build,
        "load": round(os.getloadavg()[0], 1),
        "when": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "versions": _versions(),
    }
