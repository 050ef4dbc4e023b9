"""Erasures that leave a store which proves all the rest. Section 16 of docs/format.md."""

from __future__ import annotations

import json
from typing import Any

from cases_base import OTHER_DIGEST, Store, state_file
from cases_foreign import foreign_sentinel
from craft import Case, Chain, sha256, spaced
from erased_store import ErasedStore, trail_after

SALT = "AbCdEfGhIjKlMn_-"


def of(count: int = 3) -> ErasedStore:
    """A store whose log has some lines: r1, r2 and so on."""
    return ErasedStore(Chain().add_many(count))


def again(store: ErasedStore, *names: str) -> ErasedStore:
    """Records that are written in the live log."""
    for name in names:
        store.chain.add(record_id=name, record={"id": name})
    return store


def in_three() -> ErasedStore:
    """A record x in three logs, with others beside it."""
    store = again(ErasedStore(Chain()), "x", "a").compact()
    again(store, "b", "x").compact()
    return again(store, "x", "c")


def batches() -> list[Case]:
    def batch() -> ErasedStore:
        return ErasedStore(Chain().add().begin(3).add_many(3).add())

    return [
        batch().erase("r4").case("erased_in_batch", "one of a batch, which stays whole"),
        batch().erase("r3", "r4", "r5").case("erased_whole_batch", "all of a batch but its begin"),
        batch().erase("r5", "r6").case("erased_across_batch", "the end of a batch and what follows it"),
    ]


def foreign() -> list[Case]:
    before = state_file(6, OTHER_DIGEST, [{"id": "old", "kind": "fact"}, {"id": "mine", "kind": "fact"}])
    record = {"base_sha256": sha256(before), "seq": 6, "last_hash": ""}

    def adopted() -> ErasedStore:
        chain = foreign_sentinel().add(op="adopt", record_id="__adopt__", record=record).add().add()
        store = ErasedStore(chain)
        store.records = {one["id"]: one for one in json.loads(before)["records"]}
        store.base = sha256(before)
        store.files[f"base/{sha256(before)}.json"] = before
        return store

    loose, older = Chain().add().foreign().add(), Chain().add().foreign(hashed_as=spaced).add()
    return [
        adopted().erase("r9").case("erased_adopted", "in a log that was adopted"),
        adopted().erase("mine").case("erased_adopted_base", "out of a base that was adopted"),
        ErasedStore(loose).erase("r2").case("erased_foreign", "a line of another tool"),
        ErasedStore(older).erase("r2").case("erased_spaced", "a line of an older one"),
        ErasedStore(Chain().add().foreign(end=b"\r\n").add())
        .erase("r1")
        .case("erased_beside_foreign", "the line behind it is another tool's"),
    ]


def trails() -> list[Case]:
    first = ErasedStore(Chain().add_many(3), with_trail=False).compact()
    first.chain.add().add()
    archived = first.past[0].lines
    whole = bytes.fromhex(trail_after(bytes(32), archived))
    from_before = {"trail": trail_after(whole, first.chain.lines), "trail_from": 1}
    first.with_trail = True
    first.erase("r6")
    other = ErasedStore(Chain().add_many(3), with_trail=False).compact()
    other.chain.add().add()
    other.with_trail = True
    other.erase("r6", **from_before)
    none = ErasedStore(Chain().add_many(3), with_trail=False)
    long = of().compact()
    long.chain.add().add()
    long.compact()
    long.chain.add()
    return [
        first.case("erased_after_version_1", "the trail begins with the log of a sentinel without one"),
        other.case("erased_after_version_1_from_before", "it goes on from the log before that"),
        none.erase("r2").case("erased_without_trail", "no trail at all: accepted, and proves less"),
        long.case("trail_over_compactions", "no erasure: a trail in every sentinel"),
    ]


def by_id(*records: dict[str, Any]) -> dict[str, Any]:
    return {record["id"]: record for record in records}


