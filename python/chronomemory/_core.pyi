"""The types and documentation of the engine's Python binding, which is built from rust/python.

Every call may raise the errors of chronomemory.errors. Records that come back are fresh copies; log lines
come without their newline. ``face`` is None for plain records, else the name of the face of the id's prefix.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar, final

import numpy as np
import numpy.typing as npt
from typing_extensions import Self, disjoint_base

from chronomemory.event import WalEvent
from chronomemory.record import ChronoRecord

__all__ = [
    "WHERE_KEYS",
    "Blocks",
    "Edition",
    "Engine",
    "Reader",
    "Store",
    "TablePart",
    "TableReader",
    "Upkeep",
    "Vectors",
    "Walk",
    "__version__",
    "after_fork_in_child",
    "after_fork_in_parent",
    "before_fork",
    "canonical_json",
    "event_hash",
    "file_holds",
    "indented_json",
    "parse_json",
    "question_words",
    "sha256_hex",
    "statement_pieces",
    "store_folder",
    "text_words",
    "token_rows",
    "unset_attribute",
    "verify_path",
]

__version__: str
WHERE_KEYS: list[str]

_T = TypeVar("_T")

_Progress = Callable[[int, int], object] | None
_Record = ChronoRecord | Mapping[str, Any]
_Path = str | PathLike[str]
_Text = str | None
_Kinds = str | list[str] | None
_Dict = dict[str, Any]
# Ids, their rows, space, model and, of codes, the length of the token vectors.
_Rows = tuple[list[str], npt.NDArray[np.float32], str | None, str | None, int]
_Maybe = list[ChronoRecord | None]
# An edition, a bookmark, records, and numbers for the scopes of those that may be changed.
_Look = tuple[Edition, tuple[str, int], _Maybe, list[int | None]]
_Names = tuple[_Text, _Text, _Text]
_After = tuple[Any, str] | None
_Found = tuple[ChronoRecord, float, _Dict | None]
# A version of what is seen, sees_wider, scope_names and is_known.
_Asker = tuple[tuple[int, int], bool, _Names | None, bool]
_Made = tuple[int | None, int | None, int, int]
_End = tuple[int | None, _Made, _Made | None]
_Floats = npt.NDArray[np.float32]

@disjoint_base
class Store:
    """What ``ChronoStore`` is made of: it opens and closes the engine that is kept here."""

    _engine: Engine | None
    def __new__(cls, *_args: Any, **_options: Any) -> Self: ...
    def get(self, record_id: str, *, expired: bool = False) -> ChronoRecord | None:
        """Return a record, a tombstoned one too, or None; an expired one only with ``expired``."""

    def upsert(self, record: _Record, *, if_version: str | None = None, if_new: bool = False) -> WalEvent:
        """Write a record; with ``if_version`` the one there is of that, with ``if_new`` there is none."""

@disjoint_base
class Reader:
    """Reads records as one viewer sees them: the current ones, or those of a past moment."""

    def last_seq(self) -> int: ...  # 0 without events
    def scope_digits(self) -> str:
        """Return the digits of the scope in ids; an empty text for the shared scope."""
    def scope_names(self) -> _Names | None:
        """Return user, agent and session of the viewer, or None if it sees all scopes."""
    def sees_wider(self) -> bool: ...
    def is_known(self) -> bool:
        """Return whether there is a record of the viewer's own scope, or a tombstone of one."""
    def get(self, id: str) -> ChronoRecord | None: ...
    def get_many(self, ids: list[str]) -> list[ChronoRecord | None]: ...
    def query(
        self,
        *,
        kind: _Kinds = None,
        status: str | None = "active",
        min_confidence: float = 0.0,
        limit: int | None = None,
        faces: bool = False,
    ) -> list[ChronoRecord]:
        """Return records in insertion order."""
    def export(self, request: _Dict) -> list[_Dict]:
        """Return records as dicts.

        The request has all of: kind, status, min_confidence, limit, faces, condition (JSON of a ``where``, or
        None), tags, since_us, until_us.
        """
    def count(self, *, kind: _Kinds = None, status: _Text = "active", faces: bool = False) -> int: ...
    def page(self, request: _Dict) -> tuple[list[ChronoRecord], _End | None, str]:
        """Return records, where the page ends if there are more, and how they were found.

        The request has what that of ``export`` has, and by, reverse, after (the end of a page) and explain.
        """
    def find(
        self, index: str, key: Sequence[Any], *, after: _After = None, limit: int, reverse: bool = False
    ) -> list[ChronoRecord]:
        """Return the records that a declared index leads to, in its order.

        ``after`` has the sort key and the id of the last record of the page before.
        """
    def search(self, request: _Dict, explain: bool) -> tuple[list[_Found], _Asker]:
        """Return the best records with their scores and, with ``explain``, the parts of these; and who asked.

        The request has all of: text, vector, space, query_tokens, token_space, kinds, without_kinds, status,
        min_confidence, tags, since_us, until_us, limit, context, now_us, condition.
        """
    def reach(self, network: str, request: _Dict) -> tuple[list[tuple[str, int]], list[str]]:
        """Return the ends within ``hops`` of the starts with their distance, and what joins them.

        The request has direction (out, in, both), kinds and end_kinds (lists, or None for all); starts, hops,
        and joints: whether the ids of what joins the ends are returned.
        """
    def routes(self, network: str, request: _Dict) -> list[list[str]]:
        """Return the shortest routes, each as the ids of what joins one end to the next.

        The request has direction, kinds and end_kinds as above; source, target, hops and limit.
        """
    def islands(self, network: str, request: _Dict) -> list[list[str]]:
        """Return the ends in connected groups."""

