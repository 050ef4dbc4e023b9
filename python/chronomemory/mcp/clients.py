"""Where each client keeps its servers, and how ours is entered there and taken out again."""

from __future__ import annotations

import importlib
import os
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from chronomemory.errors import ChronoError, InvalidArgument
from chronomemory.mcp.jsonc import value_of, with_member, without_member

__all__ = ["CLIENTS", "Client", "command_of", "entry_of"]

#: Codex gives a server ten seconds to start unless told otherwise.
_START_SECONDS = 20


@dataclass(frozen=True)
class Client:
    """One client: its name, the group that its servers stand in, and what it asks for beside a command."""

    name: str
    group: str
    more: Mapping[str, Any]
    #: Whether its file lies in the project, and where; else in the user's home.
    in_project: str = ""
    #: What to do after a change.
    then: str = "Start it again, or reload its servers."

    def file(self, project: Path) -> Path:
        """Return where its servers are listed."""
        if self.in_project:
            return project / self.in_project
        if self.name == "codex":
            return Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex") / "config.toml"
        return _desktop_folder() / "claude_desktop_config.json"

    def entry(self, command: list[str]) -> dict[str, Any]:
        """Return what is listed of a server."""
        return {**self.more, "command": command[0], "args": command[1:]}

    @property
    def is_toml(self) -> bool:
        """Whether its file is TOML; the others are JSON, perhaps with comments."""
        return self.name == "codex"

    def with_entry(self, text: str, name: str, entry: dict[str, Any]) -> str:
        """Return its file with a server entered, or changed."""
        return (
            _toml(text, self.group, name, entry)
            if self.is_toml
            else with_member(text, self.group, name, entry)
        )

    def check_project(self, text: str, name: str, project: Path) -> None:
        """Raise if a server of this name serves another project, in a file that all projects share."""
        listed = {} if self.in_project else _parsed(text).unwrap() if self.is_toml else value_of(text)
        args = listed.get(self.group, {}).get(name, {}).get("args", [])
        other = next((Path(value) for flag, value in pairwise(args) if flag == "--project"), project)
        if other != project and other.is_dir():
            raise InvalidArgument(
                f"name: {self.name} lists the servers of all projects in one file, "
                f"and {name!r} there serves {other}",
                field="name",
                recovery=f"Give another name, such as --name {name}-{project.name}; nothing was written.",
            )

    def without_entry(self, text: str, name: str) -> str | None:
        """Return its file without a server; None if it is not there."""
        return (
            _toml_without(text, self.group, name) if self.is_toml else without_member(text, self.group, name)
        )


def _desktop_folder() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "Claude"
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming") / "Claude"
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "Claude"


_ALL = (
    Client(
        "claude-code",
        "mcpServers",
        {},
        ".mcp.json",
        "Start Claude Code in the project and let it use the server.",
    ),
    Client("claude-desktop", "mcpServers", {}, then="Quit Claude Desktop completely and start it again."),
    Client("cursor", "mcpServers", {}, ".cursor/mcp.json"),
    Client("vscode", "servers", {"type": "stdio"}, ".vscode/mcp.json"),
    Client("codex", "mcp_servers", {"startup_timeout_sec": _START_SECONDS}),
)
CLIENTS = {client.name: client for client in _ALL}


def command_of(project: Path, options: list[str]) -> list[str]:
    """Return how a client starts the server: by absolute paths, for it starts us from anywhere."""
    return [*_command(), "mcp", "--project", str(project.absolute()), *options]


def _command() -> list[str]:
    # INVARIANT: clients start a server in the folder of a project, which may be a stranger's. `python -m`
    # would import from there whatever is called as a module of the SDK; a script does not, nor does -P, which
    # Python 3.10 has not: there only the script is safe.
    running = Path(sys.argv[0]).absolute()
    for script in (running, Path(sysconfig.get_path("scripts")) / "chronomemory"):
        if script.stem == "chronomemory" and script.is_file():
            return [str(script)]
    return [sys.executable, *(["-P"] if sys.version_info >= (3, 11) else []), "-m", "chronomemory"]


def entry_of(client: Client, command: list[str], name: str) -> str:
    """Return the lines that belong into the file, for whoever wants to put them there by hand."""
    return client.with_entry("", name, client.entry(command))


def _tomlkit() -> Any:
    try:
        return importlib.import_module("tomlkit")
    except ImportError:
        raise ChronoError(
            "to edit TOML and keep its comments, tomlkit is needed",
            recovery='Install it with: pip install "chronomemory-rs[mcp]"',
        ) from None


def _parsed(text: str) -> Any:
    toml = _tomlkit()
    try:
        return toml.parse(text)
    except toml.exceptions.ParseError as error:
        raise InvalidArgument(
            f"config: it is no TOML: {error}",
            field="config",
            recovery="Correct the file by hand, or use --print; nothing was written.",
        ) from None


def _toml(text: str, group: str, name: str, entry: dict[str, Any]) -> str:
    toml, document = _tomlkit(), _parsed(text)
    if group not in document:
        document[group] = toml.table(is_super_table=True)
    table = toml.table()
    for key, value in entry.items():
        table.add(key, value)
    document[group][name] = table
    return str(toml.dumps(document))


def _toml_without(text: str, group: str, name: str) -> str | None:
    document = _parsed(text)
    if name not in document.get(group, {}):
        return None
    del document[group][name]
    if not document[group]:
        del document[group]
    after = str(_tomlkit().dumps(document))
    # The blank line in front of the last table came with it.
    end = next((end for end in ("\r\n", "\n") if after.endswith(end * 2)), "")
    return after.removesuffix(end) if text.startswith(after) else after
