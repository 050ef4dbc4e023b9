"""What two stores say that live the same life, one without what will be erased."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from traces import secret

NOBODY = {"user": "nobody"}
#: Whose records are; None is for everyone.
OWNERS: tuple[str | None, ...] = (None, None, "ann", "bob", "zed")
WORDS = [
    "harbour",
    "lantern",
    "kettle",
    "violin",
    "meadow",
    "granite",
    "orchard",
    "thimble",
    "compass",
    "feather",
]
KEPT = 10


@dataclass
class Victim:
    """A record that will be erased, and what only it ever said."""

    name: str
    owner: str | None
    filler: str
    secrets: list[str] = field(default_factory=list)
    rows: list[bytes] = field(default_factory=list)
    tokens: Any = None
    #: Of an edge: the record that it goes with.
    of: str | None = None
    #: Of a record that a face writes: which face, and what finds it among all that is there.
    face: str = ""
    where: dict[str, Any] | None = None


class Speech:
    """Who speaks in two stores, and the words of each."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.victims: dict[str, Victim] = {}
        self.kept = {f"K{number}": OWNERS[number % 4] for number in range(KEPT)}
        self.fillers = 0

    def _scoped(self, owner: str | None) -> dict[str, Any]:
        return {} if owner is None else {"@scope": {"user": owner}}

    def _text(self) -> str:
        return " ".join(self.dice.choices(WORDS, k=self.dice.randrange(2, 6)))

    def _new_filler(self) -> str:
        self.fillers += 1
        return f"F{self.fillers}"

    def victim(self) -> Victim:
        """One of those that will go: a known one, or a new one."""
        known = [one for one in self.victims.values() if one.of is None and not one.face]
        if known and self.dice.random() < 0.7:
            return self.dice.choice(known)
        word = secret(self.dice)
        one = Victim(f"V-{word}", self.dice.choice(OWNERS), self._new_filler(), [word])
        self.victims[one.name] = one
        return one

    def said_by(self, one: Victim, **data: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """What a victim says next, and what its twin says instead."""
        word, other = secret(self.dice), secret(self.dice)
        one.secrets += [word, other]
        label = self.dice.choice([f"{word} {self._text()}", f'"{word}"\u2028{self._text()}', f"é/{word}"])
        row = {"id": one.name, "label": label, "data": {**self._scoped(one.owner), "more": other, **data}}
        return row, {"id": one.filler, "label": self._text(), "data": {"@scope": NOBODY}}

    def kept_row(self) -> dict[str, Any]:
        name = self.dice.choice(sorted(self.kept))
        data = {**self._scoped(self.kept[name]), "n": self.dice.randrange(100)}
        return {"id": name, "label": self._text(), "data": data}

    def row_pair(self) -> tuple[dict[str, Any], dict[str, Any]]:
        if self.dice.random() < 0.5:
            row = self.kept_row()
            return row, row
        return self.said_by(self.victim())
