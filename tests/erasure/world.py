"""A store in which records of every face refer to each other in every way that the verbs allow."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
from chronomemory import ChronoStore, DepGraph
from chronomemory.blocks import Memory
from chronomemory.embedders import LexicalEmbedder
from chronomemory.episodes import AddDelta, Episode, Episodes, Facts, NoopDelta, UpdateDelta
from chronomemory.graph import Action, Approval, Edge, MemoryEvent, Node, Profile, Workspace
from chronomemory.graph.models import ActivationPlan
from chronomemory.mcp import file_editing, reference, remembering
from chronomemory.mcp.served_store import ServedStore
from chronomemory.pages import Pages
from chronomemory.scope import Scope

__all__ = ["World"]

START = datetime(2026, 5, 18, 9, tzinfo=timezone.utc)


@dataclass
class World:
    """What was written: by record id the texts that nothing may hold after the record is erased."""

    root: Path
    chance: random.Random
    secrets: dict[str, list[str]] = field(default_factory=dict)
    user: str = ""

    @property
    def names(self) -> dict[str, str]:
        """Whose the records are."""
        return {"user": self.user} if self.user else {}

    def secret(self) -> str:
        """Draw a word that stands nowhere else."""
        return f"zq{self.chance.getrandbits(64):016x}"

    def note(self, record_id: str, *texts: str) -> str:
        """Remember what must be gone with a record."""
        self.secrets.setdefault(record_id, []).extend(texts)
        return record_id

    def some(self, names: list[str], most: int = 3) -> list[str]:
        """Choose some of these."""
        return self.chance.sample(names, min(len(names), self.chance.randint(0, most)))

    def fill(self, store: ChronoStore) -> None:
        """Write records of every face, in any order."""
        parts: list[Callable[[ChronoStore], None]] = [
            self.plain,
            self.blocks,
            self.episodes,
            self.graph,
            self.pages,
            self.assistant,
            self.entities,
        ]
        self.chance.shuffle(parts)
        for part in parts:
            part(store)
            if self.chance.random() < 0.3:
                store.compact()
        if self.chance.random() < 0.5:
            store.backup()

    def plain(self, store: ChronoStore) -> None:
        door = store.scoped(user=self.user) if self.user else store
        names: list[str] = []
        for _ in range(6):
            name, text = self.secret(), self.secret()
            door.upsert({"id": name, "label": text, "evidence": self.some(names), "data": {"n": 1}})
            names.append(self.note(name, name, text))
        graph = DepGraph(door)
        for kind in ("depends_on", "derived_from", "supersedes"):
            one, other = self.chance.sample(names, 2)
            graph.add_edge(one, other, kind)
        rows = np.random.default_rng(self.chance.getrandbits(32)).random((3, 4), dtype=np.float32)
        door.vectors.attach_many(names[:3], rows, model="m")
        door.invalidate(self.chance.choice(names), "no longer true")

    def blocks(self, store: ChronoStore) -> None:
        with Memory(store, embedder=LexicalEmbedder(), **self.names) as memory:
            session = memory.begin_session()
            self.note(f"session:{session}", session)
            ids: list[str] = []
            for _ in range(7):
                text = f"The number is {self.secret()}"
                more: dict[str, Any] = {}
                living = [block["id"] for block in memory.list(status="active")]
                if ids and self.chance.random() < 0.5:
                    more["previous"] = self.chance.choice(ids)
                if living and self.chance.random() < 0.4:
                    more["supersedes"] = self.chance.choice(living)
                ids.append(memory.remember(text, **more).block_id)
                self.note(f"block:{ids[-1]}", text.split()[-1], ids[-1])
            living = [block["id"] for block in memory.list(status="active")]
            memory.frame("attention", "The number")
            memory.outcome(living, 0.9)
            memory.recall("The number is")
            if len(living) > 1:
                memory.connect(*self.chance.sample(living, 2), relation="similar")
            changed = memory.edit(self.chance.choice(living), f"The number was {self.secret()}")
            self.note(f"block:{changed.block_id}", changed.block_id)

    def episodes(self, store: ChronoStore) -> None:
        owner = {"user": self.user or "ann", "agent": "bot"}
        with Episodes(store, clock=lambda: START) as episodes, Facts(store) as facts:
            names: list[str] = []
            last: list[str] = []
            for number in range(5):
                name, text = self.secret(), self.secret()
                moment = START + timedelta(seconds=number)
                episode = Episode(
                    id=name, content=text, timestamp=moment, source_node="n", session="s", **owner
                )
                episodes.put(episode, session="s", **owner)
                names.append(name)
                self.note(f"episode:{name}", name, text)
            for number in range(40):
                fact, text = self.secret(), self.secret()
                common: dict[str, Any] = {
                    "rule_id": "r",
                    "promotion_ts": START,
                    "source_episode_ids": self.some(names) or names[:1],
                    "confidence": 0.9,
                }
                payload = {"id": fact, "content": text, **owner}
                if number % 2 or not last:
                    facts.apply_delta(AddDelta(kind="add", fact_payload=payload, **common))
                else:
                    facts.apply_delta(
                        UpdateDelta(kind="update", replaces=last[:1], fact_payload=payload, **common)
                    )
                    last = last[1:]
                last.append(fact)
                self.note(f"fact:{fact}", fact, text)
            common = {"rule_id": "r", "promotion_ts": START, "confidence": 0.5}
            facts.apply_delta(NoopDelta(kind="noop", source_episode_ids=names[:1], **common))

    def graph(self, store: ChronoStore) -> None:
        with Workspace.create(store.project_root) as workspace:
            nodes, edges, paths, events = [[self.secret() for _ in range(4)] for _ in range(4)]
            profile = self.secret()
            workspace.graph.save_profile(Profile(profile, self.secret()))
            self.note(f"profile:{profile}", profile)
            for name in nodes:
                workspace.graph.save_node(Node(name, "thing", text := self.secret(), {"of": "all"}))
                self.note(f"node:{name}", name, text)
            for name in edges:
                one, other = self.chance.sample(nodes, 2)
                workspace.graph.save_edge(Edge(name, one, other, "near"))
                self.note(f"gedge:{name}", name)
            plan = self.secret()
            workspace.graph.save_plan(ActivationPlan(plan, profile, self.some(nodes)))
            self.note(f"plan:{plan}", plan)
            runtime = workspace.runtime
            for number, name in enumerate(paths):
                runtime.branch(name, paths[number - 1] if number else None)
                self.note(f"path:{name}", name)
            for number, name in enumerate(events):
                refs = self.some([*nodes, *edges, *paths, *events[:number]])
                said = MemoryEvent(name, "said", START.isoformat(), refs=refs, data={"t": self.secret()})
                runtime.record(self.chance.choice(paths[:2]), [said])
                self.note(f"event:{name}", name)
            old, new, third, last = nodes
            put = {"kind": "thing", "label": self.secret()}
            actions = [
                Action("a1", "supersede", old, {"by": new}),
                Action("a2", "set_phase", third, {"phase": "stable"}),
                Action("a3", "put_node", last, put),
                Action("a4", "put_edge", self.secret(), {"source": new, "target": third, "kind": "near"}),
                *(
                    Action(f"c{number}", "compact_path", path.id, {"summary_id": last})
                    for number, path in enumerate(workspace.graph.paths())
                    if path.event_ids
                ),
            ]
            self.secrets[f"node:{last}"].append(put["label"])
            runtime.apply(actions, [Approval.of(action, "ann") for action in actions])
            runtime.merge(paths[3], paths[2])

    def pages(self, store: ChronoStore) -> None:
        with Pages(store, clock=lambda: START, **self.names) as pages:
            for _ in range(2):
                name = f"topic-{self.secret()}"
                pages.create(name, "a page", ["tea"])
                texts = [self.secret() for _ in range(3)]
                ids = [pages.append(name, text, ["tea"]) for text in texts]
                texts.append(self.secret())
                ids.append(pages.supersede(name, ids[0], texts[-1], "it changed"))
                (record,) = (
                    one for one in store.everyone().query(kind="page", faces=True) if one.data["name"] == name
                )
                self.note(record.id, name, *texts)
                for entry, text in zip(ids, texts, strict=True):
                    self.note(f"entry:{record.id.partition(':')[2]}:{entry}", entry, text)

    def assistant(self, store: ChronoStore) -> None:
        """Write as an assistant does through the MCP server, each call under an operation id."""
        served = ServedStore(store, Scope(**self.names))
        added: list[str] = []
        for number in range(3):
            text = f"A memory of {self.secret()}"
            told = remembering.add(
                served, text, tags=(), category="fact", source="me", confidence=0.8, operation_id=f"o{number}"
            )
            added.append(told["memory_id"])
            self.note(told["memory_id"], text.split()[-1], told["memory_id"].partition(":")[2])
        text = f"A memory of {self.secret()}"
        told = remembering.supersede_with(
            served, added[0], text, reason="", source="me", operation_id="superseding"
        )
        self.note(told["memory_id"], text.split()[-1])
        remembering.retract(served, added[1], reason="wrong", operation_id="retracting")
        first, second = self.secret(), self.secret()
        path = f"/memories/topic-{self.secret()}.md"
        page = f"---\ndescription: a page\ntags: [tea]\n---\n\n# Title\n\n{first}\n"
        file_editing.create(served, path, page, operation_id="creating")
        file_editing.str_replace(served, path, first, f"{first} and {second}", operation_id="replacing")
        name = path.removeprefix("/memories/").removesuffix(".md")
        (record,) = (
            one for one in store.everyone().query(kind="page", faces=True) if one.data["name"] == name
        )
        self.note(record.id, name, first, second)

    def entities(self, store: ChronoStore) -> None:
        """Write a graph as the profile ``reference`` of the MCP server does."""
        served = ServedStore(store, Scope(**self.names))
        names = [self.secret() for _ in range(4)]
        entities = [
            reference.Entity(name=name, entityType="person", observations=[self.secret()]) for name in names
        ]
        pairs = [self.chance.sample(names, 2) for _ in range(4)]
        reference.create_entities(served, entities)
        reference.create_relations(
            served, [reference.Relation(from_=one, to=other, relationType="knows") for one, other in pairs]
        )
        for record in store.everyone().query(kind="entity"):
            if record.label in names:
                self.note(record.id, record.label, *record.data["observations"])
