"""Whoever has the wheel can check a log without the engine."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from chronomemory import ChronoStore
from verdicts import verify_log

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


def test_it_takes_no_huge_file_into_memory(
    store: ChronoStore, tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.upsert({"id": "A"})
    store.compact()
    store.close()
    assert verify_log.verify_folder(tmp_path)["valid"]
    monkeypatch.setattr(verify_log.NAMED, "MOST_STATE_BYTES", 100)
    with pytest.raises(OSError, match="at most 0 MiB are read, and it is larger"):
        verify_log.verify_folder(tmp_path)
    os.truncate(log.with_name("synced"), 1 << 40)
    assert verify_log.verify_log_alone(log)["valid"]
    assert len(verify_log.NAMED.read_hint(log.with_name("synced"))) == 121


def test_a_text_of_escapes_takes_little_memory_to_parse() -> None:
    raw = b'["' + b"\\n" * 500_000 + b'", "\\\\\\"[[["]'
    tracemalloc.start()
    try:
        assert verify_log.parse(raw, 1)[1] == '\\"[[['
        assert tracemalloc.get_traced_memory()[1] < 8 * len(raw)
    finally:
        tracemalloc.stop()


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
