"""An export tells times and nothing that is the store's own, and what it holds comes back."""

from __future__ import annotations

import json
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoStore
from chronomemory._core import canonical_json
from chronomemory.blocks import Memory
from chronomemory.cli.transfer import bring_records, events_of, records_of
from cli_answer import Run
from hypothesis import given, settings
from hypothesis import strategies as st
from shares import share

ANN = ("--user", "ann")

names = st.sampled_from(["A", "B", "C", "D", "page:1", "entry:1", "odd \u2028 é"])
scopes = st.sampled_from([{}, {"user": "ann"}, {"user": "bob", "session": "s"}])
leaves = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
data = st.dictionaries(st.text(max_size=3).filter(lambda key: not key.startswith("@")), leaves, max_size=3)
writes = st.tuples(names, scopes, st.text(max_size=8), data, st.booleans())


def write(store: ChronoStore, steps: list[Any]) -> None:
    owners: dict[str, dict[str, str]] = {}
    for name, scope, label, said, deletes in steps:
        handle = store.scoped(**scope) if owners.setdefault(name, scope) else store
        handle = store.scoped(**owners[name]) if owners[name] else store
        face = "pages" if ":" in name else None
        if deletes and handle.get(name) is not None:
            handle.engine.delete(name, face)
        else:
            handle.engine.upsert({"id": name, "label": label, "data": said}, face)


@given(st.lists(writes, max_size=12), st.booleans())
@settings(max_examples=share(15, 300), deadline=None)
def test_what_is_exported_comes_back_but_for_its_times(steps: list[Any], with_times: bool) -> None:
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as another:
        with ChronoStore(one) as store:
            write(store, steps)
            store.upkeep.create_index("data.x")
            ours = {record.id: record for record in store.everyone().stream(status=None, faces=True)}
            lines = b"".join(records_of(store.everyone())).splitlines(keepends=True)
        rows = [json.loads(line) for line in lines]
        for row in rows:
            record = ours.pop(row["id"])
            assert datetime.fromisoformat(row.pop("created_at")) == record.created_at
            assert datetime.fromisoformat(row.pop("updated_at")) == record.updated_at
            assert row == record.to_dict()
        assert set(ours) == {"search:index:data.x"}
        file = Path(another) / "all.ndjson"
        # Older exports tell no times.
        old = [canonical_json(row) + b"\n" for row in rows]
        file.write_bytes(b"".join(lines if with_times else old))
        with ChronoStore(another) as store:
            assert bring_records(store, file, None)["records"] == len(rows)
            again = [
                json.loads(line) for block in records_of(store.everyone()) for line in block.splitlines()
            ]
        for row in again:
            del row["created_at"], row["updated_at"]
        assert again == rows


def test_an_export_has_no_internal_records(run: Run, tmp_path: Path) -> None:
    with Memory(tmp_path) as memory:
        memory.remember("Cats sleep all day")
        memory.blocks.store.upkeep.create_index("data.x")
        memory.blocks.store.upkeep.require_scope("user")
        memory.blocks.store.upkeep.require_scope("user", wanted=False)
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "call", "kind": "mcp_operation", "data": {"answer": "kept"}})
        store.upsert({"id": "gone"})
        store.erase(ids=["gone"], reason="asked for")
    found = run("export", "--json").listing
    assert {"block"} <= {row["kind"] for row in found}
    assert {row["kind"] for row in found} <= {"block", "frame", "session"}
    assert all(row["created_at"] <= row["updated_at"] for row in found)


def test_the_history_of_a_user_has_every_event_with_its_time_and_nothing_of_others(
    run: Run, tmp_path: Path
) -> None:
    with ChronoStore(tmp_path) as store:
        ann, bob = store.scoped(user="ann"), store.scoped(user="bob")
        ann.upsert({"id": "A", "label": "first"})
        bob.upsert({"id": "B", "label": "secret"})
        store.upsert({"id": "S", "label": "shared"})
        store.compact()
        ann.upsert_many([{"id": "A", "label": "second"}, {"id": "C", "label": "third"}])
        ann.delete("C")
        ann.upsert({"id": "op", "kind": "mcp_operation"})
        expected = sorted(event.seq for name in "AC" for event in ann.history(name))
        assert len(list(events_of(ann))) == 4
    file = tmp_path / "ann.ndjson"
    assert "wrote 4 events" in run("export", "--history", file, *ANN).stdout
    events = [json.loads(line) for line in file.read_text().splitlines()]
    assert [event["seq"] for event in events] == expected
    assert {event["record_id"] for event in events} == {"A", "C"} and "secret" not in file.read_text()
    assert all(datetime.fromisoformat(event["ts"].replace("Z", "+00:00")) for event in events)
    nobody = run("export", "--history", "--user", "anm")
    assert (nobody.code, nobody.stdout) == (0, "") and "nothing was ever written" in nobody.stderr


@pytest.mark.parametrize("field", ["created_at", "updated_at"])
def test_only_an_import_passes_over_the_times(run: Run, tmp_path: Path, field: str) -> None:
    file = tmp_path / "rows.ndjson"
    file.write_text(json.dumps({"id": "A", field: "2026-01-01T00:00:00+00:00"}) + "\n")
    assert run("ingest", file).code == 2, "a loader of plain records knows no such field"
    assert run("import", file).code == 0


def test_exported_lines_hold_every_field_and_both_times(tmp_path: Path) -> None:
    odd = ['é"\\\n', "\u2028", "𝄞", ""]
    with ChronoStore(tmp_path) as store:
        for number, text in enumerate(odd):
            data = {text: [text, {"b": 1.5, "a": -0.0}], "n": 10**20}
            store.upsert({"id": f"r{number}{text}", "kind": f"kind {text}", "label": text, "data": data})
        store.upsert({"id": "later", "confidence": 0.25, "evidence": ["e"], "is_hypothesis": True})
        store.upsert({"id": "r1\u2028", "label": "changed"})
        expected = []
        for record in store.query(status=None):
            assert record.created_at is not None and record.updated_at is not None
            times = (record.created_at.isoformat(), record.updated_at.isoformat())
            expected.append({**record.to_dict(), "created_at": times[0], "updated_at": times[1]})
        assert b"".join(records_of(store)) == b"".join(canonical_json(one) + b"\n" for one in expected)
