"""Is the state a log starts from still the one it names, and is the history before it still there?"""

import json
from typing import Any

from craft import Case, Chain, one, sha256

HONEST_RECORD = {"id": "r1", "kind": "fact", "label": "fact 1"}
OTHER_DIGEST = "ab" * 32


def state_file(seq: int, last_hash: str, records: list[Any]) -> bytes:
    """A base as we write it: one record a line."""
    head = json.dumps({"seq": seq, "last_hash": last_hash, "ts": "2026-01-01T00:00:00.000000Z"}, separators=(",", ":"))
    lines = ",\n".join(json.dumps(record, ensure_ascii=False, separators=(",", ":")) for record in records)
    return f'{head[:-1]},"records":[\n{lines}\n]}}\n'.encode()


class Store:
    """A log with the files beside it, as compaction leaves them."""

    def __init__(self, chain: Chain) -> None:
        self.chain, self.files = chain, {}

    def compact(self, keep: bool = True, content: bytes | None = None, **changes: Any) -> "Store":
        log, last = b"".join(self.chain.lines), self.chain.next_seq - 1
        base = state_file(last, self.chain.head, [HONEST_RECORD]) if content is None else content
        archive = f"archive/1-{last}-{sha256(log)[:16]}.wal" if keep else None
        data = {
            "previous_head": self.chain.head,
            "first_seq": 1,
            "last_seq": last,
            "events": len(self.chain.lines),
            "base": f"base/{sha256(base)}.json",
            "base_sha256": sha256(base),
            "archive": archive,
            "archive_sha256": sha256(log) if keep else None,
            **changes,
        }
        record = {"id": "__compact__", "kind": "fact", "label": f"Compacted at seq={last}", "data": data}
        self.files[f"base/{sha256(base)}.json"] = base
        if archive:
            self.files[archive] = log
        self.chain = Chain(self.chain.next_seq).add(op="compact", record_id="__compact__", record=record)
        return self

    def named(self, part: str) -> str:
        """The newest file of a kind."""
        return [name for name in self.files if name.startswith(part)][-1]

    def without(self, part: str) -> dict[str, bytes]:
        return {name: content for name, content in self.files.items() if name != self.named(part)}

    def changed(self, part: str, content: bytes | None = None) -> dict[str, bytes]:
        name = self.named(part)
        return {**self.files, name: self.files[name] + b" " if content is None else content}


def case(name: str, lines: list[bytes], files: dict[str, bytes], base: str, note: str, kinds: list[str] | None = None) -> Case:
    # A folder case needs at least one file; the lock is always there and plays no part.
    return Case(name, lines, note, events=len(lines), base=base, files=files or {"lock": b""}, folder_damage=kinds or [])


