"""Logs in which a line of another tool says of scopes what ours never would."""

from typing import Any

from cases_base import Store, state_file
from craft import Case, Chain, one

ANN, BOB = {"user": "ann"}, {"user": "bob"}
NOTHING = object()

# name, what `@scope` is, what it shows
MALFORMED: list[tuple[str, Any, str]] = [
    ("null", None, "null is no scope"),
    ("text", "ann", "a text is none"),
    ("list", ["ann"], "a list is none"),
    ("empty", {}, "it needs a name"),
    ("unknown_key", {"user": "ann", "team": "red"}, "nothing else may stand in it"),
    ("case", {"User": "ann"}, "keys are compared letter by letter"),
    ("name_empty", {"user": ""}, "a name has a letter"),
    ("name_number", {"user": 7}, "a name is a text"),
    ("name_long", {"user": "é" * 128 + "x"}, "257 bytes"),
    ("name_control", {"user": "a\x85b"}, "no control characters"),
    ("name_separator", {"user": "a\u2028b"}, "no separators of lines"),
]


def record(scope: Any, name: str = "x") -> dict[str, Any]:
    data = {} if scope is NOTHING else {"@scope": scope}
    return {"id": name, "kind": "fact", "label": "", "data": data}


def put(chain: Chain, scope: Any, op: str = "upsert") -> Chain:
    return chain.add(op=op, record_id="x", record=record(scope))


def case(name: str, chain: Chain, note: str, *found: list[Any]) -> Case:
    return Case(f"scope_{name}", chain.lines, note, events=len(chain.lines), scopes=list(found))


def patched(patch: dict[str, Any]) -> Chain:
    return put(Chain(), ANN).add(op="patch", record_id="x", record=patch)


def cases() -> list[Case]:
    changed, malformed = ["scope-changed", "x", 2], ["malformed-scope", "x", 1]
    whole = {"agent": "sup", "session": "s", "user": "é" * 128}
    batch = put(put(Chain().begin(2), ANN), BOB)
    half = put(Chain(), ANN).begin(2)
    return [
        *(case(name, put(Chain(), scope), note, malformed) for name, scope, note in MALFORMED),
        case("whole", put(Chain(), whole), "three names, one of 256 bytes"),
        case("kept", put(put(Chain(), ANN), ANN), "the same twice"),
        case("changed", put(put(Chain(), ANN), BOB), "another user's now", changed),
        case("taken_away", put(put(Chain(), ANN), NOTHING), "shared now", changed),
        case("given_later", put(put(Chain(), NOTHING), ANN), "it was shared", changed),
        case("changed_by_migrate", put(put(Chain(), ANN), BOB, "migrate"), "read as an upsert", changed),
        case("and_back", put(put(put(Chain(), ANN), BOB), ANN), "twice", changed, ["scope-changed", "x", 3]),
        case("still_malformed", put(put(Chain(), 7), 7), "it is told once", malformed),
        case("of_another", put(Chain(), ANN).add(record=record(BOB, "r2")), "each record has its own"),
        case("patch_beside", patched({"label": "new"}), "a patch that does not speak of it"),
        case("patch_data", patched({"data": {"a": 1}}), "a patch of other data"),
        case("patched", patched({"data": {"@scope": BOB}}), "a patch that does", changed),
        case("patched_away", patched({"data": {"@scope": None}}), "a patch that takes it away", changed),
        case("patched_data_away", patched({"data": None}), "a patch that takes all data away", changed),
        case("in_a_batch", batch, "within a batch", ["scope-changed", "x", 3]),
        Case("scope_in_half_a_batch", put(half, BOB).lines, "it is not whole", events=1, tail_line=2),
    ]


def folders() -> list[Case]:
    before = one()
    store = Store(before).compact(
        content=state_file(before.next_seq - 1, before.head, [record(ANN), record(7, "y")])
    )
    put(store.chain, BOB)
    made = store.case("scope_in_base", "anchored", "the base told it before")
    made.scopes = [["malformed-scope", "y", None], ["scope-changed", "x", store.chain.next_seq - 1]]
    return [made]
