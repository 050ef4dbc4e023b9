"""Where each MCP client lists its servers, and edits of those files."""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from chronomemory.errors import ChronoError, InvalidArgument

_BY_HAND = "Correct the file, or add the lines that --print shows by hand; nothing was written."


def _unreadable(reason: str) -> InvalidArgument:
    return InvalidArgument(f"config: {reason}", field="config", recovery=_BY_HAND)


def value_of(text: str, group: str) -> dict[str, Any]:
    """Return the object in a JSON file, which has this group of servers; an empty file is an empty object."""
    try:
        value = json.loads(text) if text.strip() else {}
    except json.JSONDecodeError as error:
        reason = f"line {error.lineno}: {error.msg}; comments and trailing commas are not supported"
        raise _unreadable(reason) from None
    except RecursionError:
        raise _unreadable("the file is nested too deeply") from None
    if not isinstance(value, dict) or not isinstance(value.setdefault(group, {}), dict):
        raise _unreadable(f"an object with an object {group!r} is expected")
    return value


def _json_text(value: dict[str, Any], before: str) -> str:
    indent = re.search(r"^[ \t]+(?=\S)", before, re.MULTILINE)
    return json.dumps(value, indent=indent[0] if indent else 2, ensure_ascii=False) + "\n"


#: Codex gives a server ten seconds to start by default.
_START_SECONDS = 20


@dataclass(frozen=True)
class Client:
    """An MCP client: its name, the key of its servers, and extra fields of an entry."""

    name: str
    group: str
    more: Mapping[str, Any]
    #: Whether its file lies in the project, and where; else in the user's home.
    in_project: str = ""
    then: str = "Start it again, or reload its servers."

    def file(self, project: Path) -> Path:
        if self.in_project:
            return project / self.in_project
        if self.name == "codex":
            return Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex") / "config.toml"
        return _desktop_folder() / "claude_desktop_config.json"

    def entry(self, command: list[str]) -> dict[str, Any]:
        return {**self.more, "command": command[0], "args": command[1:]}

    @property
    def is_toml(self) -> bool:
        return self.name == "codex"

    def with_entry(self, text: str, name: str, entry: dict[str, Any]) -> str:
        if self.is_toml:
            return _toml(text, self.group, name, entry)
        value = value_of(text, self.group)
        if value[self.group].get(name) == entry:
            return text
        value[self.group][name] = entry
        return _json_text(value, text)

    def check_project(self, text: str, name: str, project: Path) -> None:
        """Raise if a server of this name serves another project, in a file that all projects share."""
        parse = _parsed if self.is_toml else partial(value_of, group=self.group)
        listed = {} if self.in_project else parse(text)
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
        if self.is_toml:
            return _toml_without(text, self.group, name)
        value = value_of(text, self.group)
        if value[self.group].pop(name, None) is None:
            return None
        return _json_text(value, text)


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
        raise _unreadable(f"the file is not TOML: {error}") from None


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
    end = next((end for end in ("\r\n", "\n") if after.endswith(end * 2)), "")
    return after.removesuffix(end) if text.startswith(after) else after