def ours() -> list[Case]:
    first = Store(Chain().add_many(3)).compact()
    first.chain.add()
    lines, files = first.chain.lines, first.files
    twice = Store(Chain().add_many(3)).compact()
    older = twice.named("archive")
    twice.chain.add()
    twice.compact()
    dropped = Store(Chain().add_many(2)).compact(keep=False)
    garbage_base = Store(one()).compact(content=b"not a base")
    list_base = Store(one()).compact(content=b"[]")
    nameless = Store(one()).compact(content=state_file(1, "", [{"kind": "fact"}]))
    deep: Any = []
    for _ in range(197):
        deep = [deep]
    deepest = Store(one()).compact(content=state_file(1, "", [{"id": "r", "x": deep}]))
    too_deep = Store(one()).compact(content=state_file(1, "", [{"id": "r", "x": [deep]}]))
    wrong_head = Store(one()).compact(previous_head=OTHER_DIGEST)
    broken_log = Store(Chain().add().put(b"garbage\n").add()).compact()
    torn_log = Store(one().put(b"{")).compact()
    escape = Store(one()).compact(archive="archive/../events.wal")
    hidden = Store(one()).compact(archive="archive/.wal")
    number = Store(one()).compact(archive=7)
    bad_digest = Store(one()).compact(base_sha256="../../x")
    null_digest = Store(one()).compact(base_sha256=None)
    wrong_digest = Store(one()).compact(archive_sha256=OTHER_DIGEST)
    misnamed = Store(one()).compact(base="base/elsewhere.json")
    oldest_altered = {**twice.files, older: twice.files[older] + b"\n"}
    oldest_missing = {name: content for name, content in twice.files.items() if name != older}
    altered, missing = ["archive-altered"], ["base-missing"]
    return [
        case("compacted", lines, files, "anchored", "base and archive are what the sentinel names"),
        case("compacted_twice", twice.chain.lines, twice.files, "anchored", "two segments of history"),
        case("base_missing", lines, first.without("base"), "missing", "the base is gone", missing),
        case("base_altered", lines, first.changed("base"), "damaged", "one byte more", ["base-altered"]),
        case("base_garbage", garbage_base.chain.lines, garbage_base.files, "damaged", "named, but no base", ["base-altered"]),
        case("base_list", list_base.chain.lines, list_base.files, "damaged", "named, but no base", ["base-altered"]),
        case("base_nameless", nameless.chain.lines, nameless.files, "damaged", "a record without id", ["base-altered"]),
        case("base_deepest", deepest.chain.lines, deepest.files, "anchored", "a record is one deeper than in its event"),
        case("base_too_deep", too_deep.chain.lines, too_deep.files, "damaged", "deeper than any event", ["base-altered"]),
        case("base_digest_path", bad_digest.chain.lines, bad_digest.files, "missing", "a digest is never a path", missing),
        case("base_digest_null", null_digest.chain.lines, null_digest.files, "missing", "ours, but names nothing", missing),
        case("base_misnamed", misnamed.chain.lines, misnamed.files, "anchored", "the digest alone names the base"),
        case("archive_missing", lines, first.without("archive"), "anchored", "history unavailable: a note"),
        case("archive_dropped", dropped.chain.lines, dropped.files, "anchored", "history unavailable: a note"),
        case("archive_altered", lines, first.changed("archive"), "anchored", "one byte more", altered),
        case("archive_digest", wrong_digest.chain.lines, wrong_digest.files, "anchored", "another digest", altered),
        case("archive_wrong_head", wrong_head.chain.lines, wrong_head.files, "anchored", "does not lead here", altered),
        case("archive_broken", broken_log.chain.lines, broken_log.files, "anchored", "was retired broken", altered),
        case("archive_torn", torn_log.chain.lines, torn_log.files, "anchored", "a tail does not break a chain"),
        case("archive_path", escape.chain.lines, escape.files, "anchored", "no name leads outside archive/", altered),
        case("archive_hidden", hidden.chain.lines, hidden.files, "anchored", "no name begins with a dot", altered),
        case("archive_number", number.chain.lines, number.files, "anchored", "not a name", altered),
        case("archive_older_altered", twice.chain.lines, oldest_altered, "anchored", "found two steps back", altered),
        case("archive_older_missing", twice.chain.lines, oldest_missing, "anchored", "history unavailable: a note"),
        case("both_altered", lines, {name: b"x" for name in files}, "damaged", "base and archive",
             ["base-altered", "archive-altered"]),
        case("snapshot_ignored", lines, {**files, "snapshot.json": b"garbage"}, "anchored", "base and log decide"),
        case("snapshot_without_compaction", one().lines, {"snapshot.json": b"garbage"}, "none", "plays no part"),
    ]


def foreign_sentinel() -> Chain:
    """A log as other tools compact it: a sentinel without digests."""
    record = {"id": "__compact__", "kind": "fact", "label": "Compacted at seq=6", "data": {}}
    return Chain(7).add(op="compact", record_id="__compact__", record=record)


def adopted(base: bytes, **changes: Any) -> Chain:
    record = {"base_sha256": sha256(base), "seq": 6, "last_hash": "", **changes}
    return foreign_sentinel().add(op="adopt", record_id="__adopt__", record=record)