def salts() -> list[Case]:
    def salted(value: Any) -> dict[str, Any]:
        return {"id": "r1", "kind": "fact", "label": "tea", "~": value}

    def kept(value: Any, **changes: Any) -> ErasedStore:
        return ErasedStore(Chain().add(record=salted(value)).add()).compact(**changes)

    def told(record: dict[str, Any], **changes: Any) -> ErasedStore:
        return ErasedStore(Chain().add(record=record)).compact(**changes)

    plain = {"id": "r1", "kind": "fact", "label": "tea"}
    second = {"id": "r2", "kind": "fact", "label": "fact 2"}
    bare = by_id(plain, second)
    differs = "base-differs"
    removed: dict[str, Any] = {"id": "r1", "status": "tombstone", "~": SALT}
    patch = {"label": "mate", "~": SALT}
    chain = Chain().add(record=salted(SALT)).add(op="patch", record_id="r1", record=patch)
    chain.add(op="delete", record_id="r1", record=removed)
    after = by_id({**plain, "label": "mate", "status": "tombstone"})
    inner = {**plain, "data": {"~": SALT}}
    return [
        kept(SALT, records=bare).case("salt", "no part of the state"),
        kept(SALT).case("salt_in_base", "nor of a base that it found its way into"),
        ErasedStore(chain)
        .compact(records=after)
        .case("salt_in_patch_and_delete", "passed over in patches and deletions"),
        *(
            case
            for name, value in (
                ("short", SALT[:14] + "="),
                ("number", 7),
            )
            for case in (
                kept(value).case(f"salt_{name}", "of another form: a field like any other"),
                kept(value, records=bare).case(f"salt_{name}_lost", "it is missing", differs),
            )
        ),
        told(inner).case("salt_inside", "only at the top"),
        told(inner, records=by_id({**plain, "data": {}})).case(
            "salt_inside_lost", "only at the top", differs
        ),
        told({**salted(SALT), "é": 1}, records=by_id({**plain, "é": 1})).case(
            "salt_before_others", "a key may stand behind it"
        ),
        told({"~": SALT}, records=by_id({"id": "r1"})).case("salt_alone", "nothing else was said"),
    ]


def others() -> list[Case]:
    shape = {"id": "erasure:3", "kind": "erasure", "label": "x", "data": {}}
    pruned = {"id": "pruned:2", "kind": "pruned", "label": "old", "data": {"archives": 1, "last_seq": 9}}
    passed = ErasedStore(Chain().add().add().add(op="erase", record_id="erasure:3", record=shape))
    content = by_id(*(json.loads(line)["record"] for line in passed.chain.lines[:2]))
    prune = ErasedStore(Chain().add().add(op="prune", record_id="pruned:2", record=pruned))
    pruned_state = by_id(*(json.loads(line)["record"] for line in prune.chain.lines))
    mark = ErasedStore(Chain().add().add(op="mark", record_id="mark:2", record={"~": SALT}))
    unsaid = Store(Chain().add_many(2)).compact(content=state_file(2, "", []))
    return [
        passed.compact(records=content).case("erase_of_another_shape", "any other op: it does nothing"),
        prune.compact(records=pruned_state).case("pruned", "a pruning is remembered by a record"),
        mark.compact(records=by_id(next(iter(pruned_state.values())))).case("marked", "a mark does nothing"),
        unsaid.case("base_of_version_1", "anchored", "a sentinel without trail: its base is not compared"),
    ]


def cases() -> list[Case]:
    twice = in_three().erase("a")
    again(twice, "d")
    twice.erase("x")
    after = of().erase("r2")
    after.chain.add()
    after.compact()
    early = of()
    early.compact(keep=False)
    again(early, "r4", "r1").compact()
    again(early, "e").erase("r1")
    late = of()
    late.compact(keep=False)
    again(late, "r9").erase("r1")
    returning = again(of().erase("r2"), "r2").compact()
    spaced_out = ErasedStore(Chain().add().add(seq=9).add())
    spaced_out.start_seq = 1
    only = ErasedStore(Chain().add())
    nothing = of().compact()
    anew = of()
    anew.chain.add(op="mark", record_id="__mark__", record={"~": SALT})
    anew.erase("r2", history="dropped", trail=..., trail_from=...)
    again(anew, "r9").compact()
    return [
        of().erase("r2").case("erased_one", "one line in the middle"),
        of().erase("r1").case("erased_first", "the first line"),
        of().erase("r3").case("erased_last", "the last line: previous_head is its hash"),
        of(5).erase("r2", "r3", "r4").case("erased_run", "three lines in a row"),
        only.erase("r1").case("erased_only", "all that there was"),
        in_three().erase("x").case("erased_in_three", "one record in three logs; its bases are dropped"),
        twice.case("erased_twice", "the second touches an archive of the first"),
        after.case("erased_and_compacted", "an ordinary compaction behind it"),
        early.case("erased_first_base", "the base of the first kept log was rewritten"),
        late.case("erased_first_base_of_live", "so was that of the log that was retired"),
        returning.case("erased_and_written_again", "a later record of the same id is another one"),
        of().erase("r2", history="dropped").case("erased_history_dropped", "no archive was kept"),
        anew.case("erased_history_dropped_anew", "a mark at its end, and a trail that begins behind it"),
        nothing.erase("r1").case("erased_from_the_past", "the retired log had no line of it"),
        # The lines count 1, 9, 10: other tools' seqs may jump, and then nobody can tell what a lost one was.
        spaced_out.erase("r9").case("erased_seqs_that_jump", "the seq of the redacted line is attested"),
        *batches(),
        *foreign(),
        *trails(),
        *salts(),
        *others(),
    ]
