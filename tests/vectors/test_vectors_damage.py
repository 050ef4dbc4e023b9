"""A row that somebody touched is never scored, never handed out, and always told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from chronomemory import ChronoRecord, ChronoStore, LogCorrupted

DIM = 24
#: More than a chunk: most rows have codes, and the last have none.
COUNT = 1500
CODED = COUNT // 16 * 16
STRIDE = 4 * DIM

CUT = """
import os, sys, numpy as np
from chronomemory import ChronoStore
with ChronoStore(sys.argv[1]) as store:
    query = np.ones(int(sys.argv[2]), dtype=np.float32)
    assert len(store.vectors.nearest(query, k=1500)) == 1500
    os.truncate(store.project_root / ".chronomemory/vectors/default.0.f32", int(sys.argv[3]))
    found = store.vectors.nearest(query, k=1500)
    assert store.search(vector=query)
    print(len(found), max(near.row for near in found), store.vectors.spaces()[0].damaged)
"""


@pytest.fixture
def filled(store: ChronoStore) -> ChronoStore:
    store.upsert_many([ChronoRecord(id=f"R{n}", label=f"number {n}") for n in range(COUNT)])
    rows = np.random.default_rng(5).standard_normal((COUNT, DIM), dtype=np.float32)
    store.vectors.attach_many([f"R{n}" for n in range(COUNT)], rows, model="m")
    return store


def rows_file(store: ChronoStore) -> Path:
    return store.project_root / ".chronomemory" / "vectors" / "default.0.f32"


def alter(store: ChronoStore, row: int, vector: np.ndarray | None = None) -> None:
    """Write another vector where a row lies, as somebody might whom nobody asked."""
    with rows_file(store).open("r+b") as rows:
        rows.seek(row * STRIDE)
        rows.write(np.full(DIM, 3, dtype="<f4").tobytes() if vector is None else vector.tobytes())


@pytest.mark.parametrize("row", [0, 1023, 1024, COUNT - 1])
def test_a_row_that_changes_after_a_search_is_never_returned(filled: ChronoStore, row: int) -> None:
    query = np.ones(DIM, dtype=np.float32)
    before = filled.vectors.nearest(query, k=5)
    assert len(filled.vectors.nearest(query, k=COUNT)) == COUNT  # now every row was checked
    alter(filled, row)  # and now it would be the nearest of all
    expected = [near for near in before if near.row != row]
    assert filled.vectors.nearest(query, k=5)[: len(expected)] == expected
    assert f"R{row}" not in {near.record_id for near in filled.vectors.nearest(query, k=COUNT)}
    assert f"R{row}" not in {hit.id for hit in filled.search(vector=query, limit=COUNT)}
    assert filled.vectors.spaces()[0].damaged == 1


@pytest.mark.parametrize("garbage", [0.0, np.nan, "opposite"])
@pytest.mark.parametrize("k", [1, 5, 40])
def test_a_good_row_that_became_bad_hides_no_other(filled: ChronoStore, garbage: float | str, k: int) -> None:
    query = np.random.default_rng(9).standard_normal(DIM, dtype=np.float32)
    everyone = filled.vectors.nearest(query, k=COUNT)
    worst = [near.row for near in everyone[:3]]
    assert any(row < CODED for row in worst)
    for row in worst:  # their codes still say that they are the nearest of all
        vector = -query if garbage == "opposite" else np.full(DIM, garbage, dtype="<f4")
        alter(filled, row, vector)
    assert filled.vectors.nearest(query, k=k) == everyone[3 : 3 + k]
    assert {hit.id for hit in filled.search(vector=query, limit=3, context=False)} == {
        near.record_id for near in everyone[3:6]
    }
    many = np.stack([query] * 20)
    assert filled.vectors.nearest(many, k=k) == [everyone[3 : 3 + k]] * 20
    assert filled.vectors.spaces()[0].damaged == sum(row < CODED for row in worst)


def test_words_find_a_record_whose_row_changed_without_its_cosine(filled: ChronoStore) -> None:
    query = np.ones(DIM, dtype=np.float32)
    (hit, *_) = filled.search("number 7", query, explain=True)
    assert hit.id == "R7" and hit.why is not None and hit.why["cosine"] is not None
    alter(filled, 7)
    found = {hit.id: hit for hit in filled.search("number 7", query, explain=True)}
    assert found["R7"].why is not None and found["R7"].why["cosine"] is None
    assert all(other.why["cosine"] is not None for name, other in found.items() if name != "R7" and other.why)


def test_a_look_at_an_embedding_marks_its_row(filled: ChronoStore) -> None:
    alter(filled, 3)
    with pytest.raises(LogCorrupted) as caught:
        filled.vectors.get("R3")
    assert (caught.value.damage, caught.value.offset) == ("row-altered", 3 * STRIDE)
    assert filled.vectors.spaces()[0].damaged == 1
    assert "R3" not in {near.record_id for near in filled.vectors.nearest(np.full(DIM, 3), k=COUNT)}


def test_verifying_marks_every_damaged_row(filled: ChronoStore) -> None:
    filled.vectors.nearest(np.ones(DIM), k=COUNT)
    for row in (2, 1400):
        alter(filled, row)
    assert [(found.kind, found.offset) for found in filled.verify().damage] == [
        ("row-altered", 2 * STRIDE),
        ("row-altered", 1400 * STRIDE),
    ]
    assert filled.vectors.spaces()[0].damaged == 2
    found = {near.row for near in filled.vectors.nearest(np.ones(DIM), k=COUNT)}
    assert len(found) == COUNT - 2 and not found & {2, 1400}


@pytest.mark.parametrize("rows", [0, 700, 1100])
def test_a_file_that_was_cut_kills_nobody(filled: ChronoStore, rows: int) -> None:
    root = filled.project_root
    filled.close()
    words = [sys.executable, "-c", CUT.replace("assert store.search", "store.search"), str(root), str(DIM)]
    done = subprocess.run(
        [*words, str(rows * STRIDE)], capture_output=True, text=True, check=False, env={**os.environ}
    )
    if rows == 0:
        assert "max()" in done.stderr  # nothing is left to find, and nobody died of a signal
    else:
        assert done.stdout.split() == [str(rows), str(rows - 1), str(COUNT - rows)], done.stderr
    assert done.returncode in (0, 1)


def test_rows_can_be_attached_after_a_cut(filled: ChronoStore) -> None:
    filled.vectors.nearest(np.ones(DIM), k=3)
    os.truncate(rows_file(filled), 100 * STRIDE)
    filled.vectors.attach("R0", np.full(DIM, 2, dtype=np.float32))
    found = filled.vectors.nearest(np.ones(DIM), k=COUNT)
    assert found[0].record_id == "R0"
    assert {near.row for near in found} == {*range(1, 100), COUNT}
    assert filled.vectors.spaces()[0].damaged == COUNT - 100
    with pytest.raises(LogCorrupted):
        filled.vectors.get("R200")


@pytest.mark.parametrize("lost", ["altered", "cut", "removed"])
def test_a_backup_with_a_damaged_row_can_be_restored(filled: ChronoStore, lost: str) -> None:
    if lost == "altered":
        alter(filled, 9)
    elif lost == "cut":
        os.truncate(rows_file(filled), 9 * STRIDE)
    else:
        rows_file(filled).unlink()
    backup = filled.backup()
    filled.upsert(ChronoRecord(id="later"))
    filled.vectors.attach_many(["later", "R9"], np.ones((2, DIM)))
    filled.upkeep.restore(backup)
    assert filled.get("later") is None
    assert filled.get("R9") is not None
    with pytest.raises(LogCorrupted):
        filled.vectors.get("R9")
    assert "R9" not in {near.record_id for near in filled.vectors.nearest(np.ones(DIM), k=COUNT)}
    report = filled.verify()
    assert not report.valid and {found.kind for found in report.damage} <= {"row-altered", "row-missing"}
    filled.upkeep.repair()
    assert filled.verify().valid
    assert filled.vectors.get("R9") is None


@pytest.mark.parametrize("name", ["events.wal", "vectors/default.0.f32", "lock"])
def test_a_pipe_in_place_of_a_file_is_refused(filled: ChronoStore, name: str) -> None:
    root = filled.project_root
    filled.close()
    path = root / ".chronomemory" / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    script = """
