"""An erasure that was killed behind its commit point is finished by the next process that opens the store."""

from __future__ import annotations

import json
from pathlib import Path

from chronomemory import ChronoStore


def test_the_next_opener_remembers_the_head_of_a_killed_erasure(tmp_path: Path) -> None:
    root, note = tmp_path / "here", tmp_path / "head"
    folder = root / ".chronomemory"
    with ChronoStore(root, head_file=note) as store:
        store.upsert_many([{"id": f"r{number}"} for number in range(50)])
    before, synced = json.loads(note.read_bytes()), (folder / "synced").read_bytes()
    with ChronoStore(root, head_file=note) as store:
        store.erase(ids=["r3"], reason="asked for", history="drop")
    after = json.loads(note.read_bytes())
    # What the files are like if the process is killed right after the rename of the log.
    note.write_text(
        json.dumps({**before, "next": {name: after[name] for name in ("first", "head", "offset", "seq")}})
    )
    (folder / "synced").write_bytes(synced)
    sentinel = json.loads((folder / "events.wal").read_text().splitlines()[0])
    base = sentinel["record"]["data"]["base_sha256"]
    (folder / "erasing").write_text(json.dumps({"base": base, "remove": []}))
    with ChronoStore(root, head_file=note) as store:
        told = json.loads(note.read_bytes())
        assert (told["head"], "next" in told) == (after["head"], False)
        assert not (folder / "erasing").exists()
        assert store.erase(ids=["r4"], reason="asked for").ids == ("r4",)
        store.compact()
        assert store.verify().valid


def test_an_announced_log_that_came_is_not_forgotten_when_the_next_is_announced(tmp_path: Path) -> None:
    root, note = tmp_path / "here", tmp_path / "head"
    with ChronoStore(root, head_file=note) as store:
        store.upsert_many([{"id": f"r{number}"} for number in range(50)])
    before = json.loads(note.read_bytes())
    with ChronoStore(root, head_file=note) as store:
        store.erase(ids=["r3"], reason="asked for", history="drop")
        after = json.loads(note.read_bytes())
        came = {name: after[name] for name in ("first", "head", "offset", "seq")}
        note.write_text(json.dumps({**before, "next": came}))
        store.compact()
        assert store.erase(ids=["r4"], reason="asked for").ids == ("r4",)
