"""Reads the log that a packed archive holds: the part that may need more than Python brings.

A packed archive is a row of zstd frames (docs/format.md, section 8). Any Python can look at the frames;
unpacking them takes Python 3.14 or later, or the package `backports.zstd`.
"""

import importlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

T = TypeVar("T")

MISSING = "zstd cannot be unpacked here: use Python 3.14 or later, or: pip install backports.zstd"

FRAME_BYTES = 1024 * 1024
MOST_PACKED_BYTES = FRAME_BYTES + 65536
MAGIC = b"\x28\xb5\x2f\xfd"
#: One segment, a checksum, no dictionary; and how many bytes the length takes.
WIDTHS = {b"\x24": 1, b"\x64": 2, b"\xa4": 4}


def _unpacker() -> Any:
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None


zstd = _unpacker()


def read(path: Path, reader: Callable[[BinaryIO], T]) -> T | None:
    """What `reader` makes of the log inside a packed archive; None if nothing here can unpack it.

    ValueError if the archive is not what it says.
    """
    check_frames(path)
    if zstd is None:
        return None
    try:
        with zstd.open(path) as stream:
            return reader(stream)
    except (EOFError, zstd.ZstdError) as error:
        raise ValueError(str(error)) from error


def check_frames(path: Path) -> None:
    """Follow the headers: frames of 1 MiB, the last of less. So unpacking takes no more memory than that."""
    holds, start, length = FRAME_BYTES, 0, path.stat().st_size
    with path.open("rb") as stream:
        while start < length or length == 0:
            if holds < FRAME_BYTES:
                raise ValueError("a frame that is not the last holds less than 1 MiB")
            header, block = stream.read(5), 0
            if header[:4] != MAGIC or header[4:] not in WIDTHS:
                raise ValueError("not a frame of our kind")
            width = WIDTHS[header[4:]]
            holds = int.from_bytes(stream.read(width), "little") + 256 * (width == 2)
            if not 0 < holds <= FRAME_BYTES:
                raise ValueError("a frame says that it holds nothing, or more than 1 MiB")
            while not block & 1:
                block = int.from_bytes(word := stream.read(3), "little")
                end = stream.seek(1 if block & 6 == 2 else block >> 3, io.SEEK_CUR)
                if len(word) < 3 or block & 6 == 6 or end - start > MOST_PACKED_BYTES:
                    raise ValueError("the blocks of a frame are not what they could be")
            start = stream.seek(4, io.SEEK_CUR)
            if start > length:
                raise ValueError("a frame does not end")