@final
class Engine(Reader):
    """An open store; nothing is created before the first write.

    The options are all of: recursion_depth, durability, lock_timeout, salt, verify, exclusive, strict,
    head_file, shared. Engines that come from another one share its store: closing one closes all.
    """

    def __new__(cls, project_root: _Path, options: _Dict) -> Engine: ...
    def close(self) -> None: ...
    def with_options(self, options: _Dict) -> Engine:
        """Return the same store with other options for what is written: the first four."""
    @property
    def upkeep(self) -> Upkeep: ...
    @property
    def vectors(self) -> Vectors: ...
    @property
    def blocks(self) -> Blocks: ...

    # The same store for other viewers.

    def scoped(self, names: _Names, *, shared: bool = True) -> Engine:
        """Return the store for a scope; with ``shared`` wider scopes are visible too."""
    def public(self) -> Engine:
        """Return the store for a viewer without names, who writes for all."""
    def unscoped(self) -> Engine:
        """Return the store for a viewer that sees all scopes."""
    def acting(self) -> Engine:
        """Return the store for a viewer that sees all scopes and writes for this one."""
    def with_expired(self) -> Engine: ...
    def scopes(self, after: _Names | None, limit: int) -> list[tuple[_Names, int]]:
        """Return the scopes below this one, in their order, with the number of their records."""
    def are_own(self, ids: list[str]) -> list[bool]:
        """Return which of these records this viewer may change."""

    # Expiry. Moments are in microseconds since 1970.

    def clock(self) -> int: ...
    def set_clock(self, moment: int | None) -> None:
        """Set the clock of the store in this process; None returns to the real one."""
    def due(self, now: int | None = None) -> list[str]: ...
    def sweep(self, now: int | None) -> list[str]:
        """Delete the records that are due and return their ids."""

    # Writing.

    def upsert(self, record: _Record, face: str | None = None) -> WalEvent: ...
    def upsert_if(self, condition: str, record: _Record, face: str | None) -> bool:
        """Write a record and return True, if its id is "new" or if it can be written "at once".

        At once means without waiting for another writer or for the disk.
        """
    def upsert_many(self, records: Iterable[_Record], face: str | None = None) -> tuple[int, int]:
        """Write one atomic batch; return the first seq and the one after the last."""
    def upsert_good(
        self, records: list[Any]
    ) -> tuple[int, int, int, list[tuple[int, str | None, str | None, str]]]:
        """Write what can be written as one batch.

        Return how many, the first seq, the one after the last, and place, id, path and reason of what was
        left out.
        """
    def delete(self, record_id: str, face: str | None = None) -> WalEvent: ...
    def write(self, changes: Iterable[tuple[str, Any]], face: str | None = None) -> tuple[int, int]:
        """One atomic batch of ("upsert", record), ("delete", id), ("patch", (id, mapping)), ("act", dict)."""
    def write_unless_changed(
        self,
        changes: Iterable[tuple[str, Any]],
        face: str | None,
        since: tuple[str, int],
        read: list[str],
        attachments: list[_Rows] | None = None,
        *,
        at_us: int | None = None,
    ) -> tuple[WalEvent, Edition, Edition] | None:
        """Write changes and embeddings as one batch, unless an id that was read changed since.

        Return the last event and the editions before and after it. None also if it is unknown what changed,
        since the log is another one, or was compacted. With ``at_us`` the events carry that moment, unless it
        is still to come.
        """
    def ingest(
        self,
        path: _Path,
        progress: _Progress = None,
        *,
        faces: bool = False,
        skips: bool = False,
        text: tuple[bytes, int, int] | None = None,
    ) -> _Dict:
        """Load NDJSON: {"records", "bytes", "lines", "first_seq", "last_seq", "skipped", "refusals"}.

        With ``text`` the lines come from there; it also has how many lines and records came before them.
        """
    def in_turn(self, work: Callable[[], _T]) -> _T:
        """Call ``work`` while no other thread or process writes; after a second others may write again."""

    # More reading.

    def tally(self) -> list[tuple[str, str, bool, int]]:
        """Return the number of records by kind, status and whether a face wrote them."""
    def records_at_once(self, ids: list[str]) -> _Look:
        """Return edition, bookmark, records, and numbers for the scopes of those that may be changed.

        Records that no verb of their face can use are left out.
        """
    def walk(self, request: _Dict) -> Walk: ...

    # The log and the past.

    def sync(self) -> None: ...
    def log_status(self) -> _Dict:
        """Return counters of the open log from memory: what was written, what is synced, what failed."""
    def last_event(self) -> tuple[int, str]: ...
    def latest_us(self) -> int | None: ...
    def bookmark(self) -> tuple[str, int]:
        """Return the hash of the last event and the place behind it."""
    def has_event(self, seq: int, hash: str) -> bool: ...
    def replay(self, from_seq: int) -> list[bytes]: ...
    def history(self, record_id: str) -> list[bytes]: ...
    def changed_since(self, seq: int, *, faces: bool = False) -> list[str]: ...
    def as_of(self, seq: int | None = None, ts_us: int | None = None) -> Reader: ...

