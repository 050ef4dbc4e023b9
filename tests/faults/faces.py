"""Lets two stores live the same life through all faces, one without what will be erased.

Besides plain records (`twins.py`) they have blocks of several people, episodes and facts, a graph, and pages.
Here is what both do, each with the same ids and moments; what only the first one says is in `victims.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

from chance import Hours, alike, moment
from chronomemory import ChronoStore
from chronomemory.blocks import Memory
from chronomemory.episodes import AddDelta, Episode, Episodes, Fact, Facts
from chronomemory.graph import Edge, MemoryEvent, MemoryPath, Node, Workspace
from chronomemory.pages import Pages
from twins import Twins

#: Who has blocks that stay; None is everyone.
MINDS: tuple[str | None, ...] = (None, "ann", "bob")
TALKERS = ("ann", "bob")
#: Folders of pages, and whose they are.
SHELVES: dict[str, str | None] = {"memory": None, "of-ann": "ann"}
TOPICS = ("topic-tea", "project-harbour")
NODES, KINDS = 6, ("drink", "place")
#: Whose the graph is: what the twin draws in the place of something counts in no search of others.
PAINTER = "carl"
#: What nodes and episodes are called that will go, and the nodes that the twin draws in their place. These
#: names tell nothing, and may be mentioned by what stays.
GOING, FILLER = "going", "filler"

T = TypeVar("T")


def named(user: str | None) -> dict[str, str]:
    return {} if user is None else {"user": user}


def is_of_both(event: MemoryEvent) -> bool:
    """Whether an event of the graph tells of nothing that only one of the two has."""
    said = str(event.to_dict())
    return GOING not in said and FILLER not in said


def fact_of(name: str, user: str, payload: dict[str, Any], episodes: list[str], step: int) -> Fact:
    lineage = {"rule_id": "by hand", "source_episode_ids": episodes, "promotion_ts": moment(step).isoformat()}
    return Fact(
        id=name,
        user=user,
        agent="helper",
        payload=payload,
        lineage=[lineage],
        confidence=0.9,
        pinned_at=moment(step),
    )


class Faces(Twins):
    """The two stores, and what both of them do through their faces."""

    def __init__(self, root: Path, seed: str) -> None:
        super().__init__(root, seed)
        self.seed, self.steps, self.drawn = seed, 0, 0
        self.both(self._begin)
        self.align()

    def _begin(self, store: ChronoStore) -> None:
        self.memory(store, None).close()
        with self.memory(store, None) as memory:
            memory.remember("the first thing that everyone knows")
        self.workspace(store).close()
        for shelf in SHELVES:
            with self.pages(store, shelf) as pages:
                for name in TOPICS:
                    pages.create(name, "what is known of it", ["known"])

    # Doors.

    def memory(self, store: ChronoStore, user: str | None, **names: str) -> Memory:
        return Memory(store, seconds=Hours(), **named(user), **names)

    def episodes(self, store: ChronoStore) -> Episodes:
        return Episodes(store, clock=lambda: moment(self.steps))

    def workspace(self, store: ChronoStore) -> Workspace:
        head = self.root / f"{store.project_root.name}.head"
        clock = lambda: moment(self.steps)  # noqa: E731 (it is handed on)
        options = {"head_file": head, "durability": "off", **named(PAINTER)}
        return Workspace.create(store.project_root, clock=clock, **options)

    def pages(self, store: ChronoStore, shelf: str) -> Pages:
        place = store.project_root / shelf
        return Pages(store, place, clock=lambda: moment(self.steps), **named(SHELVES[shelf]))

    def same(self) -> AbstractContextManager[None]:
        """The chance and the moment of this step."""
        return alike(self.seed, self.steps)

    def both(self, work: Callable[[ChronoStore], T]) -> list[T]:
        """Do the same in both stores, with the same chance."""
        done = []
        for store in (self.a, self.b):
            with self.same():
                done.append(work(store))
        return done

    def new(self, letter: str) -> str:
        """A name that nobody has."""
        self.drawn += 1
        return f"{letter}{self.drawn}"

    def is_alone(self, user: str | None) -> bool:
        """Whether nothing that will go is seen by somebody's memory: it would be shown, and teach others."""
        heard = {(one.owner or "").partition("/")[0] for one in self.victims.values() if one.face == "blocks"}
        return (user or "") not in heard

    def restore(self) -> None:
        super().restore()
        # A log that went back leaves files behind it, which warn until they are written anew.
        self.both(self._rebuilt)

    def _rebuilt(self, store: ChronoStore) -> None:
        with self.workspace(store) as workspace:
            workspace.rebuild()

    # Blocks. What there is to choose from is what the twin has.

    def _blocks(self, user: str | None, least: int) -> list[str]:
        with self.memory(self.b, user) as memory:
            known = [row["id"] for row in memory.list()]
        own = [name for name in known if self._is_own(name, user)]
        return self.dice.sample(own, least) if len(own) >= least else []

    def _is_own(self, block_id: str, user: str | None) -> bool:
        record = self.b.everyone().get(f"block:{block_id}")
        scope = {} if record is None else record.data.get("@scope", {})
        return bool(scope == named(user))

    def learned(self) -> None:
        user, text = self.dice.choice(MINDS), f"{self._text()} {self.dice.randrange(10**6)}"
        tags = self.dice.choice([None, ["work"], ["self/value"]])
        old = self._blocks(user, 1) if self.dice.random() < 0.2 else []

        def work(store: ChronoStore) -> None:
            with self.memory(store, user) as memory:
                memory.remember(text, tags, supersedes=old[0] if old else None)

        self.both(work)

    def mused(self) -> None:
        """Something that changes what a memory thinks of its blocks."""
        user = self.dice.choice(MINDS)
        some, text = self._blocks(user, 2), self._text()
        ways: list[Callable[[Memory], object]] = [
            lambda memory: memory.outcome(some, signal),
            lambda memory: memory.connect(*some, relation="supports"),
            lambda memory: memory.forget(some[0]),
            lambda memory: memory.edit(some[0], f"{text} in other words"),
        ]
        signal, way = self.dice.choice([0.1, 0.9]), self.dice.choice(ways)
        if not some:
            return

        def work(store: ChronoStore) -> None:
            with self.memory(store, user) as memory:
                way(memory)
                memory.consolidate()

        self.both(work)

    def shown(self) -> None:
        """A session in which a frame is shown, and time passes."""
        user, text = self.dice.choice(MINDS), self._text()
        is_night = self.dice.random() < 0.3
        if not self.is_alone(user):
            return

        def work(store: ChronoStore) -> list[str]:
            with self.memory(store, user) as memory, memory.session():
                seen = memory.frame("attention", text, top_k=3)
                if is_night:
                    memory.dream()
            return [block.id for block in seen.blocks]

        one, other = self.both(work)
        if one != other:
            self.wrong.append(f"a frame of {user} shows {one} instead of {other}")

    # Episodes and facts.

    def episode(self, name: str, user: str, text: str) -> tuple[Episode, dict[str, str]]:
        names = {"user": user, "session": "s", "agent": "helper"}
        told = Episode(id=name, content=text, timestamp=moment(self.steps), source_node="chat", **names)
        return told, names

    def told(self) -> None:
        user, name = self.dice.choice(TALKERS), f"e{self.dice.randrange(8)}"
        told, names = self.episode(f"{user}-{name}", user, self._text())
        self.both(lambda store: self.episodes(store).put(told, **names))

    def believed(self) -> None:
        """A fact of what somebody told, in one of two ways, or its end."""
        user, name = self.dice.choice(TALKERS), f"f{self.dice.randrange(4)}"
        source = [f"{user}-e{self.dice.randrange(8)}"]
        payload = {"id": f"{user}-{name}", "user": user, "agent": "helper", "object": self._text()}
        way = self.dice.choice(["pin", "delta", "unpin"])
        delta = AddDelta(
            kind="add",
            source_episode_ids=source,
            promotion_ts=moment(self.steps),
            rule_id="r",
            confidence=0.8,
            fact_payload=payload,
        )

        def work(store: ChronoStore) -> None:
            facts = Facts(store)
            if way == "pin":
                facts.pin(fact_of(payload["id"], user, payload, source, self.steps))
            elif way == "delta":
                facts.apply_delta(delta, user=user)
            else:
                facts.unpin(payload["id"], user=user, missing_ok=True)

        self.both(work)

    # The graph.

    def drawn_on(self) -> None:
        """A node, an edge, a path, or several at once."""
        ends = [f"node{number}" for number in self.dice.sample(range(NODES), 2)]
        node = Node(ends[0], self.dice.choice(KINDS), self._text())
        edge = Edge(f"{ends[0]}-{ends[1]}", ends[0], ends[1], self.dice.choice(["likes", "near"]))
        way = self.dice.randrange(4)

        def work(store: ChronoStore) -> None:
            with self.workspace(store) as workspace:
                if way == 0:
                    workspace.graph.save_node(node)
                elif way == 1:
                    workspace.graph.save(nodes=[node, Node(ends[1], "place", "an end")], edges=[edge])
                elif way == 2:
                    events = [event.id for event in workspace.events.events() if is_of_both(event)][:2]
                    workspace.graph.save_path(MemoryPath("path", event_ids=tuple(events)))
                else:
                    workspace.import_graph({"nodes": [node.to_dict()], "edges": []})

        self.both(work)

    # Pages.

    def written(self) -> None:
        shelf, name, text = self.dice.choice(sorted(SHELVES)), self.dice.choice(TOPICS), self._text()
        way = self.dice.choice(["append", "append", "supersede", "status", "compact"])
        at = self.dice.random()

        def work(store: ChronoStore) -> None:
            with self.pages(store, shelf) as pages:
                there = pages.read(name)
                if way == "supersede" and there:
                    pages.supersede(name, there[int(at * len(there))].id, text, "it changed")
                elif way == "status":
                    pages.set_status(name, "dormant" if at < 0.5 else "active")
                elif way == "compact":
                    pages.compact(name)
                else:
                    pages.append(name, f"{text}, see [[{TOPICS[0]}]]", ["said"])

        self.both(work)

    def verbs(self) -> list[tuple[Callable[[], None], int]]:
        return [
            *super().verbs(),
            (self.learned, 9),
            (self.mused, 8),
            (self.shown, 5),
            (self.told, 6),
            (self.believed, 6),
            (self.drawn_on, 8),
            (self.written, 8),
        ]

    def step(self, *, all_of_them: bool = False) -> str:
        self.steps += 1
        return super().step(all_of_them=all_of_them)
