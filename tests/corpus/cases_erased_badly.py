"""Erasures that are none, or hide that something else was changed. Section 16 of docs/format.md."""

from __future__ import annotations

import json
from typing import Any

from cases_base import OTHER_DIGEST, Store
from cases_erased import again, of
from cases_packed import frame
from craft import Case, Chain, own_line, sha256
from erased_store import ErasedStore, Lines, redacted

ALTERED, UNBOUND, BROKEN, DIFFERS = "archive-altered", "erase-unbound", "trail-broken", "base-differs"


def at(lines: Lines, line: int) -> int:
    """Where a line begins."""
    return sum(map(len, lines[: line - 1]))


def in_two() -> ErasedStore:
    """A record x in two logs."""
    return again(again(ErasedStore(Chain()), "x").compact(), "x")


def with_line(number: int, content: bytes) -> Any:
    """Put something else in the place of a line."""
    return lambda lines: [*lines[: number - 1], content, *lines[number:]]


def lines_in_archives() -> list[Case]:
    honest = of(4)
    lines = honest.chain.lines
    second, third = redacted(lines[1]), redacted(lines[2])
    digest = json.loads(second)["hash"].encode()
    found = (ALTERED, at(lines, 2))
    spelled = {
        "content": second.replace(b"}", b',"x":1}'),
        "spaces": second.replace(b",", b", "),
        "carriage_return": second.replace(b"\n", b"\r\n"),
        "leading_zero": second.replace(b":2,", b":02,"),
        "order": b'{"hash":"' + digest + b'","erased":2}\n',
        "too_large": second.replace(b":2,", b":9223372036854775808,"),
        "upper_case": second.replace(digest, digest.upper()),
    }
    cases = [
        of(4).erase("r2", spoil=with_line(2, line)).case(f"redacted_{name}", "no redacted line", found)
        for name, line in spelled.items()
    ]
    more = of(4).erase("r2", spoil=with_line(3, third))
    fewer = of(4).erase("r2", "r3", spoil=with_line(3, lines[2]))
    none = of(4).erase("r2", spoil=with_line(2, lines[1]))
    seq = of(4).erase("r2", "r3", spoil=with_line(2, second.replace(b":2,", b":7,")))
    last = of(4).erase("r2", spoil=with_line(2, second.replace(digest, OTHER_DIGEST.encode())))
    run = of(4).erase("r2", "r3", spoil=with_line(2, second.replace(digest, OTHER_DIGEST.encode())))
    first_seq = of(4).erase("r1", spoil=with_line(1, redacted(lines[0]).replace(b":1,", b":0,")))
    behind = at([lines[0], second], 3)
    batch = ErasedStore(Chain().add().begin(2).add().add())
    out = with_line(3, redacted(batch.chain.lines[2]).replace(b":3,", b":9,"))
    begins = len(batch.chain.lines[0])
    plain = Store(Chain().add_many(3))
    plain.chain.lines[1] = redacted(plain.chain.lines[1])
    return [
        *cases,
        plain.compact().case("redacted_unbound", "anchored", "nothing binds it", (ALTERED, at(lines, 2))),
        more.case("redacted_one_more", "one more than bound", found),
        fewer.case("redacted_one_fewer", "one fewer than bound", found),
        none.case("redacted_none", "none where one is bound", ALTERED),
        seq.case("redacted_seq", "the seq of another place", found),
        first_seq.case("redacted_first_seq", "the seq of another place, in the first line", ALTERED),
        last.case("redacted_hash", "the line behind it links to another", (ALTERED, behind)),
        run.case("redacted_hash_in_a_run", "no line links to it, but the trail does", BROKEN),
        batch.erase("r3", spoil=out).case(
            "redacted_outside_batch", "it does not stand in its place", (ALTERED, begins)
        ),
    ]


def forged_before(lines: Lines) -> Lines:
    """Another first line, with a fresh hash: the hole behind it hides that."""
    fields = {key: value for key, value in json.loads(lines[0]).items() if key != "hash"}
    return [own_line({**fields, "ts": "2025-01-01T00:00:00.000000Z"}), *lines[1:]]


