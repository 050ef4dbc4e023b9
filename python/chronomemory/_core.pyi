"""What the engine offers to Python; the library behind it is built from rust/python."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, final

from chronomemory.record import ChronoRecord

__version__: str

Progress = Callable[[int, int], object]

@final
class Engine:
    """An open store. Every call may raise the errors of chronomemory.errors."""

    def __new__(
        cls,
        project_root: str,
        *,
        recursion_depth: int = 0,
        durability: str = "normal",        # full | normal | off
        exclusive: bool = False,
        lock_timeout: float = 5.0,
        strict: bool = False,
        verify: str = "full",              # full | quick
    ) -> Engine: ...
    def close(self) -> None: ...                       # idempotent; later calls raise StoreClosed
    def findings(self) -> dict[str, Any]: ...          # what open found: same dict shape as verify()
    # writes. `face` is None for plain records, else the name of the face ("blocks", "graph", ...), which allows its id prefixes.
    def upsert(self, record: ChronoRecord | Mapping[str, Any], face: str | None = None) -> bytes: ...   # the log line, without newline
    def insert(self, record: ChronoRecord | Mapping[str, Any], face: str | None = None) -> bytes | None: ...
    def upsert_many(self, records: Iterable[ChronoRecord | Mapping[str, Any]], face: str | None = None) -> tuple[int, int]: ...  # (first seq of records, last seq + 1)
    def delete(self, record_id: str, face: str | None = None) -> bytes: ...
    def patch(self, record_id: str, patch: Mapping[str, Any], face: str) -> bytes: ...
    # one atomic batch of mixed changes: ("upsert", record) | ("delete", id) | ("patch", (id, mapping))
    def write(self, changes: Iterable[tuple[str, Any]], face: str | None = None) -> tuple[int, int]: ...
    def ingest(self, path: str, progress: Progress | None = None, batch: int = 10_000) -> dict[str, Any]: ...  # {"records", "bytes", "first_seq", "last_seq"}
    def sync(self) -> None: ...
    # reads: records are fresh copies
    def get(self, record_id: str) -> ChronoRecord | None: ...
    def query(self, *, kind: str | None = None, status: str | None = "active", min_confidence: float = 0.0,
              limit: int | None = None, faces: bool = False) -> list[ChronoRecord]: ...   # insertion order; status None or "" = all
    def export(self, *, status: str | None = "active", faces: bool = False) -> list[dict[str, Any]]: ...
    def count(self, *, kind: str | None = None, status: str | None = "active", faces: bool = False) -> int: ...
    def tally(self) -> list[tuple[str, str, bool, int]]: ...     # (kind, status, belongs to a face, how many)
    def wal_seq(self) -> int: ...
    def head(self) -> str: ...
    def replay(self, from_seq: int = 0) -> list[bytes]: ...     # log lines
    def history(self, record_id: str) -> list[bytes]: ...
    def changed_since(self, seq: int, *, faces: bool = False) -> list[str]: ...          # ids upserted or patched at seq or later, each once, in order of first change
    def as_of(self, seq: int | None = None, ts_us: int | None = None) -> View: ...
    # evidence and care
    def verify(self, progress: Progress | None = None) -> dict[str, Any]: ...
    def compact(self, *, keep_history: bool = True, progress: Progress | None = None) -> int: ...
    def backup(self, progress: Progress | None = None) -> str: ...      # the new folder
    def restore(self, source: str) -> None: ...
    def repair(self) -> dict[str, Any]: ...

@final
class View:
    """A read-only look at the store as it was."""
    @property
    def seq(self) -> int: ...
    def get(self, record_id: str) -> ChronoRecord | None: ...
    def query(self, *, kind: str | None = None, status: str | None = "active", min_confidence: float = 0.0,
              limit: int | None = None, faces: bool = False) -> list[ChronoRecord]: ...
    def count(self, *, kind: str | None = None, status: str | None = "active", faces: bool = False) -> int: ...

def verify_path(log_folder: str, progress: Progress | None = None) -> dict[str, Any]: ...   # verify() of a `.chronomemory` folder without opening it
def canonical_json(value: object) -> bytes: ...
def parse_json(text: bytes) -> Any: ...             # strict: what a log line may hold; ValueError otherwise
def event_hash(fields: Mapping[str, Any]) -> str: ...   # hash of the seven payload fields
# verify() returns {"valid": bool, "events": int, "first_seq": int|None, "last_seq": int, "head": str, "fast_lines": int, "slow_lines": int, "blank_lines": int,
#   "bytes": int, "committed_end": int, "base": "none"|"anchored"|"adopted"|"unanchored"|"missing"|"damaged",
#   "damage": [{"path","offset","line","seq","kind","reason"}], "tail": None|{"offset","length","reason"}, "notes": [str]}
