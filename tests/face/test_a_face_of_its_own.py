"""A face can be built on the ground without a line of another face."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path

import pytest
from chronomemory import ChronoRecord, ChronoStore, InvalidArgument
from chronomemory.embedders import LexicalEmbedder
from chronomemory.face import batch, models
from chronomemory.face.models import Answers, Unanswered, run
from toy import NOTE, SPACES, AwaitedNotebook, Notebook, NoteConflict, NoteMissing, note_key

NOON = datetime(2026, 5, 18, 12, tzinfo=timezone.utc)


def calm(_: str) -> str:
    return "calm"


def notebook_at(place: Path, mood: Callable[[str], str] = calm) -> Notebook:
    return Notebook(place, embedder=LexicalEmbedder(), mood=mood, now=lambda: NOON)


@pytest.fixture
def notebook(tmp_path: Path) -> Iterator[Notebook]:
    notebook = notebook_at(tmp_path)
    yield notebook
    notebook.close()


class TestABatch:
    def test_it_is_one_batch_in_one_chain(self, notebook: Notebook) -> None:
        told = notebook.write("a", "Ice is cold", tags=["ice", "ice"])
        assert str(told) == "Note a: calm."
        assert told.to_dict() == {"name": "a", "mood": "calm"}
        record = notebook.notes.store.get(note_key("a"))
        assert record is not None
        assert record.data["tags"] == ["ice"]
        assert record.data["written_at"] == NOON.isoformat()
        assert notebook.notes.store.chain_valid()
        assert notebook.notes.store.record_count() == 0  # no plain record came of it

    def test_it_reads_its_own_writes(self, notebook: Notebook) -> None:
        notebook.write("a", "Ice is cold")
        assert notebook.read("a", times=3) == "Ice is cold (3)"
        with notebook.notes.begin() as conn:
            conn.delete(note_key("a"))
            assert conn.record(note_key("a")) is None
            assert conn.records(NOTE) == []
            assert conn.count(NOTE, "active") == 0
        assert notebook.notes.look().count(NOTE, "active") == 0

    def test_what_raises_writes_nothing(self, notebook: Notebook) -> None:
        notebook.write("a", "Ice is cold")
        before = notebook.notes.store.health().head
        with pytest.raises(KeyError), notebook.notes.begin() as conn:
            conn.delete(note_key("a"))
            raise KeyError
        with pytest.raises(NoteMissing, match="episode:nobody"):
            notebook.read("nobody")
        assert notebook.notes.store.health().head == before

    def test_plain_records_of_the_same_kind_are_none_of_its(self, notebook: Notebook) -> None:
        store = notebook.notes.store
        store.upsert({"id": "PLAIN", "kind": NOTE})
        notebook.write("a", "Ice is cold")
        notebook.write("b", "Fire is hot")
        look = notebook.notes.look()
        assert [record.id for record in look.records(NOTE, "active", limit=1)] == [note_key("a")]
        assert [record.id for record in look.records(NOTE)] == [note_key("a"), note_key("b")]
        assert look.count(NOTE, "active") == 2

    def test_an_embedding_comes_with_a_change(self, notebook: Notebook) -> None:
        notebook.write("a", "Ice is cold")
        with pytest.raises(Exception, match="does not write"), notebook.notes.begin() as conn:
            conn.attach(note_key("a"), LexicalEmbedder().embed("x"), "notes", "m")

    def test_what_is_deleted_in_the_same_batch_gets_no_embedding(self, notebook: Notebook) -> None:
        notebook.write("a", "Ice is cold")
        with notebook.notes.begin() as conn:
            SPACES.attach(conn, note_key("a"), [1.0, 0.0], "other")
            conn.delete(note_key("a"))
        assert [space.name for space in notebook.notes.store.vectors.spaces()] == ["notes.lexical-384-v1"]


class TestConflicts:
    def test_it_is_run_again_and_no_update_is_lost(self, tmp_path: Path) -> None:
        mine, other = notebook_at(tmp_path), notebook_at(tmp_path)
        mine.write("a", "Ice is cold")

        def read_often(notebook: Notebook) -> None:
            for _ in range(20):
                notebook.read("a")

        threads = [threading.Thread(target=read_often, args=(one,)) for one in (mine, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert mine.read("a") == "Ice is cold (41)"
        mine.close()
        other.close()

    def test_a_batch_that_lost_a_race_raises_the_error_of_its_face(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        mine, other = notebook_at(tmp_path), notebook_at(tmp_path)
        mine.write("a", "Ice is cold")
        commit = batch.Connection.commit
        overtaken = []

        def commit_late(conn: batch.Connection) -> None:
            if not overtaken:
                overtaken.append(conn)
                other.read("a")
            commit(conn)

        monkeypatch.setattr(batch.Connection, "commit", commit_late)

        with pytest.raises(NoteConflict, match="nothing was written"), mine.notes.begin() as conn:
            assert conn.record(note_key("a")) is not None
            conn.patch(note_key("a"), {"data": {"reads": 100}})
        assert mine.read("a") == "Ice is cold (2)"
        mine.close()
        other.close()


class TestAModel:
    def test_it_is_asked_with_no_lock_held_and_once(self, tmp_path: Path) -> None:
        asked: list[str] = []

        def slow(text: str) -> str:
            asked.append(text)
            # Whoever is in the same process or in another one can write while it thinks.
            with other.notes.begin() as conn:
                assert conn.record(note_key("b")) is not None
                conn.patch(note_key("b"), {"data": {"reads": 7}})
            with notebook.notes.begin() as conn:
                conn.patch(note_key("b"), {"data": {"seen": True}})
            return "cold"

        other = notebook_at(tmp_path)
        other.write("b", "Fire is hot")
        notebook = notebook_at(tmp_path, slow)
        assert notebook.write("a", "Ice is cold").mood == "cold"
        assert notebook.write("c", "Ice is cold").mood == "cold"
        assert asked == ["Ice is cold"]
        assert other.read("b") == "Fire is hot (8)"
        notebook.close()
        other.close()

    def test_what_it_raises_is_raised_and_nothing_is_written(self, tmp_path: Path) -> None:
        def down(_: str) -> str:
            raise ConnectionError("the model is down")

        notebook = notebook_at(tmp_path, down)
        with pytest.raises(ConnectionError, match="down"):
            notebook.write("a", "Ice is cold")
        assert notebook.notes.store.wal_seq() == 0
        notebook.close()

    def test_answers_that_nobody_was_told_of_are_no_endless_loop(self, notebook: Notebook) -> None:
        known, unknown = Answers(), Answers()
        with pytest.raises(Unanswered, match="asks before it is written"):
            run(notebook.notes, lambda _: unknown.answer(("mood", "x"), lambda: "calm"), known)

    def test_of_very_many_answers_the_oldest_are_let_go(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(models, "_MOST_ANSWERS", 2)
        kept = models.KeptAnswers()
        for text in "abc":
            kept.keep(("mood", text), text)
        assert [kept.get(("mood", text)) for text in "abc"] == [None, "b", "c"]


class TestASpace:
    def test_a_note_is_found_by_its_vector(self, notebook: Notebook) -> None:
        notebook.write("a", "Ice is cold")
        notebook.write("b", "The moon is far away")
        assert notebook.nearest("cold ice")[0] == "a"
        assert notebook.embedding("a") == LexicalEmbedder().embed("Ice is cold").tobytes()
        assert notebook.embedding("nobody") is None
        [space] = notebook.notes.store.vectors.spaces()
        assert space.name == SPACES.of(LexicalEmbedder().model_name) == "notes.lexical-384-v1"

    def test_each_text_is_embedded_once_and_what_is_known_is_kept(self, notebook: Notebook) -> None:
        embedded: list[str] = []

        class Counting(LexicalEmbedder):
            def embed_batch(self, texts: list[str]) -> object:  # type: ignore[override]
                embedded.extend(texts)
                return super().embed_batch(texts)

        notebook.write("a", "Ice is cold")
        with notebook.notes.connect() as conn:
            records = conn.records(NOTE) * 2
            unembedded = [ChronoRecord(id=record.id, kind=NOTE) for record in records]
            rows = SPACES.embedded(conn, records, lambda record: record.data["text"], Counting())
            assert embedded == []
            assert rows.tobytes() == 2 * (notebook.embedding("a") or b"")
            again = SPACES.embedded(conn, unembedded, lambda _: "Ice is cold", Counting())
            assert embedded == ["Ice is cold"]
            assert again.tobytes() == rows.tobytes()


class TestTheAwaitedTwin:
    def test_every_verb_is_a_line_and_says_what_the_plain_one_says(self) -> None:
        for name in ("write", "read", "nearest", "close"):
            plain, twin = getattr(Notebook, name), getattr(AwaitedNotebook, name)
            assert inspect.iscoroutinefunction(twin)
            assert inspect.signature(twin) == inspect.signature(plain)
            assert twin.__doc__ == plain.__doc__
            assert twin.__qualname__ == f"AwaitedNotebook.{name}"

    def test_another_door_may_offer_it_under_another_name(self) -> None:
        class Other(AwaitedNotebook):
            note = AwaitedNotebook.write

        assert Other.note.__qualname__ == "AwaitedNotebook.write"

    def test_it_does_the_same_and_other_tasks_go_on(self, tmp_path: Path) -> None:
        going_on = threading.Event()

        def patient(_: str) -> str:
            assert going_on.wait(10.0)
            return "patient"

        async def live() -> list[str]:
            door = AwaitedNotebook(notebook_at(tmp_path, patient))
            writing = asyncio.create_task(door.write("a", text="Ice is cold", tags=["x"]))
            await asyncio.sleep(0)
            going_on.set()
            told = await writing
            read = await door.read("a", times=2)
            with pytest.raises(InvalidArgument, match=r"^times must be at most 100, got 101$"):
                await door.read("a", 101)
            await door.close()
            return [str(told), read]

        assert asyncio.run(live()) == ["Note a: patient.", "Ice is cold (2)"]


def test_it_can_stand_on_a_store_that_is_open(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        notebook = Notebook(store, embedder=LexicalEmbedder(), mood=calm)
        notebook.write("a", "Ice is cold")
        notebook.close()
        assert store.get(note_key("a")) is not None
