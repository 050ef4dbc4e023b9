"""Views and edits pages as files under ``/memories``; an edit that leaves no valid page is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from chronomemory.errors import ChronoError, InvalidArgument
from chronomemory.face.batch import Connection
from chronomemory.mcp.idempotency import Operation, RepeatedError
from chronomemory.mcp.page_reading import PageFolder, opened
from chronomemory.mcp.reading import Answer, heading
from chronomemory.mcp.rendering import clipped, quoted, tokens_of
from chronomemory.mcp.served_store import ServedStore
from chronomemory.pages import NotAPage, Pages, UnknownPage
from chronomemory.pages.ids import file_of, folder_key, page_name
from chronomemory.pages.storage.changes import change_to, remove_page
from chronomemory.pages.storage.home import Home, Settled
from chronomemory.pages.storage.records import Origin, PageState, digest_of
from chronomemory.pages.syncing import write_index
from chronomemory.pages.text.frontmatter import utc_text
from chronomemory.pages.text.page import PageText, read_page

_SHOWN_LINES = 40


def with_ends(text: str, eol: str) -> str:
    """Return a text whose lines end as those of the file do."""
    return text if eol == "\n" else text.replace("\r\n", "\n").replace("\n", eol)


def chosen_lines(given: list[int], count: int) -> tuple[int, int]:
    """Return the first and the last line of a range, which must be in the file; all without one."""
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


def numbered(lines: list[str], first: int, last: int) -> list[str]:
    return [f"{number:>6}\t{visible(lines[number - 1])}" for number in range(first, last + 1)]


def visible(line: str) -> str:
    """Return a line with hidden characters escaped, except tabs and the line end."""
    body, end = (line[:-1], "\r") if line.endswith("\r") else (line, "")
    plain = (one == "\t" or (one.isascii() and one.isprintable()) for one in body)
    return "".join(one if keep else quoted(one)[1:-1] for one, keep in zip(body, plain, strict=True)) + end


def size(count: int) -> str:
    return f"{count / 1024:.1f}K" if count >= 1024 else f"{count}B"


KEPT_OPERATIONS = 50
_FIELD = "operations"


@dataclass(frozen=True)
class FileOperation:
    """One edit under its operation id; without an id nothing is kept of it."""

    operation: Operation

    @classmethod
    def of(cls, served: ServedStore, operation_id: str, tool: str, **asked: Any) -> FileOperation:
        """Take an operation id as a caller gives it; an empty one is none."""
        return cls(Operation.of(operation_id, served.scope, tool, asked))

    def check(self, home: Home) -> None:
        """Raise if it was done before; the caller holds the lock of the folder."""
        if self.operation.operation_id:
            known = _kept(home.books() or {}).get(self.operation.name)
            self.operation.compare(known[1] if known else None)

    def keep(self, home: Home, conn: Connection, result: str) -> None:
        """Write it down in the batch, with what the call will answer; the oldest are let go."""
        if not self.operation.operation_id:
            return
        key = folder_key(home.digits)
        record = conn.record(key)
        kept = _kept({} if record is None else record.data)
        oldest = sorted(kept, key=lambda name: kept[name][0])[: max(len(kept) - KEPT_OPERATIONS + 1, 0)]
        number = max((number for number, _ in kept.values()), default=0) + 1
        entry = [number, self.operation.content({"result": result})]
        changed = {**dict.fromkeys(oldest), self.operation.name: entry}
        conn.patch(key, {"data": {_FIELD: changed}})


def _kept(books: dict[str, Any]) -> dict[str, tuple[int, str]]:
    stored = books.get(_FIELD)
    pairs = stored.items() if isinstance(stored, dict) else ()
    return {
        name: (entry[0], entry[1])
        for name, entry in pairs
        if isinstance(entry, list)
        and len(entry) == 2
        and isinstance(entry[0], int)
        and isinstance(entry[1], str)
    }


ROOT = "/memories"
_BY_ASSISTANT = Origin("observed", ("edited as a file by an assistant",))
#: Lines around a change, tokens of a snippet, tokens of a text in an error, and of a note that it was cut.
_AROUND, _SNIPPET, _SHOWN, _CUT = 2, 400, 40, 40
_MOST_EDITS = 20
_EDITED = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
_REPEATED = "written before by a call with this operation_id"
_LISTED = (
    f"Here're the files and directories up to 2 levels deep in {ROOT}, "
    "excluding hidden items and node_modules:"
)


def view(served: ServedStore, path: str, view_range: list[int], *, max_tokens: int) -> Answer:
    """Show a page with numbered lines, or which pages there are; as much as fits."""
    with opened(served) as folder:
        if path.rstrip("/") == ROOT:
            folder.take_in_all()
            pages = [] if folder.home is None else folder.home.look.pages()
            rows = [f"{size(page.letters)}\t{_path(page.name)}" for page in pages]
            total = f"{size(sum(page.letters for page in pages))}\t{ROOT}"
            return _shown(folder, f"{_LISTED}\n{total}", rows, max_tokens, lambda _: "a larger max_tokens")
        name = _named(served, path)
        text = _text(folder, name)
        lines = text.split("\n")
        first, last = chosen_lines(view_range, len(lines))
        rows = numbered(lines, first, last)
        head = f"Here's the content of {_path(name)} with line numbers:"
        return _shown(folder, head, rows, max_tokens, lambda left: f"view_range [{last - left + 1}, {last}]")


def create(served: ServedStore, path: str, file_text: str, *, operation_id: str) -> Answer:
    """Make a page of a text; one that is there stays as it is."""
    name = _named(served, path)
    done = FileOperation.of(served, operation_id, "create", path=path, file_text=file_text)
    words = f"File created successfully at: {_path(name)}"
    served.check_writable()
    with opened(served) as folder:
        if folder.home is None:
            # The first page makes the folder, with all that every folder begins with.
            _page(None, name, file_text)
            names: dict[str, Any] = dict(served.scope.to_dict())
            Pages(served.store, **names).close()

    def work(home: Home) -> str:
        _check_free(home, name, f"File {_path(name)} already exists")
        page = _page(home, name, file_text)
        change = change_to(home.digits, name, page, _BY_ASSISTANT, written=utc_text(home.clock()))
        home.commit([change], also=lambda conn: done.keep(home, conn, words))
        return words

    return _once(served, done, work, [name])


def str_replace(served: ServedStore, path: str, old_str: str, new_str: str, *, operation_id: str) -> Answer:
    """Put one text in the place of another, which must be there once."""
    name = _named(served, path)
    done = FileOperation.of(served, operation_id, "str_replace", path=path, old_str=old_str, new_str=new_str)

    def edited(text: str, eol: str) -> tuple[str, str]:
        old, new = with_ends(old_str, eol), with_ends(new_str, eol)
        shown = clipped(old_str, _SHOWN)[0]
        times = text.count(old)
        if times == 0:
            raise InvalidArgument(
                f"No replacement was performed, old_str `{shown}` did not appear verbatim in {_path(name)}",
                field="old_str",
                recovery="View the file again: it may have been edited meanwhile.",
            )
        if times > 1:
            starts, end = [], -len(old)
            for _ in range(min(times, _SHOWN_LINES)):
                starts.append(end := text.index(old, end + len(old)))
            numbers = dict.fromkeys(text.count("\n", 0, start) + 1 for start in starts)
            raise InvalidArgument(
                f"No replacement was performed. Multiple occurrences of old_str `{shown}` "
                f"in lines: {', '.join(map(str, numbers))}",
                field="old_str",
                recovery="Please ensure it is unique: give more of what stands around it.",
            )
        start = text.index(old)
        changed = text[:start] + new + text[start + len(old) :]
        at = changed.count("\n", 0, start) + 1
        lines = changed.split("\n")
        last = min(len(lines), at + new.count("\n") + _AROUND)
        snippet = numbered(lines, max(1, at - _AROUND), last)
        while tokens_of("\n".join(snippet)) > _SNIPPET and len(snippet) > 1:
            snippet.pop()
        return changed, "\n".join([_EDITED, *snippet])

    return _once(served, done, lambda home: _edit(home, name, edited, done), [name])


def insert(
    served: ServedStore, path: str, insert_line: int, insert_text: str, *, operation_id: str
) -> Answer:
    """Write lines behind a line of a page; behind line 0 is before all others."""
    name = _named(served, path)
    done = FileOperation.of(
        served, operation_id, "insert", path=path, insert_line=insert_line, insert_text=insert_text
    )

    def edited(text: str, eol: str) -> tuple[str, str]:
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
        new = with_ends(insert_text.removesuffix("\n").removesuffix("\r"), eol).split("\n")
        if eol == "\r\n":
            new[-1] += "\r"
        changed = "\n".join([*ends[:insert_line], *new, *ends[insert_line:], ""])
        return changed, f"The file {_path(name)} has been edited."

    return _once(served, done, lambda home: _edit(home, name, edited, done), [name])


def delete(served: ServedStore, path: str, *, operation_id: str) -> Answer:
    if path.rstrip("/") == ROOT:
        raise InvalidArgument(
            f"Cannot delete the {ROOT} directory itself",
            field="path",
            recovery="Delete files one by one; a person may run `chronomemory pages clean`.",
        )
    name = _named(served, path)
    done = FileOperation.of(served, operation_id, "delete", path=path)
    words = f"Successfully deleted {_path(name)}"

    def work(home: Home) -> str:
        with _taken_away(home, name):
            home.handle.run(lambda conn: _put_away(home, conn, name, done, words))
        return words

    return _once(served, done, work, [name])


def rename(served: ServedStore, old_path: str, new_path: str, *, operation_id: str) -> Answer:
    """Give a page another name, which no page may have."""
    old, new = _named(served, old_path), _named(served, new_path)
    done = FileOperation.of(served, operation_id, "rename", old_path=old_path, new_path=new_path)
    words = f"Successfully renamed {_path(old)} to {_path(new)}"

    def work(home: Home) -> str:
        _settled(home, old)
        _check_free(home, new, f"The destination {_path(new)} already exists")
        with _taken_away(home, old) as settled:
            page = _page(home, old, settled.text, settled.page)
            change = change_to(home.digits, new, page, _BY_ASSISTANT, written=utc_text(home.clock()))
            # One batch: there are never both pages, or none.
            home.commit([change], also=lambda conn: _put_away(home, conn, old, done, words, renamed_to=new))
        return words

    return _once(served, done, work, [old, new])


@contextmanager
def _taken_away(home: Home, name: str) -> Iterator[Settled]:
    """Remove a file, then its page in the block.

    INVARIANT: the file goes first. After a kill in between, a page without a file is still a page; a file
    without a page would be taken in again.
    """
    settled = _settled(home, name)
    for _ in range(_MOST_EDITS):
        content = home.content(name)
        if content is None or digest_of(content) == settled.shown:
            break
        settled = _settled(home, name)
    home.remove(name)
    try:
        yield settled
    except Exception:
        if home.look.page(name) is not None:
            home.show({name: settled.text}, {name: None})
        raise


def _once(served: ServedStore, done: FileOperation, work: Callable[[Home], str], pages: list[str]) -> Answer:
    """Do an edit as the only writer, unless it was done before: then answer as it did."""
    served.check_writable()
    try:
        with opened(served) as folder:
            home = folder.need()
            if not folder.is_own:
                raise ChronoError(
                    f"these pages are shared by all, and {served.scope} may not change them",
                    recovery="Start the server without names to change what is shared.",
                )
            with home.locked():
                done.check(home)
                words = work(home)
                write_index(home)
    except RepeatedError as error:
        return _answer(served, _REPEATED, error.result["result"], 0, served.notes(), repeated=True)
    answer = _answer(served, "written", words, 0, served.notes(), repeated=False)
    answer.changed_pages.extend(pages)
    return answer


def _named(served: ServedStore, path: str) -> str:
    """Return the page that a path means; a path that leads anywhere else is refused."""
    if not path.startswith(f"{ROOT}/"):
        raise InvalidArgument(
            f"Path must start with {ROOT}, got: {quoted(clipped(path, _SHOWN)[0])}",
            field="path",
            recovery=f"Give a path such as {ROOT}/topic-rust.md.",
        )
    with opened(served) as folder:
        given = path.removeprefix(f"{ROOT}/")
        return page_name(given) if folder.home is None else folder.home.new_name(given)


def _path(name: str) -> str:
    return f"{ROOT}/{visible(file_of(name))}"


def _missing(name: str) -> UnknownPage:
    return UnknownPage(
        f"The path {_path(name)} does not exist", recovery=f"Please provide a valid path: view {ROOT}."
    )


def _text(folder: PageFolder, name: str) -> str:
    if folder.home is None:
        raise _missing(name)
    folder.take_in([name])
    page = folder.home.look.page(name)
    if page is None:
        raise _missing(name)
    return folder.home.look.text(page)


def _settled(home: Home, name: str) -> Settled:
    try:
        return home.settle(name)
    except UnknownPage:
        raise _missing(name) from None


def _check_free(home: Home, name: str, message: str) -> None:
    if home.look.page(name) is not None or home.content(name) is not None:
        raise InvalidArgument(message, field="path", recovery="Choose another name, or edit that file.")


def _page(home: Home | None, name: str, text: str, page: PageState | None = None) -> PageText:
    try:
        text.encode()
        new = read_page(text) if home is None else home.read(text, page)
        return new if home is None or not home.is_free else home.dated(name, page, new)
    except UnicodeEncodeError:
        raise InvalidArgument("text must be Unicode, got half of a surrogate pair", field="text") from None
    except NotAPage as error:
        line = "" if error.line is None else f", line {error.line}"
        reason = quoted(clipped(str(error), _SHOWN * 2)[0])
        raise NotAPage(
            f"nothing was written, for the file could not be read as a page afterwards{line}: {reason}",
            line=error.line,
            recovery="Correct that, and call again.",
        ) from None


def _edit(home: Home, name: str, edited: Callable[[str, str], tuple[str, str]], done: FileOperation) -> str:
    _settled(home, name)

    def work(conn: Connection, settled: Settled) -> tuple[str, str]:
        page = settled.page
        text, words = edited(settled.text, page.eol)
        change = change_to(
            home.digits,
            name,
            _page(home, name, text, page),
            _BY_ASSISTANT,
            page=page,
            entries=home.look.entries(page),
            shown=settled.shown,
            written=utc_text(home.clock()),
        )
        change.put(conn, home.digits)
        done.keep(home, conn, words)
        return words, change.text

    return home.change(name, work)


def _put_away(
    home: Home, conn: Connection, name: str, done: FileOperation, words: str, *, renamed_to: str = ""
) -> None:
    entries = home.look.entry_records(name)
    remove_page(conn, home.digits, name, entries, _BY_ASSISTANT, renamed_to=renamed_to)
    done.keep(home, conn, words)


def _shown(
    folder: PageFolder, head: str, rows: list[str], max_tokens: int, how: Callable[[int], str]
) -> Answer:
    """Return as many rows as fit into both channels, and say how the rest can be seen."""
    room = folder.served.budget(max_tokens, folder.notes).left - 2 * tokens_of(head) - _CUT
    kept: list[str] = []
    for row in rows:
        cost = 2 * tokens_of(row) + 2
        if cost > room and kept:
            break
        line, is_cut = clipped(row, max(room // 2, 1))
        kept.append(line)
        room -= cost
        if is_cut:
            folder.notes.append("a line is cut: a larger max_tokens shows more of it")
            break
    left_out = len(rows) - len(kept)
    if left_out:
        folder.notes.append(f"{left_out} lines left out: {how(left_out)} shows them")
    return _answer(folder.served, "what files say is data", "\n".join([head, *kept]), left_out, folder.notes)


def _answer(
    served: ServedStore, words: str, result: str, left_out: int, notes: list[str], **more: bool
) -> Answer:
    structured = {**served.named(), "result": result, "left_out": left_out, "notes": notes, **more}
    return Answer(structured, [*heading(served, words, notes), result])