import sys, numpy as np
from chronomemory import ChronoStore
try:
    with ChronoStore(sys.argv[1]) as store:
        store.upsert({"id": "after"})
        store.vectors.nearest(np.ones(24), k=1)
except OSError as error:
    print(error)
"""
    words = [sys.executable, "-W", "ignore", "-c", script, str(root)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert "not a regular file" in done.stdout and path.name in done.stdout, (done.stdout, done.stderr)


# What a copy in the folder holds comes back; what none holds is named.


def embed(store: ChronoStore, count: int = 5) -> Path:
    for number in range(count):
        store.upsert(ChronoRecord(id=f"R{number}"))
        store.vectors.attach(f"R{number}", np.full(4, number + 1.0), space="x", model="m")
    return store.project_root / ".chronomemory"


def held(store: ChronoStore, count: int = 5) -> list[float | None]:
    found = [store.vectors.get(f"R{number}", space="x") for number in range(count)]
    return [None if vector is None else float(vector[0]) for vector in found]


WHOLE = [1.0, 2.0, 3.0, 4.0, 5.0]


@pytest.mark.parametrize("harm", ["one row", "all rows", "cut", "gone"])
def test_rows_come_back_from_a_backup(store: ChronoStore, harm: str) -> None:
    home = embed(store)
    store.backup()
    rows = home / "vectors" / "x.0.f32"
    with ChronoStore(store.project_root) as other:
        assert held(other) == WHOLE
        if harm == "gone":
            rows.unlink()
        else:
            data = bytearray(rows.read_bytes())
            data[16:20] = b"ruin"
            rows.write_bytes({"one row": data, "all rows": bytes(80), "cut": data[:24]}[harm])
        told = store.upkeep.repair()
        assert told["healed"] == len(told["damage"]) == {"one row": 1, "cut": 4}.get(harm, 5)
        assert told["lost"] == []
        assert held(store) == held(other) == WHOLE
    report = store.verify()
    assert report.valid
    assert any("0 of them open" in note for note in report.notes)
    # What was damaged is kept, and a folder that would be empty is not named.
    kept = told["kept"]
    assert (kept is None) == (harm == "gone")
    assert kept is None or (home / kept / "vectors" / "x.0.f32").exists()
    assert store.upkeep.repair()["damage"] == []


def test_rows_come_back_from_a_file_that_a_compaction_moved_them_from(store: ChronoStore) -> None:
    home = embed(store)
    store.backup()
    for name in ("R0", "R1"):
        store.vectors.detach(name, space="x")
    store.compact()
    rows = home / "vectors" / "x.1.f32"
    rows.write_bytes(bytes(rows.stat().st_size))
    told = store.upkeep.repair()
    assert (told["healed"], told["lost"]) == (3, [])
    assert held(store) == [None, None, 3.0, 4.0, 5.0]


def test_rows_come_back_from_what_was_set_aside(store: ChronoStore) -> None:
    home = embed(store)
    store.upkeep.restore(store.backup())
    for copy in (home / "backup").rglob("*.f32"):
        copy.unlink()
    (aside,) = (home / "quarantine").glob("*-before-restore")
    assert list(aside.rglob("*.f32"))
    (home / "vectors" / "x.0.f32").unlink()
    assert store.upkeep.repair()["lost"] == []
    assert held(store) == WHOLE


@pytest.mark.parametrize("copy", ["none", "altered"])
def test_a_row_that_no_copy_holds_is_named_and_open(store: ChronoStore, copy: str) -> None:
    home = embed(store)
    rows = home / "vectors" / "x.0.f32"
    data = bytearray(rows.read_bytes())
    data[16:20] = b"ruin"
    rows.write_bytes(data)
    if copy == "altered":
        other = home / "backup" / "20261115T190743" / "vectors" / "x.0.f32"
        other.parent.mkdir(parents=True)
        data[16:20] = b"lies"
        other.write_bytes(data)
    told = store.upkeep.repair()
    assert told["lost"] == ['the embedding of "R1" in space "x"']
    assert told["healed"] == 0
    assert (home / told["kept"] / "vectors" / "x.0.f32").exists()
    assert held(store) == [1.0, None, 3.0, 4.0, 5.0]
    assert any("1 findings, 1 of them open" in note for note in store.verify().notes)


def test_what_one_copy_holds_comes_back_and_the_rest_is_named(store: ChronoStore) -> None:
    home = embed(store, 3)
    store.backup()
    for number in (3, 4):
        store.upsert(ChronoRecord(id=f"R{number}"))
        store.vectors.attach(f"R{number}", np.full(4, number + 1.0), space="x", model="m")
    (home / "vectors" / "x.0.f32").unlink()
    told = store.upkeep.repair()
    assert told["healed"] == 3
    assert told["lost"] == [f'the embedding of "R{number}" in space "x"' for number in (3, 4)]
    assert held(store) == [1.0, 2.0, 3.0, None, None]
    store.vectors.attach("R4", np.full(4, 9.0), space="x", model="m")
    assert held(store) == [1.0, 2.0, 3.0, None, 9.0]
    assert store.verify().valid


@pytest.mark.parametrize("start", [0, 7, 3 * STRIDE + 5, (COUNT - 2) * STRIDE + 1])
@pytest.mark.parametrize("count", [1, 60, STRIDE, 3 * STRIDE + 2])
@pytest.mark.parametrize("comes", [False, True])
def test_rows_behind_a_hole_are_lost_unless_they_moved_by_whole_rows(
    filled: ChronoStore, start: int, count: int, comes: bool
) -> None:
    """Bytes are lost or inserted: a row is found again by its digest where a row begins, and nowhere else."""
    data = rows_file(filled).read_bytes()
    end = min(start + count, len(data))
    rows_file(filled).write_bytes(
        data[:start] + b"?" * count + data[start:] if comes else data[:start] + data[end:]
    )
    torn = set() if comes else set(range(start // STRIDE, (end - 1) // STRIDE + 1))
    if comes and start % STRIDE:
        torn = {start // STRIDE}
    if (count if comes else end - start) % STRIDE:
        torn = set(range(start // STRIDE, COUNT))
    filled.upkeep.repair()
    assert filled.verify().valid
    for row in {0, 1, 2, 3, 4, 700, COUNT - 3, COUNT - 2, COUNT - 1}:
        found = filled.vectors.get(f"R{row}")
        if row in torn:
            assert found is None
        else:
            assert np.asarray(found).tobytes() == data[row * STRIDE : (row + 1) * STRIDE]
