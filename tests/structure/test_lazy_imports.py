"""A module is imported when it is used first, and annotations can be evaluated all the same."""

from __future__ import annotations

import inspect
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_type_hints

import chronomemory
import pytest


def loaded_by(script: str) -> set[str]:
    """Run a script in a fresh interpreter, and return the modules that it has loaded."""
    finished = subprocess.run(
        [sys.executable, "-c", f"{script}\nimport sys; print(*sys.modules)"],
        capture_output=True,
        check=True,
        text=True,
    )
    return set(finished.stdout.splitlines()[-1].split())


def test_the_package_alone_loads_next_to_nothing() -> None:
    loaded = loaded_by("import chronomemory")
    assert not loaded & {"numpy", "pydantic", "rich", "typer", "typing"}
    assert {name for name in loaded if name.startswith("chronomemory")} == {"chronomemory"}
    assert "numpy" not in loaded_by("from chronomemory import ChronoStore")
    assert "pydantic" not in loaded_by("from chronomemory import ChronoStore, DepGraph, EsdbBridge")


def test_a_command_loads_what_it_needs() -> None:
    run = (
        "from typer.testing import CliRunner\nfrom chronomemory.cli import app\nCliRunner().invoke(app, {!r})"
    )
    assert not loaded_by(run.format(["--version"])) & {"numpy", "pydantic", "rich.text", "chronomemory.store"}
    assert not loaded_by(run.format(["get", "A"])) & {"numpy", "chronomemory.blocks"}
    assert "chronomemory.blocks" in loaded_by(run.format(["recall", "--help"]))


def test_the_version_is_shown_without_the_command_line() -> None:
    run = (
        "import sys\nsys.argv = ['chronomemory', '--version']\nfrom chronomemory.__main__ import main\nmain()"
    )
    assert not loaded_by(run) & {"typer", "typing", "chronomemory.cli"}


