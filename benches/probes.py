"""Builds and finds the probes of the engine: programs that measure themselves when asked to."""

from __future__ import annotations

import json
import subprocess
from functools import cache
from pathlib import Path

__all__ = ["built"]

_ROOT = Path(__file__).parent.parent


@cache
def built(name: str) -> str:
    """Build ``rust/engine/benches/probes/<name>.rs``, and return the path of the program."""
    command = ["cargo", "build", "--release", "--package", "chronomemory", "--bench", name]
    told = subprocess.run(
        [*command, "--quiet", "--message-format=json"],
        cwd=_ROOT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    artifacts = (json.loads(line) for line in told.stdout.splitlines())
    return next(str(artifact["executable"]) for artifact in artifacts if artifact.get("executable"))
