"""Logs that show which fields an event must have, and what fields outside the hash do."""

import json
from typing import Any

from craft import UNLOADED, Case, Chain, compact, one, own_line, sandwich, sha256, spaced

MAX = 2**63 - 1

# name, changed fields (the hash is right for them), verdict on that line, what it shows
FIELDS: list[tuple[str, dict[str, Any], str | None, str]] = [
    ("seq_float", {"seq": 2.0}, "malformed", "seq is an integer"),
    ("seq_fraction", {"seq": 2.5}, "malformed", "seq is an integer"),
    ("seq_string", {"seq": "2"}, "malformed", "seq is an integer"),
    ("seq_bool", {"seq": True}, "malformed", "true is not 1"),
    ("seq_null", {"seq": None}, "malformed", "seq is an integer"),
    ("seq_negative", {"seq": -1}, "malformed", "seq is not negative"),
    ("seq_zero", {"seq": 0}, None, "seq may be 0, and may go back: the chain is made of hashes"),
    ("seq_largest", {"seq": MAX}, None, "the largest seq"),
    ("seq_too_large", {"seq": MAX + 1}, "malformed", "beyond 63 bits"),
    ("recursion_depth_bool", {"recursion_depth": False}, "malformed", "false is not 0"),
    ("recursion_depth_float", {"recursion_depth": 0.0}, "malformed", "recursion_depth is an integer"),
    ("recursion_depth_smallest", {"recursion_depth": -MAX - 1}, None, "64 bits with sign"),
    ("recursion_depth_too_large", {"recursion_depth": MAX + 1}, "malformed", "64 bits with sign"),
    ("recursion_depth_too_small", {"recursion_depth": -MAX - 2}, "malformed", "64 bits with sign"),
    ("ts_number", {"ts": 1767225600}, "malformed", "ts is a string"),
    ("ts_foreign", {"ts": "2026-01-01 00:00"}, None, "any string is accepted"),
    ("ts_earlier", {"ts": "1999-01-01T00:00:00Z"}, None, "time going back is not damage"),
    ("op_number", {"op": 1}, "malformed", "op is a string"),
    ("op_unknown", {"op": "annotate"}, None, "in the chain, without effect"),
    ("op_migrate", {"op": "migrate"}, None, "read as an upsert"),
    ("op_patch", {"op": "patch", "record": {"label": None}}, None, "a merge patch"),
    (
        "op_compact_later",
        {"op": "compact", "record_id": "__compact__"},
        None,
        "a sentinel has no effect but as the first",
    ),
    ("record_id_number", {"record_id": 7}, "malformed", "record_id is a string"),
    ("record_id_empty", {"record_id": ""}, None, "any string is accepted"),
    ("record_null", {"op": "delete", "record": None}, None, "record may be null"),
    ("record_list", {"record": []}, "malformed", "record is an object or null"),
    ("record_string", {"record": "x"}, "malformed", "record is an object or null"),
    ("record_false", {"record": False}, "malformed", "record is an object or null"),
    ("prev_hash_null", {"prev_hash": None}, "malformed", "prev_hash is a string"),
    ("prev_hash_upper", {"prev_hash": "AB" * 32}, "malformed", "lower-case hex only"),
    ("prev_hash_short", {"prev_hash": "ab" * 31}, "malformed", "64 digits"),
    ("prev_hash_word", {"prev_hash": "genesis"}, "malformed", "64 digits"),
    ("prev_hash_other", {"prev_hash": "ab" * 32}, "unlinked", "well formed, but not the head"),
    ("prev_hash_empty_later", {"prev_hash": ""}, "unlinked", 'only the first event has ""'),
    ("begin_without_events", {"op": "begin", "record": {}}, "malformed", "begin says how many"),
    ("begin_null", {"op": "begin", "record": None}, "malformed", "begin says how many"),
    ("begin_zero", {"op": "begin", "record": {"events": 0}}, "malformed", "at least one"),
    ("begin_bool", {"op": "begin", "record": {"events": True}}, "malformed", "true is not 1"),
    ("begin_float", {"op": "begin", "record": {"events": 1.0}}, "malformed", "an integer"),
    ("begin_string", {"op": "begin", "record": {"events": "1"}}, "malformed", "an integer"),
    ("begin_too_many", {"op": "begin", "record": {"events": 2**32}}, "malformed", "at most 2^32-1"),
]

