"""What `erase` returns can be kept as a certificate: when, why, what was asked for and what the log was."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoStore
from chronomemory._core import canonical_json

HEAD = {"seq": int, "hash": str, "log": str}
SHAPE: dict[str, Any] = {
    "certificate": str,
    "version": int,
    "seq": int,
    "at": str,
    "reason": str,
    "history": str,
    "dry_run": bool,
    "asked": {"ids": list, "scope": dict, "where": dict},
    "before": HEAD,
    "after": HEAD,
    "counts": {"ids": int, "belonging": int, "mentions": int, "removed_files": int, "page_files": int},
    "ids": list,
    "belonging": list,
    "mentions": list,
    "lines": int,
    "unsalted": int,
    "logs": dict,
    "replaced": int,
    "again": int,
    "backups": list,
    "quarantine": list,
    "unread": list,
    "copies": list,
    "missing_copies": list,
    "new_backup": str,
    "backup_fault": str,
    "removed_files": list,
    "page_files": list,
}


def assert_shaped(told: Any, shape: Any, place: str = "") -> None:
    """All fields of the shape are there and no other; each is of its type, or null."""
    if isinstance(shape, dict):
        if told is None:
            return
        assert told.keys() == shape.keys(), place
        for name in shape:
            assert_shaped(told[name], shape[name], f"{place}.{name}")
    else:
        assert told is None or type(told) is shape, (place, told)


@pytest.mark.parametrize("history", ["redact", "drop"])
def test_a_certificate_tells_when_why_and_from_which_head_to_which(
    store: ChronoStore, tmp_path: Path, log: Path, history: str
) -> None:
    ann = store.scoped(user="ann")
    ann.upsert({"id": "A", "label": "likes tea"})
    ann.upsert({"id": "B", "evidence": ["A"]})
    first = json.loads(log.read_bytes().splitlines()[0])["hash"]
    started, head = datetime.now(timezone.utc), (store.wal_seq(), store.health().head)
    told = store.erase(scope={"user": "ann"}, reason="asked for", history=history)
    assert told.at is not None and timedelta(0) <= told.at - started < timedelta(minutes=1)
    lines = [json.loads(line) for line in log.read_bytes().splitlines()]
    assert told.before is not None and told.after is not None
    if history == "redact":
        assert (told.before.seq, told.before.hash) == head
    # A history that is dropped ends with a salted line, so that no hash can be guessed.
    assert told.before.hash == lines[0]["record"]["data"]["previous_head"]
    assert told.before.log == first
    assert (told.after.seq, told.after.hash, told.after.log) == (
        store.wal_seq(),
        store.health().head,
        lines[0]["hash"],
    )
    assert lines[1]["ts"] == told.at.isoformat().replace("+00:00", "Z")
    certificate = told.to_dict()
    assert_shaped(certificate, SHAPE)
    assert json.loads(canonical_json(certificate)) == json.loads(json.dumps(certificate)) == certificate
    assert (certificate["reason"], certificate["history"]) == ("asked for", history)
    assert certificate["asked"] == {"ids": None, "scope": {"user": "ann"}, "where": None}
    assert certificate["ids"] == ["A", "B"] and certificate["counts"]["ids"] == 2


def test_every_way_to_ask_gives_the_same_shape(store: ChronoStore) -> None:
    for name in "ABCD":
        store.upsert({"id": name, "label": f"the label of {name}", "kind": f"kind {name}"})
    told = [
        store.erase(ids=["A"], reason="asked for", dry_run=True),
        store.erase(ids=["A"], reason="asked for"),
        store.erase(where={"kind": "kind B"}, reason="asked for"),
        store.erase(ids=["nobody"], reason="asked for"),
    ]
    for erased in told:
        for ids in (True, False):
            assert_shaped(erased.to_dict(ids=ids), SHAPE)
    assert [one.at is None for one in told] == [True, False, False, True]
    assert [one.to_dict()["asked"]["where"] for one in told][2] == {"kind": "kind B"}
    # Each begins where the one before it ended.
    assert told[1].after == told[2].before


def test_a_certificate_without_ids_names_nobody(store: ChronoStore) -> None:
    store.scoped(user="ann@example.org").upsert({"id": "invoice-4711", "label": "likes tea"})
    store.upsert({"id": "copy-of-invoice-4711", "evidence": ["invoice-4711"]})
    told = store.erase(scope={"user": "ann@example.org"}, reason="asked for")
    kept = json.dumps(told.to_dict(ids=False))
    assert "ann@example.org" not in kept and "invoice-4711" not in kept
    assert told.to_dict(ids=False)["counts"] == {
        "ids": 1,
        "belonging": 0,
        "mentions": 1,
        "removed_files": 0,
        "page_files": 0,
    }


def test_what_is_kept_in_the_log_names_nobody(store: ChronoStore, log: Path) -> None:
    store.scoped(user="ann@example.org").upsert({"id": "invoice-4711", "label": "likes tea"})
    store.erase(scope={"user": "ann@example.org"}, reason="asked for")
    assert b"invoice-4711" not in log.read_bytes() and b"ann@example" not in log.read_bytes()


def test_a_sweep_that_erases_gives_a_certificate_too(store: ChronoStore) -> None:
    store.upsert({"id": "old", "data": {"expires_at": "2020-01-01T00:00:00Z"}})
    erased = store.sweep(erase=True, reason="kept for a year").erased
    assert erased is not None and erased.at is not None
    certificate = erased.to_dict()
    assert_shaped(certificate, SHAPE)
    assert (certificate["reason"], certificate["ids"]) == ("kept for a year", ["old"])
