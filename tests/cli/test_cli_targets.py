"""A command that writes a file harms nothing that it was not asked to replace."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from chronomemory import ChronoStore
from chronomemory.blocks import Memory
from cli_answer import Answer, Run

Writes = Callable[..., Answer]


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    project = tmp_path
    with Memory(project) as memory:
        memory.learn("Ice is cold")
    with ChronoStore(project) as store:
        store.upsert({"id": "A"})
    return project


@pytest.fixture(params=["export", "graph"])
def writes(request: pytest.FixtureRequest, run: Run, filled: Path) -> Writes:
    """Both commands that write a file where the caller says."""
    words = {"export": ("export",), "graph": ("blocks", "graph", "--html")}[request.param]
    return lambda *args: run(*words, *args)


def test_what_lies_beside_the_target_stays(writes: Writes, filled: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("mine")
    for name in ("out.tmp", "out.part"):
        (tmp_path / name).write_text("mine too")
    (tmp_path / "out2.tmp").symlink_to(secret)
    assert writes(tmp_path / "out").code == 0
    assert writes(tmp_path / "out2").code == 0
    assert (tmp_path / "out").stat().st_size > 0
    assert secret.read_text() == "mine"
    assert {(tmp_path / name).read_text() for name in ("out.tmp", "out.part")} == {"mine too"}
    assert (tmp_path / "out2.tmp").is_symlink()
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {".chronomemory", "secret", "out", "out.tmp", "out.part", "out2", "out2.tmp"}


def test_a_file_is_replaced_only_if_asked(writes: Writes, tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.write_text("mine")
    answer = writes(target)
    assert answer.code == 2
    assert "--force" in answer.stderr
    assert target.read_text() == "mine"
    assert writes(target, "--force").code == 0
    assert target.read_text() != "mine"


def test_a_link_is_not_written_through(writes: Writes, tmp_path: Path) -> None:
    there, target = tmp_path / "there", tmp_path / "out"
    there.write_text("mine")
    target.symlink_to(there)
    assert writes(target).code == 2
    assert writes(target, "--force").code == 0
    assert there.read_text() == "mine"
    assert not target.is_symlink()
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    assert writes(tmp_path / "dangling").code == 2
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("name", ["events.wal", "lock", "synced", "new", "base/x", "backup/new"])
def test_no_store_is_written_into(writes: Writes, filled: Path, name: str) -> None:
    target = filled / ".chronomemory" / name
    target.parent.mkdir(exist_ok=True)
    before = target.read_bytes() if target.exists() else None
    link = filled / "link"
    link.symlink_to(filled / ".chronomemory")
    for way in (target, link / name):
        answer = writes(way, "--force")
        assert answer.code == 2
        assert "folder of a store" in answer.stderr
    assert (target.read_bytes() if target.exists() else None) == before
    with ChronoStore(filled) as store:
        assert store.chain_valid()
        saved = Path(store.backup())
    kept = (saved / "events.wal").read_bytes()
    assert writes(saved / "events.wal", "--force").code == 2
    assert (saved / "events.wal").read_bytes() == kept


def test_what_is_no_file_is_left_alone(writes: Writes, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert writes(pipe).code == 2
    assert writes(pipe, "--force").code == 2
    assert pipe.is_fifo()


def test_a_folder_that_is_not_there(writes: Writes, tmp_path: Path) -> None:
    answer = writes(tmp_path / "no" / "out")
    assert answer.code == 1
    assert "No such file" in answer.stderr


@pytest.mark.parametrize(("store", "file"), [(0o700, 0o600), (0o755, 0o640), (0o2770, 0o660)])
def test_a_new_file_is_as_private_as_the_store(
    writes: Writes, filled: Path, tmp_path: Path, store: int, file: int
) -> None:
    (filled / ".chronomemory").chmod(store)
    before = os.umask(0o027)
    try:
        assert writes(tmp_path / "out").code == 0
        assert (tmp_path / "out").stat().st_mode & 0o777 == file
        (tmp_path / "out").chmod(0o604)
        assert writes(tmp_path / "out", "--force").code == 0
    finally:
        os.umask(before)
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o604