def theirs() -> list[Case]:
    plain = foreign_sentinel().add().add()
    hashes = [json.loads(line)["hash"] for line in plain.lines]
    lines = plain.lines
    before, at = state_file(6, OTHER_DIGEST, [HONEST_RECORD]), state_file(8, hashes[1], [HONEST_RECORD])
    refused = state_file(8, hashes[0], [HONEST_RECORD])
    twice = foreign_sentinel().add().add(seq=8)
    pretty = json.dumps(json.loads(before), indent=2).encode()
    base = {f"base/{sha256(before)}.json": before}
    good = adopted(before).add()
    in_batch = foreign_sentinel().begin(2)
    record = {"base_sha256": sha256(before), "seq": 6, "last_hash": ""}
    in_batch.add(op="adopt", record_id="__adopt__", record=record).add()
    in_broken = foreign_sentinel().begin(2).add(op="adopt", record_id="__adopt__", record=record).add(seq=90)
    in_half = foreign_sentinel().begin(2).add(op="adopt", record_id="__adopt__", record=record)
    second = adopted(before).add(op="adopt", record_id="__adopt__", record={**record, "base_sha256": OTHER_DIGEST})
    no_seq, no_digest = adopted(before, seq="6"), adopted(before, base_sha256="x")
    elsewhere = foreign_sentinel().add(op="adopt", record_id="other", record=record)
    lost_first = [b"garbage\n", *lines]
    snapshot = {"snapshot.json": before}
    missing = ["base-missing"]
    return [
        case("foreign", lines, snapshot, "unanchored", "the snapshot is older than the log: nothing to compare"),
        case("foreign_pretty", lines, {"snapshot.json": pretty}, "unanchored", "as other tools write it"),
        case("foreign_at_seq", lines, {"snapshot.json": at}, "unanchored", "the event at its seq has its hash"),
        case("foreign_refused", lines, {"snapshot.json": refused}, "damaged", "the event at its seq has another hash",
             ["snapshot-refused"]),
        case("foreign_seq_twice", twice.lines, {"snapshot.json": at}, "unanchored", "one of the events at its seq has it"),
        case("foreign_missing", lines, {}, "missing", "the only base is gone", missing),
        case("foreign_garbage", lines, {"snapshot.json": before[:-9]}, "missing", "cut short", missing),
        case("foreign_shape", lines, {"snapshot.json": b'{"seq":1}'}, "missing", "JSON, but no snapshot", missing),
        case("foreign_seq_bool", lines, {"snapshot.json": before.replace(b'"seq":6', b'"seq":true')}, "missing",
             "true is not 1", missing),
        case("foreign_duplicate_key", lines, {"snapshot.json": before.replace(b'"seq":6', b'"seq":6,"seq":6')}, "missing",
             "as strict as a line", missing),
        case("adopted", good.lines, base, "adopted", "the adopted base is there"),
        case("adopted_in_batch", in_batch.lines, base, "adopted", "inside a whole batch"),
        case("adopted_missing", good.lines, snapshot, "missing", "the snapshot does not replace it", missing),
        case("adopted_altered", good.lines, {name: at for name in base}, "damaged", "another state", ["base-altered"]),
        case("adopted_twice", second.lines, base, "adopted", "the first adoption counts"),
        case("adopted_without_seq", no_seq.lines, {**base, **snapshot}, "unanchored", "not an adoption"),
        case("adopted_without_digest", no_digest.lines, {**base, **snapshot}, "unanchored", "not an adoption"),
        case("adopted_elsewhere", elsewhere.lines, {**base, **snapshot}, "unanchored", "record_id is __adopt__"),
        case("adopted_not_compacted", one().add(op="adopt", record_id="__adopt__", record=record).lines, {}, "none",
             "a whole log needs no base"),
        Case("adopted_in_broken_batch", in_broken.lines, "nothing of it is applied", [(2, "broken-batch")], None, 4,
             base="unanchored", files={**base, **snapshot}),
        Case("adopted_in_half_batch", in_half.lines, "not committed yet", [], 2, 1, base="unanchored",
             files={**base, **snapshot}),
        Case("foreign_after_garbage", lost_first, "the first event that can be loaded decides", [(1, "unreadable")], None, 3,
             base="unanchored", files=snapshot),
    ]


def cases() -> list[Case]:
    return [*ours(), *theirs()]
