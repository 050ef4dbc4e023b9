"""What is given as a vector, a space or a yes is taken for what it is, or refused by name."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chronomemory import ChronoStore, InvalidArgument
from chronomemory.errors import EmbeddingMismatch, UnknownSpace

GIVEN = [1.0, 2.0, 3.0, 4.0]


@pytest.fixture
def filled(store: ChronoStore) -> ChronoStore:
    store.upsert_many([{"id": "A", "label": "a"}, {"id": "B", "label": "b"}])
    store.vectors.attach_many(["A", "B"], [GIVEN, [4.0, 3.0, 2.0, 1.0]], model="four")
    return store


def unaligned(values: list[float]) -> Any:
    rows = np.frombuffer(b"x" + np.array(values, dtype=np.float32).tobytes(), np.uint8)[1:].view(np.float32)
    assert rows.flags.c_contiguous and not rows.flags.aligned
    return rows


def table_column(*rows: Any) -> Any:
    """Return rows as a column of a table has them: an array of objects."""
    column = np.empty(len(rows), dtype=object)
    column[:] = [np.array(row) for row in rows]
    return column


def never(texts: list[str]) -> Any:
    raise AssertionError(f"{len(texts)} texts were embedded")


class TestNumbers:
    def kept(self, store: ChronoStore, record_id: str = "A") -> list[float]:
        found = store.vectors.get(record_id)
        assert found is not None
        return [float(one) for one in found]

    def test_an_unaligned_array_is_taken(self, filled: ChronoStore) -> None:
        filled.vectors.attach("A", unaligned([9.0, 8.0, 7.0, 6.0]))
        assert self.kept(filled) == [9.0, 8.0, 7.0, 6.0]
        filled.vectors.attach_many(["A", "B"], unaligned([*GIVEN, *GIVEN]).reshape(2, 4))
        assert self.kept(filled, "B") == GIVEN

    def test_an_unaligned_question_is_taken(self, filled: ChronoStore) -> None:
        assert filled.vectors.nearest(unaligned(GIVEN)) == filled.vectors.nearest(np.array(GIVEN))
        both = filled.vectors.nearest(unaligned([*GIVEN, *GIVEN]).reshape(2, 4), k=1)
        assert [[near.record_id for near in hits] for hits in both] == [["A"], ["A"]]
        assert [hit.id for hit in filled.search(vector=unaligned(GIVEN), limit=1)] == ["A"]

    @pytest.mark.parametrize(
        ("vector", "expected"),
        [
            (np.array([1, 2, 3, 4], dtype=object), GIVEN),
            (np.array([1.0, 2, np.float32(3), np.int8(4)], dtype=object), GIVEN),
            ([2**70, 0, 1, -(2**70)], [2.0**70, 0.0, 1.0, -(2.0**70)]),
            ([Fraction(1, 2), Decimal("0.25"), 1, 2.0], [0.5, 0.25, 1.0, 2.0]),
        ],
        ids=["whole", "mixed", "large", "exact"],
    )
    def test_numbers_are_numbers_as_objects_too(
        self, filled: ChronoStore, vector: Any, expected: list[float]
    ) -> None:
        filled.vectors.attach("A", vector)
        assert self.kept(filled) == expected

    def test_rows_of_a_table_are_a_matrix(self, filled: ChronoStore) -> None:
        filled.vectors.attach_many(["B", "A"], table_column([4.0, 3.0, 2.0, 1.0], GIVEN))
        assert (self.kept(filled, "A"), self.kept(filled, "B")) == (GIVEN, [4.0, 3.0, 2.0, 1.0])
        answers = filled.vectors.nearest(table_column(GIVEN, [4.0, 3.0, 2.0, 1.0]), k=1)
        assert [[near.record_id for near in hits] for hits in answers] == [["A"], ["B"]]

    @pytest.mark.parametrize(
        ("vector", "reason"),
        [
            (np.array([1, 2, 3, None], dtype=object), "a NoneType is not a number"),
            ([2**70, 1, 2, True], "a bool is not a number"),
            (np.array([1, 2, 3, "4"], dtype=object), "holds no numbers"),
            (np.array([True] * 4, dtype=object), "holds no numbers"),
            (np.array([1, 2, 3, 4j], dtype=object), "holds no numbers"),
            ([10**400, 1, 2, 3], "not an array of numbers: int too large"),
            ([Decimal("sNaN"), 1, 2, 3], "not an array of numbers"),
            ([Decimal("1e39"), 1, 2, 3], "too large for float32"),
            ([Decimal("NaN"), 1, 2, 3], "not finite|must be finite"),
            (table_column([1.0, 2.0], [1.0]), "not an array of numbers"),
            ((one for one in GIVEN), "a generator is not a number"),
            ({1.0, 2.0}, "a set is not a number"),
            (None, "a NoneType is not a number"),
        ],
    )
    def test_what_is_none_is_said(self, filled: ChronoStore, vector: Any, reason: str) -> None:
        before = filled.wal_seq()
        for ask in (filled.vectors.attach, lambda _, given: filled.vectors.nearest(given)):
            with pytest.raises(InvalidArgument, match=reason) as caught:
                ask("A", vector)
            assert caught.value.field == "vector"
        assert filled.wal_seq() == before and self.kept(filled) == GIVEN

    def test_what_a_mask_hides_is_not_stored(self, filled: ChronoStore) -> None:
        hidden: Any = np.ma.array(GIVEN, mask=[0, 1, 0, 1])
        rows: Any = np.ma.array([GIVEN, GIVEN], mask=[[0, 0, 0, 0], [0, 0, 1, 0]])
        before = filled.wal_seq()
        for ask in (
            lambda: filled.vectors.attach("A", hidden),
            lambda: filled.vectors.nearest(hidden),
            lambda: filled.search(vector=hidden),
            lambda: filled.vectors.attach_many(["A", "B"], rows),
            lambda: filled.vectors.attach_many(["A", "B"], [rows[0], rows[1]]),
            lambda: filled.vectors.attach("A", [1.0, 2.0, np.ma.masked, 4.0]),
            lambda: filled.vectors.reembed("default", model="new", embed=lambda _: rows, into="new"),
        ):
            with pytest.raises(InvalidArgument, match="masked") as caught:
                ask()
            assert caught.value.field == "vector"
        assert filled.wal_seq() == before

    def test_a_mask_that_hides_nothing_is_fine(self, filled: ChronoStore) -> None:
        filled.vectors.attach("A", np.ma.array([5.0, 6.0, 7.0, 8.0], mask=[0, 0, 0, 0]))
        assert self.kept(filled) == [5.0, 6.0, 7.0, 8.0]
        plain: Any = np.ma.array(GIVEN)
        filled.vectors.attach_many(["A", "B"], [plain, plain])
        assert self.kept(filled, "B") == GIVEN


class TestNames:
    @pytest.mark.parametrize("force", ["no", 1, None])
    def test_a_yes_is_a_yes(self, filled: ChronoStore, force: Any) -> None:
        with pytest.raises(InvalidArgument, match=f"^force must be True or False, got {force!r}$") as caught:
            filled.vectors.drop("default", force=force)
        assert caught.value.field == "force"
        assert filled.vectors.drop("default", force=True) == 2

    @pytest.mark.parametrize("k", [-1, 2**63, pytest.param(10**5000, id="huge"), "1", 1.5, True, None])
    def test_a_number_of_records_is_one(self, filled: ChronoStore, k: Any) -> None:
        with pytest.raises(InvalidArgument) as caught:
            filled.vectors.nearest(GIVEN, k=k)
        assert caught.value.field == "k"

    @pytest.mark.parametrize(
        "wrong",
        [
            {"space": 5},
            {"into": None},
            {"model": 5},
            {"embed": "minilm"},
            {"text": "label"},
            {"progress": 5},
            {"default": "yes"},
        ],
        ids=str,
    )
    def test_every_argument_of_reembed_is_named(self, filled: ChronoStore, wrong: dict[str, Any]) -> None:
        asked = {"space": "default", "model": "new", "embed": never, "into": "new"} | wrong
        with pytest.raises(InvalidArgument) as caught:
            filled.vectors.reembed(**asked)
        assert [caught.value.field] == list(wrong)


class TestBeforeAnythingIsEmbedded:
    @pytest.mark.parametrize("into", ["", ".hidden", "a/b", "a b", "é", "n" * 65, "DEFAULT", "Gone"])
    def test_a_bad_name_is_refused(self, filled: ChronoStore, into: str) -> None:
        filled.vectors.attach("A", [1.0], space="gone", model="one")
        filled.vectors.drop("gone")
        before = filled.wal_seq()
        with pytest.raises(InvalidArgument, match=r"without a dot in front|only in case") as caught:
            filled.vectors.reembed("default", model="new", embed=never, into=into)
        assert caught.value.field == "space" and filled.wal_seq() == before

    def test_a_model_without_a_name_is_refused(self, filled: ChronoStore) -> None:
        before = filled.wal_seq()
        with pytest.raises(InvalidArgument, match="needs the name of its model") as caught:
            filled.vectors.reembed("default", model="", embed=never, into="new")
        assert caught.value.field == "model" and filled.wal_seq() == before
        with pytest.raises(EmbeddingMismatch):
            filled.vectors.reembed("default", model="", embed=never, into="default")

    def test_another_length_is_refused_with_the_first_vectors(self, filled: ChronoStore) -> None:
        filled.vectors.attach("A", [1.0, 2.0], space="two", model="two")
        with pytest.raises(EmbeddingMismatch, match="2 dimensions, not to"):
            filled.vectors.reembed(
                "default", model="two", embed=lambda texts: np.ones((len(texts), 3)), into="two"
            )
        assert filled.vectors.get("B", space="two") is None

    def test_a_dropped_name_can_be_embedded_into_again(self, filled: ChronoStore) -> None:
        filled.vectors.attach("A", [1.0], space="gone", model="one")
        filled.vectors.drop("gone")
        embed = lambda texts: np.ones((len(texts), 3))  # noqa: E731
        assert filled.vectors.reembed(None, model="three", embed=embed, into="gone", default=True) == 2
        assert [space.name for space in filled.vectors.spaces() if space.is_default] == ["gone"]

    @pytest.mark.parametrize("how", ["detached", "deleted"])
    def test_nobody_to_embed_makes_no_default(self, filled: ChronoStore, how: str) -> None:
        for name in ("A", "B"):
            filled.vectors.detach(name) if how == "detached" else filled.delete(name)
        assert filled.vectors.reembed("default", model="new", embed=never, into="new") == 0
        before = filled.wal_seq()
        with pytest.raises(InvalidArgument, match="there is no space 'new' to ask") as caught:
            filled.vectors.reembed("default", model="new", embed=never, into="new", default=True)
        assert caught.value.field == "default" and filled.wal_seq() == before
        assert [space.name for space in filled.vectors.spaces() if space.is_default] == ["default"]

    def test_a_space_that_is_not_there_is_the_first_thing_said(self, filled: ChronoStore) -> None:
        with pytest.raises(UnknownSpace):
            filled.vectors.reembed("nowhere", model="", embed=never, into="a/b")


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such files")
@pytest.mark.filterwarnings("ignore:.*embeddings are missing")
class TestNoRegularFile:
    @pytest.fixture(autouse=True)
    def hurry(self) -> Iterator[None]:
        def late(*_: object) -> None:
            raise AssertionError("it waits for a writer that never comes")

        before = signal.signal(signal.SIGALRM, late)
        signal.alarm(20)
        yield
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)

    @pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
    def test_the_matrix_is_refused_at_once(self, tmp_path: Path, kind: str) -> None:
        with ChronoStore(tmp_path) as store:
            store.upsert({"id": "A"})
            store.vectors.attach("A", GIVEN, model="four")
        file = tmp_path / ".chronomemory" / "vectors" / "default.0.f32"
        kept = file.read_bytes()
        file.unlink()
        if kind == "pipe":
            os.mkfifo(file)
        elif kind == "folder":
            file.mkdir()
        else:
            file.symlink_to("/dev/zero")
        with ChronoStore(tmp_path) as store:
            with pytest.raises(OSError, match=r"default\.0\.f32") as caught:
                store.vectors.matrix()
            # A link is refused before anybody asks where it leads.
            said = {"pipe": "not a regular file", "folder": "", "device": "symbolic link"}
            assert said[kind] in str(caught.value)
            file.rmdir() if kind == "folder" else file.unlink()
            file.write_bytes(kept)
            assert store.vectors.matrix()[1].tolist() == [GIVEN]
