"""A record that is none of this face breaks nothing, whoever wrote it and however it looks."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoRecord, ChronoStore
from chronomemory._core import canonical_json
from chronomemory.blocks import Memory, open_blocks, sync
from chronomemory.blocks.engine import SPACES
from chronomemory.blocks.page import block_graph
from chronomemory.blocks.retrieval import reading_of
from chronomemory.cli import app
from chronomemory.embedders import LexicalEmbedder
from sound import SOUND, sound
from typer.testing import CliRunner

KINDS = [*SOUND, "vector", "vector_space", "search_fields", "edge"]
#: Face records that no face would write.
DAMAGED: list[dict[str, Any]] = [
    {"id": "block:a", "data": {}},
    {"id": "block:a", "kind": "fact"},
    {"id": "block:"} | {"kind": "block"},
    {**sound("block"), "status": "lost"},
    {**sound("block"), "kind": "frame"},
    *(
        {**sound("block", **{name: value}), "status": status}
        for name, value in [
            ("content", None),
            ("content", 7),
            ("category", ["x"]),
            ("source", None),
            ("created_at", 0),
            ("tags", ["a", "b"]),
            ("tags", "a"),
            ("tags", {"": True}),
            ("decay_lambda", "fast"),
            ("decay_lambda", -1.0),
            ("last_reinforced_at", {}),
            ("learned_at", ""),
            ("learned_at", []),
            ("learned_at", {}),
            ("learned_at", 10**400),
            ("reinforcement_count", -2),
            ("reinforcement_count", "many"),
            ("reinforcement_count", 0.5),
            ("token_count", 10**400),
            ("evidence", "none"),
            ("space", 5),
            ("archive_reason", "bored"),
        ]
        for status in ("inbox", "active", "archived")
    ),
    sound("bedge", weight=None),
    sound("bedge", weight="heavy"),
    sound("bedge", weight=2),
    sound("bedge", from_id=7),
    sound("bedge", from_id="2", to_id="1"),
    {**sound("bedge"), "id": "bedge:2:1"},
    sound("bedge", reinforcement_count=[]),
    {**sound("bedge", sessions=["s"]), "status": "forming"},
    sound("contradiction", score=None),
    sound("contradiction", block_a_id={}),
    sound("contradiction", score=-0.1),
    sound("frame", weights_json=None),
    sound("frame", token_budget="much"),
    sound("frame", template=1),
    sound("session", started_at=None),
    sound("session", started_at="yesterday"),
    sound("session", started_at="2026-01-31T12:00:00"),
    sound("session", start_active_hours="late"),
    sound("config", value=5),
    {"id": "config:other", "kind": "config", "data": {}},
    sound("frame", cache_json=5),
]
#: Settings that cannot be what they say.
ODD_SETTINGS = [
    *(
        (key, value)
        for key in ("top_k", "prune_threshold", "total_active_hours")
        for value in ("x", "nan", "-1")
    ),
    ("top_k", "1e308"),
    ("prune_threshold", "1e308"),
    ("total_active_hours", "-1e308"),
    ("inbox_threshold", "9" * 5000),
]
NAMES = [f"{number}-{record['id']}" for number, record in enumerate(DAMAGED)]


def lived(project: Path) -> Memory:
    """Return a memory of two linked blocks that contradict each other, and one that waits."""
    memory = Memory(project)
    for content in ("Ice is cold", "Fire is hot"):
        memory.learn(content)
    memory.dream()
    memory.learn("Water is wet")
    return memory


def answers(memory: Memory) -> dict[str, Any]:
    """Ask everything that can be asked."""
    with memory.blocks.connect() as conn:
        told: dict[str, Any] = {
            "frames": [frame["name"] for frame in sync.list_frames(conn)],
            "session": sync.get_active_session(conn),
            "active": [block["id"] for block in sync.get_active_blocks(conn)],
            "inbox": [block["id"] for block in sync.get_inbox_blocks(conn)],
            "count": sync.get_inbox_count(conn),
            "links": sync.get_edges_for_block(conn, "1"),
            "clashes": sync.get_contradictions_for_blocks(conn, ["1", "2"]),
            "tagged": sync.get_blocks_by_tag_pattern(conn, "%"),
            "page": block_graph(conn, limit=10).page().count("Ice is cold"),
        }
    return told | {
        "status": replace(memory.status(), unusable=()),
        "listed": [block["id"] for block in memory.list(status=None)],
        "recall": [block.content for block in memory.recall("cold")],
        "unasked": [block.content for block in memory.recall(None)],
    }


def use(memory: Memory) -> None:
    """Do everything that can be done."""
    memory.learn("Snow is white")
    memory.remember("Night is dark")
    memory.dream()
    found = memory.recall("dark")
    memory.outcome([block.id for block in found], 1.0)
    memory.curate()
    memory.frame("attention", "dark")
    with memory.session("test"):
        memory.recall("cold")


def test_the_sound_ones_are_sound(tmp_path: Path) -> None:
    with Memory(tmp_path) as memory:
        for kind in SOUND:
            memory.blocks.store.engine.upsert(sound(kind), "blocks")
        memory.blocks.store.engine.upsert({**sound("block"), "id": "block:2"}, "blocks")
        assert memory.status().unusable == ()
        assert (memory.status().active, memory.status().edges, memory.status().contradictions) == (2, 1, 1)


@pytest.mark.parametrize("status", ["active", "inbox", "archived", "ended", "forming"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_plain_record_may_be_of_any_kind(tmp_path: Path, kind: str, status: str) -> None:
    with lived(tmp_path) as memory:
        before = answers(memory)
        memory.blocks.store.upsert(ChronoRecord(id="x", kind=kind, status=status))
        memory.blocks.store.upsert(ChronoRecord(id="y", kind=kind, status=status, data={"content": 5}))
        assert answers(memory) == before
        assert memory.status().unusable == ()
        use(memory)
        assert memory.blocks.store.get("x").kind == kind
    with Memory(tmp_path) as memory:  # and for one who reads all of it anew
        assert memory.recall("dark")
        memory.blocks.store.vectors.attach("x", [1.0, 0.0], space="s", model="m")
        assert [
            near.record_id for near in memory.blocks.store.vectors.nearest([1.0, 0.0], space="s", status=None)
        ]


@pytest.mark.parametrize("record", DAMAGED, ids=NAMES)
def test_what_is_damaged_already_is_left_out_and_told_of(tmp_path: Path, record: dict[str, Any]) -> None:
    with lived(tmp_path) as memory:
        before = answers(memory)
        memory.blocks.store.engine.upsert(record, "blocks")
        assert answers(memory) == before
        (told,) = memory.status().unusable
        assert told.startswith(f"{record['id']}: ")
        use(memory)
    with Memory(tmp_path) as memory:
        assert len(memory.status().unusable) == 1
        use(memory)
        if record["id"] == "block:a":
            memory.blocks.run(lambda conn: _insert(conn, "a"))
            assert memory.status().unusable == ()


@pytest.mark.parametrize(
    ("key", "value"), ODD_SETTINGS, ids=[f"{key}={value[:9]}" for key, value in ODD_SETTINGS]
)
def test_the_usual_setting_stands_in_for_one_that_makes_no_sense(
    tmp_path: Path, key: str, value: str
) -> None:
    with lived(tmp_path) as memory:
        before = answers(memory)
        memory.blocks.store.engine.upsert(
            {"id": f"config:{key}", "kind": "config", "data": {"value": value}}, "blocks"
        )
        assert answers(memory) == before
        (told,) = memory.status().unusable
        assert told.startswith(f"config:{key}: {key}: ")
        use(memory)
        with memory.blocks.connect() as conn:
            assert key == "total_active_hours" or sync.get_config(conn, key) is None


@pytest.mark.parametrize("odd", [1e30, -0.5, "nan", None, []])
def test_a_confidence_that_is_none_is_told_of(tmp_path: Path, odd: Any) -> None:
    with lived(tmp_path) as memory:
        before = answers(memory)
    appended(tmp_path, {**sound("block"), "status": "active", "confidence": odd})
    with Memory(tmp_path) as memory:
        assert answers(memory) == before
        assert [told.split(": ")[:2] for told in memory.status().unusable] == [["block:1", "confidence"]]
        use(memory)
        memory.outcome(["1"], 1.0)


def appended(project: Path, record: dict[str, Any]) -> None:
    """Write an event as another tool would: chained, and with a record that no face would write."""
    log = project / ".chronomemory" / "events.wal"
    last = json.loads(log.read_bytes().splitlines()[-1])
    event = {
        "op": "upsert", "prev_hash": last["hash"], "record": record, "record_id": record["id"],
        "recursion_depth": 0, "seq": last["seq"] + 1, "ts": last["ts"],
    }  # fmt: skip
    event["hash"] = hashlib.sha256(canonical_json(event)).hexdigest()
    with log.open("ab") as file:
        file.write(canonical_json(event) + b"\n")


def test_hours_beyond_all_measure_are_no_error(tmp_path: Path) -> None:
    with lived(tmp_path) as memory:
        memory.blocks.run(lambda conn: sync.set_total_active_hours(conn, 1e308))
        use(memory)
        assert memory.status().active_hours >= 1e308


@pytest.mark.parametrize(
    "data",
    [
        {"weights_json": "x"},
        {"weights_json": "{}"},
        {"weights_json": "[" * 100_000},
        {"filters_json": "[]"},
        {"guarantees_json": "[1]"},
        {"cache_json": 5},
        {"cache_json": "{"},
    ],
)
def test_the_built_in_frame_stands_in_for_one_that_makes_no_sense(
    tmp_path: Path, data: dict[str, Any]
) -> None:
    with lived(tmp_path) as memory:
        memory.remember("I am honest", tags=["self/value"])
        usual = memory.frame("self").text
        broken = {**sound("frame", **data), "id": "frame:self"}
        memory.blocks.store.engine.upsert(broken, "blocks")
    with Memory(tmp_path) as memory:
        (told,) = memory.status().unusable
        assert told.startswith("frame:self: ")
        assert memory.frame("self").text == usual


def _insert(conn: Any, block_id: str) -> None:
    sync.insert_block(conn, block_id=block_id, content="new", category="c", source="s")


def test_a_link_that_became_unusable_counts_no_more(tmp_path: Path) -> None:
    with open_blocks(tmp_path) as blocks:
        with blocks.begin() as conn:
            _insert(conn, "a")
            _insert(conn, "b")
            sync.insert_edge(conn, from_id="a", to_id="b", weight=0.5)
        with blocks.connect() as conn:
            assert sync.get_neighbours(conn, ["a"]) == ["b"]
        blocks.store.engine.upsert({"id": "bedge:a:b", "kind": "bedge", "data": {}}, "blocks")
        with blocks.connect() as conn:
            assert sync.get_neighbours(conn, ["a"]) == []
            assert sync.get_weighted_degree(conn, ["a"]) == {"a": 0.0}


def test_a_block_can_be_learned_where_something_else_lies(tmp_path: Path) -> None:
    with Memory(tmp_path) as memory:
        learned = memory.learn("Ice is cold")
        memory.blocks.store.engine.upsert({"id": f"block:{learned.block_id}", "data": {}}, "blocks")
        assert memory.learn("Ice is cold").status == "created"
        assert memory.status().inbox == 1


def brought(project: Path, *records: dict[str, Any]) -> Any:
    source = project / "in.ndjson"
    source.write_text("".join(json.dumps(record) + "\n" for record in records))
    return CliRunner().invoke(app, ["import", str(source), "--project", str(project)])


@pytest.mark.parametrize("record", DAMAGED, ids=NAMES)
def test_import_refuses_by_name_and_writes_nothing(tmp_path: Path, record: dict[str, Any]) -> None:
    answer = brought(tmp_path, {"id": "A"}, sound("block"), record, {"id": "B"})
    assert answer.exit_code == 2
    assert "in.ndjson line 3" in answer.stderr
    assert record["id"] in answer.stderr
    with ChronoStore(tmp_path) as store:
        assert store.wal_seq() == 0


@pytest.mark.parametrize(
    ("record", "word"),
    [
        ({"id": "config:top_k", "kind": "config", "data": {"value": "many"}}, "top_k"),
        ({"id": "config:prune_threshold", "kind": "config", "data": {"value": "7"}}, "prune_threshold"),
        ({"id": "config:api_key", "kind": "config", "data": {"value": "sk-123456789"}}, "secret"),
        (sound("frame", weights_json="{}"), "frame:1"),
        (sound("frame", weights_json="{"), "frame:1"),
        (sound("frame", filters_json='{"min_confidence": 5}'), "frame:1"),
        (sound("frame", guarantees_json="[1]"), "frame:1"),
        (sound("frame", cache_json="{"), "frame:1"),
        (sound("frame", weights_json="[" * 100_000), "frame:1"),
    ],
)
def test_import_refuses_what_the_face_would(tmp_path: Path, record: dict[str, Any], word: str) -> None:
    answer = brought(tmp_path, {"id": "A"}, record)
    assert answer.exit_code == 2
    assert "line 2" in answer.stderr
    assert word in answer.stderr
    with ChronoStore(tmp_path) as store:
        assert store.wal_seq() == 0


def test_nothing_of_a_large_refused_import_is_written(tmp_path: Path) -> None:
    many = ({"id": f"R-{number}", "label": "x" * 200} for number in range(30_000))
    answer = brought(tmp_path, *many, {"id": "block:a", "data": {}})
    assert answer.exit_code == 2
    assert "line 30001" in answer.stderr
    with ChronoStore(tmp_path) as store:
        assert store.wal_seq() == 0


def test_what_cannot_be_used_keeps_nothing_else_from_coming_back(tmp_path: Path) -> None:
    (tmp_path / "two").mkdir()
    file = tmp_path / "out.ndjson"
    broken = [
        {"id": "block:a", "data": {}},
        {"id": "config:top_k", "kind": "config", "data": {"value": "x"}},
        {"id": "config:api_key", "kind": "config", "data": {"value": "sk-123456789"}},
        {**sound("frame", weights_json="{"), "id": "frame:self"},
    ]
    with lived(tmp_path / "one") as memory:
        for record in broken:
            memory.blocks.store.engine.upsert(record, "blocks")
    told = CliRunner().invoke(app, ["export", str(file), "--project", str(tmp_path / "one")])
    assert told.exit_code == 0
    assert all(f"{record['id']} left out" in told.stderr for record in broken)
    answer = CliRunner().invoke(app, ["import", str(file), "--project", str(tmp_path / "two")])
    assert answer.exit_code == 0, answer.stderr
    with Memory(tmp_path / "one") as one, Memory(tmp_path / "two") as two:
        assert {item.id for item in one.list(status=None)} == {item.id for item in two.list(status=None)}
        assert (len(one.status().unusable), two.status().unusable) == (4, ())


def test_all_that_a_memory_exports_comes_back(tmp_path: Path) -> None:
    with lived(tmp_path / "one") as memory:
        use(memory)
        memory.blocks.run(lambda conn: sync.set_config(conn, "top_k", "7"))
        memory.forget(memory.list(status=None)[0]["id"])
    file = tmp_path / "out.ndjson"
    assert CliRunner().invoke(app, ["export", str(file), "--project", str(tmp_path / "one")]).exit_code == 0
    (tmp_path / "two").mkdir()
    answer = CliRunner().invoke(app, ["import", str(file), "--project", str(tmp_path / "two")])
    assert answer.exit_code == 0, answer.stderr
    with Memory(tmp_path / "one") as one, Memory(tmp_path / "two") as two:
        assert [block["id"] for block in one.list(status=None)] == [
            block["id"] for block in two.list(status=None)
        ]
        assert two.status().unusable == ()


def test_to_keep_by_a_where_means_blocks_alone(tmp_path: Path) -> None:
    """A plain record may be of their kind, and end as the id of one that is not meant does."""
    with ChronoStore(tmp_path) as store, Memory(store, user="ann", session="s1") as memory:
        meant, other = (memory.remember(text, category=text) for text in ("tea", "chess"))
        door = store.scoped(user="ann", session="s1")
        for name in (other.block_id, ""):
            door.upsert({"id": f"X:{name}", "kind": "block", "data": {"category": "tea"}})
        scope = {"user": "ann", "session": "s1"}
        strange = ChronoRecord(id="block:strange", kind="block", data={"category": "tea", "@scope": scope})
        store.everyone().engine.upsert(strange, "blocks")
        assert list(memory.keep(where={"data.category": "tea"}).kept) == [meant.block_id]


def test_no_embedder_is_asked_because_a_plain_record_names_its_space(store: ChronoStore) -> None:
    embedder = LexicalEmbedder()
    store.upsert({"kind": "block", "label": "tea", "data": {"space": SPACES.of(embedder.model_name)}})
    assert reading_of(store, embedder, "tea") == {}
    with Memory(store, user="bob") as memory:
        memory.remember("Bob likes tea")
    assert reading_of(store.scoped(user="ann"), embedder, "tea") == {}
    assert set(reading_of(store.scoped(user="bob"), embedder, "tea")) == {"vector", "space"}