HASHES: list[tuple[str, Any, str]] = [
    ("hash_upper", str.upper, "malformed"),
    ("hash_63_digits", lambda digest: digest[:-1], "malformed"),
    ("hash_65_digits", lambda digest: digest + "0", "malformed"),
    ("hash_with_newline", lambda digest: digest + "\n", "malformed"),
    ("hash_null", lambda digest: None, "malformed"),
    ("hash_number", lambda digest: 0, "malformed"),
    ("hash_wrong", lambda digest: digest[::-1], "altered"),
]


def with_hash_of(name: str, kind: str, note: str, hashed: Any) -> Case:
    """An own-form line whose hash is over something else than the canonical payload."""
    chain = one()
    fields = chain.fields(record={"label": "é"})
    digest = sha256(hashed(fields))
    return sandwich(name, chain.put(own_line(fields, digest), digest), kind or None, note)


def unknown_field(name: str, extra: dict[str, Any], kind: str | None, note: str, form: Any) -> Case:
    """A line with a field outside its hash; `form` turns the whole object into its bytes."""
    chain = one()
    fields = chain.fields(record={"label": "a\u2028b"})
    digest = sha256(compact(fields))
    return sandwich(name, chain.put(form({**fields, **extra, "hash": digest}) + b"\n", digest), kind, note)


def escaped(event: dict[str, Any]) -> bytes:
    return compact(event).replace("\u2028".encode(), rb"\u2028")


def hash_first(event: dict[str, Any]) -> bytes:
    return compact({"hash": event.pop("hash")})[:-1] + b"," + escaped(event)[1:]


def twice(name: str) -> Any:
    """Spell one top-level field a second time, with the same value."""
    return lambda event: (
        compact(event)[:-1] + f',"{name}":'.encode() + compact(event[json.loads(f'"{name}"')]) + b"}"
    )


def cases() -> list[Case]:
    found = []
    for name, changes, kind, note in FIELDS:
        chain = one().add(**changes)
        chain.next_seq = 3
        found.append(sandwich(name, chain, kind, note))
    for name, spoil, kind in HASHES:
        chain = one()
        fields = chain.fields()
        digest = sha256(compact(fields))
        line = compact({**fields, "hash": spoil(digest)}) + b"\n"
        found.append(
            sandwich(name, chain.put(line, digest), kind, "hash is 64 lower-case hex digits, and right")
        )
    for name in ("seq", "ts", "op", "record_id", "record", "prev_hash", "hash", "recursion_depth"):
        chain = one()
        fields = chain.fields()
        event = {**fields, "hash": sha256(compact(fields))}
        del event[name]
        line = compact(event) + b"\n"
        found.append(
            sandwich(
                f"without_{name}", chain.put(line, sha256(line)), "malformed", "all eight fields are needed"
            )
        )
    for name, text in (
        ("null", b"null"),
        ("number", b"7"),
        ("string", b'"event"'),
        ("list", b"[]"),
        ("object", b"{}"),
    ):
        note = "JSON, but not an event"
        found.append(sandwich(f"only_{name}", one().put(text + b"\n", "ab" * 32), "malformed", note))

    found += [
        with_hash_of("hash_of_spaced", "", "the older dialect, in a line of our own form", spaced),
        with_hash_of("hash_of_ascii", "altered", "non-ASCII is raw in both dialects", ascii_only),
        with_hash_of(
            "hash_of_insertion_order", "altered", "keys are sorted in both dialects", insertion_order
        ),
        with_hash_of("hash_of_six_fields", "altered", "recursion_depth is hashed", without_recursion_depth),
        with_hash_of(
            "hash_of_newline", "altered", "the newline is not hashed", lambda fields: compact(fields) + b"\n"
        ),
        unknown_field("injected_last", {"zz": 1}, "injected", "outside the hash, in our own form", compact),
        unknown_field("injected_first", {"a": 1}, "injected", "wherever the field sorts", compact),
        unknown_field(
            "injected_escaped", {"note": "\u2028"}, "injected", "the form with escapes is ours too", escaped
        ),
        unknown_field("injected_null", {"x": None}, "injected", "whatever its value", compact),
        unknown_field("unknown_spaced", {"zz": 1}, None, "another form: a note", spaced),
        unknown_field("unknown_hash_first", {"a": 1}, None, "unsorted, so not our form", hash_first),
        unknown_field("unknown_float", {"zz": 1.0}, None, "a float we would spell otherwise", spell_1_00),
        unknown_field(
            "unknown_carriage_return", {"zz": 1}, None, "CRLF is not our form", lambda e: compact(e) + b"\r"
        ),
        unknown_field("unknown_mixed", {"zz": "\u2028"}, None, "some escaped, some raw: not our form", mixed),
        unknown_field("unknown_ascii", {"zz": 1}, None, "all escaped as ASCII tools do", ascii_of_e_acute),
        unknown_field(
            "unknown_surrogate", {"zz": 1}, "unreadable", "lone surrogate outside the hash", lone_surrogate
        ),
        unknown_field("unknown_deep", {"zz": 1}, "unreadable", "too deep outside the hash", too_deep),
        unknown_field(
            "unknown_twice", {"zz": 1}, "unreadable", "duplicate key outside the hash", twice("zz")
        ),
        unknown_field("twice_seq", {}, "unreadable", "duplicate key at the top", twice("seq")),
        unknown_field(
            "twice_seq_by_escape", {}, "unreadable", "the same, spelled differently", twice(r"s\u0065q")
        ),
        unknown_field("twice_hash", {}, "unreadable", "duplicate hash", twice("hash")),
        unknown_field("payload_key_escaped", {}, None, "a field name may be spelled by escapes", escaped_key),
        unknown_field("unknown_similar_name", {"Hash": "x"}, "injected", "field names are exact", compact),
    ]
    return [*found, *two_faults()]


