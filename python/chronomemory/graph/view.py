"""The folder of a workspace: files that show what the log says, for people and other programs.

It is a view: nothing is ever read from it as truth. It follows each batch, and says with ``workspace.json``
which one it shows. Where it does not show the last one, it is left as it is until somebody rebuilds it.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from chronomemory.face.files import Folder, is_draft
from chronomemory.graph.changes import Changes, Look
from chronomemory.graph.errors import WorkspaceError
from chronomemory.graph.jsonl import read_object
from chronomemory.graph.models import Model
from chronomemory.graph.replaying import FAMILIES
from chronomemory.graph.spelling import PAGE, SCHEMAS, WORKSPACE, file_name, line_of, page_of, tagged
from chronomemory.scope import Scope

__all__ = ["AUDIT_FILE", "EVENTS_FILE", "FOLDERS", "META_FILE", "Shown", "View"]

META_FILE = "workspace.json"
EVENTS_FILE = "events.jsonl"
AUDIT_FILE = "audit.jsonl"
#: The folders, and what those who keep the graph call the things in them.
FOLDERS = {**{name: name for name in FAMILIES}, "activation_plans": "plans"}
#: The files that stand in the folder itself, and the schema of each, or of its lines.
_SINGLE = {META_FILE: WORKSPACE, EVENTS_FILE: SCHEMAS["events"], AUDIT_FILE: SCHEMAS["audit"]}
#: Files are written so many at a time when all of them are.
_AT_ONCE = 20_000


@dataclass(frozen=True, slots=True)
class Shown:
    """Which batch of the log a view shows: its number, its last event, and the hash of that."""

    revision: int
    log_seq: int
    log_head: str


class View:
    """The files of a workspace."""

    def __init__(self, folder: Folder, scope: Scope) -> None:
        self.folder = folder
        self._scope = scope

    def make(self) -> None:
        """Make the folders, unless they are there."""
        self.folder.make(*FOLDERS)

    def check_strangers(self) -> None:
        """Refuse a folder that has files of somebody else where ours belong."""
        for name, schema in _SINGLE.items():
            if self._is_strange(name, "", schema):
                raise WorkspaceError(
                    f"{self.folder.root / name} was not written by a workspace",
                    recovery="Take another folder, or move that file.",
                )

    def begin(self) -> None:
        """Make the files that grow line by line, unless they are there."""
        for name in (EVENTS_FILE, AUDIT_FILE):
            self.folder.append(name, b"")

    def shown(self) -> Shown | None:
        """Return which batch the files say they show, or None if they say nothing that makes sense."""
        try:
            said = json.loads(self.folder.read(META_FILE))
            shown = Shown(said["revision"], said["log_seq"], said["log_head"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
        types = (type(shown.revision), type(shown.log_seq), type(shown.log_head))
        return shown if types == (int, int, str) and said.get("schema") == WORKSPACE else None

    def is_of_scope(self) -> bool:
        """Say whether the files say that they are of these names."""
        try:
            said = json.loads(self.folder.read(META_FILE))
        except (OSError, ValueError, RecursionError):
            return False
        return isinstance(said, dict) and said.get("scope") == self._scope.to_dict()

    def meta_page(self, shown: Shown) -> bytes:
        """Spell ``workspace.json``."""
        return page_of(
            {
                "schema": WORKSPACE,
                "scope": self._scope.to_dict(),
                "revision": shown.revision,
                "log_seq": shown.log_seq,
                "log_head": shown.log_head,
            }
        )

    def follow(self, changes: Changes, shown: Shown | None) -> None:
        """Show a batch that was written; None leaves what the files say they show as it is."""
        for within, name in FOLDERS.items():
            self._write(dict(pages(within, getattr(changes, name))), within, SCHEMAS[within])
        self.folder.remove([file_name(name) for name in changes.gone_nodes], "nodes")
        self.folder.remove([file_name(name) for name in changes.gone_edges], "edges")
        for name, items in ((EVENTS_FILE, changes.events), (AUDIT_FILE, changes.audits)):
            if items:
                self.folder.append(name, b"".join(lines(name, items)))
        if shown is not None:
            self._write({META_FILE: self.meta_page(shown)}, "", WORKSPACE)

    def _write(self, files: dict[str, bytes], within: str, schema: str) -> None:
        """Write files where there are none, or ours."""
        there = {name: page for name, page in files.items() if self.folder.has(name, within)}
        self.folder.write_all({name: page for name, page in files.items() if name not in there}, within)
        left = self.folder.write_all(
            there, within, is_known=lambda _, content: not content or is_ours(content, schema)
        )
        if left:
            where = f"{within}/{left[0]}" if within else left[0]
            raise FileExistsError(
                errno.EEXIST, "somebody else's file stands in the place of one of ours", where
            )

    def rebuild(self, look: Look, shown: Shown) -> tuple[int, int, tuple[str, ...]]:
        """Write all files that are not as they should be, and take away those of ours that are too many.

        Returns how many of each, and under which names that is kept which was not ours and in the way.
        """
        written = removed = 0
        aside: list[str] = []
        self.make()
        for within, expected in expected_pages(look):
            names = self.folder.names(within)
            wrong = {
                name: page for name, page in expected.items() if _content(self.folder, name, within) != page
            }
            for start in range(0, len(wrong), _AT_ONCE):
                some = list(wrong.items())[start : start + _AT_ONCE]
                aside += self._put(dict(some), within, SCHEMAS[within])
            strange = [name for name in names if name not in expected and self.is_left_over(name, within)]
            self.folder.remove(strange, within)
            written, removed = written + len(wrong), removed + len(strange)
        whole = {
            EVENTS_FILE: b"".join(lines(EVENTS_FILE, look.events())),
            AUDIT_FILE: b"".join(lines(AUDIT_FILE, look.audits())),
            META_FILE: self.meta_page(shown),
        }
        for name, content in whole.items():
            if _content(self.folder, name) != content:
                aside += self._put({name: content}, "", _SINGLE[name])
                written += 1
        return written, removed, tuple(aside)

    def _put(self, files: dict[str, bytes], within: str, schema: str) -> list[str]:
        """Write files; what is not ours and in the way gets another name. Return those names."""
        strange = [name for name in sorted(files) if self._is_strange(name, within, schema)]
        aside = [self.folder.set_aside(name, within) for name in strange]
        self.folder.write_all(files, within)
        return [f"{within}/{name}" if within else name for name in aside]

    def _is_strange(self, name: str, within: str, schema: str) -> bool:
        """Say whether something stands under a name that is not ours; a file without content is nobody's."""
        content = _content(self.folder, name, within)
        if content is None:
            return self.folder.has(name, within)
        # Of lines the first tells.
        told = content.partition(b"\n")[0] if name.endswith(".jsonl") else content
        return bool(content) and not is_ours(told, schema)

    def is_left_over(self, name: str, within: str) -> bool:
        """Say whether a file that the log does not know was written by a workspace once."""
        if is_draft(name):
            return True
        content = _content(self.folder, name, within) if name.endswith(PAGE) else None
        return content is not None and is_ours(content, SCHEMAS[within])


def is_ours(content: bytes, schema: str) -> bool:
    """Say whether a file, or a line, says of itself that it is of a workspace."""
    fields = read_object(content)
    return isinstance(fields, dict) and fields.get("schema") == schema


def expected_pages(look: Look) -> Iterator[tuple[str, dict[str, bytes]]]:
    """Yield each folder with the files that it should have."""
    for within, name in FOLDERS.items():
        yield within, dict(pages(within, getattr(look, name)()))


def pages(within: str, items: Iterable[Model]) -> Iterator[tuple[str, bytes]]:
    """Yield the files of some items, by their names."""
    for item in items:
        fields = item.shown()
        yield file_name(fields["id"]), page_of(tagged(SCHEMAS[within], fields))


def lines(name: str, items: Iterable[Model]) -> Iterator[bytes]:
    """Yield the lines of some events or audit records."""
    schema = SCHEMAS[name.removesuffix(".jsonl")]
    for item in items:
        yield line_of(tagged(schema, item.shown()))


def _content(folder: Folder, name: str, within: str = "") -> bytes | None:
    try:
        return folder.read(name, within)
    except OSError:
        # Whatever stands there instead of a file that can be read, it is not what it should be.
        return None
