"""The command sweeps what has expired, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

from chronomemory import ChronoStore
from chronomemory.cli import app
from typer.testing import CliRunner

OVER, LATER = "2001-01-01T00:00:00Z", "2100-01-01T00:00:00Z"


def swept(project: Path, *options: str) -> dict[str, object]:
    told = CliRunner().invoke(app, ["sweep", "--project", str(project), "--json", *options])
    assert told.exit_code == 0, told.output
    answer: dict[str, object] = json.loads(told.stdout)
    return answer


def test_what_is_over_goes(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        for name, expires in (("over", OVER), ("later", LATER), ("never", None)):
            store.upsert({"id": name, "data": {"expires_at": expires}})
        store.scoped(user="ann").upsert({"id": "ann's", "data": {"expires_at": OVER}})
    nothing = {"erased": None, "new_backup": None, "backup_fault": None}
    assert swept(tmp_path, "--dry-run") == {"ids": ["over"], "dry_run": True, **nothing}
    assert swept(tmp_path)["ids"] == ["over"]
    assert swept(tmp_path)["ids"] == []
    with ChronoStore(tmp_path) as store:
        assert store.get("over").status == "tombstone"
        assert [record.id for record in store.query()] == ["later", "never"]
        store.backup()
    told = swept(tmp_path, "--erase", "--yes", "--user", "ann")
    assert told["ids"] == ["ann's"] and isinstance(told["erased"], int)
    assert Path(str(told["new_backup"])).is_dir() and told["backup_fault"] is None
    with ChronoStore(tmp_path) as store:
        assert store.everyone().get("ann's", expired=True) is None
