"""Those who look after a store leave alone what is not theirs, and keep what they take away."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chronomemory import ChronoStore, InvalidArgument, LogCorrupted
from chronomemory.errors import EmbeddingMismatch
from verdicts import verify_log

FOLDER = ".chronomemory"


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    with ChronoStore(tmp_path) as store:
        store.upsert_many([{"id": f"R{n}"} for n in range(8)])
        store.vectors.attach_many([f"R{n}" for n in range(8)], np.eye(8, dtype=np.float32), model="m")
    return tmp_path


def test_what_a_restore_puts_aside_replaces_nothing(filled: Path) -> None:
    with ChronoStore(filled) as store:
        backup = store.backup()
        for number in (111, 222):
            store.vectors.attach("R1", np.full(8, number, dtype=np.float32))
            store.upkeep.restore(backup)
    kept = b"".join(path.read_bytes() for path in (filled / FOLDER / "quarantine").rglob("*.f32"))
    for number in (111, 222):
        assert np.full(8, number, dtype=np.float32).tobytes() in kept


def test_files_and_folders_of_others_stay(filled: Path) -> None:
    rows = filled / FOLDER / "vectors"
    (rows / "default.0.f32.bak").write_bytes(b"mine")
    (rows / "notes.npy").write_bytes(b"mine too")
    for name in ("old", "old.tmp", "gone.3.f32"):
        (rows / name).mkdir()
    with ChronoStore(filled) as store:
        backup = store.backup()
        store.compact()
        store.upkeep.restore(backup)
        (rows / "gone.7.f32").write_bytes(b"rows that no log names")
        store.compact()
        assert store.verify().valid
    names = {path.name for path in rows.iterdir()}
    assert names >= {"default.0.f32.bak", "notes.npy", "old", "old.tmp", "gone.3.f32"}
    assert "gone.7.f32" not in names


def test_ids_may_be_as_long_as_a_record_allows(tmp_path: Path) -> None:
    ids = [f"{n:05}" + "x" * 20_000 for n in range(1030)]
    rows = np.random.default_rng(3).standard_normal((1030, 4), dtype=np.float32)
    with ChronoStore(tmp_path) as store:
        store.upsert_many([{"id": name} for name in ids])
        store.vectors.attach_many(ids, rows, model="m")
        store.vectors.attach_many(ids[:500], -rows[:500])
        store.vectors.detach(ids[7])
        store.compact()
        assert store.vectors.spaces()[0].rows == store.vectors.spaces()[0].living == 1029
        assert store.verify().valid
        for n in (0, 499, 500, 1029):
            kept = store.vectors.get(ids[n])
            assert kept is not None
            assert np.array_equal(kept, -rows[n] if n < 500 else rows[n])
        assert store.vectors.get(ids[7]) is None


@pytest.mark.filterwarnings("ignore:.*embeddings are missing")
def test_repair_keeps_all_damaged_rows_in_one_file(tmp_path: Path) -> None:
    filled = tmp_path
    with ChronoStore(filled) as store:
        store.upsert_many([{"id": f"R{n}"} for n in range(8)])
        # No row is found again in the bytes of others.
        matrix = np.random.default_rng(3).standard_normal((8, 8)).astype(np.float32)
        store.vectors.attach_many([f"R{n}" for n in range(8)], matrix, model="m")
    rows = filled / FOLDER / "vectors" / "default.0.f32"
    damaged = bytearray(rows.read_bytes())
    for row in (2, 5, 6):
        damaged[row * 32] ^= 1
    rows.write_bytes(damaged[:-8])
    with ChronoStore(filled) as store:
        store.upkeep.repair()
        assert store.verify().valid
        near = {one.record_id for one in store.vectors.nearest(np.ones(8), k=8)}
        assert near == {"R0", "R1", "R3", "R4"}
    (kept,) = (filled / FOLDER / "quarantine").glob("*-rows.jsonl")
    lines = [json.loads(line) for line in kept.read_text().splitlines()]
    assert [(line["row"], line["id"]) for line in lines] == [(2, "R2"), (5, "R5"), (6, "R6"), (7, "R7")]
    assert [bytes.fromhex(line["bytes"]) for line in lines] == [
        bytes(damaged[row * 32 : row * 32 + 32]) for row in (2, 5, 6)
    ] + [bytes(damaged[7 * 32 : -8])]


@pytest.mark.filterwarnings("ignore:.*embeddings are missing")
@pytest.mark.parametrize("leave", ["detach", "drop"])
def test_a_space_that_cannot_be_read_stops_nobody(filled: Path, leave: str) -> None:
    rows = filled / FOLDER / "vectors" / "default.0.f32"
    rows.unlink()
    rows.mkdir()
    with ChronoStore(filled, durability="full") as store:
        with pytest.raises((LogCorrupted, OSError)):
            store.vectors.get("R1")
        if leave == "detach":
            assert store.vectors.detach("R1")
        else:
            assert store.vectors.drop("default", force=True) == 8
        store.upsert({"id": "after"})
        store.sync()
    with ChronoStore(filled) as store:
        assert store.get("after") is not None
        store.upsert({"id": "and more"})


def damage(project: Path) -> None:
    """Change the line that binds a space."""
    log = project / FOLDER / "events.wal"
    text = log.read_bytes()
    assert text.count(b"Embeddings of m") == 1
    log.write_bytes(text.replace(b"Embeddings of m", b"Embeddings of n"))


@pytest.mark.filterwarnings("ignore:.*damage in events.wal")
def test_rows_that_damaged_lines_named_are_not_written_over(filled: Path) -> None:
    before = (filled / FOLDER / "vectors" / "default.0.f32").read_bytes()
    damage(filled)
    with ChronoStore(filled) as store:
        assert store.vectors.spaces() == []
        store.vectors.attach("R1", np.ones(8), model="m")
        assert (filled / FOLDER / "vectors" / "default.0.f32").read_bytes() == before
        store.upkeep.repair()
        assert store.verify().valid
        assert store.vectors.get("R1") is not None
    assert before in [path.read_bytes() for path in (filled / FOLDER).rglob("*.f32")]


@pytest.mark.filterwarnings("ignore:.*(damage in events.wal|embeddings are missing)")
class TestALostBinding:
    """The line that binds a space is damaged; its rows and groups are not."""

    @pytest.fixture
    def unbound(self, tmp_path: Path) -> Path:
        with ChronoStore(tmp_path) as store:
            store.upsert_many([{"id": f"R{n}"} for n in range(8)])
            store.vectors.attach("R0", np.ones(8), model="m")
            store.vectors.attach_many([f"R{n}" for n in range(8)], np.eye(8, dtype=np.float32))
        damage(tmp_path)
        return tmp_path

    def test_its_embeddings_are_still_found(self, unbound: Path) -> None:
        with ChronoStore(unbound) as store:
            assert not store.verify().valid
            (space,) = store.vectors.spaces()
            assert (space.model, space.dim, space.rows, space.living) == ("", 8, 9, 8)
            assert store.vectors.nearest(np.eye(8)[3], k=1)[0].record_id == "R3"

    @pytest.mark.parametrize("repaired", [False, True])
    def test_nobody_writes_over_its_rows(self, unbound: Path, repaired: bool) -> None:
        with ChronoStore(unbound) as store:
            if repaired:
                store.upkeep.repair()
                assert store.verify().valid
            else:
                with pytest.raises(InvalidArgument, match="name its model"):
                    store.vectors.attach("R1", np.ones(8))
            with pytest.raises(EmbeddingMismatch):
                store.vectors.attach("R1", np.ones(9), model="m")
            store.vectors.attach("R1", np.ones(8), model="m")
        with ChronoStore(unbound) as store:
            (space,) = store.vectors.spaces()
            assert (space.model, space.rows, space.living) == ("m", 10, 8)
            for n in range(8):
                kept = store.vectors.get(f"R{n}")
                assert kept is not None
                assert np.array_equal(kept, np.ones(8) if n == 1 else np.eye(8)[n])
            assert not [damage for damage in store.verify().damage if "row" in damage.kind]
            if repaired:
                store.compact()
                assert store.vectors.get("R7") is not None

    @pytest.mark.parametrize("dropped", [False, True])
    def test_both_verifiers_check_its_rows(self, unbound: Path, dropped: bool) -> None:
        rows = unbound / FOLDER / "vectors" / "default.0.f32"
        damaged = bytearray(rows.read_bytes())
        damaged[5 * 32] ^= 1
        rows.write_bytes(damaged[:-32])
        with ChronoStore(unbound) as store:
            if dropped:
                store.vectors.drop("default", force=True)
            ours = [(one.kind, one.offset) for one in store.verify().damage if one.path.startswith("vectors")]
        theirs = verify_log.verify_folder(unbound / FOLDER)["damage"]
        assert ours == [(one["kind"], one["offset"]) for one in theirs if one["path"].startswith("vectors")]
        assert ours == ([] if dropped else [("row-altered", 5 * 32), ("row-missing", 8 * 32)])

    def test_it_can_be_dropped(self, unbound: Path) -> None:
        with ChronoStore(unbound) as store:
            assert store.vectors.drop("default", force=True) == 8
            assert store.vectors.spaces() == []
        with ChronoStore(unbound) as store:
            assert store.vectors.spaces() == []
            store.vectors.attach("R1", np.ones(3), model="another")
            assert store.vectors.get("R1") is not None
            assert store.vectors.spaces()[0].generation == 1


@pytest.mark.filterwarnings("ignore:.*embeddings are missing")
def test_what_is_no_file_is_reported_row_by_row(filled: Path) -> None:
    rows = filled / FOLDER / "vectors" / "default.0.f32"
    aside = rows.with_name("aside")
    rows.rename(aside)
    rows.symlink_to(rows)
    with ChronoStore(filled) as store:
        damage = store.verify().damage
        assert [found.path for found in damage] == ["vectors/default.0.f32"] * 8
        assert damage[3].id == "R3" and "R3" not in str(damage[3])
        with pytest.raises(OSError, match="default"):
            store.upkeep.repair()
        rows.unlink()
        aside.rename(rows)
        assert store.verify().valid


def test_rows_that_come_back_are_found_again(filled: Path) -> None:
    rows = filled / FOLDER / "vectors" / "default.0.f32"
    with ChronoStore(filled) as store:
        rows.rename(rows.with_suffix(".away"))
        assert store.vectors.nearest(np.ones(8), k=8) == []
        assert store.vectors.spaces()[0].damaged == 8
        with pytest.raises(LogCorrupted):
            store.vectors.get("R1")
        assert not store.verify().valid
        rows.with_suffix(".away").rename(rows)
        assert len(store.vectors.nearest(np.ones(8), k=8)) == 8
        assert store.vectors.spaces()[0].damaged == 0
        assert store.vectors.get("R1") is not None


@pytest.mark.parametrize(
    ("left", "said"), [(None, "cannot be read"), (100, "ends before row 3, and the log names row 8")]
)
def test_opening_warns_of_rows_that_are_gone(filled: Path, left: int | None, said: str) -> None:
    rows = filled / FOLDER / "vectors" / "default.0.f32"
    with ChronoStore(filled) as store:
        store.vectors.attach("R1", np.ones(8))
    if left is None:
        rows.unlink()
    else:
        rows.write_bytes(rows.read_bytes()[:left])
    with pytest.warns(RuntimeWarning, match=said), ChronoStore(filled) as store:
        store.upkeep.repair()
    with ChronoStore(filled) as store:
        assert store.verify().valid


@pytest.mark.filterwarnings("ignore:.*embeddings are missing")
@pytest.mark.parametrize("what", ["folder", "pipe", "loop", "no folder at all"])
@pytest.mark.parametrize("durability", ["normal", "full"])
def test_rows_that_cannot_be_synced_poison_nobody(tmp_path: Path, what: str, durability: Any) -> None:
    rows = tmp_path / FOLDER / "vectors" / "b.0.f32"
    with ChronoStore(tmp_path, durability=durability) as store:
        store.upsert({"id": "x"})
        store.vectors.attach("x", [1.0, 2.0], space="b", model="m")
        rows.unlink()
        if what == "folder":
            rows.mkdir()
        elif what == "pipe":
            os.mkfifo(rows)
        elif what == "loop":
            rows.symlink_to(rows)
        else:
            rows.parent.rmdir()
            rows.parent.write_text("not a folder")
        store.upsert({"id": "y"})
        store.sync()
        store.backup()
        assert not store.verify().valid
    with ChronoStore(tmp_path, durability=durability) as store:
        store.upsert({"id": "z"})
        assert store.vectors.drop("b", force=True) == 1
        store.compact()
        assert store.verify().valid
