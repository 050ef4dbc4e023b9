"""Embeddings are kept to the last bit, bound to their model, and never believed once damaged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from chronomemory import ChronoRecord, ChronoStore, InvalidArgument, InvalidRecord, LogCorrupted
from chronomemory.errors import EmbeddingMismatch, UnknownSpace

Floats = npt.NDArray[np.float32]
DIM = 24
#: A file of codes holds those of so many rows.
FILE_ROWS = 16_384


def vectors(count: int, seed: int = 0, dim: int = DIM) -> Floats:
    return np.random.default_rng(seed).standard_normal((count, dim), dtype=np.float32)


def fill(store: ChronoStore, count: int, seed: int = 0) -> tuple[list[str], Floats]:
    ids, rows = [f"R{n}" for n in range(count)], vectors(count, seed)
    store.upsert_many([ChronoRecord(id=name, label=f"record {name}") for name in ids])
    store.vectors.attach_many(ids, rows, model="a model")
    return ids, rows


def found(store: ChronoStore, vector: object, **asked: Any) -> list[str]:
    return [near.record_id for near in store.vectors.nearest(np.asarray(vector), **asked)]


def rows_file(store: ChronoStore) -> Path:
    return next((store.project_root / ".chronomemory" / "vectors").glob("*.f32"))


def flip(path: Path, offset: int) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1]))


class TestRows:
    def test_an_embedding_comes_back_bit_for_bit(self, store: ChronoStore, tmp_path: Path) -> None:
        odd = np.array([0.0, -0.0, 1e-45, -3.4e38, 1 / 3, np.pi], dtype=np.float32)
        store.upsert({"id": "A"})
        store.vectors.attach("A", odd, model="m")
        store.close()
        with ChronoStore(tmp_path) as again:
            back = again.vectors.get("A")
        assert back is not None
        assert back.tobytes() == odd.tobytes()

    def test_the_last_embedding_counts(self, store: ChronoStore) -> None:
        fill(store, 3)
        store.vectors.attach("R1", vectors(1, 9)[0])
        assert np.array_equal(store.vectors.get("R1"), vectors(1, 9)[0])
        (space,) = store.vectors.spaces()
        assert (space.rows, space.living, space.dim, space.model) == (4, 3, DIM, "a model")

    def test_one_that_was_taken_back_does_not_come_back(self, store: ChronoStore) -> None:
        _, rows = fill(store, 3)
        store.vectors.attach("R1", rows[1])
        assert store.vectors.detach("R1")
        assert not store.vectors.detach("R1")
        assert store.vectors.get("R1") is None
        assert "R1" not in found(store, rows[1])
        store.vectors.attach("R1", rows[1])
        assert found(store, rows[1], k=1) == ["R1"]

    def test_a_record_that_changes_keeps_its_embedding(self, store: ChronoStore) -> None:
        _, rows = fill(store, 3)
        store.upsert(ChronoRecord(id="R1", label="other words"))
        assert np.array_equal(store.vectors.get("R1"), rows[1])
        store.delete("R1")
        assert "R1" not in found(store, rows[1])
        store.upsert(ChronoRecord(id="R1", label="back again"))
        assert found(store, rows[1], k=1) == ["R1"]

    def test_the_matrix_is_a_view_of_the_file(self, store: ChronoStore) -> None:
        ids, rows = fill(store, 5)
        names, view = store.vectors.matrix()
        assert names == ids and np.array_equal(view, rows)
        assert isinstance(view, np.memmap)
        assert not view.flags.writeable

    def test_the_matrix_has_no_rows_that_were_replaced(self, store: ChronoStore) -> None:
        ids, rows = fill(store, 5)
        store.vectors.attach("R0", rows[4])
        names, copy = store.vectors.matrix()
        assert names == [*ids[1:], "R0"]
        assert np.array_equal(copy, rows[[1, 2, 3, 4, 4]])
        assert not copy.flags.writeable

    def test_faces_may_have_embeddings_too(self, store: ChronoStore) -> None:
        store.engine.upsert({"id": "block:1", "kind": "block"}, "blocks")
        store.vectors.attach("block:1", [1.0, 0.0], model="m")
        assert found(store, [1.0, 0.1]) == ["block:1"]

    def test_nothing_of_it_shows_among_plain_records(self, store: ChronoStore) -> None:
        fill(store, 3)
        assert store.record_count() == 3
        assert {record.kind for record in store.query()} == {"fact"}
        assert {record.kind for record in store.query(kind="vector")} == {"vector"}


class TestBinding:
    def test_another_model_or_length_is_refused(self, store: ChronoStore) -> None:
        fill(store, 2)
        seq = store.wal_seq()
        with pytest.raises(EmbeddingMismatch, match='bound to "a model"') as caught:
            store.vectors.attach("R0", vectors(1)[0], model="another")
        assert (caught.value.space, caught.value.model, caught.value.dim) == ("default", "a model", DIM)
        with pytest.raises(ValueError, match="24 dimensions"):
            store.vectors.attach("R0", [1.0, 2.0])
        assert store.wal_seq() == seq

    def test_spaces_live_side_by_side(self, store: ChronoStore) -> None:
        _, rows = fill(store, 4)
        store.vectors.attach("R3", [1.0, 0.0], space="small", model="other")
        assert [space.name for space in store.vectors.spaces()] == ["default", "small"]
        assert found(store, [1.0, 0.0], space="small") == ["R3"]
        assert found(store, rows[2], k=1) == ["R2"]
        store.vectors.use("small")
        assert found(store, [1.0, 0.0]) == ["R3"]
        assert [space.is_default for space in store.vectors.spaces()] == [False, True]

    def test_a_space_that_is_not_there_is_named(self, store: ChronoStore) -> None:
        fill(store, 1)
        with pytest.raises(UnknownSpace) as caught:
            store.vectors.nearest([1.0], space="nowhere")
        assert (caught.value.space, caught.value.known) == ("nowhere", ["default"])

    @pytest.mark.parametrize("name", ["", ".hidden", "a/b", "a b", "x" * 65, "ä", "a:b"])
    def test_a_name_that_is_no_file_name_is_refused(self, store: ChronoStore, name: str) -> None:
        store.upsert({"id": "A"})
        with pytest.raises(InvalidArgument):
            store.vectors.attach("A", [1.0], space=name, model="m")

    def test_names_differ_in_more_than_case(self, store: ChronoStore) -> None:
        store.upsert({"id": "A"})
        store.vectors.attach("A", [1.0], space="Words", model="m")
        with pytest.raises(InvalidArgument, match="only in case"):
            store.vectors.attach("A", [1.0], space="words", model="m")

    def test_embedding_again_leaves_the_old_space_searchable(self, store: ChronoStore) -> None:
        _, rows = fill(store, 600)
        store.delete("R7")
        asked: list[int] = []

        def embed(texts: list[str]) -> Floats:
            asked.append(len(texts))
            assert found(store, rows[3], k=1, space="default") == ["R3"]
            if len(asked) == 2:
                raise KeyboardInterrupt
            return np.array([[len(text), hash(text) % 97] for text in texts], dtype=np.float32)

        again = {"model": "newer", "embed": embed, "into": "new"}
        with pytest.raises(KeyboardInterrupt):
            store.vectors.reembed("default", **again)
        assert store.vectors.reembed("default", default=True, **again) == 599 - asked[0]
        new = next(space for space in store.vectors.spaces() if space.name == "new")
        assert (new.living, new.model, new.is_default) == (599, "newer", True)


class TestBadInput:
    @pytest.mark.parametrize(
        "vector",
        [
            [1.0, float("nan")],
            [1.0, float("inf")],
            [],
            [[1.0, 2.0]],
            ["a", "b"],
            np.array([1e300, 0.0]),
            None,
            [[1.0], [1.0, 2.0]],
        ],
        ids=repr,
    )
    def test_what_is_no_vector_is_refused(self, store: ChronoStore, vector: Any, log: Path) -> None:
        store.upsert({"id": "A"})
        before = log.read_bytes()
        with pytest.raises(InvalidRecord):
            store.vectors.attach("A", vector, model="m")
        assert log.read_bytes() == before
        assert store.vectors.spaces() == []

    def test_only_records_that_are_there_can_have_one(self, store: ChronoStore) -> None:
        store.upsert({"id": "A"})
        store.delete("A")
        with pytest.raises(InvalidRecord, match="deleted"):
            store.vectors.attach("A", [1.0], model="m")
        with pytest.raises(InvalidRecord, match="no record"):
            store.vectors.attach_many(["B"], [[1.0]], model="m")
        assert store.vectors.spaces() == []

    def test_a_batch_is_all_or_nothing(self, store: ChronoStore) -> None:
        store.upsert_many([{"id": "A"}, {"id": "B"}])
        with pytest.raises(InvalidRecord):
            store.vectors.attach_many(["A", "C"], [[1.0], [2.0]], model="m")
        with pytest.raises(InvalidArgument):
            store.vectors.attach_many(["A", "B"], [[1.0]], model="m")
        with pytest.raises(InvalidArgument, match="model"):
            store.vectors.attach("A", [1.0])
        assert store.vectors.spaces() == []

    def test_other_numbers_are_cast_and_gaps_are_closed(self, store: ChronoStore) -> None:
        store.upsert_many([{"id": "A"}, {"id": "B"}])
        wide = np.arange(12, dtype=np.float64).reshape(3, 4)[:2, ::2]
        store.vectors.attach_many(["A", "B"], wide, model="m")
        assert np.array_equal(store.vectors.get("B"), [4, 6])
        store.vectors.attach("A", np.array([3, 5], dtype=np.int64))
        assert np.array_equal(store.vectors.get("A"), [3, 5])

    @pytest.mark.parametrize("asked", [{"k": -1}, {"k": True}, {"min_score": float("nan")}], ids=repr)
    def test_questions_make_sense(self, store: ChronoStore, asked: dict[str, Any]) -> None:
        fill(store, 2)
        with pytest.raises(InvalidArgument):
            store.vectors.nearest(vectors(1)[0], **asked)

    def test_a_query_fits_its_space(self, store: ChronoStore) -> None:
        fill(store, 2)
        with pytest.raises(InvalidArgument, match="got 3"):
            store.vectors.nearest([1.0, 2.0, 3.0])
        with pytest.raises(InvalidArgument, match="finite"):
            store.vectors.nearest(np.full(DIM, np.nan, dtype=np.float32))

    def test_nobody_else_writes_their_records(self, store: ChronoStore) -> None:
        with pytest.raises(InvalidRecord, match="vectors face"):
            store.upsert({"id": "vector:default"})


class TestDamage:
    @pytest.mark.parametrize("reopened", [False, True])
    @pytest.mark.parametrize("count", [40, 1100])
    def test_a_damaged_row_is_reported_and_never_scored(
        self, tmp_path: Path, count: int, reopened: bool
    ) -> None:
        with ChronoStore(tmp_path) as store:
            _, rows = fill(store, count)
            if reopened:
                found(store, rows[0])
        flip(tmp_path / ".chronomemory" / "vectors" / "default.0.f32", (17 * DIM + 5) * 4 + 1)
        with ChronoStore(tmp_path) as store:
            near = found(store, rows[17], k=5)
            assert len(near) == 5
            assert "R17" not in near
            exact = np.argsort(-(rows @ rows[17]) / np.linalg.norm(rows, axis=1))
            assert near == [f"R{row}" for row in exact if row != 17][:5]
            assert store.vectors.spaces()[0].damaged == 1
            with pytest.raises(LogCorrupted, match="row 17: its SHA-256 is another") as caught:
                store.vectors.get("R17")
            assert (caught.value.path, caught.value.offset) == ("vectors/default.0.f32", 17 * DIM * 4)
            (damage,) = store.verify().damage
            assert (damage.kind, damage.offset) == ("row-altered", 17 * DIM * 4)
            assert not store.chain_valid()

    @pytest.mark.filterwarnings("ignore:.*embeddings are missing")
    def test_rows_that_are_missing_are_found(self, tmp_path: Path) -> None:
        with ChronoStore(tmp_path) as store:
            _, rows = fill(store, 10)
        path = tmp_path / ".chronomemory" / "vectors" / "default.0.f32"
        path.write_bytes(path.read_bytes()[: 7 * DIM * 4])
        with ChronoStore(tmp_path) as store:
            assert set(found(store, rows[8], k=10)) == {f"R{n}" for n in range(7)}
            assert [damage.kind for damage in store.verify().damage] == ["row-missing"] * 3
        path.unlink()
        with ChronoStore(tmp_path) as store:
            assert found(store, rows[8]) == []
            assert len(store.verify().damage) == 10

    def test_repair_takes_damaged_rows_back_and_keeps_their_bytes(self, tmp_path: Path) -> None:
        with ChronoStore(tmp_path) as store:
            _, rows = fill(store, 10)
        flip(tmp_path / ".chronomemory" / "vectors" / "default.0.f32", 3 * DIM * 4)
        with ChronoStore(tmp_path) as store:
            assert store.upkeep.repair()["damage"][0]["kind"] == "row-altered"
            assert store.chain_valid()
            assert store.vectors.get("R3") is None
            assert np.array_equal(store.vectors.get("R4"), rows[4])
        (kept,) = (tmp_path / ".chronomemory" / "quarantine").glob("*-rows.jsonl")
        assert '"id":"R3","row":3' in kept.read_text()

    @pytest.mark.parametrize("harm", ["gone", "short", "empty", "first", "high", "low", "footer", "swapped"])
    def test_codes_can_be_lost(self, tmp_path: Path, harm: str) -> None:
        with ChronoStore(tmp_path) as store:
            _, rows = fill(store, 2 * FILE_ROWS + 300)
            asked = rows[:40] + np.float32(0.5)
            before = store.vectors.nearest(asked, k=9)
        folder = tmp_path / ".chronomemory" / "index" / "vectors"
        path, other = (folder / f"default.0.{n}-{n + FILE_ROWS}.codes" for n in (0, FILE_ROWS))
        whole = path.read_bytes()
        if harm == "gone":
            path.unlink()
        elif harm == "swapped":
            path.write_bytes(other.read_bytes())
        elif harm in ("short", "empty"):
            path.write_bytes(whole[: len(whole) // 2 if harm == "short" else 0])
        else:
            length = len(whole)
            flip(
                path, {"first": 100, "high": length // 2, "low": length * 4 // 5, "footer": length - 60}[harm]
            )
        with ChronoStore(tmp_path) as store:
            assert store.vectors.nearest(asked, k=9) == before
            assert store.vectors.nearest(asked, k=9) == before
        with ChronoStore(tmp_path) as store:
            assert store.vectors.nearest(asked, k=9) == before
            assert store.verify().valid
        assert path.read_bytes() == whole
        assert sorted(file.name for file in folder.iterdir()) == sorted([path.name, other.name])

    @pytest.mark.parametrize("left", [0.0, 0.2, 0.5])
    def test_codes_that_are_cut_while_they_are_used_end_no_process(self, tmp_path: Path, left: float) -> None:
        with ChronoStore(tmp_path) as store:
            _, rows = fill(store, FILE_ROWS + 200)
            asked = rows[:3] + np.float32(0.5)
            before = store.vectors.nearest(asked, k=9)
            path = tmp_path / ".chronomemory" / "index" / "vectors" / f"default.0.0-{FILE_ROWS}.codes"
            whole = path.read_bytes()
            path.write_bytes(whole[: int(len(whole) * left)])
            for _ in range(3):
                assert store.vectors.nearest(asked, k=9) == before
        with ChronoStore(tmp_path) as store:
            assert store.vectors.nearest(asked, k=9) == before
        assert path.read_bytes() == whole

    def test_codes_of_an_earlier_version_are_removed(self, tmp_path: Path) -> None:
        folder = tmp_path / ".chronomemory" / "index" / "vectors"
        with ChronoStore(tmp_path) as store:
            store.upsert({"id": "first"})
            folder.mkdir(parents=True)
            (folder / "default.0.i8").write_bytes(b"codes")
            (folder / "mine.i8").write_bytes(b"not ours")
            _, rows = fill(store, FILE_ROWS)
            store.vectors.nearest(rows[0], k=1)
        assert sorted(file.name for file in folder.iterdir()) == [f"default.0.0-{FILE_ROWS}.codes", "mine.i8"]

    def test_a_range_that_is_not_full_has_a_file_that_is_replaced(self, tmp_path: Path) -> None:
        folder = tmp_path / ".chronomemory" / "index" / "vectors"
        rows, there = vectors(16_400, 0), 0
        for count, end in [(1_000, 0), (5_000, 4_096), (5_100, 4_096), (13_000, 12_288), (16_400, FILE_ROWS)]:
            with ChronoStore(tmp_path) as store:
                ids = [f"R{n}" for n in range(there, count)]
                store.upsert_many([ChronoRecord(id=name) for name in ids])
                store.vectors.attach_many(ids, rows[there:count], model="a model")
                before = store.vectors.nearest(rows[:5], k=9)
            there, files = count, list(folder.glob("*"))
            assert [path.name for path in files] == ([f"default.0.0-{end}.codes"] if end else [])
            for path in files:
                with ChronoStore(tmp_path) as store:
                    assert store.vectors.nearest(rows[:5], k=9) == before
                flip(path, path.stat().st_size // 2)
                with ChronoStore(tmp_path) as store:
                    assert store.vectors.nearest(rows[:5], k=9) == before
                    assert store.verify().valid

    def test_an_erasure_removes_codes(self, tmp_path: Path) -> None:
        folder = tmp_path / ".chronomemory" / "index" / "vectors"
        with ChronoStore(tmp_path) as store:
            _, rows = fill(store, FILE_ROWS + 20)
            before = store.vectors.nearest(rows[3], k=9)
            assert list(folder.iterdir())
            store.erase(ids=["R7"], reason="asked")
            assert not list(folder.iterdir())
            assert store.vectors.nearest(rows[3], k=9) == [
                replace(near, row=near.row - (near.row > 7)) for near in before
            ]

    def test_each_row_is_found_while_its_block_grows(self, store: ChronoStore) -> None:
        rows = vectors(2300, 4)
        ids = [f"R{n}" for n in range(len(rows))]
        store.upsert_many([ChronoRecord(id=name) for name in ids])
        there = 0
        for step in [1, 14, 2, 40, 8, 1, 63, 64, 65, 700, 60, 5, 1, 900, 200, 176]:
            store.vectors.attach_many(ids[there : there + step], rows[there : there + step], model="m")
            there += step
            last = list(range(max(0, there - 70), there))
            found = store.vectors.nearest(rows[last], k=2)
            assert [hits[0].row for hits in found] == last
            assert all(abs(hits[0].score - 1) < 1e-6 for hits in found)
        assert there == len(rows)


class TestCare:
    def test_a_backup_brings_embeddings_back(self, store: ChronoStore) -> None:
        _, rows = fill(store, 20)
        copy = store.backup()
        store.vectors.attach("R5", rows[6])
        store.vectors.detach("R7")
        other = store.backup()
        store.upkeep.restore(copy)
        assert np.array_equal(store.vectors.get("R5"), rows[5])
        assert np.array_equal(store.vectors.get("R7"), rows[7])
        # Rows of another history at the same places.
        store.vectors.attach_many(["R1", "R2"], rows[[2, 1]])
        assert store.chain_valid()
        store.upkeep.restore(other)
        assert np.array_equal(store.vectors.get("R5"), rows[6])
        assert np.array_equal(store.vectors.get("R1"), rows[1])
        assert store.vectors.get("R7") is None
        assert store.chain_valid()

    def test_a_copy_can_be_brought_into_an_empty_project(self, store: ChronoStore, tmp_path: Path) -> None:
        _, rows = fill(store, 20)
        copy = store.backup()
        with ChronoStore(tmp_path / "elsewhere") as other:
            other.upkeep.restore(copy)
            assert found(other, rows[3], k=1) == ["R3"]
            assert other.chain_valid()

    def test_compaction_moves_the_living_when_many_are_dead(self, store: ChronoStore, tmp_path: Path) -> None:
        ids, rows = fill(store, 1200)
        store.compact()
        assert store.vectors.spaces()[0].generation == 0
        store.vectors.attach_many(ids[:700], rows[:700] * 2)
        store.vectors.detach("R1")
        store.delete("R2")
        with ChronoStore(tmp_path) as beside:
            before = beside.vectors.nearest(rows[:20], k=7)
            store.compact()
            (space,) = store.vectors.spaces()
            assert (space.generation, space.rows, space.living) == (1, 1199, 1199)
            names = [[near.record_id for near in hits] for hits in before]
            for there in (store, beside):
                after = there.vectors.nearest(rows[:20], k=7)
                assert [[near.record_id for near in hits] for hits in after] == names
        files = sorted(path.name for path in (tmp_path / ".chronomemory" / "vectors").iterdir())
        assert files == ["default.1.f32"]
        assert np.array_equal(store.vectors.get("R5"), rows[5] * 2)
        assert np.array_equal(store.vectors.get("R2"), rows[2] * 2)
        assert store.vectors.get("R1") is None
        assert store.chain_valid()
        store.vectors.attach("R1", rows[1])
        assert found(store, rows[1], k=1) == ["R1"]
