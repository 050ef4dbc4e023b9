"""Whoever has the wheel can check a log without the engine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from chronomemory import ChronoStore

ENTRY = Path(__file__).parents[2] / "tools" / "verify_log.py"


def run(place: Path, *more: str) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, *more, "-m", "chronomemory.verify_log", str(place)]
    return subprocess.run(call, capture_output=True, check=False, text=True)


def test_it_judges_a_log_and_loads_no_engine(store: ChronoStore, tmp_path: Path, log: Path) -> None:
    store.upsert({"id": "A", "label": "original"})
    store.upsert({"id": "B"})
    store.compact()
    store.upsert({"id": "C"})
    store.close()
    good = run(tmp_path, "-X", "importtime")
    assert good.returncode == 0, good.stderr
    assert "chain ok" in good.stdout
    assert "_core" not in good.stderr
    log.write_bytes(log.read_bytes().replace(b'"C"', b'"D"', 1))
    assert run(tmp_path).returncode == 1


def test_the_source_tree_runs_it_without_the_package(store: ChronoStore, tmp_path: Path) -> None:
    store.upsert({"id": "A"})
    store.close()
    call = [sys.executable, "-I", "-X", "importtime", str(ENTRY), str(tmp_path)]
    done = subprocess.run(call, capture_output=True, check=False, text=True)
    assert (done.returncode, "chain ok" in done.stdout) == (0, True), done.stderr
    assert "chronomemory" not in done.stderr


def test_without_zstd_it_names_the_package_to_install(store: ChronoStore, tmp_path: Path) -> None:
    store.upsert({"id": "A"})
    store.compact()
    store.close()
    blocked = (
        "import runpy, sys; sys.modules['compression.zstd'] = sys.modules['backports.zstd'] = None; "
        "sys.argv = ['verify_log', sys.argv[1]]; "
        "runpy.run_module('chronomemory.verify_log', run_name='__main__')"
    )
    call = [sys.executable, "-c", blocked, str(tmp_path)]
    done = subprocess.run(call, capture_output=True, check=False, text=True)
    assert done.returncode == 2, done.stderr
    assert "Python 3.14" in done.stdout and "pip install backports.zstd" in done.stdout
