"""Many users in one store: a handle sees what is its own and what is wider, and changes only the former."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from chronomemory import (
    ChronoRecord,
    ChronoStore,
    DepGraph,
    InvalidArgument,
    InvalidRecord,
    LogCorrupted,
    Scope,
    UnknownRecord,
    invalidate,
)
from chronomemory._core import canonical_json
from chronomemory.cli.transfer import bring_records
from chronomemory.errors import IdTaken, OutOfScope, UnknownScope
from chronomemory.store import ScopedStore
from recovering import chained
from scopes_seen import Names, every_scope, seen

#: Names that a careless implementation would take for patterns, paths, JSON, or each other.
NAMES = (
    "ann",
    "Ann",
    "an",
    "ann%",
    "a_n",
    "*",
    "..",
    "a/b",
    '"ann"',
    '{"user":"ann"}',
    "é",
    "e\u0301",
    " ann",
    "x" * 256,
    "ann@0123456789abcdef",
    "@scope",
)


def labels(handle: ScopedStore | ChronoStore) -> set[str]:
    return {record.label for record in handle.query()}


def filled(store: ChronoStore) -> list[Names]:
    """Write one record for every scope, through a handle of just that scope."""
    scopes = every_scope()
    for number, names in enumerate(scopes):
        store.scoped(**names).upsert({"id": f"R-{number}", "label": f"tea of {number}"})
    return scopes


def test_every_pair_of_scopes_is_as_the_table_says(store: ChronoStore) -> None:
    scopes = filled(store)
    for given in scopes:
        handles = [(store.scoped(**given), True)] + (
            [(store.scoped(**given, shared=False), False)] if given else []
        )
        for handle, shared in handles:
            expected = {n for n, carried in enumerate(scopes) if seen(carried, given, shared=shared)}
            assert {int(record.id[2:]) for record in handle.query()} == expected, given
            assert {int(hit.record.id[2:]) for hit in handle.search("tea", limit=100)} == expected, given
            assert handle.record_count() == len(expected)
            assert sum(handle.count(by="kind").values()) == len(expected)
            assert {int(name[2:]) for name in handle.changed_since(0)} == expected
            past = handle.as_of(store.wal_seq())
            assert {int(record.id[2:]) for record in past.query()} == expected
            for number in range(len(scopes)):
                is_seen = number in expected
                assert (handle.get(f"R-{number}") is not None) is is_seen
                assert bool(handle.history(f"R-{number}")) is is_seen
                assert (past.get(f"R-{number}") is not None) is is_seen


def test_own_may_be_changed_and_wider_is_only_read(store: ChronoStore) -> None:
    scopes = filled(store)
    before = {record.id: record.label for record in store.everyone().query()}
    for given in scopes:
        handle = store.scoped(**given)
        for number, carried in enumerate(scopes):
            name = f"R-{number}"
            how = seen(carried, given)
            if how == "own":
                handle.upsert({"id": name, "label": before[name]})
                kept = store.everyone().get(name)
                assert kept is not None and kept.data.get("@scope", {}) == carried
                continue
            refusal = OutOfScope if how == "wider" else IdTaken
            with pytest.raises(refusal) as refused:
                handle.upsert({"id": name, "label": "mine now"})
            assert refused.value.id == name and refused.value.recovery
            with pytest.raises(OutOfScope if how == "wider" else UnknownRecord):
                handle.delete(name)
    assert {record.id: record.label for record in store.everyone().query()} == before


def test_an_id_that_is_taken_says_nothing_of_whose_it_is(store: ChronoStore) -> None:
    store.scoped(user="ann").upsert({"id": "FACT-1", "label": "secret"})
    with pytest.raises(IdTaken) as refused:
        store.scoped(user="bob").upsert({"id": "FACT-1"})
    assert str(refused.value) == (
        'id "FACT-1": taken in this store; use handle.id("FACT-1"), or leave the id out'
    )
    assert refused.value.path == "id"


def test_a_tombstone_keeps_its_id(store: ChronoStore) -> None:
    ann, bob = store.scoped(user="ann"), store.scoped(user="bob")
    ann.upsert({"id": "A"})
    ann.delete("A")
    with pytest.raises(IdTaken):
        bob.upsert({"id": "A"})
    assert bob.get("A") is None and ann.known and not bob.known


def test_ids_with_the_digits_of_a_scope_are_that_scopes(store: ChronoStore) -> None:
    ann, bob = store.scoped(user="ann"), store.scoped(user="bob")
    assert ann.id("TEA") != bob.id("TEA") and ann.id("TEA") == store.scoped(user="ann").id("TEA")
    for occupant in (bob, store):
        with pytest.raises(IdTaken):
            occupant.upsert({"id": ann.id("TEA")})
    ann.upsert({"id": ann.id("TEA")})
    bob.upsert({"id": bob.id("TEA")})
    assert len(store.everyone().query()) == 2


def test_a_store_without_scopes_keeps_ids_of_that_form(tmp_path: Path) -> None:
    """Records that were there before anyone gave names can be changed as ever."""
    name = "mail@0123456789abcdef"
    with ChronoStore(tmp_path) as store:
        line = json.loads(store.upsert({"id": "A", "label": "old"}).to_json_line())
    # As a version wrote it that knew no scopes.
    line |= {"record_id": name, "record": {**line["record"], "id": name}}
    (tmp_path / ".chronomemory" / "events.wal").write_bytes(chained([canonical_json(line)]))
    with ChronoStore(tmp_path, head_file=tmp_path / "head") as store:
        store.upsert({"id": name, "label": "new"})
        assert labels(store) == {"new"}


def test_no_entry_point_takes_an_id_that_is_reserved_for_another_scope(tmp_path: Path) -> None:
    """``name@`` and the digits of ann's scope is ann's, whoever brings it in and however."""
    with ChronoStore(tmp_path) as store:
        ann, bob = store.scoped(user="ann"), store.scoped(user="bob")
        row = {"id": ann.id("TEA"), "label": "planted"}
        lines, plan = tmp_path / "rows.ndjson", tmp_path / "plan"
        plan.mkdir()
        (plan / "requirements.json").write_text(json.dumps([{"id": row["id"], "title": "planted"}]))
        for data in ({}, {"@scope": {"user": "bob"}}, {"@scope": "nobody"}):
            lines.write_text(json.dumps({**row, "data": data}) + "\n")
            with pytest.raises(IdTaken):
                bring_records(store, lines, None)
        with pytest.raises(IdTaken):
            store.everyone().upsert_many([{**row, "data": {"@scope": {"user": "bob"}}}])
        lines.write_text(json.dumps(row) + "\n")
        for handle in (store, bob, store.everyone(), store.shared()):
            with pytest.raises(IdTaken):
                handle.upsert(row)
            with pytest.raises(IdTaken):
                handle.upsert_many([row])
            with pytest.raises(IdTaken):
                handle.upsert(row, if_new=True)
            with pytest.raises(IdTaken):
                handle.ingest([lines])
            assert handle.ingest([lines], on_error="skip").skipped == 1
            with pytest.raises(IdTaken):
                handle.update(row["id"], lambda _: row)
        assert store.migrate_from_json(plan)["requirements"] == 0
        assert not store.everyone().query(status=None)
        # Its own scope brings it back from an export.
        lines.write_text(json.dumps({**row, "data": {"@scope": {"user": "ann"}}}) + "\n")
        assert bring_records(store, lines, None)["records"] == 1
        assert labels(ann) == {"planted"}


@pytest.mark.parametrize("name", NAMES)
def test_names_are_compared_letter_by_letter(store: ChronoStore, name: str) -> None:
    for other in NAMES:
        store.scoped(user=other).upsert({"id": store.scoped(user=other).id("X"), "label": other})
        store.scoped(agent=other).upsert({"id": store.scoped(agent=other).id("X"), "label": "agent " + other})
    assert labels(store.scoped(user=name)) == {name}
    assert labels(store.scoped(agent=name)) == {"agent " + name}
    assert labels(store) == set()


@pytest.mark.parametrize("level", ["user", "agent", "session"])
def test_a_name_that_is_none_is_refused(store: ChronoStore, level: str) -> None:
    for wrong, shown in ((None, "None"), ("", "''"), (7, "int")):
        with pytest.raises(InvalidArgument) as refused:
            store.scoped(**{level: wrong})  # type: ignore[arg-type]
        assert str(refused.value) == (
            f"{level}: non-empty text expected, got {shown}; leave it out for what is shared"
        )
    for wrong in ("a\nb", "a\u0085b", "a\u2028b", "a\ud800", "x" * 257):
        with pytest.raises(InvalidArgument, match=level):
            store.scoped(**{level: wrong})


def test_without_names_only_own_is_nothing(store: ChronoStore) -> None:
    with pytest.raises(InvalidArgument, match="shared"):
        store.scoped(shared=False)


def test_what_is_made_carries_the_scope(store: ChronoStore) -> None:
    ann = store.scoped(user="ann", session="s1")
    ann.upsert(ChronoRecord(id="A", data={"a": 1}))
    ann.upsert_many([{"id": f"B-{n}", "data": {"0": n, "z": n}} for n in range(700)])
    record = store.everyone().get("A")
    assert record is not None and record.data == {"@scope": {"session": "s1", "user": "ann"}, "a": 1}
    assert record.scope == ann.scope == Scope(user="ann", session="s1")
    assert ChronoRecord(id="x").scope == Scope() and ChronoRecord(id="x", data={"@scope": 1}).scope is None
    many = [store.everyone().get(f"B-{n}") for n in range(700)]
    assert all(one is not None and one.data["@scope"] == {"session": "s1", "user": "ann"} for one in many)
    assert store.chain_valid()


def test_a_given_scope_must_be_that_of_the_handle(store: ChronoStore) -> None:
    ann = store.scoped(user="ann")
    ann.upsert({"id": "A", "data": {"@scope": {"user": "ann"}}})
    for handle, given in (
        (ann, {"user": "bob"}),
        (ann, {"user": "ann", "session": "s"}),
        (ann, None),
        (store, {"user": "ann"}),
        (store, {}),
    ):
        with pytest.raises(InvalidRecord) as refused:
            handle.upsert({"id": "B", "data": {"@scope": given}})
        assert refused.value.path == "data.@scope"
    assert store.everyone().get("B") is None


def test_everyone_writes_what_a_row_says_if_it_is_a_scope(store: ChronoStore) -> None:
    everyone = store.everyone()
    everyone.upsert({"id": "A", "data": {"@scope": {"user": "ann"}}})
    assert store.scoped(user="ann").get("A") is not None and store.get("A") is None
    for wrong in (None, {}, [], "ann", {"user": ""}, {"user": None}, {"name": "ann"}, {"user": "a\nb"}):
        with pytest.raises(InvalidRecord) as refused:
            everyone.upsert({"id": "B", "data": {"@scope": wrong}})
        assert refused.value.path == "data.@scope"
    for other in ({}, {"@scope": {"user": "bob"}}):
        with pytest.raises(InvalidRecord, match="born with"):
            everyone.upsert({"id": "A", "data": other})
    with pytest.raises(InvalidRecord, match="born with"):
        everyone.upsert_many([{"id": "C"}, {"id": "C", "data": {"@scope": {"user": "bob"}}}])
    assert everyone.get("C") is None


def test_what_is_malformed_in_a_log_is_seen_by_nobody_else(tmp_path: Path, log: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "SHARED"})
    wrong = [None, [], "ann", {"user": ""}, {"user": "ann", "x": 1}]
    lines = log.read_bytes().splitlines()
    for number, scope in enumerate(wrong):
        event = json.loads(lines[0])
        event["record"] |= {"id": f"W-{number}", "data": {"@scope": scope}}
        event |= {"record_id": f"W-{number}", "seq": len(lines) + 1}
        lines.append(json.dumps(event).encode())
    log.write_bytes(chained(lines))
    with ChronoStore(tmp_path) as store:
        for handle in (store, store.scoped(user="ann"), store.scoped(user="ann", agent="x", session="y")):
            assert [record.id for record in handle.query()] == ["SHARED"]
            assert handle.get("W-0") is None and not handle.history("W-0")
            assert {hit.record.id for hit in handle.search("W-0 SHARED")} <= {"SHARED"}
        assert len(store.everyone().query()) == 1 + len(wrong)
        report = store.verify()
        assert report.valid
        assert [(found.kind, found.id, found.seq) for found in report.scopes] == [
            ("malformed-scope", f"W-{number}", number + 2) for number in range(len(wrong))
        ]
        assert 'scope: malformed-scope: id "W-0", seq 2' in report.lines()
        assert report.to_dict()["scopes"][0] == {"kind": "malformed-scope", "id": "W-0", "seq": 2}


def test_what_is_malformed_is_imported_as_it_stands(tmp_path: Path, store: ChronoStore) -> None:
    rows = [{"id": "A", "data": {"@scope": 7}}, {"id": "B", "data": {"@scope": {"user": "ann"}}}]
    export = tmp_path / "export.ndjson"
    export.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InvalidRecord):
        store.everyone().ingest(export)
    for _ in range(2):
        store.engine.unscoped().ingest(export, faces=True)
    kept = store.everyone().get("A")
    assert kept is not None and kept.data == {"@scope": 7} and kept.scope is None
    assert store.get("A") is None and labels(store.scoped(user="ann")) == {""}
    assert [(found.kind, found.id) for found in store.verify().scopes] == [("malformed-scope", "A")]
    store.compact()
    assert [(found.kind, found.id, found.seq) for found in store.verify().scopes] == [
        ("malformed-scope", "A", None)
    ]


def test_a_scope_that_a_foreign_line_took_away_leaves_the_past_unseen(tmp_path: Path, log: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.scoped(user="ann").upsert({"id": "A", "label": "ann's secret"})
    lines = log.read_bytes().splitlines()
    event = json.loads(lines[0])
    event["record"] |= {"data": {}, "label": "public now"}
    lines.append(json.dumps(event | {"seq": 2}).encode())
    log.write_bytes(chained(lines))
    with ChronoStore(tmp_path) as store:
        assert labels(store) == {"public now"} and not labels(store.scoped(user="ann", shared=False))
        assert [event.seq for event in store.history("A")] == [2]
        assert store.as_of(1).get("A") is None
        past = store.scoped(user="ann").as_of(1).get("A")
        assert past is not None and past.label == "ann's secret"
        assert [str(found) for found in store.verify().scopes] == ['scope-changed: id "A", seq 2']


def test_a_handle_goes_on_when_its_store_was_closed(store: ChronoStore) -> None:
    ann = store.scoped(user="ann")
    ann.upsert({"id": "A"})
    store.close()
    ann.upsert({"id": "B"})
    assert [record.id for record in ann.query()] == ["A", "B"]


def test_without_a_name_gives_the_wider_handle(store: ChronoStore) -> None:
    now = store.scoped(user="ann", session="s1")
    now.without("session").upsert({"id": "A"})
    assert store.scoped(user="ann", session="s2").get("A") is not None
    with pytest.raises(InvalidArgument):
        now.without("tenant")


def test_who_was_never_written_for_is_unknown(store: ChronoStore) -> None:
    store.scoped(user="ann").upsert({"id": "A"})
    assert store.scoped(user="ann", must_exist=True).known
    with pytest.raises(UnknownScope, match="user=anm"):
        store.scoped(user="anm", must_exist=True)


def test_scopes_are_listed_in_pages(store: ChronoStore) -> None:
    scopes = filled(store)
    pages: list[Scope] = []
    while page := store.scopes(after=pages[-1] if pages else None, limit=5):
        assert all(listed.records == 1 for listed in page)
        pages += [listed.scope for listed in page]
    assert len(pages) == len(scopes) == len(set(pages))
    assert {tuple(sorted(scope.to_dict().items())) for scope in pages} == {
        tuple(sorted(names.items())) for names in scopes
    }


def test_embeddings_are_of_their_records_scope(store: ChronoStore) -> None:
    ann, bob = store.scoped(user="ann"), store.scoped(user="bob")
    store.upsert({"id": "S"})
    store.vectors.attach("S", [0.0, 1.0], model="m")
    for handle, name in ((ann, "A"), (bob, "B")):
        handle.upsert({"id": name})
        handle.vectors.attach(name, [1.0, 0.0])
    assert [near.record_id for near in ann.vectors.nearest([1.0, 0.0], k=5)] == ["A", "S"]
    assert [hit.record.id for hit in bob.search(vector=[1.0, 0.0])] == ["B", "S"]
    assert [near.record_id for near in store.vectors.nearest([1.0, 0.0], k=5)] == ["S"]
    assert bob.vectors.get("A") is None and ann.vectors.get("A") is not None
    for name, refusal in (("B", UnknownRecord), ("S", OutOfScope), ("NOBODY", UnknownRecord)):
        with pytest.raises(refusal):
            ann.vectors.attach(name, [0.5, 0.5])
    with pytest.raises(OutOfScope):
        ann.vectors.detach("S")
    # What is not seen is as what is not there.
    assert ann.vectors.detach("B") is ann.vectors.detach("NOBODY") is False
    assert len(store.everyone().vectors.nearest([1.0, 0.0], k=5)) == 3


def test_a_matrix_has_the_rows_of_records_that_are_seen_and_no_others(store: ChronoStore) -> None:
    store.upsert({"id": "S"})
    store.vectors.attach("S", [0.0, 1.0], model="m")
    for name in ("ann", "bob", "cy"):
        handle = store.scoped(user=name)
        handle.upsert_many([{"id": f"{name}-1"}, {"id": f"{name}-2"}])
        handle.vectors.attach_many([f"{name}-1", f"{name}-2"], [[len(name), 1.0], [2.0, ord(name[0])]])
    store.scoped(user="bob").vectors.attach("bob-1", [7.0, 7.0])  # and a row that is nobody's any more
    ids, rows = store.vectors.matrix()
    assert (ids, rows.tolist()) == (["S"], [[0.0, 1.0]])
    ids, rows = store.scoped(user="ann").vectors.matrix()
    assert (ids, rows.tolist()) == (["S", "ann-1", "ann-2"], [[0.0, 1.0], [3.0, 1.0], [2.0, 97.0]])
    assert store.scoped(user="nobody", shared=False).vectors.matrix()[1].shape == (0, 2)
    ids, rows = store.everyone().vectors.matrix()
    assert sorted(ids) == ["S", *(f"{name}-{n}" for name in ("ann", "bob", "cy") for n in (1, 2))]
    assert len(rows) == 7


def test_spaces_count_what_is_seen(store: ChronoStore) -> None:
    store.upsert({"id": "S"})
    store.vectors.attach("S", [0.0, 1.0], model="m")
    ann, bob = store.scoped(user="ann"), store.scoped(user="bob")
    for number in range(40):
        bob.upsert({"id": f"B{number}"})
        bob.vectors.attach(f"B{number}", [1.0, number])
    ann.upsert({"id": "A"})
    ann.vectors.attach("A", [1.0, 0.0])
    ann.delete("A")
    for handle, rows in ((store, 1), (ann, 2), (bob, 41), (store.everyone(), 42)):
        (space,) = handle.vectors.spaces()
        assert (space.name, space.model, space.rows, space.living, space.bytes) == (
            *("default", "m"),
            *(rows, rows, 8 * rows),
        )
        assert handle.engine.vectors.spaces()[0]["dim"] == 2


def test_a_damaged_row_of_another_says_nothing_to_who_asks_for_it(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "S"})
        store.vectors.attach("S", [0.0, 1.0], model="m")
        bob = store.scoped(user="bob")
        bob.upsert({"id": "B"})
        bob.vectors.attach("B", [1.0, 0.0])
    rows = tmp_path / ".chronomemory" / "vectors" / "default.0.f32"
    rows.write_bytes(rows.read_bytes()[:8] + b"\x01" * 8)
    with ChronoStore(tmp_path) as store:
        ann, bob = store.scoped(user="ann"), store.scoped(user="bob")
        with pytest.raises(LogCorrupted):
            bob.vectors.get("B")
        assert ann.vectors.get("B") is ann.vectors.get("NOBODY") is store.vectors.get("B") is None
        assert [handle.vectors.spaces()[0].damaged for handle in (ann, bob, store, store.everyone())] == [
            0,
            1,
            0,
            1,
        ]


def test_a_named_handle_does_not_say_which_moment_it_is(store: ChronoStore) -> None:
    """That would hide or show the records of all who share the engine."""
    for handle in (store.scoped(user="ann"), store.shared(), store.everyone()):
        assert not hasattr(handle, "set_now")


def test_ids_of_metrics_do_not_depend_on_others(store: ChronoStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time_ns", lambda: 1_800_000_000_000_000_000)
    ann, bob = store.scoped(user="ann"), store.scoped(user="bob")
    made = [
        [handle.record_token_metric("T", 1, 1, 1).id, handle.record_skill_run("S", True, 1, None).id]
        for handle in (bob, ann, bob, ann)
    ]
    shapes = {re.sub("-[0-9a-f]{16}$", "", name) for pair in made for name in pair}
    assert shapes == {"METRIC-T-1800000000000", "SKILLRUN-S-1800000000000"}
    assert len({name for pair in made for name in pair}) == 8


def test_a_sweep_names_nothing_that_the_handle_does_not_see(store: ChronoStore) -> None:
    ann, bob = store.scoped(user="ann"), store.scoped(user="bob")
    ann.upsert({"id": "CODE", "data": {"expires_at": "2020-01-01T00:00:00Z"}})
    ann.upsert({"id": "NOTE", "evidence": ["CODE"]})
    bob.upsert({"id": "SECRET", "evidence": ["CODE"], "data": {"previous": "CODE"}})
    for dry_run in (True, False):
        report = ann.sweep(erase=True, dry_run=dry_run).erased
        assert report is not None and report.ids == ("CODE",)
        assert report.mentions == ("NOTE",) and report.belonging == ()


def test_scopes_survive_compaction_and_reopening(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        scopes = filled(store)
        store.compact()
    with ChronoStore(tmp_path) as store:
        for given in scopes:
            expected = {f"tea of {n}" for n, carried in enumerate(scopes) if seen(carried, given)}
            assert labels(store.scoped(**given)) == expected


def test_a_file_is_loaded_into_the_scope(tmp_path: Path, store: ChronoStore) -> None:
    rows = tmp_path / "rows.ndjson"
    rows.write_text("".join(json.dumps({"id": f"R-{n}"}) + "\n" for n in range(50)))
    store.scoped(user="ann").ingest(rows)
    assert store.record_count() == 0 and store.scoped(user="ann").record_count() == 50


def test_what_names_embeddings_is_for_who_sees_all(store: ChronoStore) -> None:
    """It speaks of records by their ids, whosever they are."""
    store.upsert({"id": "S"})
    store.vectors.attach("S", [0.0, 1.0], model="m")
    ann, bob = store.scoped(user="ann"), store.scoped(user="bob")
    ann.upsert({"id": "ANN-SECRET"})
    ann.vectors.attach("ANN-SECRET", [1.0, 0.0])
    for handle in (store, bob):
        told = [record.to_dict() for record in handle.query(faces=True, status="")]
        told += [record.to_dict() for record in handle.query(kind="vector", status="")]
        told += [record.to_dict() for record in handle.stream(faces=True, status="")]
        told += handle.export_records(faces=True, status="")
        told += [
            event.to_dict() for number in range(3) for event in handle.history(f"vector:default:{number}")
        ]
        assert "ANN-SECRET" not in json.dumps(told)
        assert all(handle.get(f"vector:default:{number}") is None for number in range(3))
        assert "vector" not in handle.count(by="kind", faces=True, status="")
    ids = store.engine.vectors.matrix()[3]
    assert "S" in ids and "ANN-SECRET" not in ids
    assert store.everyone().query(kind="vector")


def test_an_own_record_can_be_written_back_as_it_was_read(store: ChronoStore) -> None:
    store.scoped(user="ann").upsert({"id": "A", "label": "1"})
    now = store.scoped(user="ann", session="s1")
    record = now.get("A")
    assert record is not None
    record.label = "2"
    now.upsert(record)

    def third(record: ChronoRecord | None) -> ChronoRecord:
        assert record is not None
        record.label = "3"
        return record

    now.update("A", third)
    kept = store.everyone().get("A")
    assert kept is not None and kept.label == "3" and kept.data == {"@scope": {"user": "ann"}}


def test_all_are_embedded_again(store: ChronoStore) -> None:
    ann = store.scoped(user="ann")
    for handle, name in ((store, "S"), (ann, "A")):
        handle.upsert({"id": name, "label": name})
        handle.vectors.attach(name, [1.0, 0.0], model="old")
    embedded = store.vectors.reembed(
        None, model="new", embed=lambda texts: [[0.5, 0.5]] * len(texts), into="next", default=True
    )
    assert embedded == 2
    assert {near.record_id for near in ann.vectors.nearest([0.5, 0.5], k=5)} == {"S", "A"}


def test_ids_that_the_library_makes_are_of_the_scope(store: ChronoStore) -> None:
    ann, bob = store.scoped(user="ann"), store.scoped(user="bob")
    store.upsert_many([{"id": "S1"}, {"id": "S2"}])
    for handle in (ann, bob, store):
        edge = DepGraph(handle).add_edge("S1", "S2", "depends_on")  # type: ignore[arg-type]
        assert [one.edge_type for one in [edge]] == ["depends_on"]
        own = [record.id for record in handle.query(kind="edge") if handle.engine.are_own([record.id])[0]]
        assert len(own) == 1
    ann.upsert({"id": "A"})
    report = invalidate("A", "it was false", ann)  # type: ignore[arg-type]
    assert report.affected_ids == ["A"]
    assert store.invalidate("S2", "it was false").affected_ids == ["S2", "S1"]
    assert {record.kind for record in bob.query(status="")} >= {"rollback_event"}
