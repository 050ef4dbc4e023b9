"""The conversations and questions of the development half of LoCoMo, which lies beside this tree."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from chronomemory import ChronoRecord

__all__ = ["CATEGORIES", "Conversation", "Question", "conversations", "said"]

#: The data is for measurement only (CC BY-NC 4.0) and never part of this tree.
FOLDER = Path(os.environ.get("LOCOMO", Path(__file__).parents[2].parent / "shared" / "data" / "locomo"))
CATEGORIES = (1, 2, 3, 4, 5)
Floats = Any


@dataclass(frozen=True)
class Question:
    """A question, what it asks for, and its embedding."""

    text: str
    category: int
    evidence: frozenset[str]
    vector: Floats


@dataclass(frozen=True)
class Conversation:
    """The turns of one conversation as records, their embeddings, and the questions about it."""

    name: str
    records: list[ChronoRecord]
    vectors: Floats
    questions: list[Question]

    @property
    def ids(self) -> list[str]:
        """The ids of the turns, in the order of their rows."""
        return [record.id for record in self.records]


def conversations() -> list[Conversation]:
    """Read all conversations."""
    turns = json.loads((FOLDER / "turns.json").read_text(encoding="utf-8"))
    asked = json.loads((FOLDER / "questions.json").read_text(encoding="utf-8"))
    turn_vectors, question_vectors = (
        np.load(FOLDER / f"{name}.minilm.npy") for name in ("turns", "questions")
    )
    found = []
    for name in sorted({turn["conversation"] for turn in turns}):
        own = [at for at, turn in enumerate(turns) if turn["conversation"] == name]
        questions = [
            Question(one["question"], one["category"], frozenset(one["evidence"]), question_vectors[at])
            for at, one in enumerate(asked)
            if one["conversation"] == name
        ]
        found.append(Conversation(name, _records([turns[at] for at in own]), turn_vectors[own], questions))
    return found


def said(record: ChronoRecord) -> str:
    """Return what a model reads of a turn: who says it, what, and what its picture shows."""
    caption = record.data["caption"]
    shown = f" [{caption}]" if caption else ""
    return f"{record.data['speaker']}: {record.label}{shown}"


def _records(turns: list[dict[str, Any]]) -> list[ChronoRecord]:
    """Make a record of each turn, as a program that keeps a conversation would."""
    records = []
    for at, turn in enumerate(turns):
        data = {
            "speaker": turn["speaker"],
            "session": turn["session"],
            "conversation": turn["conversation"],
            "caption": turn["caption"] or "",
            "time": datetime.strptime(turn["date_time"], "%I:%M %p on %d %B, %Y").isoformat(),
        }
        if at and turns[at - 1]["session"] == turn["session"]:
            data["previous"] = turns[at - 1]["id"]
        records.append(ChronoRecord(id=turn["id"], kind="turn", label=turn["text"], data=data))
    return records
