"""The types of what the engine offers to Python; the library behind this page is built from rust/python.

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

from chronomemory.record import ChronoRecord

__all__ = [
    "Deltas",
    "Edition",
    "Engine",
    "Store",
    "Told",
    "View",
    "WalEvent",
    "Walk",
    "__version__",
    "canonical_json",
    "event_hash",
    "file_holds",
    "fit_budget",
    "indented_json",
    "parse_json",
    "question_words",
    "store_folder",
    "text_words",
    "token_rows",
    "verify_path",
]

__version__: str

_T = TypeVar("_T")

_Progress = Callable[[int, int], object] | None
_Record = ChronoRecord | Mapping[str, Any]
_Path = str | PathLike[str]
_Text = str | None
_Kinds = str | list[str] | None
_Dict = dict[str, Any]
# Ids, their rows, space, model and, of codes, the length of the token vectors.
_Attachments = list[tuple[list[str], npt.NDArray[np.float32], str | None, str | None, int]] | None
_Records = list[ChronoRecord]
_Maybe = list[ChronoRecord | None]
_Names = tuple[_Text, _Text, _Text] | None
_After = tuple[Any, str] | None
_Found = tuple[ChronoRecord, float, _Dict | None]
_Made = tuple[int | None, int | None, int, int]
_End = tuple[int | None, _Made, _Made | None]
_Floats = npt.NDArray[np.float32]

@final
class WalEvent:
    """One event: what happened to which record, chained to the event before.

    One that comes from the log is parsed at the first look at a field: who ignores it does not pay for it.
    """

    seq: int
    ts: str
    op: str
    record_id: str
    record: _Dict | None
    prev_hash: str
    hash: str
    recursion_depth: int

    def __new__(
        cls,
        seq: int = 0,
        ts: str = "",
        op: str = "upsert",
        record_id: str = "",
        record: _Dict | None = None,
        prev_hash: str = "",
        hash: str = "",
        recursion_depth: int = 0,
    ) -> WalEvent: ...
    @staticmethod
    def _of_line(line: bytes) -> WalEvent:
        """Wrap a line that the engine vouches for; it is parsed when someone looks."""
    @classmethod
    def from_json_line(cls, line: str | bytes) -> WalEvent:
        """Read a line of either dialect, with or without its line end; other keys are ignored."""
    def to_json_line(self) -> str:
        """Write the event as our own log does: hash first, keys sorted, without the newline."""
    def compute_hash(self) -> str:
        """Return the hash that the seven other fields ask for; ``hash`` itself stays as it is."""
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[type[WalEvent], tuple[Any, ...]]: ...
    __hash__: None  # type: ignore[assignment]

@disjoint_base
class Store:
    """What ``ChronoStore`` is made of: it opens and closes the engine that is kept here."""

    _engine: Engine | None
    def __new__(cls, *_args: Any, **_options: Any) -> Self: ...
    def upsert(self, record: _Record, *, if_version: str | None = None, if_new: bool = False) -> WalEvent:
        """Write a record; with ``if_version`` the one there is of that, with ``if_new`` there is none."""

@final
class Engine:
    """An open store; nothing is created before the first write."""

    def __new__(
        cls,
        project_root: _Path,
        *,
        recursion_depth: int = 0,
        durability: str = "normal",
        exclusive: bool = False,
        lock_timeout: float = 5.0,
        strict: bool = False,
        verify: str = "full",
        head_file: _Path | None = None,
        shared: bool = False,
        salt: str = "scope",
    ) -> Engine: ...
    def scoped(
        self, user: _Text = None, agent: _Text = None, session: _Text = None, *, shared: bool = True
    ) -> Engine:
        """The same store for one who gives names."""
    def with_expired(self) -> Engine: ...
    def due(self, now: int | None = None) -> list[str]: ...
    def sweep(self, now: int | None = None) -> list[str]: ...
    def moment(self) -> int: ...
    def set_moment(self, moment: int | None = None) -> None: ...
    def everyone(self) -> Engine:
        """The same store for one who sees everything."""
    def on_terms(self, *, recursion_depth: int, durability: str, lock_timeout: float, salt: str) -> Engine:
        """The same store for one who writes on other terms; closing one of them closes all."""
    def pulse(self) -> _Dict:
        """How the log is, as far as memory tells: what was written from here, what is synced, what failed."""
    def scopes(self, after: _Names = None, *, limit: int) -> list[tuple[_Text, _Text, _Text, int]]:
        """The scopes behind this one, in their order: user, agent, session and the number of records."""
    def are_own(self, ids: list[str]) -> list[bool]: ...
    def public(self) -> Engine: ...  # For one without names who means all who use it.
    def acting(self) -> Engine: ...  # For one who sees everything and acts for whom this is.
    def require(self, level: str, wanted: bool) -> bool:
        """Say that every write must come with a name of a level, or need not: whether that is new."""
    def is_known(self) -> bool: ...
    def scope_names(self) -> _Names: ...  # Who asks: user, agent and session; None for everyone.
    def sees_wider(self) -> bool: ...
    def seen_version(self) -> tuple[int, int]: ...  # Tells what is seen now from what was seen before.
    def scope_digits(self) -> str: ...  # They stand for the scope in ids; nothing for what is shared.
    def close(self) -> None: ...
    def findings(self) -> _Dict: ...  # What opening found, in the shape of verify().
    def in_doubt(self) -> tuple[int, list[str]]: ...  # Records that lost events may be about; the ids known.
    def upsert(self, record: _Record, face: str | None = None) -> WalEvent: ...
    def upsert_at_once(self, record: _Record, face: str | None = None) -> bool:
        """An upsert that is written only if nobody has to be waited for, and says whether it was."""
    def insert(self, record: _Record, face: str | None = None) -> WalEvent | None: ...  # None: it is taken.
    def upsert_many(self, records: Iterable[_Record], face: str | None = None) -> tuple[int, int]:
        """One atomic batch; the first seq of the records and the one after the last."""
    def delete(self, record_id: str, face: str | None = None) -> WalEvent: ...
    def patch(self, record_id: str, patch: Mapping[str, Any], face: str) -> WalEvent: ...
    def write(self, changes: Iterable[tuple[str, Any]], face: str | None = None) -> tuple[int, int]:
        """One atomic batch of ("upsert", record), ("delete", id), ("patch", (id, mapping)), ("act", dict)."""
    def upsert_good(
        self, records: list[Any]
    ) -> tuple[int, int, int, list[tuple[int, str | None, str | None, str]]]:
        """One batch of what can be written: how many, first seq, the one after the last, what was left out.

        Of what was left out: its place, id, path and reason.
        """
    def ingest(
        self, path: _Path, progress: _Progress = None, *, faces: bool = False, skips: bool = False
    ) -> _Dict:
        """Load NDJSON: {"records", "bytes", "lines", "first_seq", "last_seq", "skipped", "refusals"}."""
    def ingest_lines(self, name: _Path, bytes: bytes, lines: int, kept: int, *, skips: bool = False) -> _Dict:
        """The same for lines that were read already, and what came before them."""
    def sync(self) -> None: ...
    def syncs(self) -> int:
        """How often this store has waited for the disk to take its log."""
    def get_many(self, ids: list[str]) -> list[ChronoRecord | None]: ...
    def get(self, record_id: str) -> ChronoRecord | None: ...
    def query(
        self,
        *,
        kind: _Kinds = None,
        status: str | None = "active",
        min_confidence: float = 0.0,
        limit: int | None = None,
        faces: bool = False,
    ) -> list[ChronoRecord]: ...
    def select_dicts(self, wanted: _Dict) -> list[_Dict]: ...
    def create_index(self, path: str) -> bool: ...
    def drop_index(self, path: str) -> bool: ...
    def indexes(self) -> list[str]: ...
    def find(
        self, index: str, key: Sequence[Any], *, after: _After = None, limit: int, reverse: bool = False
    ) -> list[ChronoRecord]: ...
    def reach(
        self, network: str, starts: list[str], hops: int, wanted: _Dict, *, joints: bool = False
    ) -> tuple[list[tuple[str, int]], list[str]]:
        """Wanted has all of: direction (out, in, both), kinds and end_kinds (lists, or None for all)."""
    def routes(
        self, network: str, source: str, target: str, wanted: _Dict, *, hops: int, limit: int
    ) -> list[list[str]]: ...  # the shortest ways, each as the ids of what joins one to the next
    def islands(self, network: str, wanted: _Dict) -> list[list[str]]: ...
    def page(self, terms: _Dict) -> tuple[list[ChronoRecord], _End | None, str]: ...
    def walk(self, terms: _Dict) -> Walk: ...
    def deltas(self, face: str, terms: _Dict, promotion: _Dict) -> Deltas: ...
    def export(self, *, status: str | None = "active", faces: bool = False) -> list[_Dict]: ...
    def count(self, *, kind: _Kinds = None, status: _Text = "active", faces: bool = False) -> int: ...
    def tally(self) -> list[tuple[str, str, bool, int]]: ...
    def wal_seq(self) -> int: ...
    def head(self) -> str: ...
    def last_event(self) -> tuple[int, str]: ...
    def has_event(self, seq: int, hash: str) -> bool: ...
    def replay(self, from_seq: int = 0) -> list[bytes]: ...
    def history(self, record_id: str) -> list[bytes]: ...
    def changed_since(self, seq: int, *, faces: bool = False) -> list[str]: ...
    def search(self, wanted: _Dict, *, explain: bool = False) -> list[_Found]: ...
    def latest_us(self) -> int | None: ...
    def as_of(self, seq: int | None = None, ts_us: int | None = None) -> View: ...
    def verify(self, progress: _Progress = None) -> _Dict: ...
    def accept_head(self) -> None: ...
    def compact(self, *, keep_history: bool = True, progress: _Progress = None) -> int: ...
    def erase(
        self,
        ids: Sequence[str],
        *,
        scope: bytes | None = None,
        reason: str,
        drop_history: bool = False,
        again: Sequence[str] = ...,
        derived: bool = False,
        dry_run: bool = False,
        due_at: int | None = None,
        condition: bytes | None = None,
        progress: _Progress = None,
    ) -> _Dict: ...
    def prune(self, before: int | None, backups: int | None, reason: str, dry: bool) -> _Dict: ...
    def backup(self, progress: _Progress = None) -> str: ...
    def copy_out(self, to: _Path, keep: int | None = None, progress: _Progress = None) -> _Dict: ...
    def copies(self) -> list[_Dict]: ...
    def forget_copies(self, paths: Sequence[_Path]) -> int: ...
    def restore(
        self, source: _Path, progress: _Progress = None, *, damaged: bool = ..., bring_back: bool = ...
    ) -> _Dict | None: ...
    def repair(self, progress: _Progress = None, *, unproven: bool = False) -> _Dict: ...
    def bookmark(self) -> tuple[str, int]: ...
    def in_turn(self, work: Callable[[], _T]) -> _T:
        """Call ``work`` while no other thread or process writes; after a second others may write again."""
    def write_unless_changed(
        self,
        changes: Iterable[tuple[str, Any]],
        face: str | None,
        since: tuple[str, int],
        read: list[str],
        attachments: _Attachments = None,
        *,
        at_us: int | None = None,
    ) -> tuple[WalEvent, Edition, Edition] | None:
        """Write changes as one batch and return the last event, unless an id that was read changed since.

        Attachments are of records that are there or come with the changes.
        None also if nobody can tell what changed, since the log is another one, or was compacted. With
        ``at_us`` the events carry that moment, unless it is still to come.
        """

    # Embeddings. A space of None is the one that choose_space named, at first "default".

    def attach(
        self,
        ids: list[str],
        matrix: _Floats,
        *,
        space: str | None = None,
        model: str | None = None,
        since: tuple[str, int] | None = None,
        tokens: int = 0,
    ) -> tuple[int, int] | None:
        """First seq and the one after the last; with a bookmark None if a record changed, or has one."""
    def detach(self, ids: list[str], *, space: str | None = None) -> int: ...
    def embedding(self, record_id: str, *, space: str | None = None) -> bytes | None: ...
    def spaces(self) -> list[_Dict]: ...
    def rows_seen(self, space: str) -> tuple[int, int] | None: ...  # living, damaged; None: sees all
    def choose_space(self, name: str) -> None: ...
    def drop_space(self, name: str, *, force: bool = False) -> int: ...
    def matrix(self, *, space: str | None = None) -> tuple[str, int, int, list[str | None]]: ...
    def nearest(
        self,
        queries: _Floats,
        k: int,
        *,
        space: str | None = None,
        kind: str | None = None,
        status: str | None = None,
        min_confidence: float = 0.0,
        among: list[str] | None = None,
        min_score: float | None = None,
        condition: bytes | None = None,
    ) -> list[list[tuple[str, float, int]]]:
        """Id, score and row, best first, for each row of queries."""

    # Blocks.

    def recall_blocks(self, question: _Dict) -> _Dict:
        """Answer a question about blocks.

        The question has all of: hours, k, weights (of the five components), tag_patterns, categories, window,
        min_confidence, guarantees, space, query (float32 bytes or None), tokens (likewise), token_space,
        token_dim, text, by_words, now_us, expansion, diversify, exploration, frame, budget, condition.
        {"results": [(id, score, five components, tokens, expanded, guaranteed, record or None, own scope)],
        "dropped": [(id, "contradiction" or "budget")], "clashes": [(id, id)], "candidates": how many}
        """
    def nearest_blocks(
        self, space: str, vectors: bytes, dim: int, number: int, least: float
    ) -> list[list[tuple[str, float]]]:
        """For each float32 vector up to so many active blocks of at least this cosine, the nearest first."""
    def blocks_tagged(self, pattern: str) -> list[str]: ...
    def block_links(self, ids: list[str]) -> list[tuple[str, str]]: ...
    def blocks_forming(self, ids: list[str]) -> list[list[str]]: ...
    def blocks_counted(self) -> tuple[int, int, int, int]: ...
    def block_contradictions(self, ids: list[str]) -> list[tuple[str, str]]: ...
    def block_records(self, kind: str, status: _Text, limit: int | None, *, own: bool = False) -> _Records:
        """The records of a kind of this face: no plain ones, and none that it would not have written."""
    def block_count(self, kind: str, status: str, *, own: bool = False) -> int: ...
    def block_record(self, record_id: str) -> ChronoRecord | None: ...
    def records_at_once(self, ids: list[str]) -> tuple[Edition, tuple[str, int], _Maybe, list[int | None]]:
        """What is seen, a bookmark, records, and numbers for the scopes of those that may be changed."""
    def edition(self) -> Edition: ...
    def block_misfits(self) -> list[tuple[str, str, str]]: ...

@final
class Edition:
    """What somebody saw at a moment: two of these are equal if none of it changed in between."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Told:
    """Records as they were handed out, and their moments."""

    def packed(self, at: int) -> bytes: ...

