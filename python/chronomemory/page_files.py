"""Removes the files of pages that show what was erased, and names those that still hold it."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from chronomemory._core import Engine, canonical_json, sha256_hex
from chronomemory.errors import ChronoError
from chronomemory.face.files import Folder

#: The file that lists all pages of a prefixed folder; the mark in it says that we wrote it.
INDEX_FILE = "index.md"
OUR_MARK = "<!-- Written by chronomemory pages; what is changed here is written over. -->"
#: Records from before places were recorded are of this folder, or of one that is not known.
_DEFAULT_PLACE = ["within", "memory"]
_DEFAULT_DIGITS = sha256_hex(canonical_json(_DEFAULT_PLACE))[:16]


@dataclass(slots=True)
class PageFiles:
    """The folders of pages that a store knows, and the texts of their files, before an erasure."""

    #: By the digits of a folder: where it is, None if that is not known, and whether the files are a user's.
    folders: dict[str, tuple[Path | None, bool]]
    texts: dict[str, tuple[str, ...]]
    removed: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, engine: Engine, project: Path) -> PageFiles:
        view = engine.unscoped().with_expired()
        records = view.query(kind="page_folder", status=None)
        folders: dict[str, tuple[Path | None, bool]] = {}
        for one in records:
            digits = one.data.get("folder")
            place = one.data.get("place") or (_DEFAULT_PLACE if digits == _DEFAULT_DIGITS else None)
            root = None if place is None else project.resolve().joinpath(*map(str, place[1:]))
            folders[str(digits)] = root, one.data.get("layout") == "free"
        pages = view.query(kind="page") if folders else []
        return cls(
            folders, {one.id: (one.data.get("digest", ""), *one.data.get("earlier", ())) for one in pages}
        )

    def clear(self, ids: Iterable[str], kept: Collection[str], *, dry_run: bool) -> None:
        """Find the files that show erased ids, and remove ours, unless kept or edited by hand."""
        pages: dict[str, set[str]] = {}
        for record_id in ids:
            kind, _, rest = record_id.partition(":")
            digits, _, name = rest.partition(":")
            if kind in ("page", "entry") and digits in self.folders:
                name = name if kind == "page" else name.rpartition(":")[0]
                pages.setdefault(digits, set()).update([name] if name else [])
        for digits, names in sorted(pages.items()):
            root, is_free = self.folders[digits]
            if root is None or not root.is_dir():
                self.left.append(f"page:{digits}" if root is None else str(root))
            elif is_free:
                files = [
                    unicodedata.normalize(form, f"{name}.md") for name in names for form in ("NFC", "NFD")
                ]
                self.left += sorted({str(root / file) for file in files if os.path.lexists(root / file)})
            else:
                known = {
                    f"{name}.md": () if (key := f"page:{digits}:{name}") in kept else self.texts.get(key, ())
                    for name in sorted(names)
                    if "/" not in name
                }
                self._clear_folder(Folder(root, is_real=True), known, dry_run=dry_run)

    def _clear_folder(self, folder: Folder, known: dict[str, tuple[str, ...]], *, dry_run: bool) -> None:
        try:
            # A writer that holds the lock may have read what was erased: its index is written before this.
            with folder.locked():
                for file in (INDEX_FILE, *known):
                    try:
                        text = folder.read(file)
                    except FileNotFoundError:
                        continue
                    except OSError:  # a link, or a file that may not be read
                        text = b""
                    is_index = file == INDEX_FILE
                    if OUR_MARK.encode() in text if is_index else sha256_hex(text)[:32] in known[file]:
                        self.removed.append(str(folder.root / file))
                        folder.remove([] if dry_run else [file], "")
                    elif not is_index:
                        self.left.append(str(folder.root / file))
        except (ChronoError, OSError):
            # What was erased is erased: the call must not look as if it were not.
            self.left.append(str(folder.root))
