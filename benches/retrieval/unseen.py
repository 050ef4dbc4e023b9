"""Texts that no setting was ever chosen on, and what is asked about them.

Documentation of packages for numbers, as far as they are installed: the first paragraph of a docstring asks
for the rest of it, as in ``lengths``, where only Python's own library was looked at. And answers of the wheel
``chatterbot_corpus``: what somebody says asks for what is answered, among the answers to all others, with
what is said further in the same talk linked to it. Whoever measures with these changes no setting afterwards:
else they are seen.
"""

from __future__ import annotations

import importlib.util
from collections import defaultdict
from pathlib import Path

from chronomemory import ChronoRecord
from ruamel.yaml import YAML

from benches.retrieval.lengths import Asked, Texts, documents

__all__ = ["unseen"]

PACKAGES = ("matplotlib", "networkx", "numpy", "scipy", "sklearn", "sympy")
TALKS = "chatterbot_corpus"
#: Every so many-th docstring is taken, so that a model in NumPy has read them within minutes.
EVERY = 16


def unseen() -> list[Texts]:
    """Return what is there of them."""
    folders = [folder for name in PACKAGES if (folder := _folder(name)) is not None]
    talks = _folder(TALKS)
    if talks is None:
        raise SystemExit(f"python -m pip install --no-deps {TALKS}")
    names = ("packages", "long in packages")
    return [*documents(names, folders, every=EVERY), _answers(talks / "data" / "english")]


def _folder(package: str) -> Path | None:
    found = importlib.util.find_spec(package)
    return None if found is None or found.origin is None else Path(found.origin).parent


def _answers(folder: Path) -> Texts:
    records: list[ChronoRecord] = []
    said: dict[str, set[str]] = defaultdict(set)
    same: dict[str, set[str]] = defaultdict(set)
    for file in sorted(folder.glob("*.yml")):
        for number, lines in enumerate(YAML(typ="safe").load(file)["conversations"]):
            talk = f"{file.stem}/{number}"
            # Some lines are empty.
            first, *answers = filter(None, (" ".join(str(line).split()) for line in lines))
            for at, answer in enumerate(answers):
                data = {"text": answer, "session": talk}
                if at:
                    data["previous"] = f"{talk}/{at - 1}"
                records.append(ChronoRecord(id=f"{talk}/{at}", kind="message", data=data))
                same[answer].add(f"{talk}/{at}")
            if answers:
                said[first].add(answers[0])
    # What is answered in the same words elsewhere is as right.
    questions = [
        Asked(text, frozenset(name for answer in answers for name in same[answer]))
        for text, answers in said.items()
    ]
    return Texts("answers", records, questions)
