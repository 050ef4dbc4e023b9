"""A store may require a name of every writer; what is for all is then said so."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoStore, InvalidArgument
from chronomemory.blocks.memory import Memory
from chronomemory.errors import ScopeRequired


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with ChronoStore(tmp_path) as store:
        yield store


def test_who_gives_no_name_is_refused(store: ChronoStore, tmp_path: Path) -> None:
    store.upsert({"id": "OLD", "label": "before"})
    assert store.upkeep.require_scope("user") and not store.upkeep.require_scope("user")
    before = store.wal_seq()
    rows = tmp_path / "rows.ndjson"
    rows.write_text('{"id": "N"}\n')
    writes: list[Callable[[Any], object]] = [
        lambda door: door.upsert({"id": "N"}),
        lambda door: door.upsert_many([{"id": "N"}, {"id": "M"}]),
        lambda door: door.upsert_many([{"id": f"N-{n}"} for n in range(2000)]),
        lambda door: door.upsert({"id": "N"}, if_new=True),
        lambda door: door.ingest(rows),
        lambda door: door.ingest([{"id": "N"}], on_error="skip"),
    ]
    for handle in (store, store.scoped(agent="sup"), store.scoped(session="s1")):
        for write in writes:
            with pytest.raises(
                ScopeRequired, match=r"^user: this store requires it for every write"
            ) as refused:
                write(handle)
            assert refused.value.field == "user"
    changes: list[Callable[[], object]] = [
        lambda: store.delete("OLD"),
        lambda: store.update("OLD", label="new"),
        lambda: store.delete_many(["OLD"]),
        lambda: store.invalidate("PAPER", "wrong"),
        lambda: store.invalidate("OLD", "wrong"),
    ]
    for change in changes:
        with pytest.raises(ScopeRequired):
            change()
    assert store.wal_seq() == before


def test_who_gives_it_or_means_all_is_not(store: ChronoStore, tmp_path: Path) -> None:
    store.upkeep.require_scope("user")
    store.scoped(user="ann").upsert({"id": "A"})
    store.scoped(user="ann", agent="sup", session="s").upsert_many([{"id": "B"}, {"id": "C"}])
    public = store.shared()
    public.upsert({"id": "RULE"})
    public.upsert_many([{"id": f"R-{n}"} for n in range(2000)])
    (tmp_path / "rows.ndjson").write_text('{"id": "N"}\n')
    public.ingest(tmp_path / "rows.ndjson")
    public.update("RULE", label="Answer briefly")
    assert public.invalidate("N", "wrong").affected_ids == ["N"]
    store.everyone().upsert({"id": "D", "data": {"@scope": {"agent": "sup"}}})
    assert store.get("RULE").label == "Answer briefly"  # type: ignore[union-attr]
    assert public.scope == store.scoped().scope and len(public.query(kind="fact")) == 2001
    # What belongs to the store needs no name.
    store.upkeep.create_index("data.n")
    store.upkeep.set_search_fields(text={"label": 1})
    store.compact()
    assert store.chain_valid()


def test_levels_are_required_one_by_one(store: ChronoStore) -> None:
    store.upkeep.require_scope("user")
    store.upkeep.require_scope("session")
    with pytest.raises(ScopeRequired, match=r"^session:"):
        store.scoped(user="ann").upsert({"id": "A"})
    store.scoped(user="ann", session="s").upsert({"id": "A"})
    assert store.upkeep.require_scope("session", wanted=False) and not store.upkeep.require_scope(
        "session", wanted=False
    )
    store.scoped(user="ann").upsert({"id": "B"})
    with pytest.raises(InvalidArgument, match="level must be one of user, agent, session"):
        store.upkeep.require_scope("group")


def test_it_survives_and_other_processes_obey(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store, ChronoStore(tmp_path) as other:
        other.upsert({"id": "BEFORE"})
        store.upkeep.require_scope("user")
        with pytest.raises(ScopeRequired):
            other.upsert({"id": "A"})
        store.compact(keep_history=False)
    code = (
        "import sys\n"
        "from chronomemory import ChronoStore\nfrom chronomemory.errors import ScopeRequired\n"
        "with ChronoStore(sys.argv[1]) as store:\n"
        "    try:\n"
        "        store.upsert({'id': 'A'})\n"
        "    except ScopeRequired:\n"
        "        print('refused')\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert told.stdout == "refused\n"


def test_blocks_obey_as_well(store: ChronoStore, tmp_path: Path) -> None:
    store.upkeep.require_scope("user")
    with Memory(tmp_path) as memory, pytest.raises(ScopeRequired):
        memory.learn("Water is wet")
