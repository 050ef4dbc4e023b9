"""A damaged `synced` is reported by whoever looks: it is what would show that the log was cut."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from chronomemory import ChronoStore
from chronomemory.types import DAMAGED_SYNCED
from verdicts import VERIFIER

DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "checksum": lambda synced: synced[:-1] + bytes([synced[-1] ^ 1]),
    "offset": lambda synced: synced[:8] + b"\xff" * 8 + synced[16:],
    "magic": lambda synced: b"?" + synced[1:],
    "short": lambda synced: synced[:60],
    "long": lambda synced: synced + b"\n",
    "empty": lambda _: b"",
    "zeros": lambda synced: bytes(len(synced)),
}


@pytest.fixture
def synced(store: ChronoStore, log: Path) -> Path:
    store.upsert({"id": "A"})
    store.upsert({"id": "B"})
    store.close()
    return log.parent / "synced"


def second_opinion(project: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, VERIFIER, project], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_synced_is_reported(tmp_path: Path, synced: Path, damage: str) -> None:
    synced.write_bytes(DAMAGES[damage](synced.read_bytes()))
    report = ChronoStore(tmp_path).verify()
    assert report.valid and report.damaged_synced and DAMAGED_SYNCED in report.lines()
    second = second_opinion(tmp_path)
    assert second.returncode == 3 and "synced is damaged" in second.stdout
    with pytest.warns(RuntimeWarning, match="synced is damaged"), ChronoStore(tmp_path) as store:
        health = store.health()
        assert health.damaged_synced and not health.ok
        store.upsert({"id": "C"})
        store.sync()
        assert store.health().ok and not store.verify().damaged_synced
    assert second_opinion(tmp_path).returncode == 0


@pytest.mark.parametrize("damage", ["checksum", "empty", "zeros"])
def test_a_cut_behind_a_damaged_synced_is_not_silent(
    tmp_path: Path, log: Path, synced: Path, state: Path, damage: str
) -> None:
    """Whoever cuts the log and spoils what would tell, on another machine, leaves a trace."""
    synced.write_bytes(DAMAGES[damage](synced.read_bytes()))
    log.write_bytes(log.read_bytes().splitlines(keepends=True)[0])
    for note in state.rglob("*"):
        if note.is_file():
            note.unlink()
    report = ChronoStore(tmp_path).verify()
    assert report.valid and report.damaged_synced


def test_a_missing_synced_is_fine(tmp_path: Path, synced: Path) -> None:
    synced.unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with ChronoStore(tmp_path) as store:
            assert store.health().ok and not store.verify().damaged_synced
    assert second_opinion(tmp_path).returncode == 0


def test_writers_that_overwrite_it_do_not_look_like_damage(tmp_path: Path) -> None:
    with ChronoStore(tmp_path, durability="full") as writer:
        for number in range(200):
            writer.upsert({"id": f"R-{number}"})
            assert not ChronoStore(tmp_path).verify().damaged_synced


def test_an_empty_synced_beside_an_empty_log_is_fine(tmp_path: Path, log: Path, synced: Path) -> None:
    log.write_bytes(b"")
    synced.write_bytes(b"")
    assert not ChronoStore(tmp_path, head_file=tmp_path / "head").verify().damaged_synced
    assert second_opinion(tmp_path).returncode == 0
