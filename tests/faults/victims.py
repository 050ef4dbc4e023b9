"""What one of two stores says through its faces that will be erased; the rest is as it was before.

Blocks are whispered into a memory that has nothing else, into one that has others too, and into a session of
it; episodes are confided, and facts derived from them; nodes are joined to others; pages are written. The
twin says something that nobody asks about in their place.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from chronomemory import ChronoStore
from chronomemory.blocks import Memory
from chronomemory.episodes import Facts
from chronomemory.graph import Edge, Node
from chronomemory.pages.ids import folder_digits, page_key
from faces import FILLER, GOING, NODES, PAINTER, SHELVES, Faces, fact_of
from speech import Victim
from traces import found_in, secret
from twins import DIM, FOLDER, SPACES, TOKENS

#: Where blocks are whispered: who, and in which session.
EARS: tuple[tuple[str, str | None], ...] = (("zed", None), ("ann", None), ("ann", "tonight"))
#: What the store says of itself.
OWN = ("erasure:", "pruned:", "vector:")
#: How many histories are compared beside an erasure.
HISTORIES = 12


class Victims(Faces):
    """The two stores, and what will go from the first one."""

    def __init__(self, root: Path, seed: str) -> None:
        self.before: dict[str, Any] = {}
        #: Whose records were asked for last, if it was by a scope.
        self.scope: dict[str, str] = {}
        super().__init__(root, seed)

    def only_first(self, work: Callable[[ChronoStore], Any]) -> Any:
        with self.same():
            return work(self.a)

    def going_of(self, face: str, owner: str | None = None) -> list[Victim]:
        return [
            one
            for one in self.victims.values()
            if one.face == face and owner in (None, one.owner) and self.a.everyone().get(one.name) is not None
        ]

    def lost(self, name: str, owner: str | None, word: str, face: str, **more: Any) -> Victim:
        """Enter something into the books of what will go."""
        known = self.victims.setdefault(name, Victim(name, owner, "", face=face, **more))
        known.secrets.append(word)
        return known

    # Blocks.

    def whispered(self) -> None:
        user, session = self.dice.choice(EARS)
        owner = user if session is None else f"{user}/{session}"
        word = secret(self.dice)
        text = f"{self._text()} {word}"
        old = self.going_of("blocks", owner)
        replaced = self.dice.choice(old) if old and self.dice.random() < 0.3 else None

        def work(store: ChronoStore) -> str:
            with self._ear(store, user, session) as memory:
                known = None if replaced is None else replaced.name.partition(":")[2]
                if known is not None and known not in {row["id"] for row in memory.list()}:
                    known = None
                return memory.remember(text, supersedes=known).block_id

        name = f"block:{self.only_first(work)}"
        one = self.lost(name, owner, word, "blocks", where={"data.content": text})
        row = self.a.everyone().vectors.get(name, space="blocks.lexical-384-v1")
        if row is not None:
            one.rows.append(row.tobytes())

    def _ear(self, store: ChronoStore, user: str, session: str | None) -> Memory:
        return self.memory(store, user, **({} if session is None else {"session": session}))

    def stirred(self) -> None:
        """Something that changes only what will go."""
        user, session = self.dice.choice(EARS)
        owner = user if session is None else f"{user}/{session}"
        known = [one.name.partition(":")[2] for one in self.going_of("blocks", owner)]
        way, at = self.dice.choice(["outcome", "connect", "forget", "join"]), self.dice.random()
        mine = self._blocks("ann", 1) if user == "ann" else []

        def work(store: ChronoStore) -> None:
            with self._ear(store, user, session) as memory:
                there = [row["id"] for row in memory.list() if row["id"] in known]
                if way == "outcome" and there:
                    memory.outcome(there[:3], 0.9)
                elif way == "connect" and len(there) > 1:
                    memory.connect(there[0], there[1], note="between what goes")
                elif way == "forget" and there:
                    memory.forget(there[int(at * len(there))])
                elif way == "join" and there and mine:
                    memory.connect(there[0], mine[0])

        self.only_first(work)

    def numbered(self) -> None:
        """Rows and codes of tokens that somebody else attached to what a face wrote."""
        known = [one for face in ("blocks", "episodes", "graph") for one in self.going_of(face)]
        there = {known.name for known in self.a.vectors.spaces()}
        if not known:
            return
        one, everyone = self.dice.choice(known), self.a.everyone()
        space = self.dice.choice([*SPACES, "tokens"])
        given = [[self.dice.gauss(0, 1) for _ in range(DIM)] for _ in range(TOKENS)]
        if space not in there:
            return
        if space == "tokens":
            everyone.vectors.attach_tokens(
                one.name, np.array(given, dtype=np.float32), model="t", most=TOKENS
            )
        else:
            everyone.vectors.attach(one.name, np.array(given[0], dtype=np.float32), space=space, model="m")
        row = everyone.vectors.get(one.name, space=space)
        assert row is not None
        one.rows.append(row.tobytes())

    # Episodes and facts.

    def confided(self) -> None:
        user, word = self.dice.choice(["ann", "zed"]), secret(self.dice)
        old = self.going_of("episodes", user)
        if old and self.dice.random() < 0.3:
            name = self.dice.choice(old).name.partition(":")[2]
        else:
            name = self.new(GOING)
        text = f"{word} {self._text()}"
        told, names = self.episode(name, user, text)
        self.only_first(lambda store: self.episodes(store).put(told, **names))
        self.lost(f"episode:{name}", user, word, "episodes").where = {"data.content": text}

    def derived(self) -> None:
        """A fact that rests on what will go."""
        sources = self.going_of("episodes")
        if not sources:
            return
        source, word = self.dice.choice(sources), secret(self.dice)
        name, user = self.new("belief"), source.owner or ""
        payload = {"object": f"{word} {self._text()}"}
        fact = fact_of(name, user, payload, [source.name.partition(":")[2]], self.steps)
        self.only_first(lambda store: Facts(store).pin(fact))
        self.lost(f"fact:{name}", user, word, "facts", of=source.name)

    # The graph.

    def sketched(self) -> None:
        """A node that is joined to others; the twin draws one of its own."""
        word, old = secret(self.dice), self.going_of("graph")
        number = self.drawn + 1
        name = self.new(GOING)
        if old and self.dice.random() < 0.4:
            name = self.dice.choice(old).name.partition(":")[2]
            number = int(name.removeprefix(GOING))
        other, way = f"node{self.dice.randrange(NODES)}", self.dice.randrange(3)
        text = self._text()

        def work(store: ChronoStore) -> None:
            mine, label = (name, f"{text} {word}") if store is self.a else (f"{FILLER}{number}", text)
            nodes = [Node(mine, "person", label)]
            edge = Edge(f"{mine}-{other}", mine, other, "likes", data={"why": label})
            with self.workspace(store) as workspace:
                if way == 0:
                    workspace.graph.save_node(nodes[0])
                elif way == 1:
                    workspace.graph.save(nodes=nodes, edges=[edge])
                else:
                    workspace.import_graph({"nodes": [nodes[0].to_dict()], "edges": [edge.to_dict()]})

        self.both(work)
        self.lost(f"node:{name}", PAINTER, word, "graph").where = {"label": f"{text} {word}"}

    # Pages.

    def jotted(self) -> None:
        shelf, word, old = self.dice.choice(sorted(SHELVES)), secret(self.dice), self.going_of("pages")
        owner, text = SHELVES[shelf], self._text()
        here = [one for one in old if one.owner == owner]
        is_new = not here or self.dice.random() < 0.4
        name = f"person-{secret(self.dice)}" if is_new else self.dice.choice(here).name.split(":")[2]
        way = self.dice.choice(["append", "supersede"])

        def work(store: ChronoStore) -> str:
            with self.pages(store, shelf) as pages:
                if is_new:
                    pages.create(name, f"about {name}")
                there = pages.read(name)
                if way == "supersede" and there:
                    pages.supersede(name, there[0].id, f"{word} {text}", "it was said otherwise")
                else:
                    pages.append(name, f"{word} {text}", ["said"])
            return page_key(folder_digits(store.project_root, pages.folder), name)

        key = self.only_first(work)
        one = self.lost(key, owner, word, "pages")
        if is_new:
            one.secrets.append(name.removeprefix("person-"))

    # Erasing.

    def _chosen(self) -> tuple[dict[str, Any], list[Victim]]:
        tonight = self.going_of("blocks", "ann/tonight")
        if tonight and self.dice.random() < 0.3:
            known = [one for one in self.victims.values() if one.owner == "ann/tonight"]
            asked: dict[str, Any] = {"scope": {"user": "ann", "session": "tonight"}}
        else:
            asked, known = super()._chosen()
        self.scope = asked.get("scope", {})
        return asked, known

    def going(self, names: set[str]) -> tuple[list[Victim], bool]:
        """What goes; right before it does, all that is there is noted, and files of pages are taken away."""
        derived = self.dice.random() < 0.5
        gone = [
            one
            for one in self.victims.values()
            if one.name in names or (one.of in names and (derived or one.face != "facts"))
        ]
        for one in gone:
            if one.face == "pages":
                shelf = next(shelf for shelf, owner in SHELVES.items() if owner == one.owner)
                with suppress(FileNotFoundError):
                    (self.a.project_root / shelf / f"{one.name.split(':')[2]}.md").unlink()
        self.before = self.everything()
        return gone, derived

    def everything(self) -> dict[str, Any]:
        """Every record of the first store with its embeddings, and some histories."""
        everyone = self.a.everyone()
        records = {
            record.id: record.to_dict()
            for record in everyone.query(status=None, faces=True, expired=True)
            if not record.id.startswith(OWN)
        }
        spaces = [known.name for known in self.a.vectors.spaces()]
        rows = {}
        for space in spaces:
            for name in records:
                row = everyone.vectors.get(name, space=space)
                if row is not None:
                    rows[name, space] = row.tobytes()
        some = self.dice.sample(sorted(records), min(HISTORIES, len(records)))
        histories = {
            name: [(event.seq, event.op, event.record) for event in everyone.history(name)] for name in some
        }
        return {"records": records, "rows": rows, "histories": histories}

    def erase(self, *, all_of_them: bool = False) -> None:
        before, known = self.erasures, set(self.victims)
        super().erase(all_of_them=all_of_them)
        self.scope = {} if all_of_them else self.scope
        if self.erasures == before:
            return
        went = [name.split(":")[-1] for name in known - set(self.victims)]
        self.wrong += self.as_before(self.before, went, dropped=" drop " in f"{self.did[-1]} ")
        self.follow_files()

    def follow_files(self) -> None:
        """Open the workspace, whose files follow: that is a batch of its own."""
        self.only_first(lambda store: self.workspace(store).close())
        left = found_in(self.a.project_root, self.gone)
        others = (FOLDER, *SHELVES)
        self.wrong += [
            f"a file of the workspace shows what was erased: {name}"
            for name in left
            if not name.startswith(others)
        ]

    def as_before(
        self,
        before: dict[str, Any],
        names: list[str],
        *,
        dropped: bool,
        went: bool = True,
        but: Collection[str] = (),
    ) -> list[str]:
        """What else has changed by an erasure than what was asked for; nothing is missing unless it went."""

        def speaks_of_it(*said: Any) -> bool:
            text = json.dumps(said, default=str)
            return any(name in text for name in names)

        def names_it(record: dict[str, Any]) -> bool:
            text = json.dumps(record)
            return any(name in text for name in names if name not in self.kept)

        everyone, wrong = self.a.everyone(), []
        # The books of a workspace count how often its files were written: an erasure writes them too.
        but = {*but, "audit:@workspace"}
        for name, record in before["records"].items():
            if name in but:
                continue
            now = everyone.get(name, expired=True)
            if now is None:
                past = before["histories"].get(name)
                if not went or not (speaks_of_it(name, record, past) or self.is_of_scope(record)):
                    wrong.append(f"{name} went too: {record}")
            elif now.to_dict() != record and not speaks_of_it(record):
                wrong.append(f"{name} is {now.to_dict()} instead of {record}")
            elif went and name not in self.report.mentions and names_it(now.to_dict()):
                wrong.append(f"{name} speaks of what went, and is not among the mentions: {now.to_dict()}")
        for (name, space), row in before["rows"].items():
            if everyone.get(name, expired=True) is not None:
                now_row = everyone.vectors.get(name, space=space)
                if now_row is None or now_row.tobytes() != row:
                    wrong.append(f"the row of {name} in {space} is another")
        for name, events in before["histories"].items():
            now_events = [(event.seq, event.op, event.record) for event in everyone.history(name)]
            # What refers to an erased record is written again without the reference, and loses its past.
            is_known = self.is_of_scope(before["records"][name]) or (went and name in self.report.mentions)
            is_known = is_known or name in but or speaks_of_it(name, events)
            if not dropped and now_events != events and not is_known:
                wrong.append(f"the history of {name} is {now_events} instead of {events}")
        return wrong

    def is_of_scope(self, record: dict[str, Any]) -> bool:
        """Whether a record is one of those that an erasure by scope asked for."""
        names = record["data"].get("@scope", {})
        return bool(self.scope) and all(names.get(level) == name for level, name in self.scope.items())

    def verbs(self) -> list[tuple[Callable[[], None], int]]:
        return [
            *super().verbs(),
            (self.whispered, 9),
            (self.stirred, 6),
            (self.numbered, 6),
            (self.confided, 6),
            (self.derived, 4),
            (self.sketched, 8),
            (self.jotted, 7),
            (self.compact, 3),
            (self.backup, 3),
            (self.restore, 4),
            (self.damage, 4),
        ]
