"""Opens a graph workspace for a command, with the arguments that all of these share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from chronomemory._core import canonical_json, parse_json
from chronomemory.cli.output import Output
from chronomemory.cli.session import RefusedError, session
from chronomemory.graph import ApprovalRequired, GraphError, Workspace
from chronomemory.graph.models import Model
from chronomemory.layout import read_bounded

__all__ = ["Folder", "JsonFile", "Opened", "listed_as_json", "names_of", "opened", "read_json"]

Folder = Annotated[Path, typer.Argument(metavar="DIR", file_okay=False, help="The folder of the workspace.")]
JsonFile = Annotated[Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="A JSON file.")]
#: A larger envelope is not read: its values take many times its bytes.
_MOST_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Opened:
    """A workspace, and where answers go."""

    it: Workspace
    out: Output


@contextmanager
def opened(
    folder: Path,
    as_json: bool,
    names: Mapping[str, str | None],
    *,
    create: bool = False,
) -> Iterator[Opened]:
    """Lend a workspace; what this face refuses is an error of the arguments."""
    given: dict[str, Any] = {level: name for level, name in names.items() if name is not None}
    with session(folder, as_json) as here:
        try:
            opener = Workspace.create if create else Workspace.open
            with opener(folder, **given) as made:
                yield Opened(made, here.out)
        except ApprovalRequired:
            raise
        except GraphError as error:
            raise RefusedError(str(error), recovery=error.recovery) from None


def names_of(user: str | None, agent: str | None, in_session: str | None) -> dict[str, str | None]:
    return {"user": user, "agent": agent, "session": in_session}


def listed_as_json(out: Output, items: Iterable[Model]) -> None:
    out.lines(canonical_json(item.to_dict()) for item in items)


def read_json(path: Path) -> Any:
    try:
        return parse_json(read_bounded(path, _MOST_BYTES))
    except ValueError as error:
        raise RefusedError(f"{path} is not JSON: {error}") from None