@final
class Upkeep:
    """Checks, copies, erases, repairs and configures a store."""

    def findings(self) -> _Dict: ...  # What opening found, in the shape of verify().
    def in_doubt(self) -> tuple[int, list[str]]: ...  # Records that lost events may be about; the ids known.
    def verify(self, progress: _Progress) -> _Dict: ...
    def verify_opened(self) -> None:
        """Verify log and base, unless that was done since the store was opened; see `findings`."""

    def accept_head(self) -> None: ...
    def compact(self, keep_history: bool, progress: _Progress) -> int:
        """Compact the log and return how many events the old one had."""
    def erase(self, order: _Dict, progress: _Progress = None) -> _Dict:
        """Erase records and return the report.

        The order has all of: ids, reason, drop_history, again, derived, dry_run; it may have scope, due_at
        and condition.
        """
    def prune(self, order: _Dict) -> _Dict:
        """Remove old archives and backups; the order has before, keep_backups, reason and dry_run."""
    def backup(self, progress: _Progress) -> str: ...
    def copy_out(self, to: _Path, keep: int | None, progress: _Progress) -> _Dict: ...
    def copies(self) -> list[_Dict]: ...
    def forget_copies(self, paths: Sequence[_Path]) -> int: ...
    def restore(self, order: _Dict, progress: _Progress) -> _Dict | None:
        """Restore a backup; the order has source, damaged and bring_back."""
    def repair(self, progress: _Progress, unproven: bool) -> _Dict: ...
    def require(self, level: str, wanted: bool) -> bool:
        """Require a name of a level for every write, or not; return whether that is new."""
    def create_index(self, path: str) -> bool: ...
    def drop_index(self, path: str) -> bool: ...
    def indexes(self) -> list[str]: ...

@final
class Vectors:
    """The embeddings of a store. A space of None is the one that choose_space named, at first "default"."""

    def attach(self, rows: _Rows, since: tuple[str, int] | None = None) -> tuple[int, int] | None:
        """Return the first seq and the one after the last.

        With a bookmark nothing is written and None returned if a record changed, or has an embedding.
        """
    def attach_part(self, part: TablePart, without: list[int], space: str | None, model: str | None) -> int:
        """Attach the embeddings of the rows of a part, without those rows; return how many."""
    def detach(self, ids: list[str], space: str | None) -> int: ...
    def embedding(self, record_id: str, space: str | None) -> bytes | None: ...
    def spaces(self) -> list[_Dict]: ...
    def rows_seen(self, space: str) -> tuple[int, int] | None: ...  # living, damaged; None: sees all
    def choose_space(self, name: str) -> None: ...
    def drop_space(self, name: str, force: bool) -> int: ...
    def matrix(self, *, space: str | None = None) -> tuple[str, int, int, list[str | None]]:
        """Return the file of a space, its rows and dimension, and the visible record of each row."""
    def nearest(self, queries: _Floats, request: _Dict) -> list[list[tuple[str, float, int]]]:
        """Return id, score and row, best first, for each row of queries.

        The request has k and min_confidence; it may have space, kind, status, among, min_score, condition.
        """

@final
class TableReader:
    """An Arrow stream as lines of JSON and embeddings. Fields are pairs of a field and a column, or "*"."""

    def __new__(cls, source: object, fields: list[tuple[str, str]] | None, vector: str | None) -> Self: ...
    def next(self, most: int) -> TablePart | None: ...

@final
class TablePart:
    """Some rows of a table: a line for each, which is empty if the row is refused."""

    @property
    def text(self) -> bytes: ...
    @property
    def first_row(self) -> int: ...
    @property
    def rows(self) -> int: ...
    @property
    def refusals(self) -> list[tuple[int, str | None, str, str]]: ...  # row, id, field, reason

