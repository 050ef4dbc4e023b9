"""A disk that forgets: what may be left of a folder after a crash, by the calls of a real writer.

The writer runs under strace; what it did to the folder is played back up to any call. What was synced is
there. Of what was not, writes to a file may be lost, kept or torn, each for itself, and of the changes of a
folder (names made, moved, swapped and taken away) any number from the last on may be lost.
"""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

#: Calls that change a folder or sync it; ``?`` where a machine may not have one.
CALLS = (
    "?open,openat,write,?pwrite64,?pwritev,?pwritev2,?writev,ftruncate,?fallocate,fsync,fdatasync,?rename,?renameat,"
    "?renameat2,?link,?linkat,?unlink,?unlinkat,?mkdir,?mkdirat,?rmdir,sync,?syncfs,?mmap"
)
_LINE = re.compile(r"\d+\s+(?P<call>\w+)\((?P<given>.*)\)\s+= (?P<result>-?\d+)(?P<rest>.*)")
_PAUSED, _GOES_ON = (
    re.compile(r"(\d+)\s+(.*) <unfinished \.\.\.>"),
    re.compile(r"(\d+)\s+<\.\.\. \w+ resumed>(.*)"),
)
_SPELLED = re.compile(r"(?:\\x[0-9a-f]{2})+")
_FD = re.compile(r"(?:\d+|AT_FDCWD)<([^>]*)>")
_TEXT = re.compile(r'"([^"]*)"')


@dataclass(frozen=True)
class Call:
    """One call: its name, its folders or files, its strings, and its numbers at the end."""

    name: str
    paths: list[str]
    texts: list[bytes]
    given: str
    made: str | None

    @property
    def numbers(self) -> list[int]:
        """The numbers among its arguments, behind all else."""
        return [int(part) for part in self.given.split(", ") if re.fullmatch(r"-?\d+", part)]


def _bytes(spelled: str) -> bytes:
    return bytes.fromhex(spelled.replace("\\x", ""))


