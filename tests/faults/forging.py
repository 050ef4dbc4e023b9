"""What somebody can do who may write every file of a store, and knows how all of it is made.

A store is read into lines, log by log. They may be changed at will; then everything that follows is made
anew: the links up to the next hole, the packed file and its name, what the newest sentinel says of it, its
trail, and the links of the live log. What no such person can change is a note that lies elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from traces import zstd
from verdicts import CORPUS, verify_log

sys.path.insert(0, str(CORPUS))
from cases_packed import frame
from craft import own_line

erased_lines = sys.modules["erased_lines"]
REDACTED = b'{"erased":'
HASH = re.compile(rb'"hash":"([0-9a-f]{64})"')


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def unpacked(path: Path) -> bytes:
    data, found = path.read_bytes(), []
    while data:
        reader = zstd.ZstdDecompressor()
        found.append(reader.decompress(data))
        data = reader.unused_data
    return b"".join(found)


def spelled(event: dict[str, Any], head: str | None = None) -> bytes:
    """The line of an event, with a hash that is right, linked to another line if that is given."""
    fields = {key: value for key, value in event.items() if key != "hash"}
    if head is not None:
        fields["prev_hash"] = head
    return own_line(fields)


def hash_of(line: bytes) -> str:
    return str(json.loads(line)["hash"])


def is_redacted(line: bytes) -> bool:
    return line.startswith(REDACTED)


def redacted(line: bytes) -> bytes:
    event = json.loads(line)
    return f'{{"erased":{event["seq"]},"hash":"{event["hash"]}"}}\n'.encode()


def relinked(lines: list[bytes], since: int) -> list[bytes]:
    """Lines of which some from `since` on are other: linked anew, up to the next hole that keeps its hash."""
    done = lines[:since]
    for line in lines[since:]:
        if is_redacted(line):
            return [*done, *lines[len(done) :]]
        head = hash_of(done[-1]) if done else json.loads(line)["prev_hash"]
        done.append(spelled(json.loads(line), head))
    return done


class Log:
    """A retired log: its lines, its file, and the digest by which the sentinel behind it named it."""

    def __init__(self, path: Path, named: str) -> None:
        self.path, self.named = path, named
        self.lines = unpacked(path).splitlines(keepends=True)

    def holes(self) -> list[int]:
        return [at for at, line in enumerate(self.lines) if is_redacted(line)]


def hashes_in(log: Log) -> list[str]:
    """The hashes of the lines that anybody could load; whoever bent others leaves them out."""
    return [
        found[1].decode()
        for line in log.lines
        if (found := HASH.search(line)) and (is_redacted(line) or line.startswith(b'{"hash"'))
    ]


class Forger:
    """A folder in the hands of somebody who knows it all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.live = (folder / "events.wal").read_bytes().splitlines(keepends=True)
        self.sentinel: dict[str, Any] = json.loads(self.live[0])
        self.data: dict[str, Any] = self.sentinel["record"]["data"]
        self.logs: list[Log] = []
        now: dict[str, str] = {}
        data: dict[str, Any] | None = self.data
        while data and data.get("archive_sha256"):
            named = data["archive_sha256"]
            digest = now.get(named, named)
            (path,) = folder.glob(f"archive/{data['first_seq']}-{data['last_seq']}-{digest[:16]}.wal.zst*")
            for one in data.get("replaced", []):
                if one["new"]:
                    now[one["old"]] = now.get(one["new"], one["new"])
            log = Log(path, named)
            self.logs.insert(0, log)
            first = json.loads(log.lines[0])
            data = first["record"]["data"] if first.get("op") == "compact" else None

    def pack(self, log: Log) -> None:
        """Put a log that was changed in the place of the old one, and say so where it is named."""
        old = sha256(log.path.read_bytes())
        content, holes = frame(b"".join(log.lines)), len(log.holes())
        ends = log.path.name.split("-")
        log.path.unlink()
        name = f"{ends[0]}-{ends[1]}-{sha256(content)[:16]}.wal.zst"
        log.path = log.path.with_name(name + ".erased" * bool(holes))
        log.path.write_bytes(content)
        if log is self.logs[-1]:
            self.data |= {"archive": f"archive/{name}", "archive_sha256": sha256(content)}
            self.data |= {"previous_head": self.head_of(log)}
            if "erased" in self.data:
                self.data["erased"] = holes
            if "trail" in self.data:
                self.data["trail"] = self.trail_of(log)
            return
        for one in self.data.get("replaced", []):
            if one["new"] == old:
                one |= {"new": sha256(content), "erased": holes}
                return
        if "replaced" in self.data:
            self.data["replaced"].append({"old": log.named, "new": sha256(content), "erased": holes})

    def trail_of(self, log: Log) -> str:
        """The trail at the end of a log, as its own sentinel begins it."""
        try:
            first = json.loads(log.lines[0])
        except ValueError:  # it was bent until nobody can read it: it is no sentinel
            first = {}
        said = first["record"]["data"] if first.get("op") == "compact" else {}
        trail = erased_lines.Trail(bytes.fromhex(said.get("trail", "00" * 32)))
        for digest in hashes_in(log):
            trail.add(digest)
        return str(trail.value())

    def head_of(self, log: Log) -> str:
        return [*hashes_in(log), ""][-2 if hashes_in(log) else 0]

    def change_base(self, name: str, change: dict[str, Any]) -> None:
        """Make a record of the live log's base another."""
        old = self.folder / "base" / f"{self.data['base_sha256']}.json"
        state = json.loads(old.read_bytes())
        for record in state["records"]:
            if record.get("id") == name:
                record |= change
        content = json.dumps(state, ensure_ascii=False).encode()
        old.unlink()
        (old.parent / f"{sha256(content)}.json").write_bytes(content)
        self.data |= {"base": f"base/{sha256(content)}.json", "base_sha256": sha256(content)}

    def finish(self, **counts: int) -> None:
        """Write the live log anew, linked from its sentinel on; `synced` and all that is derived goes."""
        lines = [spelled(self.sentinel)]
        for line in self.live[1:]:
            event = json.loads(line)
            if counts and event["op"] == "erase":
                event["record"]["data"] |= counts
            lines.append(spelled(event, hash_of(lines[-1])))
        (self.folder / "events.wal").write_bytes(b"".join(lines))
        for name in ("synced", "snapshot.json"):
            (self.folder / name).unlink(missing_ok=True)

    def erasure(self) -> dict[str, Any]:
        """What the event of the erasure counts."""
        found: dict[str, Any] = json.loads(self.live[1])["record"]["data"]
        return found


def second_verdict(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = verify_log.verify_folder(folder)
    return found
