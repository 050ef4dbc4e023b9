"""Finds any trace of a secret in a folder: plain, escaped, packed, as numbers, or as a file name.

A secret is a word of random letters that is written once. It counts as found if any nine letters of it that
follow each other are, so that a list of words in which each takes from the one before is no hiding place.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from verdicts import verify_log

zstd = verify_log.PACKED_LOG.zstd
LETTERS = "abcdefghijkmnpqrstuvwxyz"
LENGTH, WINDOW = 18, 9
#: How a frame of ours begins.
FRAME = b"\x28\xb5\x2f\xfd"
ESCAPED = re.compile(rb"\\u00([0-7][0-9a-fA-F])")


def secret(dice: random.Random) -> str:
    """A word that nobody else writes, of letters that no hexadecimal number is made of alone."""
    return "".join(dice.choice(LETTERS) for _ in range(LENGTH))


def windows(secrets: Iterable[str]) -> list[bytes]:
    """What must be found nowhere."""
    return [word[at : at + WINDOW].encode() for word in secrets for at in range(0, LENGTH - WINDOW + 1, 3)]


def contents(path: Path) -> bytes:
    """All that a file says: its bytes and, if it is packed, what they unpack to."""
    data = path.read_bytes()
    if data[:4] != FRAME or zstd is None:
        return data
    parts, at = [data], 0
    while at >= 0:
        reader = zstd.ZstdDecompressor()
        parts.append(reader.decompress(data[at:]))
        at = -1 if not reader.eof or not reader.unused_data else len(data) - len(reader.unused_data)
    return b"".join(parts)


def plain(data: bytes) -> bytes:
    """Bytes in lower case, with every escape of an ASCII letter taken back."""
    return ESCAPED.sub(lambda found: bytes.fromhex(found[1].decode()), data).lower()


def found_in(root: Path, secrets: Iterable[str], rows: Iterable[bytes] = ()) -> list[str]:
    """Where in a folder any of these is, each as the name of a file."""
    wanted, numbers = windows(secrets), list(rows)
    found = []
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        data = contents(path) if path.is_file() else b""
        text = name.encode().lower() + b"\n" + plain(data)
        if any(word in text for word in wanted):
            found.append(name)
        elif any(row in data for row in numbers):
            found.append(f"{name} (numbers)")
    return found