def traced(command: list[str], log: Path) -> list[Call]:
    """Run a command under strace, and return what it did."""
    if sys.platform != "linux" or shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    tracer = ["strace", "-f", "-y", "-xx", "-s", str(1 << 26), "-e", f"trace={CALLS}", "-o", str(log)]
    done = subprocess.run([*tracer, *command], capture_output=True, text=True, check=False, timeout=120)
    if "PTRACE" in done.stderr or "ptrace" in done.stderr:
        pytest.skip(f"strace may not trace here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return list(_calls(log.read_text().splitlines()))


def _calls(lines: list[str]) -> Iterator[Call]:
    paused: dict[str, str] = {}
    for line in lines:
        if found := _PAUSED.fullmatch(line):
            paused[found[1]] = found[2]
            continue
        if found := _GOES_ON.fullmatch(line):
            line = f"{found[1]} {paused.pop(found[1])}{found[2]}"
        found = _LINE.fullmatch(line)
        if found is None or int(found["result"]) < 0:
            continue
        given = found["given"]
        texts = [_bytes(text) for text in _TEXT.findall(given)]
        paths = [_path(path) for path in _FD.findall(_TEXT.sub('""', given))]
        made = re.search(r"^<([^>]*)>", found["rest"])
        yield Call(found["call"], paths, texts, _TEXT.sub('""', given), _path(made[1]) if made else None)


def _path(spelled: str) -> str:
    return _SPELLED.sub(lambda found: _bytes(found[0]).decode(), spelled)


@dataclass(eq=False)
class Inode:
    """A file: what is on the disk of it, and what was written since."""

    synced: bytes = b""
    writes: list[tuple[int, bytes | None]] = field(default_factory=list)

    def bytes(self, writes: list[tuple[int, bytes | None]]) -> bytes:
        """Return what is in it with some writes; one without bytes cuts it there."""
        content = bytearray(self.synced)
        for offset, data in writes:
            if data is None:
                content[offset:] = bytes(max(0, offset - len(content)))
            else:
                content.extend(bytes(max(0, offset - len(content))))
                content[offset : offset + len(data)] = data
        return bytes(content)

    @property
    def length(self) -> int:
        """How long it is for who writes."""
        return len(self.bytes(self.writes))


Names = dict[str, Inode]


class Disk:
    """The files below a folder, as a writer sees them and as they would be after a crash."""

    def __init__(self, root: Path, *, forgetful: Callable[[str], bool] = lambda _: False) -> None:
        self.root = f"{root}/"
        #: Says of which files or folders a sync is a lie.
        self._forgetful = forgetful
        places = [place for place in root.rglob("*") if place.is_file()]
        self.names: Names = {str(place.relative_to(root)): Inode(place.read_bytes()) for place in places}
        self.durable: Names = dict(self.names)
        self.pending: dict[str, list[Callable[[Names], None]]] = {}
        self._ends: dict[str, int] = {}

    def play(self, call: Call) -> bool:
        """Do what a call did; say whether it did anything to this folder."""
        return bool(getattr(self, f"_{call.name}", self._unknown)(call))

    def _own(self, path: str) -> str | None:
        return path.removeprefix(self.root) if path.startswith(self.root) else None

    def _change(self, path: str, change: Callable[[Names], None]) -> bool:
        change(self.names)
        self.pending.setdefault(path.rpartition("/")[0], []).append(change)
        return True

    def _unknown(self, call: Call) -> bool:
        texts = [text.decode("utf-8", "replace") for text in call.texts]
        assert not any(self._own(path) for path in (*call.paths, *texts)), f"{call} is not played back"
        return False

    def _mmap(self, call: Call) -> bool:
        assert not (call.paths and self._own(call.paths[0]) and "PROT_WRITE, MAP_SHARED" in call.given), call
        return False

    def _openat(self, call: Call) -> bool:
        path = self._own(call.made or "")
        if path is None or "O_DIRECTORY" in call.given:
            return False
        assert "O_TRUNC" not in call.given and "O_TMPFILE" not in call.given, call
        self._ends[path] = 0
        if "O_CREAT" not in call.given or path in self.names:
            return False
        inode = Inode()
        return self._change(path, lambda names: names.update({path: inode}))

    def _open(self, call: Call) -> bool:
        return self._openat(call)

    def _write(self, call: Call) -> bool:
        path = self._own(call.paths[0])
        if path is None:
            return False
        start = self._ends[path]
        self.names[path].writes.append((start, call.texts[0]))
        self._ends[path] = start + len(call.texts[0])
        return True

    def _pwrite64(self, call: Call) -> bool:
        path = self._own(call.paths[0])
        if path is not None:
            self.names[path].writes.append((call.numbers[-1], call.texts[0]))
        return path is not None

    def _ftruncate(self, call: Call) -> bool:
        path = self._own(call.paths[0])
        if path is not None and self.names[path].length != call.numbers[-1]:
            self.names[path].writes.append((call.numbers[-1], None))
            return True
        return False

    def _fsync(self, call: Call) -> bool:
        path = self._own(call.paths[0])
        if path is None or self._forgetful(path):
            return False
        if inode := self.names.get(path):
            inode.synced, inode.writes = inode.bytes(inode.writes), []
        for change in self.pending.pop(path, []):
            change(self.durable)
        return True

    def _fdatasync(self, call: Call) -> bool:
        return self._fsync(call)

    def _sync(self, _: Call) -> bool:
        for inode in self.names.values():
            inode.synced, inode.writes = inode.bytes(inode.writes), []
        for changes in self.pending.values():
            for change in changes:
                change(self.durable)
        self.pending = {}
        return True

    def _two(self, call: Call) -> tuple[str, str] | None:
        ways = [f"{path}/{text.decode()}" for path, text in zip(call.paths, call.texts, strict=True)]
        one, other = map(self._own, ways)
        return None if one is None or other is None else (one, other)

    def _renameat(self, call: Call) -> bool:
        if (ways := self._two(call)) is None:
            return False
        one, other = ways

        def move(names: Names) -> None:
            names[other] = names.pop(one)

        def swap(names: Names) -> None:
            names[one], names[other] = names[other], names[one]

        return self._change(other, swap if "RENAME_EXCHANGE" in call.given else move)

    def _renameat2(self, call: Call) -> bool:
        return self._renameat(call)

    def _linkat(self, call: Call) -> bool:
        if (ways := self._two(call)) is None:
            return False
        one, other = ways
        return self._change(other, lambda names: names.update({other: names[one]}))

    def _unlinkat(self, call: Call) -> bool:
        path = self._own(f"{call.paths[0]}/{call.texts[0].decode()}")
        return path is not None and self._change(path, lambda names: names.__delitem__(path))

    def left(self, chance: random.Random | None, *, all_of_it: bool = False) -> dict[str, bytes]:
        """Return what is there after a crash: all, only what is durable, or as chance has it."""
        if all_of_it:
            return {path: inode.bytes(inode.writes) for path, inode in self.names.items()}
        names = dict(self.durable)
        for changes in self.pending.values():
            for change in changes[: chance.randint(0, len(changes)) if chance else 0]:
                change(names)
        return {path: self._torn(inode, chance) for path, inode in names.items()}

    def _torn(self, inode: Inode, chance: random.Random | None) -> bytes:
        kept = [write for write in inode.writes if chance and chance.random() < 0.6]
        if kept and chance and (data := kept[-1][1]) and chance.random() < 0.5:
            kept[-1] = (kept[-1][0], data[: chance.randint(0, len(data))])
        return inode.bytes(kept)


def spread(files: dict[str, bytes], root: Path) -> None:
    """Write files into an empty folder."""
    for path, content in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
