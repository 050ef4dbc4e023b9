"""Is only that loaded which somebody asks for?"""

from __future__ import annotations

import subprocess
import sys

import chronomemory
import pytest


def loaded_by(script: str) -> set[str]:
    """Run a script in a fresh interpreter, and return the modules that it has loaded."""
    told = subprocess.run(
        [sys.executable, "-c", f"{script}\nimport sys; print(*sys.modules)"],
        capture_output=True,
        check=True,
        text=True,
    )
    return set(told.stdout.splitlines()[-1].split())


def test_the_package_alone_loads_next_to_nothing() -> None:
    loaded = loaded_by("import chronomemory")
    assert not loaded & {"numpy", "pydantic", "rich", "typer", "chronomemory._core", "chronomemory.store"}
    assert "numpy" in loaded_by("from chronomemory import ChronoStore")
    assert "pydantic" not in loaded_by("from chronomemory import ChronoStore, DepGraph, EsdbBridge")


def test_a_command_loads_what_it_needs() -> None:
    run = (
        "from typer.testing import CliRunner\nfrom chronomemory.cli import app\nCliRunner().invoke(app, {!r})"
    )
    assert not loaded_by(run.format(["--version"])) & {"numpy", "pydantic", "chronomemory.store"}
    assert "chronomemory.blocks" not in loaded_by(run.format(["get", "A"]))
    assert "chronomemory.blocks" in loaded_by(run.format(["recall", "--help"]))


def test_episodes_are_loaded_when_somebody_asks_and_their_parsers_when_a_rule_does() -> None:
    assert "chronomemory.episodes" not in loaded_by("from chronomemory import ChronoStore, Memory")
    loaded = loaded_by("from chronomemory.episodes import ChronoMemoryStore, ConsolidationRunner")
    assert "chronomemory.episodes.memory" in loaded
    assert not loaded & {"sqlglot", "cronsim", "agents", "chronomemory.blocks"}
    run = (
        "from typer.testing import CliRunner\nfrom chronomemory.cli import app\nCliRunner().invoke(app, {!r})"
    )
    assert "chronomemory.episodes" not in loaded_by(run.format(["get", "A"]))
    assert "chronomemory.episodes" in loaded_by(run.format(["episodes", "--help"]))


def test_pages_are_loaded_when_somebody_asks() -> None:
    assert not loaded_by("from chronomemory import ChronoStore, Memory") & {
        "chronomemory.pages",
        "ruamel.yaml",
    }
    loaded = loaded_by("from chronomemory.pages import Pages")
    assert "ruamel.yaml" in loaded
    assert not loaded & {"pydantic", "chronomemory.blocks", "chronomemory.episodes", "chronomemory.graph"}


def test_a_graph_is_loaded_when_somebody_asks() -> None:
    assert "chronomemory.graph" not in loaded_by("from chronomemory import ChronoStore, Memory")
    loaded = loaded_by("from chronomemory.graph import Workspace")
    assert not loaded & {"networkx", "pydantic", "chronomemory.blocks", "chronomemory.episodes"}
    run = (
        "from typer.testing import CliRunner\nfrom chronomemory.cli import app\nCliRunner().invoke(app, {!r})"
    )
    assert "chronomemory.graph" not in loaded_by(run.format(["get", "A"]))
    assert "chronomemory.graph" in loaded_by(run.format(["workspace", "--help"]))


def test_every_name_is_there_and_no_other() -> None:
    for name in chronomemory.__all__:
        assert getattr(chronomemory, name) is not None
    assert set(chronomemory.__all__) <= set(dir(chronomemory))
    homes = {name for names in chronomemory._HOMES.values() for name in names}
    assert homes | chronomemory._MODULES == set(chronomemory.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'Nobody'"):
        _ = chronomemory.Nobody


def test_the_class_that_the_readme_sells_is_at_the_root() -> None:
    assert chronomemory.Memory is sys.modules["chronomemory.blocks"].Memory
    assert chronomemory.query.what_is_known.__module__ == "chronomemory.query"
