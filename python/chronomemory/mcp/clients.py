"""Where each MCP client lists its servers, and edits of those files that keep comments and order."""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from chronomemory.errors import ChronoError, InvalidArgument

_SPACE = re.compile(r"\s+|//[^\n]*|/\*.*?\*/", re.DOTALL)
_SCALAR = re.compile(r"[^\s,\]}/]+")
#: Comments that follow on the same line.
_BEHIND = re.compile(r"(?:[^\S\n]*/\*[^\n]*?\*/)*(?:[^\S\n]*//[^\n]*)?")
_DEEPEST = 100
_DECODER = json.JSONDecoder()


@dataclass
class _Node:
    """A JSON value: its position, and for an object its members."""

    start: int
    end: int
    value: Any
    members: dict[str, _Member] = field(default_factory=dict)


@dataclass
class _Member:
    start: int
    value: _Node


def _refused(reason: str, at: int, text: str) -> InvalidArgument:
    line = text.count("\n", 0, at) + 1
    return InvalidArgument(
        f"config: line {line}: {reason}",
        field="config",
        recovery="Correct the file by hand, or use --print; nothing was written.",
    )


def _skip(text: str, at: int) -> int:
    while (found := _SPACE.match(text, at)) is not None:
        at = found.end()
    return at


def _scan(text: str, at: int, depth: int = 0) -> _Node:
    """Read the value at a place."""
    if depth > _DEEPEST:
        raise _refused("it is nested too deeply", at, text)
    at = _skip(text, at)
    head = text[at : at + 1]
    if head == "{":
        return _scan_object(text, at, depth)
    if head == "[":
        items, end = [], at + 1
        while text[(end := _skip(text, end)) : end + 1] != "]":
            item = _scan(text, end, depth + 1)
            items.append(item.value)
            end = _comma(text, _skip(text, item.end), "]")
        return _Node(at, end + 1, items)
    if head == '"':
        return _scan_string(text, at)
    found = _SCALAR.match(text, at)
    if found is None:
        raise _refused("a value is expected", at, text)
    try:
        return _Node(at, found.end(), json.loads(found[0]))
    except ValueError:
        raise _refused(f"{found[0][:40]} is no value", at, text) from None


def _scan_string(text: str, at: int) -> _Node:
    try:
        value, end = _DECODER.raw_decode(text, at)
    except ValueError:
        raise _refused("a text does not end, or has a character that JSON does not allow", at, text) from None
    return _Node(at, end, value)


def _scan_object(text: str, at: int, depth: int) -> _Node:
    node, end = _Node(at, at, {}), at + 1
    while text[(end := _skip(text, end)) : end + 1] != "}":
        if not text.startswith('"', end):
            raise _refused("a name in quotes is expected", end, text)
        name = _scan_string(text, end)
        colon = _skip(text, name.end)
        if text[colon : colon + 1] != ":":
            raise _refused("a colon is expected", colon, text)
        value = _scan(text, colon + 1, depth + 1)
        node.members[name.value], node.value[name.value] = _Member(name.start, value), value.value
        end = _comma(text, _skip(text, value.end), "}")
    node.end = end + 1
    return node


def _comma(text: str, at: int, closing: str) -> int:
    if text[at : at + 1] == ",":
        return at + 1
    if text[at : at + 1] != closing:
        raise _refused(f"a comma or {closing} is expected", at, text)
    return at


def _root(text: str) -> _Node:
    node = _scan(text, 0)
    is_object = isinstance(node.value, dict)
    if not is_object or _skip(text, node.end) != len(text):
        raise _refused("one object is expected", node.end if is_object else 0, text)
    return node


def value_of(text: str) -> Any:
    """Return the value of a file; an empty one is an empty object."""
    return _root(text).value if text.strip() else {}


def with_member(text: str, group: str, name: str, value: Any) -> str:
    """Return the text with one member of a group of the outermost object set to a value."""
    if not text.strip():
        return json.dumps({group: {name: value}}, indent=2, ensure_ascii=False) + "\n"
    root = _root(text)
    step = _step(text, root)
    if group not in root.members:
        return _checked(root, _inserted(text, root, group, {name: value}, "", step), group, name, value)
    held = root.members[group].value
    if not isinstance(held.value, dict):
        raise _refused(f"{group} must be an object", held.start, text)
    if name in held.members:
        old = held.members[name].value
        spelled = _spelled(value, step * 2, step)
        return _checked(root, text[: old.start] + spelled + text[old.end :], group, name, value)
    return _checked(root, _inserted(text, held, name, value, step, step), group, name, value)


def without_member(text: str, group: str, name: str) -> str | None:
    """Return the text without one member of a group, or None if there is no such member."""
    if not text.strip():
        return None
    root = _root(text)
    held = root.members.get(group)
    if held is None or name not in held.value.members:
        return None
    member = held.value.members[name]
    start, end = member.start, member.value.end
    before = [each.value.end for each in held.value.members.values() if each.start < member.start]
    after = _skip(text, end)
    kept = text[:start]
    if text[after : after + 1] == ",":
        end = after + 1
    elif before and (comma := _first_comma(text[max(before) : start])) is not None:
        # The last one, without a comma behind it: the one before it goes as well.
        place = max(before) + comma
        kept = text[:place] + text[place + 1 : start]
    line = kept.rfind("\n") + 1
    if line and not kept[line:].strip():
        kept = kept[: line - 1]
    return _checked(root, kept + text[end:], group, name, None)


def _first_comma(gap: str) -> int | None:
    at = _skip(gap, 0)
    return at if gap[at : at + 1] == "," else None


def _inserted(text: str, node: _Node, name: str, value: Any, outer: str, step: str) -> str:
    spelled = f"{outer + step}{json.dumps(name)}: {_spelled(value, outer + step, step)}"
    if not node.members:
        inside = text[node.start + 1 : node.end - 1].rstrip()
        return f"{text[: node.start + 1]}{inside}\n{spelled}\n{outer}{text[node.end - 1 :]}"
    last = max(member.value.end for member in node.members.values())
    comma = _skip(text, last)
    has_comma = text[comma : comma + 1] == ","
    # What is said behind a member on its line stays with it.
    behind = _BEHIND.match(text, comma + 1 if has_comma else last)
    place = last if behind is None else behind.end()
    if has_comma:
        return f"{text[:place]}\n{spelled},{text[place:]}"
    return f"{text[:last]},{text[last:place]}\n{spelled}{text[place:]}"


def _spelled(value: Any, indent: str, step: str) -> str:
    lines = json.dumps(value, indent=step or 2, ensure_ascii=False).splitlines()
    return "\n".join([lines[0], *(f"{indent}{line}" for line in lines[1:])])


def _step(text: str, root: _Node) -> str:
    """Return by how much the file indents."""
    first = min((member.start for member in root.members.values()), default=0)
    indent = text[text.rfind("\n", 0, first) + 1 : first]
    return indent if indent and not indent.strip() else "  "


def _checked(before: _Node, after: str, group: str, name: str, value: Any) -> str:
    """Return the new text once it is sure that nothing else has changed in it."""
    expected = {**before.value, group: {**before.value.get(group, {})}}
    if value is None:
        expected[group].pop(name)
    else:
        expected[group][name] = value
    if value_of(after) != expected:
        raise _refused("it is written in a way that cannot be changed safely", 0, after)
    return after


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
        """Return the entry of a server."""
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
    """Return the text of the entry, to be added by hand."""
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
