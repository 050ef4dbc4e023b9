"""Reads what is left of what was erased, and what it still proves. Section 16 of docs/format.md."""

import hashlib
import json
import re
from typing import Any

MAX_SEQ = 2**63 - 1
MOST_REPLACED = 50_000
ERASED = ".erased"
#: A redacted line has this spelling and no other.
REDACTED = re.compile(rb'\{"erased":(0|[1-9][0-9]{0,18}),"hash":"([0-9a-f]{64})"\}')
SALT = re.compile(r"[A-Za-z0-9_-]{16}")
#: After so many events the trail begins anew, with what it was.
STRETCH = 1024


def is_digest(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[0-9a-f]{64}", value) is not None


def is_count(value: Any, low: int = 0) -> bool:
    return type(value) is int and low <= value <= MAX_SEQ


def redacted(raw: bytes | None) -> tuple[int, str] | None:
    """The seq and the hash of a redacted line; None for any other."""
    found = REDACTED.fullmatch(raw or b"")
    return (int(found[1]), found[2].decode()) if found and int(found[1]) <= MAX_SEQ else None


def without_salt(record: Any) -> Any:
    """A record without a salt of the exact form; `~` of another form is a field like any other."""
    salt = record.get("~") if isinstance(record, dict) else None
    if not isinstance(salt, str) or not SALT.fullmatch(salt):
        return record
    return {key: value for key, value in record.items() if key != "~"}


def marked_data(event: dict[str, Any], op: str, kind: str) -> dict[str, Any]:
    """The data of a record that the store itself writes, named by its own seq; nothing of any other."""
    record, name = event["record"] or {}, f"{kind}:{event['seq']}"
    if (event["op"], event["record_id"], record.get("id"), record.get("kind")) != (op, name, name, kind):
        return {}
    data = record.get("data")
    return data if isinstance(record.get("label"), str) and isinstance(data, dict) else {}


def is_erasure(event: dict[str, Any]) -> bool:
    """Whether this is an `erase` of our shape; any other is treated like an unknown op."""
    data = marked_data(event, "erase", "erasure")
    removed = data.get("removed")
    ends = (data.get("first_seq"), data.get("last_seq"))
    return (
        all(is_count(data.get(name)) for name in ("records", "lines", "unsalted"))
        and (ends == (None, None) or all(map(is_count, ends)))
        and data.get("history") in ("redacted", "dropped")
        and isinstance(removed, dict)
        and all(is_count(removed.get(name)) for name in ("backups", "quarantine"))
    )


def is_pruning(event: dict[str, Any]) -> bool:
    """Whether this is a `prune` of our shape."""
    data = marked_data(event, "prune", "pruned")
    return all(is_count(data.get(name)) for name in ("archives", "last_seq"))


def sentinel_data(event: dict[str, Any] | None) -> dict[str, Any]:
    """What a compaction of ours says about base and history; nothing for any other event."""
    data = event["record"].get("data") if event and event["op"] == "compact" and event["record"] else None
    return data if isinstance(data, dict) and "base_sha256" in data else {}


def base_records(folder: Any, first: dict[str, Any] | None) -> list[dict[str, Any]]:
    """The records with an id in the base that a compaction of ours names, if it can be read."""
    sha256 = sentinel_data(first).get("base_sha256")
    if folder is None or not is_digest(sha256):
        return []
    try:
        records = list(json.loads(folder.read(f"base/{sha256}.json"))["records"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []
    return [one for one in records if isinstance(one, dict) and isinstance(one.get("id"), str)]


class Trail:
    """A chain over hashes alone: it needs no content, so it goes on over redacted lines."""

    def __init__(self, start: bytes) -> None:
        self._hash, self._events, self._start = hashlib.sha256(start), 0, start

    def add(self, digest: str) -> None:
        self._hash.update(bytes.fromhex(digest))
        self._events += 1
        if self._events % STRETCH == 0:
            self._start = self._hash.digest()
            self._hash = hashlib.sha256(self._start)

    def value(self) -> str:
        """What it is behind the last event."""
        return (self._hash.digest() if self._events % STRETCH else self._start).hex()


def replacements(data: dict[str, Any]) -> list[dict[str, Any]] | None:
    """What a sentinel says of files that it replaced; None if it is not as it should be."""
    listed = data.get("replaced", [])
    if not isinstance(listed, list) or len(listed) > MOST_REPLACED:
        return None
    for one in listed:
        if not isinstance(one, dict) or not is_digest(one.get("old")):
            return None
        is_archive = "erased" in one
        if is_archive and not (is_count(one["erased"], 1) and is_digest(one.get("new"))):
            return None
        if not is_archive and not ("new" in one and (one["new"] is None or is_digest(one["new"]))):
            return None
    return listed


def bound_by(data: dict[str, Any]) -> int:
    """How many lines of the archive that a sentinel names are redacted, as the sentinel says."""
    erased: Any = data.get("erased")
    return erased if is_count(erased) else 0


class Bound:
    """How many redacted lines each file is bound to have, by its digest; and which bases there are."""

    def __init__(self) -> None:
        self.archives: dict[str, int] = {}
        self.bases: set[str] = set()

    def name(self, data: dict[str, Any]) -> None:
        """Take what a sentinel names: its own files, and those that it put in the place of others."""
        if isinstance(data.get("archive_sha256"), str):
            self.archives[data["archive_sha256"]] = bound_by(data)
        if isinstance(data.get("base_sha256"), str):
            self.bases.add(data["base_sha256"])
        for one in replacements(data) or []:
            if "erased" in one:
                self.archives[one["new"]] = one["erased"]
            elif one["new"]:
                self.bases.add(one["new"])


def unbound(
    data: dict[str, Any], erasure: dict[str, Any] | None, before: Bound, is_all_known: bool
) -> str | None:
    """What is wrong with a sentinel that tells of an erasure, and the event that should follow it."""
    erased, listed = data.get("erased"), replacements(data)
    if not is_count(erased) or "replaced" not in data or listed is None:
        return "erased and replaced are not as they should be"
    if erasure is None:
        return "no erase event follows the sentinel"
    olds, news = [one["old"] for one in listed], [one["new"] for one in listed if one["new"]]
    if (
        len({*olds}) < len(olds)
        or len({*news}) < len(news)
        or any(one["old"] == one["new"] for one in listed)
    ):
        return "a file is replaced twice, by one that replaces another, or by itself"
    counts = erasure["record"]["data"]
    is_dropped = data.get("archive") is None
    if is_dropped != (counts["history"] == "dropped") or (is_dropped and (erased or listed)):
        return "what became of the history is not what the event says"
    archives = [one for one in listed if "erased" in one]
    unknown = [one for one in archives if one["old"] not in before.archives]
    unknown += [one for one in listed if "erased" not in one and one["old"] not in before.bases]
    if unknown:
        return "a file is replaced that nothing names" if is_all_known else None
    more = [one["erased"] - before.archives[one["old"]] for one in archives]
    if any(number < 1 for number in more):
        return "a file was replaced in which nothing was erased"
    if not is_dropped and counts["lines"] != erased + sum(more):
        return "the event counts other lines than were erased"
    return None