@final
class Blocks:
    """The blocks of a store."""

    def recall(self, question: _Dict) -> _Dict:
        """Answer a question about blocks.

        The question has all of: hours, k, weights (of the five components), tag_patterns, categories, window,
        min_confidence, guarantees, space, vector, query_tokens, token_space, text, by_words, now_us,
        expansion, diversify, exploration, frame, budget, condition.
        {"results": [(id, score, five components, tokens, expanded, guaranteed, record or None, own scope)],
        "dropped": [(id, "contradiction" or "budget")], "clashes": [(id, id)], "candidates": how many}
        """
    def nearest(
        self, space: str, vectors: _Floats, number: int, least: float
    ) -> list[list[tuple[str, float]]]:
        """For each row at most ``number`` active blocks of at least this cosine, the nearest first."""
    def arrival(
        self, block_id: str, ids: list[str], space: str, vector: _Floats, number: int, least: float
    ) -> tuple[list[str], _Look, list[list[tuple[str, float]]]]:
        """Fetch records, then the active blocks near a vector, each with its link to a block.

        Return the ids of all that was fetched, what ``records_at_once`` returns of them, and the neighbours.
        """
    def tagged(self, pattern: str) -> list[str]: ...
    def links(self, ids: list[str]) -> list[tuple[str, str]]: ...
    def forming(self, ids: list[str]) -> list[list[str]]: ...
    def contradictions(self, ids: list[str]) -> list[tuple[str, str]]: ...
    def misfits(self) -> list[tuple[str, str, str]]: ...  # id, field, reason
    def census(self) -> tuple[int, int, int, int]: ...  # links, contradictions, forming links, in sessions
    def get(self, record_id: str) -> ChronoRecord | None: ...
    def records(
        self, kind: str, status: _Text, limit: int | None, *, own: bool = False
    ) -> list[ChronoRecord]:
        """The records of a kind of this face: no plain ones, and none that it would not have written."""
    def count(self, kind: str, status: str, own: bool) -> int: ...

@final
class Edition:
    """Which state of records a caller saw: two are equal if nothing visible changed in between."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Walk:
    """Records as they were when it began, each made when it is asked for."""

    def __iter__(self) -> Walk: ...
    def __next__(self) -> ChronoRecord: ...
    def __length_hint__(self) -> int: ...
    def lines_without(
        self,
        count: int,
        *,
        ids: list[str],
        kind: str,
        prefixes: Sequence[str],
        line_of: Callable[[ChronoRecord], bytes],
    ) -> bytes | None:
        """Return the next records as lines of an export, without those of others and some; None at the end.

        ``line_of`` makes the line of a record that lacks a field.
        """

    def close(self) -> None: ...

# Hooks for os.register_at_fork; the last returns the descriptors of the parent's lock files.
def before_fork() -> None: ...
def after_fork_in_parent() -> None: ...
def after_fork_in_child() -> list[int]: ...
def store_folder(project_root: _Path) -> Path:
    """Return the folder of a project's store, whether it exists or not: a backup is its own."""

def file_holds(path: _Path, texts: Sequence[bytes]) -> bool: ...
def verify_path(log_folder: _Path, progress: _Progress = None, head_file: _Path | None = None) -> _Dict:
    """Check the files of a store's folder without opening it.

    {"valid", "events", "first_seq", "last_seq", "head", "fast_lines", "slow_lines", "blank_lines", "bytes",
    "committed_end", "base", "damage": [{"path", "offset", "line", "seq", "kind", "reason"}],
    "altered_indexes" and "returned": as "damage", "tail": None or {"offset", "length", "reason"}, "notes",
    "remembered": "kept", "lost", "unknown", "unseen" or "unreadable", "remembered_reason"}
    """

def canonical_json(value: object) -> bytes: ...
def indented_json(value: object) -> bytes: ...
def parse_json(text: bytes) -> Any:
    """Read JSON as strictly as a log line is read; ValueError otherwise."""

# The words of a text as the index knows them, those that a question asks for, the words, numbers, quotations
# and signs of a statement without "the" and the last sign, and a row of codes for each
# record, which has so many of the vectors.
def text_words(text: str) -> list[str]: ...
def question_words(text: str) -> list[str]: ...
def statement_pieces(text: str) -> list[str]: ...
def token_rows(vectors: _Floats, counts: list[int], most: int) -> _Floats: ...
def unset_attribute(record: ChronoRecord, name: str) -> Any:
    """Return a field of a record that holds only its bytes, and set all that were not assigned before."""

def sha256_hex(content: bytes) -> str: ...
def event_hash(fields: Mapping[str, Any]) -> str:
    """The hash of an event: of all these fields but ``hash``."""
