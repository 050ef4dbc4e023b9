"""Checks that what records carry is a scope, and the one they were born with. Section 7 of docs/format.md."""

import json
import re
from typing import Any

from erased_lines import base_records

LEVELS = frozenset(["user", "agent", "session"])
MOST_BYTES = 256
UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
#: What stands for a record that carries nothing: it is shared.
SHARED = None


def is_scope(value: Any) -> bool:
    """Whether a value of `@scope` says whose a record is."""
    if not isinstance(value, dict) or not value or not value.keys() <= LEVELS:
        return False
    names = value.values()
    return all(
        isinstance(name, str) and 1 <= len(name.encode()) <= MOST_BYTES and not UNSEEN.search(name)
        for name in names
    )


def carried(record: Any) -> Any:
    """The value of `@scope` in a record, spelled so that two can be compared; `SHARED` if there is none."""
    data = record.get("data") if isinstance(record, dict) else None
    if not isinstance(data, dict) or "@scope" not in data:
        return SHARED
    return json.dumps(data["@scope"], sort_keys=True)


def scopes_in(event: dict[str, Any]) -> list[tuple[int, str, Any]]:
    """What an event says of what a record carries: its seq, the id and the value."""
    op, record = event["op"], event["record"]
    if op == "patch":
        data = (record or {}).get("data", {})
        if isinstance(data, dict) and "@scope" not in data:
            return []
        if isinstance(data, dict) and data["@scope"] is None:
            return [(event["seq"], event["record_id"], SHARED)]
    elif op not in ("upsert", "migrate"):
        return []
    return [(event["seq"], event["record_id"], carried(record))]


def in_base(folder: Any, first: dict[str, Any] | None) -> list[tuple[int | None, str, Any]]:
    """The same of the records of an anchored base; no event says it."""
    return [(None, one["id"], carried(one)) for one in base_records(folder, first)]


def judge(scopes: list[tuple[int | None, str, Any]]) -> list[dict[str, Any]]:
    """What is wrong with all of it, in order. It is no damage: the log counts as it stands."""
    known: dict[str, Any] = {}
    found = []
    for seq, name, value in scopes:
        is_new = name not in known
        if not is_new and known[name] != value:
            found.append({"kind": "scope-changed", "id": name, "seq": seq})
        if (is_new or known[name] != value) and value is not SHARED and not is_scope(json.loads(value)):
            found.append({"kind": "malformed-scope", "id": name, "seq": seq})
        known[name] = value
    return found
