"""What all tests share: a project folder, a store in it, and a look at the bytes on disk."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from chronomemory import ChronoStore
from chronomemory.engines import ENGINES
from tampering import SEEN

Contents = Callable[[Path], "dict[str, bytes]"]


@pytest.fixture(scope="session", autouse=True)
def state_of_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The same for stores that several tests share."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state-of-session")))
        yield


@pytest.fixture(autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep what stores remember outside their projects away from the person who runs the tests."""
    folder = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return folder


@pytest.fixture(autouse=True)
def engines(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let two stores of a test be as far apart as two processes, unless it is about those that share."""
    share = request.node.get_closest_marker("shared_engines") is not None
    ENGINES.are_shared = share or request.config.getoption("--shared-engines")
    events = request.config.getoption("--seal")
    # Damage to what is sealed is found later than when the store is opened.
    is_sealed = events and request.node.get_closest_marker("damaged_before_opening") is None
    ENGINES.seal = (events, 1, 1) if is_sealed else None
    yield
    ENGINES.are_shared = True


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer a run in which the stores of all tests share engines, as they do outside of tests."""
    parser.addoption("--shared-engines", action="store_true", help="stores on one folder share an engine")
    parser.addoption("--seal", type=int, default=0, help="seal the state of every store after so many events")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ChronoStore]:
    with ChronoStore(tmp_path) as opened:
        yield opened


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / ".chronomemory" / "events.wal"


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that others may look into."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    # A store is private unless its folder is open: then what comes into it is open as well.
    (folder / ".chronomemory").mkdir(mode=0o755)
    (folder / ".chronomemory").chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def contents() -> Contents:
    """Return every file below a folder with its bytes, to prove that nothing was touched."""

    def read(root: Path) -> dict[str, bytes]:
        files = (path for path in sorted(root.rglob("*")) if path.is_file())
        return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}

    return read


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show the tamper matrix to whoever runs the tests, passed or not."""
    rows = config.stash.get(SEEN, [])
    if rows:
        terminalreporter.section("tamper matrix: what verify() says")
        for attack, rung, found, remark in [("attack", "rung", "verdict", ""), *rows]:
            terminalreporter.line(f"{attack:34}{rung:12}{found:26}{remark}".rstrip())
