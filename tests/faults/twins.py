"""Lets two stores live the same life, with other lines in one in place of what will be erased.

The first store says things that are to be erased: each with a secret of its own, some with embeddings, some
with edges. Its twin says something else at each of these places, in a scope that nobody asks about. All else
is the same, seq by seq. So after an erasure in the first store both must give the same answers, about now and
about any moment before; and the secrets must be found nowhere.
"""

from __future__ import annotations

import random
import shutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
from chronomemory import ChronoStore
from chronomemory.erasure import Erased
from chronomemory.errors import LogCorrupted
from speech import NOBODY, Speech, Victim
from traces import found_in, secret

FOLDER = ".chronomemory"
SPACES = ("rows", "more")
DIM, TOKENS = 6, 8


@dataclass
class Copy:
    """A backup of each of the two, and who was alive then."""

    first: Path
    second: Path
    erasures: int


class Twins(Speech):
    """The two stores, and the books about them."""

    def __init__(self, root: Path, seed: str) -> None:
        super().__init__(random.Random(seed))
        self.root = root
        salt = self.dice.choice([True, False, "scope"])
        self.a = ChronoStore(root / "a", head_file=root / "a.head", salt=salt, durability="off")
        self.b = ChronoStore(root / "b", head_file=root / "b.head", salt=salt, durability="off")
        self.gone: list[str] = []
        self.gone_rows: list[bytes] = []
        self.copies: list[Copy] = []
        self.erasures = 0
        self.report: Erased
        self.is_pruned = False
        #: Seqs inside of what an erasure says again: there a view shows nothing of it yet.
        self.unsettled: set[int] = set()
        self.did: list[str] = []
        self.wrong: list[str] = []

    # What happens. Each is done to both.

    def put(self) -> None:
        first, second = self.row_pair()
        self.a.everyone().upsert(first)
        self.b.everyone().upsert(second)

    def batch(self) -> None:
        pairs = {first["id"]: (first, second) for first, second in (self.row_pair() for _ in range(4))}
        self.a.everyone().upsert_many([first for first, _ in pairs.values()])
        self.b.everyone().upsert_many([second for _, second in pairs.values()])

    def _some(self, *, active: bool = True) -> tuple[str, str, Victim | None] | None:
        """The names of a record that is there, in both stores."""
        plain = [one for one in self.victims.values() if not one.face]
        if self.dice.random() < 0.5 and plain:
            one = self.dice.choice(plain)
            names: tuple[str, str, Victim | None] = (one.name, one.filler, one)
        else:
            name = self.dice.choice(sorted(self.kept))
            names = (name, name, None)
        record = self.a.everyone().get(names[0])
        is_there = record is not None and (not active or record.status != "tombstone")
        return names if is_there else None

    def delete(self) -> None:
        if names := self._some():
            self.a.everyone().delete(names[0])
            self.b.everyone().delete(names[1])

    def update(self) -> None:
        if names := self._some():
            value, other = secret(self.dice), secret(self.dice)
            if names[2]:
                names[2].secrets.append(value)
            else:
                other = value
            self.a.everyone().update(names[0], data={"changed": value})
            self.b.everyone().update(names[1], data={"changed": other})

    def edge(self) -> None:
        one = self.victim()
        if one.of is not None or self.a.everyone().get(one.name) is None:
            return
        word = secret(self.dice)
        edge = Victim(f"E-{word}", one.owner, self._new_filler(), [word], of=one.name)
        self.victims[edge.name] = edge
        to_id = self.dice.choice(sorted(self.kept))
        row, other = self.said_by(edge, from_id=one.name, to_id=to_id)
        self.a.everyone().upsert({**row, "kind": "edge"})
        self.b.everyone().upsert({**other, "kind": "edge"})

    def _attachable(self) -> list[tuple[str, str, Victim | None]]:
        found = (self._some() for _ in range(self.dice.randrange(1, 5)))
        return list({names[0]: names for names in found if names}.values())

    def attach(self) -> None:
        names, space = self._attachable(), self.dice.choice(SPACES)
        if not names:
            return
        rows = np.array([[self.dice.gauss(0, 1) for _ in range(DIM)] for _ in names], dtype=np.float32)
        for (_, _, one), row in zip(names, rows, strict=True):
            if one:
                one.rows.append(row.tobytes())
        self.a.everyone().vectors.attach_many([first for first, _, _ in names], rows, space=space, model="m")
        self.b.everyone().vectors.attach_many(
            [second for _, second, _ in names], rows, space=space, model="m"
        )

    def tokens(self) -> None:
        names = self._attachable()
        if not names:
            return
        given = [
            np.array([[self.dice.gauss(0, 1) for _ in range(DIM)] for _ in range(TOKENS)], dtype=np.float32)
            for _ in names
        ]
        everyone = self.a.everyone()
        everyone.vectors.attach_tokens_many([first for first, _, _ in names], given, model="t", most=TOKENS)
        for (first, _, one), tokens in zip(names, given, strict=True):
            if one:
                row = everyone.vectors.get(first, space="tokens")
                assert row is not None
                one.rows.append(row.tobytes())
                one.tokens = tokens
        self.b.everyone().vectors.attach_tokens_many(
            [other for _, other, _ in names], given, model="t", most=TOKENS
        )

    def detach(self) -> None:
        space = self.dice.choice(SPACES)
        if (names := self._some()) and space in {known.name for known in self.a.vectors.spaces()}:
            self.a.everyone().vectors.detach(names[0], space=space)
            self.b.everyone().vectors.detach(names[1], space=space)

    def compact(self) -> None:
        self.a.compact()
        self.b.compact()

    def drop(self) -> None:
        before = self.a.wal_seq()
        self.a.compact(keep_history=False)
        self.b.compact(keep_history=False)
        # Rows may have moved in one of them only, in lines that went with its history.
        self.unsettled |= {*range(before, max(self.a.wal_seq(), self.b.wal_seq()) + 1)}

    def search(self) -> None:
        """Make what is derived: files of words, codes of rows."""
        self.a.everyone().search(self._text())
        self.b.everyone().search(self._text())

    def prune(self) -> None:
        told = self.a.upkeep.prune(older_than=timedelta(0), reason="kept short")
        self.b.upkeep.prune(older_than=timedelta(0), reason="kept short")
        self.is_pruned |= bool(told.archives)

    def backup(self) -> None:
        if not self.a.wal_seq():
            return
        first, second = self.a.backup(), self.b.backup()
        if self.dice.random() < 0.4:  # taken elsewhere
            outside = self.root / f"copy{len(self.copies)}-{self.dice.getrandbits(32)}"
            first = Path(shutil.copytree(first, outside / first.name))
        self.copies.append(Copy(first, second, self.erasures))

    def restore(self) -> None:
        self.copies = [one for one in self.copies if one.first.exists() and one.second.exists()]
        if not self.copies:
            return
        one = self.dice.choice(self.copies)
        if one.erasures < self.erasures:
            self._restore_from_before(one.first)
            return
        self.a.upkeep.restore(one.first)
        self.b.upkeep.restore(one.second)

    def _restore_from_before(self, copy: Path) -> None:
        """A copy from before an erasure comes back without what was erased, or is refused.

        In a store of its own: what is left of it has events that the twin has not.
        """
        root = self.root / "from before"
        self.a.sync()
        shutil.copytree(self.root / "a" / FOLDER, root / FOLDER)
        if copy.is_relative_to(self.root / "a"):
            copy = root / copy.relative_to(self.root / "a")
        with ChronoStore(root, head_file=root / "head", durability="off") as store:
            try:
                store.upkeep.restore(copy)
            except LogCorrupted as refused:
                if "without what was erased since" not in str(refused):
                    raise
            if not store.verify().valid:
                self.wrong.append(f"{copy.name} is from before an erasure, and came back damaged")
        # A copy inside that was made before was looked through when something was erased.
        places = found_in(root / FOLDER, self.gone, self.gone_rows)
        self.wrong += [f"{copy.name} brought back what was erased: {place}" for place in places]
        shutil.rmtree(root)

    # Damage, at the same place in both.

    def _live(self, store: ChronoStore) -> list[bytes]:
        return (store.project_root / FOLDER / "events.wal").read_bytes().splitlines(keepends=True)

    def damage(self) -> None:
        """Bend the same line in both logs, behind a copy that can heal it or not, and repair them."""
        if not self.a.wal_seq():
            return
        if self.dice.random() < 0.6:
            self.a.backup()
            self.b.backup()
        logs = self._live(self.a), self._live(self.b)
        if len(logs[0]) != len(logs[1]):
            return
        places = [
            at
            for at, pair in enumerate(zip(*logs, strict=True))
            if 0 < at < len(logs[0]) - 1
            and all(b'"op":"upsert"' in line for line in pair)
            and all(b'"record_id":"vector:' not in line for line in pair)
        ]
        if not places:
            return
        at = self.dice.choice(places)
        self.did[-1] += f" of line {at + 1}"
        for store, lines in zip((self.a, self.b), logs, strict=True):
            store.close()
            lines[at] = lines[at].replace(b'"op":"upsert"', b'"op":"upsirt"')
            (store.project_root / FOLDER / "events.wal").write_bytes(b"".join(lines))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                store.upkeep.repair()
                store.open()

    # Erasing.

    def _chosen(self) -> tuple[dict[str, Any], list[Victim]]:
        """What an erasure is asked for, and what must go by it."""
        tops = [one for one in self.victims.values() if one.of is None]
        everyone = self.a.everyone()
        way = self.dice.choice(["ids", "ids", "scope", "where", "all"])
        if way == "scope":
            there = [one for one in tops if one.owner == "zed"]
            if there and not any(everyone.get(name) for name, owner in self.kept.items() if owner == "zed"):
                return {"scope": {"user": "zed"}}, [
                    one for one in self.victims.values() if one.owner == "zed"
                ]
        if way == "where":
            one = self.dice.choice(tops)
            record = everyone.get(one.name)
            if record is not None and (one.where or not one.face):
                return {"where": one.where or {"label": record.label}}, [one]
        chosen = tops if way == "all" else self.dice.sample(tops, self.dice.randrange(1, len(tops) + 1))
        return {"ids": [one.name for one in chosen]}, chosen

    def erase(self, *, all_of_them: bool = False) -> None:
        tops = [one for one in self.victims.values() if one.of is None]
        if not tops:
            return
        asked, chosen = self._chosen()
        if all_of_them:
            asked, chosen = {"ids": [one.name for one in self.victims.values()]}, [*self.victims.values()]
        again: list[Victim] = []
        if "ids" in asked and not all_of_them and self.dice.random() < 0.3:
            record = self.a.everyone().get(chosen[0].name)
            is_there = record is not None and record.status != "tombstone"
            again = [chosen[0]] if is_there and not chosen[0].face else []
        if again:
            # Rows that nobody needs any more leave now: what is said again must find its place in the twin.
            self.compact()
            self.align()
        history = self.dice.choice(["redact"] * 6 + ["drop"])
        staying = {one.name for one in again}
        going = {one.name for one in chosen} - staying
        gone, derived = self.going(going)
        self.report = told = self.a.erase(
            **asked, again=sorted(staying), reason="it was asked for", history=history, derived=derived
        )
        self.did[-1] += f" {history} {sorted(asked)} of {len(gone)}, again {len(again)}: {told.seq}"
        if told.seq is None:
            if not all(not self.a.history(one.name) for one in gone):
                self.wrong.append("nothing was found, and it is there")
        else:
            self.erasures += 1
            self._follow(told.seq, history)
        for one in gone:
            self._forget(one, one.secrets, one.rows)
        if told.seq is not None:
            self.unsettled |= {*range(told.seq + 1, self.a.wal_seq())}
        for one in again:
            self._stay(one)

    def going(self, names: set[str]) -> tuple[list[Victim], bool]:
        """What goes with some of them, and whether what was derived from them is asked to."""
        return [one for one in self.victims.values() if one.name in names or one.of in names], False

    def _forget(self, one: Victim, secrets: list[str], rows: list[bytes]) -> None:
        self.gone += secrets
        self.gone_rows += rows
        self.victims.pop(one.name, None)

    def _follow(self, seq: int, history: str) -> None:
        """What the twin does instead: it is compacted, and says something at the place of the event."""
        self.pad(self.b, seq - 2)
        self.b.compact(keep_history=history == "redact")
        self.pad(self.b, seq)
        # What the first lost, the twin must not have to heal from.
        for one in self.copies:
            if not one.first.exists():
                shutil.rmtree(one.second, ignore_errors=True)
        self.copies = [one for one in self.copies if one.first.exists()]
        for place in ("quarantine", "backup"):
            if not any((self.a.project_root / FOLDER / place).glob("*")):
                shutil.rmtree(self.b.project_root / FOLDER / place, ignore_errors=True)

    def _stay(self, one: Victim) -> None:
        """A record whose past went: the twin hears of it now."""
        everyone, other = self.a.everyone(), self.b.everyone()
        record, events = everyone.get(one.name), everyone.history(one.name)
        if record is None or len(events) != 1:
            self.wrong.append(f"{one.name}: {len(events)} events are left of what was said again")
            return
        self.pad(self.b, events[0].seq - 1)
        other.upsert(record.to_dict())
        said = str(record.to_dict())
        living = []
        for space in (*SPACES, "tokens"):
            row = everyone.vectors.get(one.name, space=space) if self._has(space) else None
            if row is not None and space == "tokens":
                other.vectors.attach_tokens(one.name, one.tokens, model="t", most=TOKENS)
            elif row is not None:
                other.vectors.attach(one.name, row, space=space, model="m")
            living += [] if row is None else [row.tobytes()]
        self._forget(
            one,
            [word for word in one.secrets if word not in said],
            [row for row in one.rows if row not in living],
        )
        self.kept[one.name] = one.owner

    def _has(self, space: str) -> bool:
        return space in {known.name for known in self.a.vectors.spaces()}

    def pad(self, store: ChronoStore, seq: int) -> None:
        """Say something that nobody asks about, up to a seq."""
        while store.wal_seq() < seq:
            store.everyone().upsert({"id": "F0", "data": {"@scope": NOBODY}})

    def align(self) -> None:
        last = max(self.a.wal_seq(), self.b.wal_seq())
        self.pad(self.a, last)
        self.pad(self.b, last)

    def verbs(self) -> list[tuple[Callable[[], None], int]]:
        """All that may happen, and how often."""
        return [
            (self.put, 20),
            (self.batch, 8),
            (self.update, 6),
            (self.delete, 4),
            (self.edge, 4),
            (self.attach, 9),
            (self.tokens, 4),
            (self.detach, 2),
            (self.search, 4),
            (self.compact, 6),
            (self.drop, 1),
            (self.backup, 3),
            (self.restore, 2),
            (self.damage, 2),
            (self.prune, 1),
            (self.erase, 5),
        ]

    def step(self, *, all_of_them: bool = False) -> str:
        """Do one thing to both; say what."""
        verbs = self.verbs()
        verb = self.dice.choices([one for one, _ in verbs], [weight for _, weight in verbs])[0]
        self.did.append("erase" if all_of_them else verb.__name__)
        if all_of_them:
            self.erase(all_of_them=True)
        else:
            verb()
        self.align()
        return self.did[-1].split()[0]

    def close(self) -> None:
        self.a.close()
        self.b.close()
