"""Any sequence of operations leaves the embeddings as a plain dict would have them."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np
from chronomemory import ChronoStore
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from shares import share

DIM = 5
IDS = st.sampled_from([f"R{n}" for n in range(6)])
VECTORS = st.lists(st.integers(-3, 3), min_size=DIM, max_size=DIM)

Model = tuple[dict[str, str], dict[str, list[int]]]


class Embeddings(RuleBasedStateMachine):
    """A store, beside a dict of statuses and one of vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        self.store = self.opened()
        self.beside = self.opened()
        self.statuses: dict[str, str] = {}
        self.vectors: dict[str, list[int]] = {}
        self.backups: list[tuple[Path, Model]] = []

    def opened(self) -> ChronoStore:
        return ChronoStore(self.root, head_file=self.root / "head").open()

    def teardown(self) -> None:
        self.store.close()
        self.beside.close()
        shutil.rmtree(self.root)

    def active(self) -> list[str]:
        return [name for name, status in self.statuses.items() if status == "active"]

    @rule(name=IDS)
    def upsert(self, name: str) -> None:
        self.store.upsert({"id": name})
        self.statuses[name] = "active"

    @rule(name=IDS)
    def delete(self, name: str) -> None:
        self.store.delete(name)
        if name in self.statuses:
            self.statuses[name] = "tombstone"

    @precondition(lambda self: self.active())
    @rule(data=st.data(), elsewhere=st.booleans())
    def attach(self, data: st.DataObject, elsewhere: bool) -> None:
        names = data.draw(st.lists(st.sampled_from(self.active()), min_size=1, max_size=9))
        vectors = [data.draw(VECTORS) for _ in names]
        store = self.beside if elsewhere else self.store
        store.vectors.attach_many(names, vectors, model="m")
        self.vectors.update(zip(names, vectors, strict=True))

    @precondition(lambda self: self.store.vectors.spaces())
    @rule(name=IDS)
    def detach(self, name: str) -> None:
        assert self.store.vectors.detach(name) == (self.vectors.pop(name, None) is not None)

    @rule(keep=st.booleans())
    def compact(self, keep: bool) -> None:
        self.store.compact(keep_history=keep)

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = self.opened()

    @precondition(lambda self: self.statuses)
    @rule()
    def backup(self) -> None:
        self.backups.append((self.store.backup(), (dict(self.statuses), dict(self.vectors))))

    @precondition(lambda self: self.backups)
    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        folder, (statuses, vectors) = data.draw(st.sampled_from(self.backups))
        self.store.upkeep.restore(folder)
        self.statuses, self.vectors = dict(statuses), dict(vectors)

    @invariant()
    def every_embedding_is_what_it_should_be(self) -> None:
        for store in (self.store, self.beside):
            if not store.vectors.spaces():
                assert not self.vectors
                continue
            found = {name: store.vectors.get(name) for name in self.statuses}
            there = {name: row.tolist() for name, row in found.items() if row is not None}
            assert there == self.vectors
            near = store.vectors.nearest(np.ones(DIM, dtype=np.float32), k=10)
            assert sorted(one.record_id for one in near) == sorted(set(self.active()) & self.vectors.keys())
            assert store.vectors.spaces()[0].living == len(self.vectors)

    @invariant()
    def the_files_hold_together(self) -> None:
        assert self.store.chain_valid()


TestEmbeddings = Embeddings.TestCase
TestEmbeddings.settings = settings(
    max_examples=share(10, 200),
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
