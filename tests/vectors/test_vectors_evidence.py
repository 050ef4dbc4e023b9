"""Both verifiers say the same about rows, and what a crash took is only missing."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from chronomemory import ChronoRecord, ChronoStore, LogCorrupted
from shares import share
from verdicts import verify_log

DIM = 33
#: Attaches for ever and says what was acknowledged.
WRITER = """
import sys, numpy as np
from chronomemory import ChronoStore
store = ChronoStore(sys.argv[1], durability=sys.argv[2], lock_timeout=60)
name = sys.argv[3]
for turn in range(int(sys.argv[4])):
    ids = [f"{name}{n}" for n in range(turn % 3 + 1)]
    store.upsert_many([{"id": i} for i in ids])
    store.vectors.attach_many(ids, np.full((len(ids), 33), turn + 1, dtype=np.float32), model="m")
    print(turn, flush=True)
store.close()
"""


def folder_of(store: ChronoStore) -> Path:
    return store.project_root / ".chronomemory"


def both(root: Path) -> tuple[bool, list[tuple[str, str, int]], int]:
    """What both verifiers find, which must be the same."""
    with ChronoStore(root) as closed:
        pass
    ours, other = closed.verify(), verify_log.verify_folder(root)
    found = [(damage.path, damage.kind, damage.offset) for damage in ours.damage]
    assert found == [(one["path"], one["kind"], one["offset"]) for one in other["damage"]]
    assert (ours.valid, ours.committed_end) == (other["valid"], other["committed_end"])
    assert (None if ours.tail is None else ours.tail.offset) == (other["tail"] or {}).get("offset")
    return ours.valid, found, ours.committed_end


def fill(store: ChronoStore, count: int = 30) -> None:
    store.upsert_many([ChronoRecord(id=f"R{n}") for n in range(count)])
    rows = np.random.default_rng(3).standard_normal((count, DIM), dtype=np.float32)
    store.vectors.attach_many([f"R{n}" for n in range(count)], rows, model="m")


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.filterwarnings("ignore:.*embeddings are missing")
def test_both_find_every_kind_of_damage(store: ChronoStore, compacted: bool) -> None:
    fill(store)
    store.vectors.attach_many(["R1", "R2"], np.ones((2, DIM)))
    store.vectors.detach("R4")
    store.vectors.attach("R5", [1.0], space="other", model="n")
    if compacted:
        store.vectors.attach_many([f"R{n}" for n in range(30)], np.ones((30, DIM)))
        store.compact()
    store.close()
    assert both(store.project_root)[0]
    rows = sorted((folder_of(store) / "vectors").glob("default.*.f32"))[-1]
    whole, dice = rows.read_bytes(), random.Random(7)
    for offset in [0, len(whole) - 1, *(dice.randrange(len(whole)) for _ in range(12))]:
        rows.write_bytes(whole[:offset] + bytes([whole[offset] ^ 64]) + whole[offset + 1 :])
        valid, found, _ = both(store.project_root)
        row = offset // (4 * DIM)
        is_gone = not compacted and row == 4
        assert valid == is_gone
        assert [offset for _, _, offset in found] == [] if is_gone else [row * 4 * DIM]
    rows.write_bytes(whole[:-5])
    assert [kind for _, kind, _ in both(store.project_root)[1]] == ["row-missing"]
    rows.unlink()
    assert {kind for _, kind, _ in both(store.project_root)[1]} == {"row-missing"}


@pytest.mark.parametrize("lost", ["cut", "altered"])
@pytest.mark.filterwarnings("ignore:.*embeddings are missing")
def test_an_unsynced_event_stays_though_its_row_is_lost(tmp_path: Path, lost: str) -> None:
    with ChronoStore(tmp_path) as store:
        fill(store)
    folder = tmp_path / ".chronomemory"
    hint = (folder / "synced").read_bytes()
    with ChronoStore(tmp_path) as store:
        store.vectors.attach("R3", np.ones(DIM))
        store.upsert({"id": "after"})
    # As if the power had failed before the sync, and the row had not made it.
    (folder / "synced").write_bytes(hint)
    rows = folder / "vectors" / "default.0.f32"
    whole = rows.read_bytes()
    rows.write_bytes(
        whole[: 30 * DIM * 4 + 9] + (b"" if lost == "cut" else b"\1" + whole[30 * DIM * 4 + 10 :])
    )
    kind = "row-missing" if lost == "cut" else "row-altered"
    finding = ("vectors/default.0.f32", kind, 30 * DIM * 4)
    assert both(tmp_path)[:2] == (False, [finding])
    with ChronoStore(tmp_path) as store:
        assert store.get("after") is not None
        with pytest.raises(LogCorrupted, match="row 30"):
            store.vectors.get("R3")
        assert "R3" not in {near.record_id for near in store.vectors.nearest(np.ones(DIM), k=40)}
        store.vectors.attach("R4", np.full(DIM, 2))
        assert np.array_equal(store.vectors.get("R4"), np.full(DIM, 2))
    # The next row lies behind the lost one: nothing is misaligned, and what was lost is still told.
    assert both(tmp_path)[1][0][2] == 30 * DIM * 4
    with ChronoStore(tmp_path) as store:
        store.upkeep.repair()
        assert store.vectors.get("R3") is None
        assert store.get("after") is not None
    assert both(tmp_path)[:2] == (True, [])


@pytest.mark.parametrize("durability", ["normal", "full"])
def test_several_processes_attach_at_once(tmp_path: Path, durability: str) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "first"})
        store.vectors.attach("first", np.zeros(DIM), model="m")
        words = [sys.executable, "-c", WRITER, str(tmp_path), durability]
        writers = [
            subprocess.Popen([*words, name, "40"], stdout=subprocess.DEVNULL) for name in ("a", "b", "c")
        ]
        while any(writer.poll() is None for writer in writers):
            store.vectors.nearest(np.ones(DIM), k=3)
        assert [writer.returncode for writer in writers] == [0, 0, 0]
        (space,) = store.vectors.spaces()
        assert space.rows == 1 + 3 * sum(turn % 3 + 1 for turn in range(40))
        for name in ("a", "b", "c"):
            assert np.array_equal(store.vectors.get(f"{name}0"), np.full(DIM, 40))
            assert np.array_equal(store.vectors.get(f"{name}2"), np.full(DIM, 39))
        store.compact()
        assert store.vectors.spaces()[0].generation == 1
        assert store.chain_valid()
    assert both(tmp_path)[0]


@pytest.mark.parametrize("durability", ["normal", "full", "off"])
def test_a_killed_writer_leaves_nothing_misaligned(tmp_path: Path, durability: str) -> None:
    dice = random.Random(durability)
    for run in range(share(2, 20)):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), durability, f"k{run}-", "100000"],
            stdout=subprocess.PIPE,
        ) as writer:
            assert writer.stdout is not None
            acknowledged = int(writer.stdout.readline())
            time.sleep(dice.random() / 20)
            os.kill(writer.pid, signal.SIGKILL)
            for line in writer.stdout.read().splitlines():
                acknowledged = int(line)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            store = ChronoStore(tmp_path).open()
        with store:
            first = store.vectors.get(f"k{run}-0")
            assert first is not None
            assert first[0] in (acknowledged + 1, acknowledged + 2)
            assert np.array_equal(first, np.full(DIM, first[0]))
            store.upsert({"id": "between"})
            store.vectors.attach("between", np.full(DIM, 0.5))
            found = store.vectors.nearest(np.full(DIM, 0.5), k=10_000)
            assert {near.record_id for near in found} >= {"between", f"k{run}-0"}
            assert store.chain_valid()
