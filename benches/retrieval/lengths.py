"""Texts that are longer than a turn, and what is asked about them.

Two kinds are made of the conversations: paragraphs, which are turns of a session one after the other, and
whole sessions. What is asked about a turn is asked about the text that holds it, among those of all
conversations. Two more are made of the documentation in Python's own library: the first paragraph of a
docstring asks for the rest of it. Nothing of either is part of this tree.
"""

from __future__ import annotations

import ast
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from chronomemory import ChronoRecord

from benches.retrieval.locomo import Conversation, said

__all__ = ["Asked", "Texts", "documentation", "documents", "joined", "text_of"]

#: A paragraph is closed at so many characters.
PARAGRAPH_CHARACTERS = 500
#: Documentation that is shorter says little; from here on it is long.
LEAST_CHARACTERS, LONG_CHARACTERS = 200, 1000
_LEAST = (LEAST_CHARACTERS, LONG_CHARACTERS)
#: A first paragraph of fewer words asks for nothing in particular, and one of more is no question.
LEAST_WORDS, MOST_WORDS = 4, 30
#: What is no documentation of the library, or says the same once more.
LEFT_OUT = {"test", "tests", "site-packages", "dist-packages", "idlelib", "lib2to3", "ensurepip", "_pyrepl"}


@dataclass(frozen=True)
class Asked:
    """A question, and the texts that answer it."""

    text: str
    wanted: frozenset[str]


@dataclass(frozen=True)
class Texts:
    """Texts of one kind as records of one store, and what is asked about them."""

    name: str
    records: list[ChronoRecord]
    questions: list[Asked]


def text_of(record: ChronoRecord) -> str:
    """Return what a model reads of a text."""
    return str(record.data["text"])


def joined(talks: Sequence[Conversation]) -> list[Texts]:
    """Return the turns of all conversations as paragraphs, and as sessions."""
    return [
        _joined("paragraphs", talks, PARAGRAPH_CHARACTERS),
        _joined("sessions", talks, None),
    ]


def _joined(name: str, talks: Sequence[Conversation], most: int | None) -> Texts:
    records: list[ChronoRecord] = []
    questions: list[Asked] = []
    for talk in talks:
        place: dict[str, str] = {}
        before: ChronoRecord | None = None
        for turn in talk.records:
            session = f"{talk.name} {turn.data['session']}"
            is_next = before is not None and before.data["session"] == session
            if before is None or not is_next or (most and len(text_of(before)) >= most):
                data = {"text": said(turn), "session": session, "time": turn.data["time"]}
                if before is not None and is_next:
                    data["previous"] = before.id
                before = ChronoRecord(id=f"{talk.name}/{turn.id}", kind="message", data=data)
                records.append(before)
            else:
                before.data["text"] += "\n" + said(turn)
            place[turn.id] = before.id
        for one in talk.questions:
            questions.append(Asked(one.text, frozenset(place[turn] for turn in one.evidence)))
    return Texts(name, records, questions)


def documentation() -> list[Texts]:
    """Return the documentation of Python's library: all of it, and what is long."""
    return documents(("documentation", "long documentation"), [Path(sysconfig.get_paths()["stdlib"])])


def documents(names: tuple[str, str], folders: Sequence[Path], *, every: int = 1) -> list[Texts]:
    """Return the documentation in folders: all of it, or every so many-th, and what is long."""
    docstrings = [pair for folder in folders for pair in _docstrings(folder)]
    found = {rest: asked for asked, rest in docstrings if len(rest) >= LEAST_CHARACTERS}
    asked = list(found.values())
    once = {rest: head for rest, head in found.items() if asked.count(head) == 1}
    chosen = dict(list(once.items())[::every])
    return [_documents(name, chosen, least) for name, least in zip(names, _LEAST, strict=True)]


def _documents(name: str, known: dict[str, str], least: int) -> Texts:
    chosen = [(rest, head) for rest, head in known.items() if len(rest) >= least]
    records = [
        ChronoRecord(id=f"doc-{at}", kind="doc", data={"text": rest}) for at, (rest, _) in enumerate(chosen)
    ]
    questions = [
        Asked(head, frozenset({record.id})) for record, (_, head) in zip(records, chosen, strict=True)
    ]
    return Texts(name, records, questions)


def _docstrings(library: Path) -> Iterator[tuple[str, str]]:
    """Yield the first paragraph of each docstring, and the rest of it."""
    for path in sorted(library.rglob("*.py")):
        if LEFT_OUT & set(path.relative_to(library).parts):
            continue
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                head, _, rest = (ast.get_docstring(node) or "").partition("\n\n")
                if LEAST_WORDS <= len(head.split()) <= MOST_WORDS and rest:
                    yield " ".join(head.split()), rest
