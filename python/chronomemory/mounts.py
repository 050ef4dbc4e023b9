"""Recognises a network file system, where locks between machines cannot be relied on."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["file_system", "network_file_system"]

#: Where the kernel lists what is mounted; other systems have no such file, and nothing is said there.
_MOUNTS = Path("/proc/self/mountinfo")

_NETWORK = frozenset(
    {
        "afs",
        "ceph",
        "cifs",
        "fuse.glusterfs",
        "fuse.sshfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "smb3",
        "smbfs",
    }
)


def file_system(path: Path) -> str | None:
    """Return the kind of file system that a path lies on, None where the kernel does not tell."""
    try:
        mounts = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    place = os.path.realpath(path)
    longest, kind = "", ""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields, its_kind = before.split(), after.split(" ", 1)[0]
        if len(fields) < 5:
            continue
        point = fields[4].replace("\\040", " ")
        inside = place == point or place.startswith(point.rstrip("/") + "/")
        # Of two mounts at one point the later hides the earlier.
        if inside and len(point) >= len(longest):
            longest, kind = point, its_kind
    return kind or None


def network_file_system(path: Path) -> str | None:
    """Return the kind of network file system that a path lies on, None for a local one."""
    kind = file_system(path)
    return kind if kind in _NETWORK else None
