"""A copy from before an erasure comes back without what was erased, or not at all."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chronomemory import ChronoStore
from chronomemory.blocks import Memory
from chronomemory.errors import LogCorrupted
from test_erase import everything, holding, is_valid_for_both

NAMES = [f"R{number}" for number in range(6)]


class Life:
    """A store with a random life, what only each of its records ever said, and copies outside."""

    def __init__(self, root: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.root = root
        self.here = root / "here"
        salt = (False, True, "scope")[seed % 3]
        self.store = ChronoStore(self.here, head_file=root / "head", salt=salt)
        self.secrets = {name: f"Geheim {name} é/{self.chance.random()}" for name in NAMES}
        self.step = 0

    def live(self, steps: int) -> None:
        for _ in range(steps):
            self.step += 1
            name = self.chance.choice(NAMES)
            known = self.store.get(name)
            is_there = known is not None and known.status != "tombstone"
            match self.chance.choices(("put", "delete", "batch", "compact", "attach"), (9, 1, 2, 2, 2))[0]:
                case "put":
                    label = f"{self.secrets[name]} {self.step}"
                    self.store.upsert({"id": name, "label": label, "data": {"n": self.step}})
                case "delete" if is_there:
                    self.store.delete(name)
                case "batch":
                    rows = [
                        {"id": other, "label": self.secrets[other]} for other in self.chance.sample(NAMES, 3)
                    ]
                    self.store.upsert_many(rows)
                case "compact":
                    self.store.compact()
                case "attach" if is_there:
                    row = np.array([self.chance.random() for _ in range(4)], dtype=np.float32)
                    self.store.vectors.attach(name, row, model="random")

    def copy(self) -> tuple[Path, dict[str, Any]]:
        """A copy outside, and what the store says of each record then."""
        folder = self.root / f"copy{self.step}"
        made = self.store.backup()
        shutil.copytree(made, folder)
        shutil.rmtree(made)
        return folder, self.said()

    def said(self) -> dict[str, Any]:
        found = everything(self.store)
        is_own = {name: record for name, record in found.items() if not name.startswith("erasure:")}
        rows = {}
        if self.store.vectors.spaces():
            rows = {name: self.store.vectors.get(name) for name in is_own}
        return {
            name: (
                record,
                [event.hash for event in self.store.history(name)],
                None if rows.get(name) is None else rows[name].tolist(),
            )
            for name, record in is_own.items()
        }


@pytest.mark.parametrize("seed", range(8))
def test_no_byte_comes_back_and_all_else_does(tmp_path: Path, seed: int) -> None:
    life = Life(tmp_path, seed)
    with life.store:
        life.live(15)
        early = life.copy()
        life.live(12)
        late = life.copy()
        gone = set()
        for _ in range(1 + seed % 2):
            name = life.chance.choice(NAMES)
            if life.store.erase(ids=[name], reason="asked for").lines:
                gone.add(name)
            life.live(5)
        newest = life.said()
        for copy, before in (late, early):
            life.store.upkeep.restore(copy)
            assert life.said() == {name: said for name, said in before.items() if name not in gone}
            for name in gone:
                label = life.secrets[name]
                aside = holding(life.here / ".chronomemory" / "quarantine", label)
                assert sorted(holding(life.here, label)) == sorted(aside)
                assert life.store.history(name) == []
            assert is_valid_for_both(life.store)
        # The first of what was set aside is what there was, and knows of the erasures itself.
        aside = min((life.here / ".chronomemory" / "quarantine").glob("*-before-restore"), key=order_of)
        life.store.upkeep.restore(aside)
        assert life.said() == newest
        assert is_valid_for_both(life.store)


def order_of(path: Path) -> tuple[str, int]:
    stamp, _, number = path.name.partition("-before-restore")
    return stamp, int(number.removeprefix("-") or 1)


def test_what_belonged_to_it_goes_from_the_copy_too(tmp_path: Path) -> None:
    with ChronoStore(tmp_path / "here", head_file=tmp_path / "head") as store:
        store.upsert_many([{"id": "mia", "label": "Mia"}, {"id": "tea", "label": "Tea"}])
        store.compact()
        ends = {"from_id": "mia", "to_id": "tea"}
        store.upsert({"id": "way", "kind": "edge", "label": "Elm Street", "data": ends})
        copy = shutil.copytree(store.backup(), tmp_path / "copy")
        store.erase(ids=["mia"], reason="asked for the way")
        store.upkeep.restore(copy)
        assert [store.get("mia"), store.get("way")] == [None, None]
        assert store.get("tea") is not None
        assert holding(tmp_path / "here", "Elm Street") == []
        assert is_valid_for_both(store)
        (erasure,) = [name for name in everything(store) if is_erasure(name)]
        assert everything(store)[erasure]["label"] == "asked for the way"


def is_erasure(name: str) -> bool:
    return name.startswith("erasure:") and name.count(":") == 1


def test_what_acts_taught_other_blocks_is_as_it_was_in_the_copy(tmp_path: Path) -> None:
    chance = random.Random(5)
    texts = [f"Fact {number} of {chance.random()}" for number in range(5)]
    with Memory(tmp_path / "here") as memory:
        ids = [memory.remember(text).block_id for text in texts]
        memory.consolidate()
        for _ in range(8):
            memory.outcome(chance.sample(ids, 3), chance.random())
    with ChronoStore(tmp_path / "here") as store:
        store.compact()
        before = everything(store)
        copy = shutil.copytree(store.backup(), tmp_path / "copy")
        gone = [name for name in before if ids[1] in name]
        store.erase(ids=gone, reason="asked for")
        store.upkeep.restore(copy)
        after = {name: record for name, record in everything(store).items() if name[:8] != "erasure:"}
        assert after == {name: record for name, record in before.items() if name not in gone}
        assert holding(tmp_path / "here", texts[1]) == []
        assert holding(tmp_path / "here", ids[1]) == [], "an id is a digest of what was said"
        assert is_valid_for_both(store)


def test_a_copy_from_before_the_record_comes_back_and_the_erasure_stays_known(tmp_path: Path) -> None:
    with ChronoStore(tmp_path / "here", head_file=tmp_path / "head") as store:
        store.upsert({"id": "tea", "label": "Tea at four"})
        before = shutil.copytree(store.backup(), tmp_path / "before")
        store.upsert({"id": "mia", "label": "Elm Street"})
        holds_it = shutil.copytree(store.backup(), tmp_path / "holds")
        store.erase(ids=["mia"], reason="asked for")
        store.upkeep.restore(before)
        assert store.get("tea") is not None
        for _ in range(2):
            assert any(note.startswith("upheld") and "asked for" in note for note in store.verify().notes)
            assert is_valid_for_both(store)
            # Nothing here tells by now which of its lines were erased.
            with pytest.raises(LogCorrupted, match="it is no beginning of this log"):
                store.upkeep.restore(holds_it)
            assert holding(tmp_path / "here", "Elm Street") == []
            store.compact(keep_history=False)


@pytest.mark.parametrize("how", ["drop", "base", "pruned", "another way", "damaged"])
def test_a_copy_is_refused_where_hashes_do_not_tell(tmp_path: Path, how: str) -> None:
    with ChronoStore(tmp_path / "here", head_file=tmp_path / "head") as store:
        store.upsert({"id": "mia", "label": "Elm Street"})
        store.upsert({"id": "tea", "label": "Tea at four"})
        if how == "another way":
            store.upkeep.restore(store.backup())
        store.compact(keep_history=how != "base")
        copy = shutil.copytree(store.backup(), tmp_path / "copy")
        why = ""
        match how:
            case "drop":
                store.erase(ids=["mia"], reason="asked for", history="drop")
                why = "no hash is kept"
            case "base":
                store.upsert({"id": "mia", "label": "Elm Street 17"})
                store.erase(ids=["mia"], reason="asked for")
                why = "nothing tells what was erased of base/"
            case "pruned":
                store.erase(ids=["mia"], reason="asked for")
                store.compact()
                store.upkeep.prune(older_than=timedelta(0), reason="space")
                why = "it is no beginning of this log"
            case "another way":
                store.upsert({"id": "mia", "label": "Elm Street 17"})
                copy = shutil.copytree(store.backup(), tmp_path / "other")
                store.upkeep.restore(tmp_path / "copy")
                store.erase(ids=["mia"], reason="asked for")
                why = "it is no beginning of this log"
            case "damaged":
                store.erase(ids=["mia"], reason="asked for")
                (archive,) = (copy / "archive").iterdir()
                archive.write_bytes(archive.read_bytes()[:-1])
                why = "it is damaged"
        head = store.health().head
        with pytest.raises(LogCorrupted, match=why) as refused:
            store.upkeep.restore(copy, damaged=True)
        assert "bring_back=True" in refused.value.recovery
        assert "asked for" in str(refused.value)
        assert (store.health().head, store.get("mia")) == (head, None)
        assert holding(tmp_path / "here", "Elm Street") == []
        assert not any((tmp_path / "here" / ".chronomemory" / "backup").glob("*.tmp"))
        assert is_valid_for_both(store)
        store.upkeep.restore(copy, damaged=True, bring_back=True)


def compacted_by_version_1(folder: Path) -> None:
    """What a compaction of version 1 leaves: it passes over the event of an erasure, and knows no trail."""
    log = (folder / "events.wal").read_bytes()
    first, *_, last = [json.loads(line) for line in log.splitlines()]
    digest = hashlib.sha256(log).hexdigest()
    span = f"{first['seq']}-{last['seq']}"
    (folder / "archive" / f"{span}-{digest[:16]}.wal").write_bytes(log)
    state = json.loads((folder / "snapshot.json").read_bytes())
    assert state["seq"] == last["seq"]
    state["records"] = [record for record in state["records"] if not record["id"].startswith("erasure:")]
    base = json.dumps(state, ensure_ascii=False).encode()
    named = hashlib.sha256(base).hexdigest()
    (folder / "base" / f"{named}.json").write_bytes(base)
    data = {
        "archive": f"archive/{span}-{digest[:16]}.wal",
        "archive_sha256": digest,
        "base": f"base/{named}.json",
        "base_sha256": named,
        "events": len(log.splitlines()),
        "first_seq": first["seq"],
        "last_seq": last["seq"],
        "previous_head": last["hash"],
    }
    event = {
        "op": "compact",
        "prev_hash": "",
        "record": {"data": data, "id": "__compact__", "label": "Compacted"},
        "record_id": "__compact__",
        "recursion_depth": 0,
        "seq": last["seq"] + 1,
        "ts": last["ts"],
    }
    payload = json.dumps(event, sort_keys=True, separators=(",", ":"))
    line = f'{{"hash":"{hashlib.sha256(payload.encode()).hexdigest()}",{payload[1:]}\n'
    (folder / "events.wal").write_text(line, encoding="utf-8")
    (folder / "synced").unlink()


def test_an_erasure_that_version_1_forgot_is_told_and_kept(tmp_path: Path) -> None:
    with ChronoStore(tmp_path / "here", head_file=tmp_path / "head") as store:
        store.upsert({"id": "mia", "label": "Elm Street"})
        store.upsert({"id": "tea", "label": "Tea at four"})
        copy = shutil.copytree(store.backup(), tmp_path / "copy")
        told = store.erase(ids=["mia"], reason="asked for")
    compacted_by_version_1(tmp_path / "here" / ".chronomemory")
    with ChronoStore(tmp_path / "here", head_file=tmp_path / "head") as store:
        assert not any(name.startswith("erasure:") for name in everything(store)), (
            "the test does what it says"
        )
        for _ in range(2):
            assert is_valid_for_both(store)
            assert any(note.startswith(f"erased at event {told.seq}") for note in store.verify().notes)
            store.compact()
        store.upkeep.restore(copy)
        assert store.get("mia") is None and store.get("tea") is not None
        assert holding(tmp_path / "here", "Elm Street") == []
        assert is_valid_for_both(store)