def forgeries() -> list[Case]:
    first = ErasedStore(Chain().add_many(3), with_trail=False).compact()
    first.chain.add().add()
    first.with_trail = True
    digits = {"trail": "x", "trail_from": 1}
    return [
        of().erase("r2", spoil=forged_before).case("forged_before_hole", "the trail tells", BROKEN),
        ErasedStore(Chain().add_many(3), with_trail=False)
        .erase("r2", spoil=forged_before)
        .case("forged_without_trail", "nothing tells: accepted, and it is said that it proves less"),
        of().compact(trail=OTHER_DIGEST).case("trail_wrong", "of an ordinary compaction", BROKEN),
        of().compact(trail_from=2).case("trail_from_elsewhere", "it begins elsewhere", BROKEN),
        of().compact(**digits).case("trail_no_digest", "it is none", BROKEN),
        of().compact(trail=...).case("trail_from_alone", "it is none", BROKEN),
        first.erase("r5", trail_from=2).case("trail_from_inside", "no log begins there", BROKEN),
    ]


def bindings() -> list[Case]:
    erase = {"records": 1, "lines": 0, "unsalted": 0, "first_seq": None, "last_seq": None}
    erase |= {"history": "redacted", "removed": {"backups": 0, "quarantine": 0}}
    record = {"id": "erasure:2", "kind": "erasure", "label": "x", "data": erase}
    alone = Store(Chain().add().add(op="erase", record_id="erasure:2", record=record))
    offset = len(alone.chain.lines[0])
    archived = Store(Chain().add().add(op="erase", record_id="erasure:2", record=record))
    later = of().erase("r2")
    name = f"erasure:{later.chain.next_seq}"
    later.chain.add(op="erase", record_id=name, record={**record, "id": name})
    place = at(later.chain.lines, 3)
    past = in_two().past
    same = {"old": past[0].digest, "new": past[0].digest, "erased": 1}

    def listed(change: Any) -> ErasedStore:
        return in_two().erase("x", listed=change)

    def archives_only(all_of_them: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [one for one in all_of_them if "erased" in one]

    # What stands in the list decides where the archives are looked for; where it is wrong they are not found.
    unknown = {"old": OTHER_DIGEST, "new": "cd" * 32, "erased": 1}
    newer = of().erase("r2")
    binding = newer.chain.lines[0]
    own = json.loads(binding)["record"]["data"]["archive_sha256"]
    own_file = again(in_two(), "q").erase("q", replaced=[same])
    itself = own_file.case("replaced_by_itself", "a file is no other", UNBOUND)
    itself.returned = [past[0].name]
    from_dropped = of().erase("r2", history="dropped", erased=1)
    return [
        Case(
            "erase_without_sentinel",
            alone.chain.lines,
            "no sentinel tells of it",
            events=2,
            files={"lock": b""},
            folder_damage=[(UNBOUND, offset)],
        ),
        archived.compact().case("erase_in_archive", "anchored", "nor there", (UNBOUND, offset)),
        later.case("erase_later", "it does not follow its sentinel", (UNBOUND, place)),
        of().erase("r2", follows=False).case("sentinel_without_erase", "no event follows", UNBOUND),
        of().erase("r2", event={"lines": 2}).case("erase_counts_more", "other lines than erased", UNBOUND),
        of().erase("r2", event={"lines": 0}).case("erase_counts_fewer", "other lines than erased", UNBOUND),
        of()
        .erase("r2", erased=2)
        .case(
            "sentinel_counts_more", "more than the archive holds", UNBOUND, (ALTERED, at(of().chain.lines, 2))
        ),
        of().erase("r2", replaced=...).case("sentinel_without_replaced", "half of what it says", UNBOUND),
        of().erase("r2", erased=...).case("sentinel_without_erased", "its archive is not there", UNBOUND),
        of().erase("r2", erased="1").case("sentinel_erased_text", "a number is none", UNBOUND),
        of().erase("r2", replaced={}).case("sentinel_replaced_object", "a list is none", UNBOUND),
        of().erase("r2", replaced=[7]).case("sentinel_replaced_number", "an entry is an object", UNBOUND),
        of().erase("r2", replaced=[unknown]).case("replaced_unknown", "nothing names it", UNBOUND),
        of()
        .erase("r2", replaced=[{**unknown, "old": own}])
        .case("replaced_own", "its own archive is none of before", UNBOUND),
        of().erase("r2", event={"history": "dropped"}).case("dropped_and_kept", "one of the two", UNBOUND),
        from_dropped.case("dropped_and_counted", "nothing was kept that could be redacted", UNBOUND),
        listed(lambda all: [*all, all[-1]]).case("replaced_twice", "one old twice", UNBOUND),
        listed(lambda all: [*all, {**all[-1], "old": OTHER_DIGEST}]).case(
            "replaced_by_one", "one new twice", UNBOUND
        ),
        in_two().erase("x", event={"lines": 1}).case("replaced_counts", "lines of all archives", UNBOUND),
        itself,
        listed(lambda all: archives_only(all)).case(
            "replaced_without_bases", "bases are gone, and nobody says why: a note"
        ),
    ]


def states() -> list[Case]:
    def changed(known: dict[str, Any]) -> dict[str, Any]:
        return {**known, "r1": {**known["r1"], "label": "other"}}

    def turned(known: dict[str, Any]) -> dict[str, Any]:
        return dict(reversed(known.items()))

    left = {"id": "r2", "kind": "fact", "label": "fact 2"}
    forgotten = of().erase("r2")
    forgotten.chain.add()
    records = {name: one for name, one in forgotten.records.items() if not name.startswith("erasure:")}
    records["r6"] = json.loads(forgotten.chain.lines[-1])["record"]
    return [
        of().erase("r2", records=changed).case("base_changed_by_erasure", "another record is other", DIFFERS),
        of().erase("r2", records=turned).case("base_turned_by_erasure", "in another order", DIFFERS),
        of()
        .erase("r2", records=lambda known: {**known, "r2": left})
        .case("erased_left_in_base", "it is erased from the archive alone", DIFFERS),
        forgotten.compact(records=records).case(
            "erasure_forgotten", "the record of an erasure is missing from a later base", DIFFERS
        ),
        of(2)
        .compact(records={})
        .case("base_differs", "an ordinary compaction: not what came before", DIFFERS),
    ]


def returned() -> list[Case]:
    def back(name: str, note: str, store: ErasedStore, old: dict[str, bytes], *more: Any) -> Case:
        case = store.case(name, note, *more, files={**store.files, **old})
        case.returned = sorted(old) if "erasing" not in old else []
        return case

    after = again(again(ErasedStore(Chain()), "x").compact(), "a")
    files = dict(after.files)
    after.erase("x")
    gone = {name: content for name, content in files.items() if name not in after.files}
    archive = next(name for name in gone if name.startswith("archive/"))
    base = next(name for name in gone if name.startswith("base/"))
    digest = json.loads(after.chain.lines[0])["record"]["data"]["base_sha256"]
    erasing = json.dumps({"base": digest, "remove": [archive]}).encode()
    other = json.dumps({"base": OTHER_DIGEST, "remove": []}).encode()
    circle = circular()
    shown = back(
        "erased_back_while_another_is_named", "it names another base", after, {archive: gone[archive]}
    )
    shown.files |= {"erasing": other}
    return [
        back("erased_archive_back", "what was erased is back", after, {archive: gone[archive]}),
        back("erased_base_back", "what was erased is back", after, {base: gone[base]}),
        back(
            "erasing_unfinished", "not yet gone: a note", after, {archive: gone[archive], "erasing": erasing}
        ),
        shown,
        circle,
    ]


def circular() -> Case:
    """An archive whose sentinel names one that is replaced by the archive itself."""
    inner = of().compact()
    named = json.loads(inner.chain.lines[0])["record"]["data"]
    inner.chain.add()
    lines = [inner.chain.lines[0], redacted(inner.chain.lines[1])]
    content = frame(b"".join(lines))
    entry = {"old": named["archive_sha256"], "new": sha256(content), "erased": 1}
    store = inner.erase("r5", replaced=[entry])
    name = f"archive/1-3-{sha256(content)[:16]}.wal.zst.erased"
    store.files[name] = content
    case = store.case("replaced_in_a_circle", "it leads to another end", UNBOUND, ALTERED)
    case.returned = [named["archive"]]
    return case


def cases() -> list[Case]:
    return [*lines_in_archives(), *forgeries(), *bindings(), *states(), *returned()]
