"""Declared indexes and lookups of faces answer from key files beside segments as they do from memory."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoStore
from chronomemory.engines import ENGINES
from chronomemory.graph import Edge, Node, Workspace
from containers import forge

SECRET = "canary-77c0de"
CONDITIONS: list[dict[str, Any]] = [
    {"data.n": 7},
    {"data.n": {"gte": 20}},
    {"data.n": {"in": [1, 2, 3]}, "kind": "task"},
    {"data.tags": {"any": ["t1", "t4"]}},
    {"label": {"starts": "word1"}},
    {"and": [{"data.tags": {"all": ["t0"]}}, {"data.n": {"lt": 9}}]},
]


@pytest.fixture(autouse=True)
def small_segments() -> Iterator[None]:
    """Seal after eight events, and at every close."""
    before = ENGINES.seal
    ENGINES.seal = (8, 1, 1)
    yield
    ENGINES.seal = before


def state(project: Path) -> Path:
    return project / ".chronomemory" / "index" / "state"


def key_files(project: Path) -> list[Path]:
    return sorted(state(project).glob("*.keys"))


def fill(project: Path, seed: int, rounds: int = 5) -> None:
    """Write records of several users and blocks in several sessions, with questions in between."""
    draw = random.Random(seed)
    for number in range(rounds):
        with ChronoStore(project) as store:
            if number in (0, 2):
                store.upkeep.create_index(["data.n", "", "data.tags"][number])
            for _ in range(draw.randrange(10, 40)):
                user = draw.choice([None, "ann", "bob"])
                handle = store if user is None else store.scoped(user=user)
                tags = draw.sample(["t0", "t1", "t2", "t3", "t4"], draw.randrange(3))
                data: dict[str, Any] = {"n": draw.randrange(30), "tags": tags}
                if draw.random() < 0.2:
                    data["expires_at"] = draw.choice(["2001-01-01T00:00:00Z", "2099-01-01T00:00:00Z"])
                record_id, label = f"{user}-{draw.randrange(20)}", f"word{draw.randrange(30)}"
                handle.upsert(
                    {"id": record_id, "kind": draw.choice(["fact", "task"]), "label": label, "data": data}
                )
                if draw.random() < 0.1:
                    handle.delete(record_id)
                if draw.random() < 0.1:
                    handle.query(where=draw.choice(CONDITIONS))
                block = {
                    "category": draw.choice(["c", "d"]),
                    "created_at": draw.choice([1, 2, None]),
                    "tags": tags,
                }
                store.engine.upsert(
                    {"id": f"block:{draw.randrange(30)}", "kind": "block", "data": block}, "blocks"
                )
            if draw.random() < 0.3:
                store.compact()
    with ChronoStore(project) as store:
        store.upkeep.create_index("label")


def answers(project: Path, verify: str = "later") -> list[object]:
    """What indexed questions get, page by page, and how they were answered."""
    with ChronoStore(project, verify=verify) as store:
        found: list[object] = []
        for handle in (store, store.everyone(), store.scoped(user="ann")):
            for where in CONDITIONS:
                whole = handle.query(where=where, status=None, explain=True)
                found.append((whole.plan, [record.to_dict() for record in whole]))
                found.append([record.id for record in handle.query(where=where, limit=3)])
            page = handle.query(order_by="data.n", where={"data.n": {"gte": 3}}, limit=7)
            found.append([record.id for record in page])
            while page.cursor is not None:
                page = handle.query(
                    order_by="data.n", where={"data.n": {"gte": 3}}, limit=7, after=page.cursor
                )
                found.append([record.id for record in page])
        for index, key in (("blocks.by_tag", "t1"), ("blocks.by_category", "c")):
            for reverse in (False, True):
                after = None
                while block := store.engine.find(index, [key], after=after, limit=3, reverse=reverse):
                    found.append([one.id for one in block])
                    after = (block[-1].data["created_at"], block[-1].id)
        return found


@pytest.mark.parametrize("seed", range(4))
def test_key_files_change_no_answer(tmp_path: Path, seed: int) -> None:
    fill(tmp_path, seed)
    in_memory = answers(tmp_path, "full")
    assert answers(tmp_path) == in_memory, "the files are made"
    files = {path: path.read_bytes() for path in key_files(tmp_path)}
    assert files
    assert answers(tmp_path) == in_memory, "the files are used"
    assert {path: path.read_bytes() for path in key_files(tmp_path)} == files
    with ChronoStore(tmp_path) as store:
        assert store.verify().altered_indexes == ()
    shutil.rmtree(state(tmp_path))
    assert answers(tmp_path) == in_memory


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_key_file_is_never_answered_from(tmp_path: Path, seed: int) -> None:
    fill(tmp_path / "whole", seed)
    right = answers(tmp_path / "whole")
    draw = random.Random(seed)
    for attempt in range(20):
        copy = tmp_path / f"copy{attempt}"
        shutil.copytree(tmp_path / "whole", copy)
        path = draw.choice(key_files(copy))
        content = bytearray(path.read_bytes())
        start = draw.randrange(len(content))
        match draw.randrange(3):
            case 0:
                content[start] ^= 1 << draw.randrange(8)
            case 1:
                del content[start:]
            case _:
                content[start : start + 300] = bytes(len(content[start : start + 300]))
        path.write_bytes(content)
        assert answers(copy) == right, (path.name, attempt)
        assert answers(copy) == right, "what was damaged is made again"


def test_a_key_file_of_another_log_is_not_used(tmp_path: Path) -> None:
    with ChronoStore(tmp_path / "one") as store:
        store.upkeep.create_index("data.n")
        store.upsert_many([{"id": f"r{n}", "data": {"n": n}} for n in range(20)])
    shutil.copytree(tmp_path / "one", tmp_path / "other")
    for name, factor in (("one", 1), ("other", 2)):
        with ChronoStore(tmp_path / name) as store:
            store.upsert_many([{"id": f"s{n}", "data": {"n": n * factor}} for n in range(20)])
        with ChronoStore(tmp_path / name) as store:
            assert len(store.query(where={"data.n": 19})) == 3 - factor
    [of_one], [of_other] = (key_files(tmp_path / name)[-1:] for name in ("one", "other"))
    shutil.copy(of_other, of_one)
    with ChronoStore(tmp_path / "one") as store:
        assert [record.id for record in store.query(where={"data.n": 19})] == ["r19", "s19"]


def test_a_forged_key_file_is_reported(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert_many([{"id": f"r{n}", "label": "north"} for n in range(20)])
        store.upkeep.create_index("label")
        store.upkeep.create_index("data." + "long" * 40)
    with ChronoStore(tmp_path) as store:
        assert len(store.query(where={"label": "north"})) == 20
        assert store.verify().altered_indexes == ()
    [path] = [path for path in key_files(tmp_path) if b"north" in path.read_bytes()]
    forge(path, b"north", b"forth")
    with ChronoStore(tmp_path) as store:
        assert store.query(where={"label": "north"}) == [], "its checksums are right"
        [finding] = store.verify().altered_indexes
        assert finding.path.endswith(".keys")


def test_what_was_erased_is_in_no_key_file(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upkeep.create_index("label")
        store.upkeep.create_index("data.tags")
    fill(tmp_path, 3)
    with ChronoStore(tmp_path) as store:
        for number in range(20):
            record = {"id": f"e{number}", "label": f"{SECRET}-{number}", "data": {"tags": [SECRET]}}
            store.scoped(user="eve").upsert(record)
    with ChronoStore(tmp_path) as store, ChronoStore(tmp_path, own_engine=True) as other:
        for handle in (store, other):
            assert len(handle.everyone().query(where={"data.tags": {"any": [SECRET]}})) == 20
            assert len(handle.everyone().query(where={"label": f"{SECRET}-3"})) == 1
        assert any(SECRET.encode() in path.read_bytes() for path in key_files(tmp_path))
        store.erase(scope={"user": "eve"}, reason="asked for")
        assert holding(tmp_path) == []
        for handle in (other, store):
            assert handle.everyone().query(where={"label": f"{SECRET}-3"}) == []
            assert holding(tmp_path) == []
        store.upsert({"id": "later", "label": "later"})
        assert [record.id for record in other.query(where={"label": "later"})] == ["later"]
    answers(tmp_path)
    assert key_files(tmp_path) and holding(tmp_path) == []


def holding(project: Path) -> list[Path]:
    files = [path for path in (project / ".chronomemory").rglob("*") if path.is_file()]
    return [path for path in files if SECRET.encode() in path.read_bytes()]


def test_processes_that_declare_different_indexes_share_the_files(tmp_path: Path) -> None:
    with ChronoStore(tmp_path, own_engine=True) as one, ChronoStore(tmp_path, own_engine=True) as other:
        one.upkeep.create_index("data.n")
        for number in range(120):
            writer, reader = (one, other) if number % 2 else (other, one)
            writer.upsert({"id": f"r{number}", "label": f"word{number % 5}", "data": {"n": number % 7}})
            wanted = [f"r{n}" for n in range(number + 1) if n % 7 == number % 7]
            assert [record.id for record in reader.query(where={"data.n": number % 7})] == wanted
            if number == 40:
                other.upkeep.create_index("label")
            if number == 80:
                one.upkeep.drop_index("data.n")
            if number % 50 == 49:
                writer.compact()
        assert len(one.query(where={"label": "word3"})) == len(other.query(where={"label": "word3"})) == 24
    used = {path.stem for path in state(tmp_path).glob("*.rows")}
    assert {path.stem for path in key_files(tmp_path)} <= used, "no file is left without its segment"


def test_a_new_segment_has_the_keys_of_those_before_it(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upkeep.create_index("data.n")
        store.upsert_many([{"id": f"r{n}", "data": {"n": n}} for n in range(50)])
    with ChronoStore(tmp_path) as store:
        assert key_files(tmp_path) == []
        assert len(store.query(where={"data.n": 7})) == 1
        assert len(key_files(tmp_path)) == 1
        store.upsert_many([{"id": f"s{n}", "data": {"n": n}} for n in range(20)])
    rows = sorted(state(tmp_path).glob("*.rows"))
    assert [path.stem for path in key_files(tmp_path)] == [path.stem for path in rows] and len(rows) == 2


def test_a_network_is_walked_from_key_files(tmp_path: Path) -> None:
    def walked() -> list[object]:
        with Workspace.open(tmp_path) as workspace:
            graph = workspace.graph
            near = [graph.within(f"n{number}", 3) for number in range(10)]
            return [near, graph.components(), graph.routes("n0", "n9"), graph.subgraph("n3", 2)]

    with Workspace.create(tmp_path) as workspace:
        for number in range(30):
            workspace.graph.save_node(Node(f"n{number}", "thing"))
        for number in range(25):
            workspace.graph.save_edge(Edge(f"e{number}", f"n{number}", f"n{(number * 7 + 3) % 30}", "to"))
    first = walked()
    assert key_files(tmp_path)
    assert walked() == first
    shutil.rmtree(state(tmp_path))
    ENGINES.seal = None
    assert walked() == first
