"""Damage to what others hold is told by file, kind and count, and never by id or text."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from assistants import Talk, with_served
from chronomemory import ChronoStore, LogCorrupted, Memory, Scope
from chronomemory.cli import app
from chronomemory.graph import Workspace
from chronomemory.mcp.served_store import ServedStore
from chronomemory.pages import Pages
from typer.testing import CliRunner

SECRET = "zebra"
ROWS = "vectors/default.0.f32"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A store of two users whose last rows, lines and documents are bob's."""
    with ChronoStore(tmp_path) as store:
        ann, bob = store.scoped(user="ann"), store.scoped(user="bob")
        ann.upsert({"id": "A-1", "label": "green tea"})
        ann.vectors.attach("A-1", [1.0, 0.0], model="m")
        bob.upsert_many([{"id": f"{SECRET}-{n}", "label": f"{SECRET} word {n}"} for n in range(5)])
        bob.vectors.attach_many([f"{SECRET}-{n}" for n in range(5)], np.ones((5, 2), dtype=np.float32))
        Memory(store, user="ann").remember("Ann likes tea")
        with Pages(store, tmp_path / "anns", user="ann") as pages:
            pages.append("user-profile", "Ann likes tea.", ["tea"])
    return tmp_path


def alter_rows(project: Path) -> None:
    rows = project / ".chronomemory" / ROWS
    rows.write_bytes(rows.read_bytes()[:8] + b"\x01" * 24 + rows.read_bytes()[32:])


def cut_rows(project: Path) -> None:
    rows = project / ".chronomemory" / ROWS
    rows.write_bytes(rows.read_bytes()[:20])


def alter_line(project: Path) -> None:
    log = project / ".chronomemory" / "events.wal"
    log.write_bytes(log.read_bytes().replace(f"{SECRET} word 3".encode(), f"{SECRET} word 8".encode()))


def cut_line(project: Path) -> None:
    log = project / ".chronomemory" / "events.wal"
    log.write_bytes(log.read_bytes().replace(f'"{SECRET} word 3"'.encode(), f'"{SECRET}'.encode()))


def take_scope(project: Path) -> None:
    """Bring in a record whose scope is malformed: no damage, but the report of the store names it."""
    rows = project / "rows.ndjson"
    rows.write_text(json.dumps({"id": f"{SECRET}-9", "data": {"@scope": "none"}}) + "\n")
    with ChronoStore(project) as store:
        store.engine.unscoped().ingest(rows, faces=True)


def words_of(error: BaseException) -> str:
    return f"{error!s} {error!r} {vars(error)}"


def heard_by_ann(project: Path, caplog: pytest.LogCaptureFixture) -> dict[str, str]:
    """Everything that is said to ann by handles, servers, commands, warnings and logs."""
    told: dict[str, str] = {}

    def ask(name: str, work: Callable[[], Any]) -> None:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            try:
                said = str(work())
            except Exception as error:
                said = words_of(error)
        told[name] = f"{said} {[str(each.message) for each in heard]}"

    with caplog.at_level(logging.DEBUG):
        store = ChronoStore(project)
        ask("open", store.open)
        ann = store.scoped(user="ann")
        for name, work in {
            "query": lambda: ann.query(status=None, faces=True),
            "search": lambda: ann.search("green tea", [1.0, 0.1], explain=True),
            "nearest": lambda: ann.vectors.nearest([1.0, 0.1], k=9),
            "matrix": ann.vectors.matrix,
            "spaces": ann.vectors.spaces,
            "embedding": lambda: ann.vectors.get(f"{SECRET[:3]}-1"),
            "own": lambda: ann.vectors.get("A-1"),
            "history": lambda: ann.history("A-1"),
            "as_of": lambda: ann.as_of(store.wal_seq()).query(),
            "changed": lambda: ann.changed_since(1),
            "why": lambda: ann.why("A-1"),
            "health": store.health,
            "recall": lambda: Memory(store, user="ann").recall("tea"),
            "status": lambda: Memory(store, user="ann").status(),
        }.items():
            ask(name, work)

        def of_folder() -> Any:
            with Pages(store, project / "anns", user="ann") as pages:
                return pages.sync(), pages.list()

        def of_graph() -> Any:
            with Workspace.create(project, user="ann") as workspace:
                return workspace.diagnose()

        ask("pages", of_folder)
        ask("graph", of_graph)
        served = ServedStore(store, Scope(user="ann"))
        for tool, arguments in (("verify", {}), ("search_memories", {"query": "tea"}), ("list_memories", {})):

            async def call(talk: Talk, tool: str = tool, arguments: Any = arguments) -> Any:
                return (await talk.raw(tool, **arguments)).model_dump(mode="json")

            ask(f"mcp {tool}", lambda call=call: with_served(served, call))
        store.close()
        ask("strict", lambda: ChronoStore(project, strict=True).scoped(user="ann").query())
        for command in (
            ("query", "--user", "ann"),
            ("search", "tea", "--user", "ann"),
            ("get", "A-1", "--user", "ann"),
            ("put", "A-2", "--label", "more tea", "--user", "ann"),
            ("export", "-", "--user", "ann"),
            ("recall", "tea", "--user", "ann"),
            ("blocks", "status", "--user", "ann"),
            ("pages", "sync", "--user", "ann", "--folder", "anns"),
        ):
            for form in ((), ("--json",)):
                done = CliRunner().invoke(app, [*command, *form, "--project", str(project)])
                told[" ".join(("cli", *command, *form))] = f"{done.stdout} {done.stderr} {done.exception!r}"
    told["log"] = "\n".join(record.getMessage() for record in caplog.records)
    return told


DAMAGES = [alter_rows, cut_rows, alter_line, cut_line, take_scope]


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_nothing_that_ann_is_told_names_what_is_damaged_of_bob(
    project: Path, caplog: pytest.LogCaptureFixture, damage: Callable[[Path], None]
) -> None:
    damage(project)
    told = heard_by_ann(project, caplog)
    leaks = {
        name: said[max(said.find(SECRET) - 120, 0) :][:300] for name, said in told.items() if SECRET in said
    }
    assert leaks == {}
    assert "green tea" in told["query"]
    if damage is alter_rows:
        assert f"{ROWS}: row-altered, 3 places" in told["mcp verify"]


def test_the_store_itself_names_the_record_of_a_damaged_row(project: Path) -> None:
    """Who looks after the store is told; it is no part of the text that others are shown."""
    alter_rows(project)
    with ChronoStore(project) as store:
        damage = store.verify().damage
        assert [item.id for item in damage] == [f"{SECRET}-{n}" for n in range(3)]
        assert not any(SECRET in str(item) or SECRET in item.reason for item in damage)
        with pytest.raises(LogCorrupted) as refused:
            store.scoped(user="bob").vectors.get(f"{SECRET}-0")
        assert SECRET not in str(refused.value)
    shown = CliRunner().invoke(app, ["verify", "--project", str(project)], env={"COLUMNS": "200"})
    assert f'id "{SECRET}-0"' in shown.stdout
