"""A store on a network file system is told from a local one."""

from __future__ import annotations

from pathlib import Path

import pytest
from chronomemory import ChronoStore
from chronomemory.layout import network_file_system


@pytest.fixture
def mounts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    table = tmp_path / "mountinfo"
    share = str(tmp_path / "on the share").replace(" ", "\\040")
    table.write_text(
        "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
        f"40 22 0:44 / {share} rw - nfs4 server:/export rw\n"
        f"41 40 8:2 / {share}/local rw - xfs /dev/sdb1 rw\n"
        "broken\n"
    )
    monkeypatch.setattr("chronomemory.layout._MOUNTS", table)
    return tmp_path / "on the share"


def test_the_nearest_mount_counts(mounts: Path) -> None:
    assert network_file_system(mounts / "project") == "nfs4"
    assert network_file_system(mounts / "local" / "project") is None
    assert network_file_system(mounts.parent / "elsewhere") is None


def test_opening_there_warns(mounts: Path) -> None:
    with pytest.warns(RuntimeWarning, match="nfs4"):
        ChronoStore(mounts / "project").open().close()


def test_a_system_without_such_a_list_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chronomemory.layout._MOUNTS", tmp_path / "none")
    assert network_file_system(tmp_path) is None
