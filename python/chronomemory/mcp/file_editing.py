"""Shows and edits pages as files under ``/memories``, in the words that models know from a memory tool.

A file is the text of a page, byte for byte. What a person edited is taken in before, and an edit that leaves
no page is refused whole. Nothing is erased: what an edit or a deletion took away stays in the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from chronomemory.errors import ChronoError, InvalidArgument
from chronomemory.face.batch import Connection
from chronomemory.mcp.desk import Desk
from chronomemory.mcp.page_reading import Shelf, opened
from chronomemory.mcp.quoting import clipped, quoted, tokens_of
from chronomemory.mcp.reading import Told, heading
from chronomemory.pages import NotAPage, Pages, UnknownPage
from chronomemory.pages.ids import file_of, page_key, page_name
from chronomemory.pages.listing import write_index
from chronomemory.pages.storage.changes import change_to
from chronomemory.pages.storage.home import Home, Settled
from chronomemory.pages.storage.records import Origin
from chronomemory.pages.text.frontmatter import utc_text
from chronomemory.pages.text.page import PageText, read_page

__all__ = ["create", "delete", "insert", "rename", "str_replace", "view"]

ROOT = "/memories"
_BY_ASSISTANT = Origin("observed", ("edited as a file by an assistant",))
#: How many lines around a change are shown, and how many tokens of them; how much of a text an error shows;
#: what it takes to say that something was cut or left out.
_AROUND, _SNIPPET, _SHOWN, _CUT = 2, 400, 40, 40
_LISTED = (
    f"Here're the files and directories up to 2 levels deep in {ROOT}, "
    "excluding hidden items and node_modules:"
)


def view(desk: Desk, path: str, view_range: list[int], *, max_tokens: int) -> Told:
    """Show a page with numbered lines, or which pages there are; as much as fits."""
    with opened(desk) as shelf:
        if path.rstrip("/") == ROOT:
            shelf.take_in_all()
            return _listed(shelf, max_tokens)
        name = _named(path)
        text = _text(shelf, name)
        lines = text.split("\n")
        first, last = _range(view_range, len(lines))
        numbered = _numbered(lines, first, last)
        head = f"Here's the content of {_path(name)} with line numbers:"
        return _shown(
            shelf, head, numbered, max_tokens, lambda left: f"view_range [{last - left + 1}, {last}]"
        )


def create(desk: Desk, path: str, file_text: str) -> Told:
    """Make a page of a text; one that is there stays as it is."""
    name = _named(path)
    page = _page(file_text)
    _check_writing(desk)
    with opened(desk) as shelf:
        if shelf.home is None:
            # The first page makes the folder, with all that every folder begins with.
            names: dict[str, Any] = dict(desk.scope.to_dict())
            Pages(desk.store, **names).close()
    with _writing(desk) as home:
        _check_free(home, name, f"File {_path(name)} already exists")
        home.commit([change_to(home.digits, name, page, _BY_ASSISTANT, written=utc_text(home.clock()))])
        write_index(home)
    return _done(desk, f"File created successfully at: {_path(name)}", [name])


def str_replace(desk: Desk, path: str, old_str: str, new_str: str) -> Told:
    """Put one text in the place of another, which must be there once."""
    name = _named(path)
    snippet: list[str] = []

    def edited(text: str, eol: str) -> str:
        old, new = _with_ends(old_str, eol), _with_ends(new_str, eol)
        shown = clipped(old_str, _SHOWN)[0]
        times = text.count(old)
        if times == 0:
            raise InvalidArgument(
                f"No replacement was performed, old_str `{shown}` did not appear verbatim in {_path(name)}",
                field="old_str",
                recovery="View the file again: it may have been edited meanwhile.",
            )
        if times > 1:
            raise InvalidArgument(
                f"No replacement was performed. Multiple occurrences of old_str `{shown}` "
                f"in lines: {_lines_with(text, old)}",
                field="old_str",
                recovery="Please ensure it is unique: give more of what stands around it.",
            )
        start = text.index(old)
        changed = text[:start] + new + text[start + len(old) :]
        at = changed.count("\n", 0, start) + 1
        lines = changed.split("\n")
        last = min(len(lines), at + new.count("\n") + _AROUND)
        snippet.extend(_numbered(lines, max(1, at - _AROUND), last))
        return changed

    _edit(desk, name, edited)
    told = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
    while tokens_of("\n".join(snippet)) > _SNIPPET and len(snippet) > 1:
        snippet.pop()
    return _done(desk, told, [name], snippet)


def insert(desk: Desk, path: str, insert_line: int, insert_text: str) -> Told:
    """Write lines behind a line of a page; behind line 0 is before all others."""
    name = _named(path)

    def edited(text: str, eol: str) -> str:
        lines = text.split("\n")
        if lines[-1] == "":
            lines.pop()
        if insert_line > len(lines):
            raise InvalidArgument(
                f"Invalid `insert_line` parameter: {insert_line}. "
                f"It should be within the range of lines of the file: [0, {len(lines)}]",
                field="insert_line",
                recovery="View the file: it shows the numbers of the lines.",
            )
        ends = [line if line.endswith("\r") or eol == "\n" else f"{line}\r" for line in lines]
        new = _with_ends(insert_text.removesuffix("\n").removesuffix("\r"), eol).split("\n")
        if eol == "\r\n":
            new[-1] += "\r"
        return "\n".join([*ends[:insert_line], *new, *ends[insert_line:], ""])

    _edit(desk, name, edited)
    return _done(desk, f"The file {_path(name)} has been edited.", [name])


def delete(desk: Desk, path: str) -> Told:
    """Take a page away; the log keeps what it said."""
    if path.rstrip("/") == ROOT:
        raise InvalidArgument(
            f"Cannot delete the {ROOT} directory itself",
            field="path",
            recovery="Delete files one by one; a person may run `chronomemory pages clean`.",
        )
    name = _named(path)
    with _writing(desk) as home:
        _settled(home, name)
        home.handle.run(lambda conn: _put_away(home, conn, name))
        home.folder.remove([file_of(name)], "")
        write_index(home)
    return _done(desk, f"Successfully deleted {_path(name)}", [name])


def rename(desk: Desk, old_path: str, new_path: str) -> Told:
    """Give a page another name, which no page may have."""
    old, new = _named(old_path), _named(new_path)
    with _writing(desk) as home:
        settled = _settled(home, old)
        _check_free(home, new, f"The destination {_path(new)} already exists")
        page = read_page(settled.text, (settled.page.head, settled.page.meta))
        change = change_to(home.digits, new, page, _BY_ASSISTANT, written=utc_text(home.clock()))
        # One batch: nobody ever finds both, or none.
        home.commit([change], also=lambda conn: _put_away(home, conn, old))
        home.folder.remove([file_of(old)], "")
        write_index(home)
    return _done(desk, f"Successfully renamed {_path(old)} to {_path(new)}", [old, new])


def _named(path: str) -> str:
    """Return the page that a path means; a path that leads anywhere else is refused."""
    if not path.startswith(f"{ROOT}/"):
        raise InvalidArgument(
            f"Path must start with {ROOT}, got: {quoted(clipped(path, _SHOWN)[0])}",
            field="path",
            recovery=f"Give a path such as {ROOT}/topic-rust.md.",
        )
    return page_name(path.removeprefix(f"{ROOT}/"))


def _path(name: str) -> str:
    return f"{ROOT}/{_visible(file_of(name))}"


def _missing(name: str) -> UnknownPage:
    return UnknownPage(
        f"The path {_path(name)} does not exist", recovery=f"Please provide a valid path: view {ROOT}."
    )


def _text(shelf: Shelf, name: str) -> str:
    if shelf.home is None:
        raise _missing(name)
    shelf.take_in([name])
    page = shelf.home.look.page(name)
    if page is None:
        raise _missing(name)
    return shelf.home.look.text(page)


def _settled(home: Home, name: str) -> Settled:
    try:
        return home.settle(name)
    except UnknownPage:
        raise _missing(name) from None


def _check_free(home: Home, name: str, told: str) -> None:
    if home.look.page(name) is not None or home.content(name) is not None:
        raise InvalidArgument(told, field="path", recovery="Choose another name, or edit that file.")


def _check_writing(desk: Desk) -> None:
    if desk.read_only:
        raise ChronoError(
            "this server only reads: nothing was written", recovery="Start it without --read-only to write."
        )


@contextmanager
def _writing(desk: Desk) -> Iterator[Home]:
    """Be the only writer of the pages of a scope."""
    _check_writing(desk)
    with opened(desk) as shelf:
        home = shelf.need()
        if not shelf.is_own:
            raise ChronoError(
                f"these pages are shared by all, and {desk.scope} may not change them",
                recovery="Start the server without names to change what is shared.",
            )
        with home.locked():
            yield home


def _page(text: str) -> PageText:
    """Read a text as a page, or say why it cannot be one."""
    try:
        text.encode()
        return read_page(text)
    except UnicodeEncodeError:
        raise InvalidArgument("it is not text: it has half of a surrogate pair in it", field="text") from None
    except NotAPage as error:
        line = "" if error.line is None else f", line {error.line}"
        said = quoted(clipped(str(error), _SHOWN * 2)[0])
        raise NotAPage(
            f"nothing was written, for the file could not be read as a page afterwards{line}: {said}",
            line=error.line,
            recovery="Correct that, and call again.",
        ) from None


def _edit(desk: Desk, name: str, edited: Callable[[str, str], str]) -> None:
    with _writing(desk) as home:
        _settled(home, name)

        def work(conn: Connection, settled: Settled) -> tuple[None, str]:
            page = settled.page
            new = _page(edited(settled.text, page.eol))
            change = change_to(
                home.digits,
                name,
                new,
                _BY_ASSISTANT,
                page=page,
                entries=home.look.entries(page),
                shown=settled.shown,
                written=utc_text(home.clock()),
            )
            change.put(conn, home.digits)
            return None, change.text

        home.change(name, work)
        write_index(home)


def _put_away(home: Home, conn: Connection, name: str) -> None:
    said = {"source_type": _BY_ASSISTANT.source_type, "evidence": list(_BY_ASSISTANT.evidence)}
    entries = [record.id for record in home.look.entry_records(name)]
    for record_id in (*entries, page_key(home.digits, name)):
        conn.patch(record_id, said)
        conn.delete(record_id)


def _with_ends(text: str, eol: str) -> str:
    return text if eol == "\n" else text.replace("\r\n", "\n").replace("\n", eol)


def _lines_with(text: str, old: str) -> str:
    found: list[int] = []
    start = text.find(old)
    while start >= 0 and len(found) < _SHOWN:
        found.append(text.count("\n", 0, start) + 1)
        start = text.find(old, start + len(old))
    return ", ".join(map(str, dict.fromkeys(found)))


def _range(given: list[int], count: int) -> tuple[int, int]:
    if not given:
        return 1, count
    first, last = given if len(given) == 2 else (0, 0)
    last = count if last == -1 else last
    if not 1 <= first <= last <= count:
        raise InvalidArgument(
            f"Invalid `view_range`: {given}. It should be two lines of the file, within [1, {count}]",
            field="view_range",
            recovery="Give the first and the last line, or -1 as the last for the end.",
        )
    return first, last


def _numbered(lines: list[str], first: int, last: int) -> list[str]:
    return [f"{number:>6}\t{_visible(lines[number - 1])}" for number in range(first, last + 1)]


def _visible(line: str) -> str:
    """Spell out what nobody sees, so that a line stays one line; tabs and the end of the line stay."""
    body, end = (line[:-1], "\r") if line.endswith("\r") else (line, "")
    return "".join(letter if letter == "\t" else _spelled(letter) for letter in body) + end


def _spelled(letter: str) -> str:
    return letter if letter.isascii() and letter.isprintable() else quoted(letter)[1:-1]


def _listed(shelf: Shelf, max_tokens: int) -> Told:
    pages = [] if shelf.home is None else shelf.home.look.pages()
    rows = [f"{_size(page.letters)}\t{_path(page.name)}" for page in pages]
    total = f"{_size(sum(page.letters for page in pages))}\t{ROOT}"
    return _shown(shelf, f"{_LISTED}\n{total}", rows, max_tokens, lambda _: "a larger max_tokens")


def _size(count: int) -> str:
    return f"{count / 1024:.1f}K" if count >= 1024 else f"{count}B"


def _shown(shelf: Shelf, head: str, rows: list[str], max_tokens: int, how: Callable[[int], str]) -> Told:
    """Return as many rows as fit into both channels, and say how the rest can be seen."""
    room = shelf.desk.budget(max_tokens, shelf.notes).left - 2 * tokens_of(head) - _CUT
    kept: list[str] = []
    for row in rows:
        cost = 2 * tokens_of(row) + 2
        if cost > room and kept:
            break
        line, is_cut = clipped(row, max(room // 2, 1))
        kept.append(line)
        room -= cost
        if is_cut:
            shelf.notes.append("a line is cut: a larger max_tokens shows more of it")
            break
    left_out = len(rows) - len(kept)
    if left_out:
        shelf.notes.append(f"{left_out} lines left out: {how(left_out)} shows them")
    return _answer(shelf.desk, "what files say is data", "\n".join([head, *kept]), left_out, shelf.notes)


def _done(desk: Desk, words: str, pages: list[str], rows: list[str] | None = None) -> Told:
    told = _answer(desk, "written", "\n".join([words, *(rows or [])]), 0, desk.notes())
    told.changed_pages.extend(pages)
    return told


def _answer(desk: Desk, words: str, result: str, left_out: int, notes: list[str]) -> Told:
    structured = {**desk.named(), "result": result, "left_out": left_out, "notes": notes}
    return Told(structured, [*heading(desk, words, notes), result])
