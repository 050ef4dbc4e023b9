"""Compares what two stores with all faces answer."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np
from chronomemory import ChronoStore
from chronomemory.episodes import FactPattern, Facts
from chronomemory.errors import HistoryUnavailable
from faces import FILLER, KINDS, MINDS, NODES, SHELVES, TALKERS, TOPICS, Faces
from speech import NOBODY, WORDS
from twin import first_difference, handles
from twins import DIM

#: What a store says of itself, and what tells when something came rather than what is there.
OWN = ("erasure:", "pruned:", "vector:", "audit:@workspace")
ARRIVAL = ":last_arrival"
QUESTIONS = (WORDS[0], " ".join(WORDS[2:5]), f"{WORDS[7]} nothing")


def is_of_both(record: Any) -> bool:
    """Whether the twin should have it too, or has it in the place of something."""
    if record.id.startswith(OWN) or record.id.endswith(ARRIVAL) or record.data.get("@scope") == NOBODY:
        return False
    if record.kind == "page_folder":  # it says when its files were looked at
        return False
    return FILLER not in json.dumps(record.to_dict())


def records_of(door: Any) -> list[dict[str, Any]]:
    return [one.to_dict() for one in door.query(status=None, faces=True, expired=True) if is_of_both(one)]


def past_of(store: ChronoStore, seq: int) -> list[dict[str, Any]] | None:
    try:
        return [
            one.to_dict()
            for one in store.everyone().as_of(seq).query(status=None, faces=True)
            if is_of_both(one)
        ]
    except HistoryUnavailable:
        return None


def history_of(store: ChronoStore, name: str) -> list[Any]:
    return [(event.seq, event.op, event.record) for event in store.everyone().history(name)]


def of_blocks(twins: Faces, store: ChronoStore) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for user in MINDS:
        with twins.memory(store, user) as memory:
            told[f"blocks of {user}"] = memory.list(status=None)
            for question in (None, *QUESTIONS):
                found = memory.recall(question, top_k=1000)
                told[f"recall of {user} for {question}"] = [
                    (one.id, one.score, *one.components) for one in found
                ]
    return told


def of_episodes(twins: Faces, store: ChronoStore) -> dict[str, Any]:
    told: dict[str, Any] = {
        f"episodes of {user}": twins.episodes(store).recent(user, limit=100) for user in TALKERS
    }
    return told | {"facts": Facts(store).query(FactPattern())}


def of_graph(twins: Faces, store: ChronoStore) -> dict[str, Any]:
    with twins.workspace(store) as workspace:
        graph = workspace.graph
        told: dict[str, Any] = {
            "nodes": [node for node in graph.nodes() if FILLER not in node.id],
            "edges": [edge for edge in graph.edges() if FILLER not in edge.id],
            "paths": graph.paths(),
            "events": [event for event in workspace.events.events() if FILLER not in str(event.to_dict())],
            "whether events lead to the graph": workspace.replay() == workspace.snapshot(),
            "what is wrong with the graph": [one for one in workspace.diagnose() if FILLER not in str(one)],
        }
        there = [f"node{number}" for number in range(NODES) if graph.node(f"node{number}") is not None]
        for one in there:
            # Not by way of what the twin has in the place of something.
            told[f"what is near {one}"] = graph.within(one, 3, node_kinds=KINDS)
    return told


def of_pages(twins: Faces, store: ChronoStore) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for shelf in SHELVES:
        with twins.pages(store, shelf) as pages:
            told[f"pages of {shelf}"] = pages.list(include_dormant=True, include_archived=True)
            told[f"what was written in {shelf}"] = pages.recent(limit=100)
            for name in TOPICS:
                told[f"{name} of {shelf}"] = pages.text(name)
                told[f"links of {name} of {shelf}"] = pages.links(name)
            for question in QUESTIONS:
                hits = pages.search(question, limit=50, include_superseded=True)
                told[f"what {shelf} finds for {question}"] = [asdict(hit) for hit in hits]
    return told


def of_searches(store: ChronoStore) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for name, handle in handles(store).items():
        told[f"records of {name or 'all'}"] = records_of(handle)
        for text in QUESTIONS:
            hits = handle.search(text, limit=50)
            told[f"what {name or 'all'} finds for {text}"] = [
                (hit.id, hit.score) for hit in hits if FILLER not in hit.id
            ]
        for space in store.vectors.spaces():
            if space.name == "tokens":
                tokens = np.eye(3, DIM, dtype=np.float32)
                hits = handle.search(WORDS[1], query_tokens=tokens, limit=50)
                told[f"what {name or 'all'} finds by tokens"] = [(hit.id, hit.score) for hit in hits]
                continue
            asked = np.ones(space.dim, dtype=np.float32)
            near = handle.vectors.nearest(asked, space=space.name, k=1000, status=None)
            told[f"what is near {name or 'all'} in {space.name}"] = [
                (hit.record_id, hit.score) for hit in near
            ]
    return told


def through_faces(twins: Faces, store: ChronoStore) -> dict[str, Any]:
    """All that a store answers now."""
    with twins.same():
        return {
            **of_searches(store),
            **of_blocks(twins, store),
            **of_episodes(twins, store),
            **of_graph(twins, store),
            **of_pages(twins, store),
        }


def differing(twins: Faces) -> list[str]:
    """What the two answer otherwise, of now and of then; nothing that is to go may be left."""
    one, other = (through_faces(twins, store) for store in (twins.a, twins.b))
    wrong = [said for what in other for said in first_difference(what, one.get(what), other[what])]
    wrong += [f"{what} is asked of one alone" for what in one.keys() - other.keys()]
    both = (records_of(store.everyone()) for store in (twins.a, twins.b))
    wrong += first_difference("records", *both)
    if wrong:
        return wrong
    if not twins.is_pruned:
        for record in records_of(twins.b.everyone()):
            name = record["id"]
            events = [history_of(store, name) for store in (twins.a, twins.b)]
            wrong += first_difference(f"history of {name}", *events)
    for seq in sorted({*range(1, twins.a.wal_seq() + 1)} - twins.unsettled):
        then = [past_of(store, seq) for store in (twins.a, twins.b)]
        if then[0] is None and then[1] is not None and not twins.is_pruned:
            wrong.append(f"the past at {seq} is not to be had, and the twin's is")
        elif None not in then:
            wrong += first_difference(f"records at {seq}", *then)
    return wrong