def test_an_interrupt_during_the_import_ends_the_command_quietly(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt")
    finished = subprocess.run(
        [sys.executable, "-m", "chronomemory", "status"],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert (finished.returncode, finished.stdout, finished.stderr) == (130, b"", b"")


def public_functions(name: str) -> Iterator[object]:
    """Yield what a public name is, and the public methods and properties if it is a class."""
    found = getattr(chronomemory, name)
    if isinstance(found, type):
        yield found
        for attribute in dir(found):
            member = inspect.getattr_static(found, attribute)
            member = getattr(member, "fget", None) or getattr(member, "__func__", member)
            if inspect.isfunction(member) and (not attribute.startswith("_") or attribute == "__init__"):
                yield member
    elif inspect.isfunction(found):
        yield found


@pytest.mark.parametrize("name", chronomemory.__all__)
def test_annotations_of_public_names_can_be_evaluated(name: str) -> None:
    """For frameworks that make schemas of functions: no annotation names what only type checkers import."""
    for function in public_functions(name):
        assert isinstance(get_type_hints(function), dict)


def test_numbers_are_loaded_with_the_first_vector(tmp_path: Path) -> None:
    use = (
        "import sys\nfrom chronomemory import ChronoStore\n"
        f"with ChronoStore({str(tmp_path)!r}) as store:\n"
        "    store.upsert({'id': 'A', 'data': {'n': 1}})\n"
        "    assert store.query(where={'data.n': {'in': [1, 2.5]}}, limit=1) and store.search('A') == []\n"
        "    assert 'numpy' not in sys.modules\n"
        "    store.vectors.attach('A', [1.0, 0.0], model='m')\n"
        "    assert 'numpy' in sys.modules\n"
        "    assert [hit.record_id for hit in store.vectors.nearest([1.0, 0.0])] == ['A']\n"
    )
    assert "numpy" in loaded_by(use)


def test_files_that_another_package_replaced_are_noticed(tmp_path: Path) -> None:
    """Files are missing after a package with the same import name was installed over this one and removed."""
    package = Path(chronomemory.__file__).parent
    broken = tmp_path / "chronomemory"
    shutil.copytree(package, broken, ignore=shutil.ignore_patterns("*.so", "__pycache__", "store.py"))
    script = "import chronomemory\ntry: chronomemory.ChronoStore\nexcept ImportError as error: print(error)"
    finished = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{script}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "No module named 'chronomemory.store'" in finished.stdout
    assert "pip uninstall chronomemory chronomemory-rs; pip install chronomemory-rs" in finished.stdout


def test_episodes_are_loaded_on_use_and_their_parsers_with_the_first_rule() -> None:
    assert "chronomemory.episodes" not in loaded_by("from chronomemory import ChronoStore")
    assert not loaded_by("from chronomemory import Memory") & {"sqlglot", "cronsim", "agents"}
    loaded = loaded_by("from chronomemory.episodes import ChronoMemoryStore, ConsolidationRunner")
    assert "chronomemory.episodes.memory" in loaded
    assert not loaded & {"sqlglot", "cronsim", "agents", "chronomemory.blocks"}
    run = (
        "from typer.testing import CliRunner\nfrom chronomemory.cli import app\nCliRunner().invoke(app, {!r})"
    )
    assert "chronomemory.episodes" not in loaded_by(run.format(["get", "A"]))
    assert "chronomemory.episodes" in loaded_by(run.format(["episodes", "--help"]))


def test_pages_are_loaded_on_use() -> None:
    assert not loaded_by("from chronomemory import ChronoStore, Memory") & {
        "chronomemory.pages",
        "ruamel.yaml",
    }
    loaded = loaded_by("from chronomemory.pages import Pages")
    assert "ruamel.yaml" in loaded
    assert not loaded & {"pydantic", "chronomemory.blocks", "chronomemory.episodes", "chronomemory.graph"}


def test_a_graph_is_loaded_on_use() -> None:
    assert "chronomemory.graph" not in loaded_by("from chronomemory import ChronoStore, Memory")
    loaded = loaded_by("from chronomemory.graph import Workspace")
    assert not loaded & {"networkx", "pydantic", "chronomemory.blocks", "chronomemory.episodes"}
    run = (
        "from typer.testing import CliRunner\nfrom chronomemory.cli import app\nCliRunner().invoke(app, {!r})"
    )
    assert "chronomemory.graph" not in loaded_by(run.format(["get", "A"]))
    assert "chronomemory.graph" in loaded_by(run.format(["workspace", "--help"]))


def test_the_server_is_loaded_when_it_serves_and_by_nothing_else() -> None:
    sdk = {"mcp", "mcp_types", "anyio", "starlette", "uvicorn"}
    asked = "from chronomemory import ChronoStore, Memory, EsdbBridge\nimport chronomemory.cli.doctor"
    assert not loaded_by(asked) & {*sdk, "chronomemory.mcp.server", "chronomemory.mcp.toolbox"}
    run = (
        "from typer.testing import CliRunner\nfrom chronomemory.cli import app\nCliRunner().invoke(app, {!r})"
    )
    loaded = loaded_by(run.format(["mcp", "install", "cursor", "--print"]))
    assert "chronomemory.mcp.clients" in loaded
    assert not loaded & {*sdk, "tomlkit"}
    # It starts without the extra of the pages, which the first call that asks for them loads.
    assert not loaded_by("import chronomemory.mcp.server") & {"chronomemory.pages", "ruamel.yaml"}


def test_a_server_loads_the_modules_of_the_tools_that_are_called(tmp_path: Path) -> None:
    """The first answer of a search waits for no module of vectors, blocks or the terminal."""
    pytest.importorskip("mcp.server", reason="the extra mcp is not installed")
    use = (
        "import asyncio, sys\nfrom chronomemory import ChronoStore, Scope\n"
        "from chronomemory.cli.serving import server_module\n"
        "from chronomemory.mcp.served_store import ServedStore\n"
        "module = server_module()\nfrom mcp import Client\n"
        "async def ask(served):\n"
        "    async with Client(module.make_server(served)) as client:\n"
        "        answer = await client.call_tool('search_memories', {'query': 'tea'})\n"
        "        assert 'nothing found' in answer.content[0].text, answer\n"
        "        unasked = {'numpy', 'rich.text', 'chronomemory.blocks', 'chronomemory.pages'}\n"
        "        assert not unasked & set(sys.modules), unasked & set(sys.modules)\n"
        "        answer = await client.call_tool('add_memory', {'content': 'Tea at four'})\n"
        "        assert 'added' in answer.content[0].text, answer\n"
        f"with ChronoStore({str(tmp_path)!r}) as store:\n    asyncio.run(ask(ServedStore(store, Scope())))\n"
    )
    assert {"numpy", "chronomemory.blocks"} <= loaded_by(use)


def test_the_models_of_the_protocol_are_finished_when_they_are_used() -> None:
    """There are hundreds, for every version of the protocol; afterwards models are made as ever."""
    pytest.importorskip("mcp.server", reason="the extra mcp is not installed")
    use = (
        "from chronomemory.cli.serving import server_module\nserver_module()\n"
        "import mcp_types, pydantic\n"
        "made = [each for each in vars(mcp_types).values()"
        " if isinstance(each, type) and issubclass(each, pydantic.BaseModel)]\n"
        "waiting = [each for each in made if not each.__pydantic_complete__]\n"
        "assert len(waiting) > len(made) / 2 > 50, (len(waiting), len(made))\n"
        "assert mcp_types.TextContent(type='text', text='tea').text == 'tea'\n"
        "class Ours(pydantic.BaseModel):\n    name: str\n"
        "assert Ours.__pydantic_complete__ and 'defer_build' not in pydantic.BaseModel.model_config\n"
    )
    assert "mcp_types" in loaded_by(use)


def test_every_name_is_there_and_no_other() -> None:
    for name in chronomemory.__all__:
        assert getattr(chronomemory, name) is not None
    assert set(chronomemory.__all__) <= set(dir(chronomemory))
    homes = {name for names in chronomemory._HOMES.values() for name in names}
    assert homes | chronomemory._MODULES == set(chronomemory.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'Missing'"):
        _ = chronomemory.Missing


def test_the_class_of_the_readme_is_at_the_root() -> None:
    assert chronomemory.Memory is sys.modules["chronomemory.memory"].Memory
    assert chronomemory.query.what_is_known.__module__ == "chronomemory.compat.query"
