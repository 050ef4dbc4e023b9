"""Logs whose base is still the one they name, or is not, with the history before it."""

import json
from typing import Any

from craft import Case, Chain, one, sha256

HONEST_RECORD = {"id": "r1", "kind": "fact", "label": "fact 1"}
OTHER_DIGEST = "ab" * 32


def state_file(seq: int, last_hash: str, records: list[Any]) -> bytes:
    """A base as we write it: one record a line."""
    head = json.dumps(
        {"seq": seq, "last_hash": last_hash, "ts": "2026-01-01T00:00:00.000000Z"}, separators=(",", ":")
    )
    lines = ",\n".join(json.dumps(record, ensure_ascii=False, separators=(",", ":")) for record in records)
    return f'{head[:-1]},"records":[\n{lines}\n]}}\n'.encode()


def pretty(state: bytes) -> bytes:
    """The same state as another tool would write it."""
    return json.dumps(json.loads(state), indent=2).encode()


class Store:
    """A log with the files beside it, as compaction leaves them."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self.files: dict[str, bytes] = {}

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

    def case(
        self, name: str, base: str, note: str, *found: Any, files: dict[str, bytes] | None = None
    ) -> Case:
        """A case in which the log itself is sound; `found` are the kinds of damage beside it."""
        return folder_case(name, self.chain.lines, self.files if files is None else files, base, note, *found)


def folder_case(
    name: str, lines: list[bytes], files: dict[str, bytes], base: str, note: str, *found: Any
) -> Case:
    # A folder case needs at least one file beside the log; the lock is always there and plays no part.
    beside = files or {"lock": b""}
    return Case(name, lines, note, events=len(lines), base=base, files=beside, folder_damage=list(found))


def with_base(content: bytes) -> Store:
    """A compacted store whose base is this, named and hashed as it should be."""
    return Store(one()).compact(content=content)


def with_sentinel(**changes: Any) -> Store:
    """A compacted store whose sentinel says something else."""
    return Store(one()).compact(**changes)


def bases() -> list[Case]:
    first = Store(Chain().add_many(3)).compact()
    first.chain.add()
    name = first.named("base")
    gone = {path: content for path, content in first.files.items() if path != name}
    longer = {**first.files, name: first.files[name] + b" "}
    garbage = {**first.files, "snapshot.json": b"garbage"}
    two = state_file(1, "", [HONEST_RECORD, HONEST_RECORD])
    deep: Any = []
    for _ in range(197):
        deep = [deep]
    deepest, too_deep = [{"id": "r", "x": deep}], [{"id": "r", "x": [deep]}]
    nothing = with_sentinel(base_sha256=None)
    snapshot = {**nothing.files, "snapshot.json": state_file(1, "", [])}
    misnamed = with_sentinel(base="base/elsewhere.json")
    missing, altered = "base-missing", "base-altered"
    strangers = {"base/notes.json": b"{}", "archive/1-2-old.wal": b"", "base/" + "AB" * 32 + ".json": b"{}"}
    return [
        first.case("compacted", "anchored", "base and archive are what the sentinel names"),
        folder_case("log_emptied", [], first.files, "none", "base and archive show a log", "log-missing"),
        folder_case(
            "log_only_blank", [b"\n"], first.files, "none", "the same", "log-missing"
        ).without_events(),
        folder_case("log_never_was", [], strangers, "none", "not our names: there never was a log"),
        folder_case(
            "log_not_restored",
            [],
            {**first.files, "archive/restored.wal.tmp": b"".join(first.chain.lines)},
            "none",
            "an interrupted restore is no store either, and explains nothing",
            "log-missing",
        ),
        *(
            folder_case(
                f"log_{what}", [], {path: b"".join(one().lines)}, "none", "a copy shows a log", "log-missing"
            )
            for what, path in (
                ("in_a_backup", "backup/20261115T190743/events.wal"),
                ("in_a_second_backup", "backup/20261115T190743-2/events.wal"),
                ("set_aside_damaged", "quarantine/20261115T190743-damaged/events.wal"),
                ("set_aside_before_restore", "quarantine/20261115T190743-before-restore-3/events.wal"),
            )
        ),
        folder_case(
            "log_damaged_in_a_backup",
            [],
            {"backup/20261115T190743/events.wal": b"rubbish\n" + b"".join(one().lines)},
            "none",
            "one line of the copy can be loaded",
            "log-missing",
        ),
        *(
            folder_case(
                f"log_{what}", [], {path: content}, "none", "that is no copy of a log: there never was one"
            )
            for what, path, content in (
                ("in_no_backup", "backup/mine/events.wal", b"".join(one().lines)),
                ("in_an_unfinished_backup", "backup/20261115T190743.tmp/events.wal", b"".join(one().lines)),
                ("in_an_empty_backup", "backup/20261115T190743/snapshot.json", b"{}"),
                ("in_a_backup_of_rubbish", "backup/20261115T190743/events.wal", b"rubbish\n"),
                ("in_a_torn_backup", "backup/20261115T190743/events.wal", one().lines[0][:-1]),
                ("only_a_tail", "quarantine/20261115T190743-tail-at-0", b"".join(one().lines)),
            )
        ),
        first.case("base_missing", "missing", "the base is gone", missing, files=gone),
        first.case("base_altered", "damaged", "one byte more", altered, files=longer),
        first.case("snapshot_ignored", "anchored", "base and log decide", files=garbage),
        with_base(b"not a base").case("base_garbage", "damaged", "named, but no base", altered),
        with_base(b"[]").case("base_list", "damaged", "named, but no base", altered),
        with_base(pretty(two)).case("base_pretty", "anchored", "any spelling of JSON will do"),
        with_base(two.replace(b"},\n{", b"}\n{")).case("base_comma_missing", "damaged", "not JSON", altered),
        with_base(two.replace(b"}\n]", b"},\n]")).case("base_comma_trailing", "damaged", "not JSON", altered),
        with_base(two + b"\n").case("base_newline", "anchored", "white space after it"),
        with_base(two + b"x").case("base_more", "damaged", "not JSON", altered),
        with_base(two.replace(b'"ts"', b'"seq"')).case("base_key_twice", "damaged", "duplicate key", altered),
        with_base(state_file(1, "", [])).case("base_empty", "anchored", "no records"),
        with_base(state_file(1, "", [{}])).case("base_nameless", "anchored", "what has no id is passed over"),
        with_base(state_file(1, "", [1])).case("base_number", "damaged", "a record is an object", altered),
        with_base(state_file(1, "", deepest)).case(
            "base_deepest", "anchored", "a record lies one deeper than in its event"
        ),
        with_base(state_file(1, "", too_deep)).case(
            "base_too_deep", "damaged", "deeper than any event", altered
        ),
        with_base(pretty(state_file(1, "", deepest))).case(
            "base_deepest_pretty", "anchored", "in any spelling"
        ),
        with_sentinel(base_sha256="../../x").case(
            "base_path", "missing", "a digest is never a path", missing
        ),
        nothing.case("base_digest_null", "missing", "ours, but names nothing", missing),
        nothing.case(
            "base_not_replaced", "missing", "a snapshot is no base of ours", missing, files=snapshot
        ),
        misnamed.case("base_misnamed", "anchored", "the digest alone names the base"),
        folder_case("not_compacted", one().lines, {"snapshot.json": b"garbage"}, "none", "needs no base"),
    ]


def archives() -> list[Case]:
    first = Store(Chain().add_many(3)).compact()
    name = first.named("archive")
    gone = {path: content for path, content in first.files.items() if path != name}
    longer = {**first.files, name: first.files[name] + b"\n"}
    folder = {**gone, f"{name}/in-the-way": b""}
    both = dict.fromkeys(first.files, b"x")
    twice = Store(Chain().add_many(3)).compact()
    older = twice.named("archive")
    twice.chain.add()
    twice.compact()
    older_longer = {**twice.files, older: twice.files[older] + b"\n"}
    older_gone = {path: content for path, content in twice.files.items() if path != older}
    dropped = Store(Chain().add_many(2)).compact(keep=False)
    broken = Store(one().put(b"garbage\n").add()).compact()
    batch = Store(one().begin(2).add().put(b"garbage\n").add()).compact()
    half = Store(one().begin(2).add()).compact()
    torn = Store(one().put(b"{")).compact()
    outside = with_sentinel(archive="archive/../events.wal")
    altered, second_line = "archive-altered", ("archive-altered", len(one().lines[0]))
    return [
        twice.case("compacted_twice", "anchored", "two segments of history"),
        first.case("archive_missing", "anchored", "history unavailable: a note", files=gone),
        first.case("archive_folder", "anchored", "no file: history unavailable, a note", files=folder),
        dropped.case("archive_dropped", "anchored", "history unavailable: a note"),
        first.case("archive_altered", "anchored", "one byte more", altered, files=longer),
        first.case("both_altered", "damaged", "base and archive", "base-altered", altered, files=both),
        twice.case("archive_older_altered", "anchored", "found two steps back", altered, files=older_longer),
        twice.case("archive_older_missing", "anchored", "history unavailable: a note", files=older_gone),
        broken.case("archive_broken", "anchored", "was retired broken: at the offset inside it", second_line),
        batch.case("archive_broken_batch", "anchored", "at the lowest offset inside it", second_line),
        torn.case("archive_torn", "anchored", "a tail does not break a chain"),
        half.case("archive_half_batch", "anchored", "its head is before the half batch", altered),
        with_sentinel(previous_head=OTHER_DIGEST).case(
            "archive_head", "anchored", "leads elsewhere", altered
        ),
        with_sentinel(archive_sha256=OTHER_DIGEST).case(
            "archive_digest", "anchored", "another digest", altered
        ),
        outside.case("archive_outside", "anchored", "no name leads outside archive/", altered),
        with_sentinel(archive="archive/.wal").case("archive_hidden", "anchored", "no dot in front", altered),
        with_sentinel(archive=7).case("archive_number", "anchored", "not a name", altered),
    ]


def cases() -> list[Case]:
    return [*bases(), *archives()]
