"""Bases of the past that may be packed, or need not be there. Section 8 of docs/format.md."""

from __future__ import annotations

from typing import Any

from cases_erased import again
from cases_packed import frame
from craft import Case, Chain, sha256
from erased_store import ErasedStore, added_up

Files = dict[str, bytes]


def of_two(lie: dict[str, Any] | None = None) -> ErasedStore:
    """A store of two retired logs; what is given stands in the base of the second instead of what should."""
    store = ErasedStore(again(ErasedStore(Chain()), "a").chain)
    if lie is None:
        store.compact()
    else:
        store.compact(records=lie).records = lie
    return again(store, "b").compact()


def packed(store: ErasedStore, number: int, content: bytes | None = None, both: bool = False) -> Files:
    """The files, with the base of a retired log packed, or with what is given instead."""
    files, name = {**store.files}, f"base/{store.past[number].base}.json"
    plain = files[name] if both else files.pop(name)
    return {**files, f"{name}.zst": frame(plain) if content is None else content}


def live_packed() -> Case:
    store = of_two()
    name = f"base/{store.base}.json"
    files = {**store.files, f"{name}.zst": frame(store.files[name])}
    del files[name]
    case = store.case("past_base_live", "that of the live log is never packed", "base-missing", files=files)
    case.base = "missing"
    return case


def returned() -> Case:
    store = again(ErasedStore(Chain()), "a", "x").compact()
    again(store, "b").compact()
    old, content = store.past[1].base, store.files[f"base/{store.past[1].base}.json"]
    store.erase("x")
    files = {**store.files, f"base/{old}.json.zst": frame(content)}
    case = store.case("past_base_returned", "an erasure took it away, and it is back, packed", files=files)
    case.returned = [f"base/{old}.json.zst"]
    return case


def pruned(name: str, note: str, *found: str, forgets: bool = False, **changes: Any) -> Case:
    """A store without its archives, whose base says that they were removed on purpose, or should."""
    store = of_two()
    last, seq = store.past[-1].last, store.chain.next_seq
    data = {"archives": 2, "last_seq": last, **changes}
    record = {"id": f"pruned:{seq}", "kind": "pruned", "label": "after 90 days", "data": data}
    store.chain.add(op="prune", record_id=f"pruned:{seq}", record=record)
    if not changes:
        store.records = added_up(store.records, store.chain.lines)
        store.records[f"pruned:{seq}"] = record
    known = {path: one for path, one in store.records.items() if not (forgets and path.startswith("pruned:"))}
    kept = {path for path in store.files if path.startswith("archive/")}
    first = f"base/{store.base}.json"
    store.compact(records=known)
    live = f"base/{store.base}.json"
    files = {
        path: one
        for path, one in store.files.items()
        if path in (first, live) or (path.startswith("archive/") and path not in kept)
    }
    return store.case(name, note, *found, files=files)


def cases() -> list[Case]:
    altered, differs = "base-altered", "base-differs"
    store = of_two()
    name = f"base/{store.past[1].base}.json"
    other = store.files[name].replace(b'"a"', b'"z"')
    lying = of_two({"a": {"id": "a"}, "z": {"id": "z"}})
    without = {path: content for path, content in store.files.items() if path != name}
    wrong = {
        "garbage": (b"not a frame at all", "no frame"),
        "other": (frame(other), "another state than the digest says"),
        "plain": (store.files[name], "not packed, though its name says so"),
    }
    assert sha256(other) != store.past[1].base
    return [
        store.case("past_base_packed", "the base of a retired log, packed", files=packed(store, 1)),
        store.case("past_base_left_out", "history adds up to it", files=without),
        store.case("past_base_both", "the other counts", files=packed(store, 1, b"no frame", both=True)),
        store.case(
            "past_base_both_altered", "and is altered", altered, files={**packed(store, 1), name: other}
        ),
        lying.case("past_base_packed_differs", "it is compared", differs, files=packed(lying, 1)),
        *(
            store.case(f"past_base_packed_{what}", note, altered, files=packed(store, 1, content))
            for what, (content, note) in wrong.items()
        ),
        live_packed(),
        returned(),
        pruned("past_pruned", "archives removed on purpose, and the base says so"),
        pruned("past_pruned_unsaid", "a later base says nothing of it", differs, forgets=True),
        pruned("past_pruned_otherwise", "of another shape: any other op", last_seq="all"),
    ]
