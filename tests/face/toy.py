"""A small face as an example: notes that count how often they are read.

It borrows the prefix of ``episodes``; a real face declares its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from chronomemory import ChronoRecord, ChronoStore
from chronomemory.embedders import Embedder
from chronomemory.errors import ChronoError, WriteConflict
from chronomemory.face.arguments import count, string, unique_strings
from chronomemory.face.awaited import Awaited, awaited_verb
from chronomemory.face.batch import Connection, Face
from chronomemory.face.handle import Handle, open_handle
from chronomemory.face.models import Answers, KeptAnswers, run
from chronomemory.face.moments import Now, utc_now
from chronomemory.face.results import Result
from chronomemory.face.spaces import Spaces, embedding_of

NOTE = "episode"


class NoteConflict(WriteConflict):
    """Another writer changed a note."""


class NoteMissing(ChronoError, LookupError):  # noqa: N818
    """There is no such note."""


NOTES = Face("episodes", conflict=NoteConflict, missing=NoteMissing)
SPACES = Spaces("notes")


class Notes(Handle):
    """The notes of one project."""

    face = NOTES


def note_key(name: str) -> str:
    """Return the record id of a note."""
    return f"{NOTE}:{name}"


@dataclass(frozen=True)
class Written(Result):
    """What became of a note."""

    name: str
    mood: str

    @property
    def summary(self) -> str:
        """Which note it is, and its mood."""
        return f"Note {self.name}: {self.mood}."


class Notebook:
    """The plain verbs of the toy face."""

    def __init__(
        self,
        place: str | os.PathLike[str] | ChronoStore,
        *,
        embedder: Embedder,
        mood: Callable[[str], str],
        now: Now = utc_now,
    ) -> None:
        self.notes = open_handle(Notes, place)
        self._embedder, self._mood, self._now = embedder, mood, now
        self._kept = KeptAnswers()

    def close(self) -> None:
        """Let go."""
        self.notes.close()

    def write(self, name: str, text: str, *, tags: Sequence[str] = ()) -> Written:
        """Write a note with its embedding; a model says which mood it is in."""
        key, tags = note_key(string("name", name, empty=False)), unique_strings("tags", tags)
        vector = self._embedder.embed(string("text", text))
        answers = Answers(self._kept)

        def work(conn: Connection) -> Written:
            mood = answers.answer(("mood", text), lambda: string("mood", self._mood(text)))
            known = conn.record(key)
            data: dict[str, Any] = {
                "text": text,
                "mood": mood,
                "tags": tags,
                "written_at": self._now().isoformat(),
                "reads": 0 if known is None else known.data["reads"],
            }
            conn.put(ChronoRecord(id=key, kind=NOTE, data=data))
            SPACES.attach(conn, key, vector, self._embedder.model_name)
            return Written(name, mood)

        return run(self.notes, work, answers)

    def read(self, name: str, times: int = 1) -> str:
        """Return a note, and count that it was read."""
        key, times = note_key(string("name", name)), count("times", times, 1, 100)

        def work(conn: Connection) -> str:
            for _ in range(times):
                known = conn.record(key)
                conn.patch(key, {"data": {"reads": (known.data["reads"] if known else 0) + 1}})
            found = conn.record(key)
            assert found is not None
            return f"{found.data['text']} ({found.data['reads']})"

        return self.notes.run(work)

    def nearest(self, text: str) -> list[str]:
        """Return the names of all notes, the most alike first."""
        vector = SPACES.of_query(self.notes.store, text, self._embedder)
        found = self.notes.store.vectors.nearest(vector, space=SPACES.of(self._embedder.model_name))
        return [near.record_id.removeprefix(note_key("")) for near in found]

    def embedding(self, name: str) -> bytes | None:
        """Return the bytes of a note's embedding, or None."""
        with self.notes.connect() as conn:
            found = conn.record(note_key(name))
            return None if found is None else embedding_of(conn, found)


class AwaitedNotebook(Awaited[Notebook]):
    """The same, awaited: a line for each verb."""

    close = awaited_verb(Notebook.close)
    write = awaited_verb(Notebook.write)
    read = awaited_verb(Notebook.read)
    nearest = awaited_verb(Notebook.nearest)
