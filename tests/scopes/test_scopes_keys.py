"""A scope is kept, and found, whatever else a record holds and however it is called."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from chronomemory import ChronoStore, Scope
from chronomemory._core import canonical_json
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recovering import chained
from shares import share

#: What is escaped is not written where it stands by what it says; and letters around that of a scope.
LETTERS = '"\\\n\t\x00\x1f\x7f /1@Asé\u2028\ud7ff'
rows = st.lists(
    st.dictionaries(st.text(st.sampled_from(LETTERS), max_size=4), st.integers(-9, 9)), min_size=1, max_size=4
)
OWN = {"user": "ann"}


@settings(max_examples=share(15, 300), deadline=None, suppress_health_check=list(HealthCheck))
@given(rows)
def test_it_is_kept_and_found_beside_any_key(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, int]]
) -> None:
    place = tmp_path_factory.mktemp("keys")
    with ChronoStore(place, durability="off") as store:
        for number, data in enumerate(rows):
            store.scoped(**OWN).upsert({"id": f"A{number}", "data": data})
            store.everyone().upsert({"id": f"B{number}", "data": {**data, "@scope": OWN}})
    for _ in range(2):
        with ChronoStore(place, durability="off") as store:
            assert store.verify().valid
            ann, bob = store.scoped(**OWN), store.scoped(user="bob")
            assert not bob.query() and not store.query() and len(ann.query()) == 2 * len(rows)
            for number, data in enumerate(rows):
                for name in (f"A{number}", f"B{number}"):
                    found = ann.get(name)
                    assert found is not None and found.scope == Scope(user="ann")
                    assert found.data == {**data, "@scope": OWN}
                    ann.update(name, data={"more": number, '"': 1})
                    ann.upsert(found)
            store.compact()


def test_a_record_without_a_name_survives_a_compaction(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        event = store.upsert({"id": "A", "label": "precious"})
    line = json.loads(event.to_json_line())
    line |= {"record_id": "", "record": {**line["record"], "id": ""}}
    home = tmp_path / ".chronomemory"
    (home / "events.wal").write_bytes(
        chained([json.dumps(line, sort_keys=True, separators=(",", ":")).encode() + b"\n"])
    )
    (home / "synced").unlink(missing_ok=True)
    for keep in (True, False, False):
        with ChronoStore(tmp_path, head_file=tmp_path / "head") as store:
            found = store.get("")
            assert found is not None and found.label == "precious"
            assert [record.id for record in store.query()] == [""]
            store.compact(keep_history=keep)


#: Any letters that a name may have, those first that JSON writes in another way or might.
names = st.text(
    st.sampled_from('"\\/\u00a0\u200b\ufeff\U0001f375é~ ')
    | st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\u2028\u2029"),
    min_size=1,
    max_size=20,
)


@settings(max_examples=share(80, 1000), deadline=None)
@given(st.lists(names | st.none(), min_size=3, max_size=3))
def test_python_spells_it_as_the_engine_does(
    tmp_path_factory: pytest.TempPathFactory, given: list[str | None]
) -> None:
    scope = Scope(*given)
    assert scope.spelled == canonical_json(scope.to_dict())
    with ChronoStore(tmp_path_factory.getbasetemp()) as store:
        assert store.engine.scoped(scope.names).scope_digits() == scope.digits