@final
class Walk:
    """Records as they were when it began, each made when it is asked for."""

    def __iter__(self) -> Walk: ...
    def __next__(self) -> ChronoRecord: ...
    def __length_hint__(self) -> int: ...
    def close(self) -> None: ...

@final
class Deltas:
    """Pages of four lists: of each delta what stands for its kind, its user, its fields; bad episodes."""

    def __iter__(self) -> Deltas: ...
    def __next__(self) -> tuple[list[Any], list[str], list[_Dict], list[str]]: ...

@final
class View:
    """A read-only look at the store as it was."""

    @property
    def seq(self) -> int: ...
    def scope_digits(self) -> str: ...
    def scope_names(self) -> _Names: ...
    def sees_wider(self) -> bool: ...
    def is_known(self) -> bool: ...
    def get(self, record_id: str) -> ChronoRecord | None: ...
    def query(
        self,
        *,
        kind: _Kinds = None,
        status: str | None = "active",
        min_confidence: float = 0.0,
        limit: int | None = None,
        faces: bool = False,
    ) -> list[ChronoRecord]: ...
    def page(self, terms: _Dict) -> tuple[list[ChronoRecord], _End | None, str]: ...
    def find(
        self, index: str, key: Sequence[Any], *, after: _After = None, limit: int, reverse: bool = False
    ) -> list[ChronoRecord]: ...
    def reach(
        self, network: str, starts: list[str], hops: int, wanted: _Dict, *, joints: bool = False
    ) -> tuple[list[tuple[str, int]], list[str]]: ...
    def routes(
        self, network: str, source: str, target: str, wanted: _Dict, *, hops: int, limit: int
    ) -> list[list[str]]: ...
    def islands(self, network: str, wanted: _Dict) -> list[list[str]]: ...
    def search(self, wanted: _Dict, *, explain: bool = False) -> list[_Found]: ...
    def count(self, *, kind: _Kinds = None, status: _Text = "active", faces: bool = False) -> int: ...

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

def fit_budget(tokens: list[int], guaranteed: list[bool], budget: int | None) -> list[bool]:
    """Which results fit a budget, in their order."""

def canonical_json(value: object) -> bytes: ...
def indented_json(value: object) -> bytes: ...
def parse_json(text: bytes) -> Any:
    """Read JSON as strictly as a log line is read; ValueError otherwise."""

# The words of a text as the index knows them, those that a question asks for, and a row of codes for each
# record, which has so many of the vectors.
def text_words(text: str) -> list[str]: ...
def question_words(text: str) -> list[str]: ...
def token_rows(vectors: _Floats, counts: list[int], most: int) -> _Floats: ...
def event_hash(fields: Mapping[str, Any]) -> str:
    """The hash of an event: of all these fields but ``hash``."""
