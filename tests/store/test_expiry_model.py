"""A store with expiries answers as a dict and a clock would, whatever happens."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from chronomemory import ChronoStore
from chronomemory.store import Records

START = datetime(2030, 1, 1, tzinfo=timezone.utc)
USERS = ("", "ann", "bob")
STEPS = 150


@dataclass
class Model:
    """What every record says: whose it is, its word, when it expires, and whether it was deleted."""

    now: int = 0
    records: dict[str, tuple[str, str, int | None, bool]] = field(default_factory=dict)

    def living(self, user: str, *, word: str | None = None) -> set[str]:
        """What a user sees: own and shared, not deleted, not expired."""
        return {
            name
            for name, (owner, said, expires, deleted) in self.records.items()
            if owner in ("", user) and not deleted and not self.is_over(expires) and word in (None, said)
        }

    def due(self, user: str) -> set[str]:
        return {
            name
            for name, (owner, _, expires, deleted) in self.records.items()
            if owner == user and not deleted and self.is_over(expires)
        }

    def is_over(self, expires: int | None) -> bool:
        return expires is not None and expires <= self.now


def door(store: ChronoStore, user: str) -> Records:
    return store.scoped(user=user) if user else store


def agrees(store: ChronoStore, model: Model) -> None:
    for user in USERS:
        handle = door(store, user)
        living = model.living(user)
        assert {record.id for record in handle.query()} == living
        assert handle.record_count() == len(living)
        assert sum(handle.count(by="kind").values()) == len(living)
        for word in ("tea", "milk"):
            found = {hit.record.id for hit in handle.search(word, limit=100)}
            assert found == model.living(user, word=word), (user, word)
            by_where = {record.id for record in handle.query(where={"label": word})}
            assert by_where == model.living(user, word=word)
        assert set(handle.sweep(dry_run=True).ids) == model.due(user)
    everyone = store.everyone()
    all_living = set().union(*(model.living(user) for user in USERS))
    assert {record.id for record in everyone.query()} == all_living
    for name, (owner, _, expires, deleted) in model.records.items():
        record = door(store, owner).get(name)
        if deleted:
            assert record is not None and record.status == "tombstone"
        else:
            assert (record is None) == model.is_over(expires), name
        assert door(store, owner).get(name, expired=True) is not None


@pytest.mark.parametrize("seed", range(4))
def test_as_a_dict_and_a_clock_would(tmp_path: Path, seed: int) -> None:
    dice, model = random.Random(seed), Model()
    store = ChronoStore(tmp_path)
    store.upkeep.create_index("label")
    other = ChronoStore(tmp_path, own_engine=True)
    for step in range(STEPS):
        for each in (store, other):
            each.upkeep.set_now(START + timedelta(seconds=model.now))
        acts = ["put"] * 8 + ["delete", "tick", "tick", "back", "sweep", "erase", "compact", "reopen", "look"]
        act = dice.choice(acts)
        user = dice.choice(USERS)
        writer = door(dice.choice([store, other]), user)
        if act == "put":
            name = f"{user}-{dice.randrange(12)}"
            expires = dice.choice([None, model.now + dice.randrange(-3, 12)])
            data = {} if expires is None else {"expires_at": (START + timedelta(seconds=expires)).isoformat()}
            word = dice.choice(["tea", "milk"])
            writer.upsert({"id": name, "label": word, "data": data})
            model.records[name] = (user, word, expires, False)
        elif act == "delete" and model.records:
            name = dice.choice(sorted(model.records))
            owner, word, expires, _ = model.records[name]
            door(store, owner).delete(name)
            model.records[name] = (owner, word, expires, True)
        elif act == "tick":
            model.now += dice.randrange(1, 6)
        elif act == "back":
            model.now -= 2
        elif act == "sweep":
            due = model.due(user)
            assert set(writer.sweep().ids) == due
            for name in due:
                owner, word, expires, _ = model.records[name]
                model.records[name] = (owner, word, expires, True)
        elif act == "erase" and dice.random() < 0.3:
            due = model.due(user)
            assert set(writer.sweep(erase=True).ids) == due
            for name in due:
                del model.records[name]
        elif act == "compact":
            store.compact(keep_history=dice.random() < 0.8)
        elif act == "reopen":
            store.close()
            store = ChronoStore(tmp_path)
        for each in (store, other):
            each.upkeep.set_now(START + timedelta(seconds=model.now))
        if step % 5 == 0 or act in ("sweep", "reopen", "tick"):
            agrees(dice.choice([store, other]), model)
    agrees(store, model)
    assert store.verify().valid
    store.close()
    other.close()