def ascii_only(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()


def insertion_order(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()


def without_recursion_depth(fields: dict[str, Any]) -> bytes:
    return compact({name: value for name, value in fields.items() if name != "recursion_depth"})


def spell_1_00(event: dict[str, Any]) -> bytes:
    return compact(event).replace(b'"zz":1.0', b'"zz":1.00')


def mixed(event: dict[str, Any]) -> bytes:
    return compact(event).replace("\u2028".encode(), rb"\u2028", 1)


def ascii_of_e_acute(event: dict[str, Any]) -> bytes:
    return json.dumps({**event, "zz": "é\u2028"}, sort_keys=True, separators=(",", ":")).encode()


def lone_surrogate(event: dict[str, Any]) -> bytes:
    return compact(event).replace(b'"zz":1', rb'"zz":"\ud800"')


def too_deep(event: dict[str, Any]) -> bytes:
    return compact(event).replace(b'"zz":1', b'"zz":' + b"[" * 200 + b"]" * 200)


def escaped_key(event: dict[str, Any]) -> bytes:
    return compact(event).replace(b'"seq":', rb'"s\u0065q":')


def two_faults() -> list[Case]:
    """Lines with more than one fault are reported once, by the first class that applies."""
    found = []
    faults: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
        ("injected_and_unlinked", {"prev_hash": "ab" * 32}, {"zz": 1}, "injected"),
        ("injected_and_altered", {}, {"zz": 1, "ts": "changed"}, "altered"),
        ("injected_and_malformed", {}, {"zz": 1, "seq": "2"}, "malformed"),
        ("altered_and_unlinked", {"prev_hash": "ab" * 32}, {"ts": "changed"}, "altered"),
        ("altered_and_malformed", {}, {"ts": "changed", "op": None}, "malformed"),
    ]
    for name, changes, later, kind in faults:
        chain = Chain().add()
        fields = chain.fields(**changes)
        digest = sha256(compact(fields))
        line = compact({**fields, "hash": digest, **later}) + b"\n"
        case = sandwich(name, chain.put(line, digest), kind, "reported once, by the first class that applies")
        assert case.events == (2 if kind in UNLOADED else 3)
        found.append(case)
    return found
