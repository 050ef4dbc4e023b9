"""Logs that another tool compacted, and what they start from."""

import json
from typing import Any

from cases_base import HONEST_RECORD, OTHER_DIGEST, folder_case, pretty, state_file
from craft import Case, Chain, one, sha256


def foreign_sentinel() -> Chain:
    """A log as other tools compact it: a sentinel without digests."""
    record = {"id": "__compact__", "kind": "fact", "label": "Compacted at seq=6", "data": {}}
    return Chain(7).add(op="compact", record_id="__compact__", record=record)


def on_snapshot(name: str, content: bytes, base: str, note: str, *found: str) -> Case:
    """The usual log of another tool on this snapshot."""
    files = {"snapshot.json": content}
    return folder_case(name, foreign_sentinel().add().add().lines, files, base, note, *found)


def snapshots() -> list[Case]:
    lines = foreign_sentinel().add().add().lines
    hashes = [json.loads(line)["hash"] for line in lines]
    before, at = state_file(6, OTHER_DIGEST, [HONEST_RECORD]), state_file(8, hashes[1], [HONEST_RECORD])
    refused = state_file(8, hashes[0], [HONEST_RECORD])
    two = state_file(6, "", [HONEST_RECORD, HONEST_RECORD])
    seq_twice = foreign_sentinel().add().add(seq=8).lines
    missing, same = "base-missing", {"snapshot.json": at}
    return [
        on_snapshot("foreign", before, "unanchored", "older than the log: nothing to compare"),
        on_snapshot("foreign_pretty", pretty(before), "unanchored", "as other tools write it"),
        on_snapshot("foreign_at_seq", at, "unanchored", "the event at its seq has its hash"),
        on_snapshot("foreign_refused", refused, "damaged", "that event has another hash", "snapshot-refused"),
        folder_case(
            "foreign_seq_twice", seq_twice, same, "unanchored", "one of the events at its seq has it"
        ),
        folder_case("foreign_missing", lines, {}, "missing", "the only base is gone", missing),
        on_snapshot("foreign_cut", before[:-9], "missing", "cut short", missing),
        on_snapshot("foreign_comma", two.replace(b"},", b"}"), "missing", "a comma is missing", missing),
        on_snapshot("foreign_key", before.replace(b"records", b"entries"), "missing", "no records", missing),
        on_snapshot("foreign_shape", b'{"seq":1}', "missing", "JSON, but no snapshot", missing),
        on_snapshot(
            "foreign_seq_bool", before.replace(b":6,", b":true,"), "missing", "true is not 1", missing
        ),
        on_snapshot(
            "foreign_key_twice", before.replace(b'"ts"', b'"seq"'), "missing", "duplicate key", missing
        ),
        Case(
            "foreign_after_garbage",
            [b"garbage\n", *lines],
            "the first event that can be loaded decides",
            [(1, "unreadable")],
            events=3,
            base="unanchored",
            files={"snapshot.json": before},
        ),
    ]


def adoptions() -> list[Case]:
    before = state_file(6, OTHER_DIGEST, [HONEST_RECORD])
    record = {"base_sha256": sha256(before), "seq": 6, "last_hash": ""}
    adopt: dict[str, Any] = {"op": "adopt", "record_id": "__adopt__", "record": record}
    base, snapshot = {f"base/{sha256(before)}.json": before}, {"snapshot.json": before}
    both = {**base, **snapshot}
    other = {**adopt, "record": {**record, "base_sha256": OTHER_DIGEST}}

    def with_adopt(**changes: Any) -> list[bytes]:
        return foreign_sentinel().add(**{**adopt, **changes}).add().lines

    good = with_adopt()
    twice = foreign_sentinel().add(**adopt).add(**other).lines
    in_batch = foreign_sentinel().begin(2).add(**adopt).add().lines
    in_broken = foreign_sentinel().begin(2).add(**adopt).add(seq=90).lines
    in_half = foreign_sentinel().begin(2).add(**adopt).lines
    at_tail = {"snapshot.json": state_file(8, OTHER_DIGEST, [HONEST_RECORD])}
    no_seq = with_adopt(record={**record, "seq": "6"})
    no_digest = with_adopt(record={**record, "base_sha256": "x"})
    elsewhere = with_adopt(record_id="other")
    changed, not_one = dict.fromkeys(base, b"{}"), "not an adoption"
    unapplied: dict[str, Any] = {"base": "unanchored", "files": both}
    broken = [(2, "broken-batch")]
    return [
        folder_case("adopted", good, base, "adopted", "the adopted base is there"),
        folder_case("adopted_in_batch", in_batch, base, "adopted", "inside a whole batch"),
        folder_case("adopted_twice", twice, base, "adopted", "the first adoption counts"),
        folder_case("adopted_missing", good, snapshot, "missing", "no snapshot replaces it", "base-missing"),
        folder_case("adopted_altered", good, changed, "damaged", "another state", "base-altered"),
        folder_case("adopted_without_seq", no_seq, both, "unanchored", not_one),
        folder_case("adopted_without_digest", no_digest, both, "unanchored", not_one),
        folder_case("adopted_elsewhere", elsewhere, both, "unanchored", not_one),
        folder_case(
            "adopted_not_compacted", one().add(**adopt).lines, {}, "none", "a whole log needs no base"
        ),
        Case("adopted_in_broken_batch", in_broken, "nothing of it is applied", broken, events=4, **unapplied),
        Case("adopted_in_half_batch", in_half, "not committed yet", [], 2, 1, **unapplied),
        Case(
            "foreign_seq_in_tail",
            in_half,
            "the event at its seq is behind the committed end",
            [],
            2,
            1,
            base="unanchored",
            files=at_tail,
        ),
    ]


def cases() -> list[Case]:
    return [*snapshots(), *adoptions()]
