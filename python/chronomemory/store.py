"""What may a caller ask of a project's memory?"""

from __future__ import annotations

import errno
import os
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NoReturn

from chronomemory import metrics, migrate, reembedding, search, selection, updates, vectors
from chronomemory._core import Door, Engine, verify_path
from chronomemory.complaints import complaints
from chronomemory.deps import DepGraph
from chronomemory.event import WalEvent
from chronomemory.face.arguments import (
    count,
    finite,
    flag,
    function_or_none,
    many,
    path,
    string,
    string_or_none,
    word,
)
from chronomemory.heads import head_file
from chronomemory.layout import log_folder
from chronomemory.migrate import _governance_to_esdb_status
from chronomemory.record import ChronoRecord
from chronomemory.rollback import RollbackReport, invalidate
from chronomemory.types import IngestReport, Progress, VerifyReport
from chronomemory.view import StoreView, look_back

__all__ = ["ChronoRecord", "ChronoStore", "WalEvent", "open_store"]

_DURABILITY = ("full", "normal", "off")
_VERIFY = ("full", "quick")


class ChronoStore(Door):
    """The memory of one project: records in a chained log under ``<project_root>/.chronomemory``.

    The first call that needs the store opens it, also after ``close``; reading never creates
    a file. One store may be shared between threads, and many processes may open the same project.
    Its files are private to whoever makes it; with ``shared``, the group may read and write too.

    >>> import tempfile
    >>> with ChronoStore(tempfile.mkdtemp()) as store:
    ...     event = store.upsert(ChronoRecord(id="FACT-1", label="Water is wet"))
    ...     store.get("FACT-1").label, event.seq
    ('Water is wet', 1)
    """

    def __init__(
        self,
        project_root: str | os.PathLike[str],
        *,
        recursion_depth: int = 0,
        durability: str = "normal",
        exclusive: bool = False,
        lock_timeout: float = 5.0,
        strict: bool = False,
        verify: str = "full",
        head_file: str | os.PathLike[str] | None = None,
        shared: bool = False,
    ) -> None:
        self._engine = None
        # Absolute: a process that goes to another folder must not take its stores along.
        self.project_root = path("project_root", project_root).absolute()
        self.recursion_depth: Final = count("recursion_depth", recursion_depth)
        self._given_head_file = None if head_file is None else path("head_file", head_file).absolute()
        self._options: dict[str, Any] = {
            "recursion_depth": self.recursion_depth,
            "durability": word("durability", durability, _DURABILITY),
            "exclusive": flag("exclusive", exclusive),
            "lock_timeout": finite("lock_timeout", lock_timeout, least=0.0),
            "strict": flag("strict", strict),
            "verify": word("verify", verify, _VERIFY),
            "shared": flag("shared", shared),
        }
        self._opening = threading.Lock()
        self._process = os.getpid()
        self._opened_by = 0

    # Life.

    def open(self) -> ChronoStore:
        """Open the store unless it is open, and warn of damage or an interrupted write."""
        self._opened()
        return self

    def _opened(self) -> Engine:
        with self._turn():
            # INVARIANT: an engine belongs to the process that made it; after a fork the
            # child must not go on with its parent's.
            engine = self._engine
            if engine is None or self._opened_by != os.getpid():
                engine = self._make_engine()
                try:
                    for complaint in complaints(self.project_root, engine.findings()):
                        warnings.warn(complaint, RuntimeWarning, stacklevel=3)
                except BaseException:  # a caller who makes warnings errors gets a closed store
                    engine.close()
                    raise
                self._engine, self._opened_by = engine, os.getpid()
        return engine

    def _turn(self) -> threading.Lock:
        """Return the lock of those who open and close; a forked child must not wait for its parent's."""
        if self._process != os.getpid():
            self._opening, self._process = threading.Lock(), os.getpid()
        return self._opening

    def _make_engine(self, **other_options: Any) -> Engine:
        options = {**self._options, **other_options}
        return Engine(os.fspath(self.project_root), head_file=self.head_file, **options)

    @property
    def head_file(self) -> Path | None:
        """Where the last head is remembered: the file that was given, or one of the user's state."""
        return self._given_head_file or head_file(self.project_root)

    def close(self) -> None:
        """Close the store; closing twice is fine, and the next call opens it again."""
        with self._turn():
            engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    def __enter__(self) -> ChronoStore:
        return self.open()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        engine = getattr(self, "_engine", None)
        if engine is not None:
            warnings.warn(f"unclosed store {self!r}", ResourceWarning, source=self, stacklevel=2)
            engine.close()

    def __copy__(self) -> ChronoStore:
        raise TypeError("a store cannot be copied: open the project again")

    def __reduce__(self) -> NoReturn:
        raise TypeError("a store cannot be pickled: open the project again")

    def __repr__(self) -> str:
        state = "closed" if self._engine is None else "open"
        return f"<ChronoStore {os.fspath(self.project_root)!r}, {state}>"

    @property
    def engine(self) -> Engine:
        """The open engine: the doorway that the other faces of this package write through."""
        return self._engine or self._opened()

    # Writing.

    def insert(self, record: ChronoRecord | Mapping[str, Any]) -> WalEvent | None:
        """Write a record unless its id is taken, by another process too; return None if it is."""
        return self.engine.insert(record)

    def upsert_many(self, records: Iterable[ChronoRecord | Mapping[str, Any]]) -> range:
        """Write records as one atomic batch, all or none; return the seqs they took."""
        return range(*self.engine.upsert_many(many("records", records)))

    def ingest(
        self,
        source: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        *,
        progress: Progress | None = None,
    ) -> IngestReport:
        """Load NDJSON files of records, one object a line, without a Python object per row.

        Each file goes in as a row of atomic batches: an error ends the load at the batch that
        has the bad line, and what came before it stays. ``progress`` gets bytes done and in all; what
        it raises is raised once its file is loaded, and the files after that are not.
        """
        progress = function_or_none("progress", progress)
        sources = [source] if isinstance(source, str | os.PathLike) else many("source", source)
        paths = [path("source", name) for name in sources]
        sizes = [file.stat().st_size for file in paths]
        for file in paths:
            if not file.is_file():
                raise OSError(errno.EINVAL, "not a regular file; its rows can only be read once", str(file))
        records = done = 0
        seqs: list[int] = []
        for file, size in zip(paths, sizes, strict=True):
            told = self.engine.ingest(os.fspath(file), _shifted(progress, done, sum(sizes)))
            done += size
            records += told["records"]
            if told["records"]:
                seqs += (told["first_seq"], told["last_seq"])
        first, last = (seqs[0], seqs[-1]) if seqs else (None, None)
        return IngestReport(records, done, first, last, [str(file) for file in paths])

    def delete(self, record_id: str) -> WalEvent:
        """Tombstone a record: ``get`` still returns it, ``query`` hides it."""
        return self.engine.delete(record_id)

    def sync(self) -> None:
        """Wait until everything written so far is on disk."""
        self.engine.sync()

    # Reading. Records are copies: changing one changes nothing until it is upserted.

    def get(self, record_id: str) -> ChronoRecord | None:
        """Return a record, a tombstoned one too, or None."""
        return self.engine.get(record_id)

    def record_count(self) -> int:
        """Return how many plain records are active."""
        return self.engine.count()

    def record_counts(self, *, status: str | None = "active", faces: bool = False) -> dict[str, int]:
        """Return how many records there are of each kind."""
        status, faces = string_or_none("status", status), flag("faces", faces)
        counts: dict[str, int] = {}
        for kind, its_status, of_face, number in self.engine.tally():
            if (faces or not of_face) and (not status or its_status == status):
                counts[kind] = counts.get(kind, 0) + number
        return counts

    # History and evidence.

    def wal_seq(self) -> int:
        """Return the seq of the last event, 0 when there is none."""
        return self.engine.wal_seq()

    def head(self) -> str:
        """Return the hash of the last event, "" when there is none."""
        return self.engine.head()

    def replay(self, *, from_seq: int = 0) -> list[WalEvent]:
        """Return every event of the log with this seq or a later one, whatever its op."""
        return [WalEvent._of_line(line) for line in self.engine.replay(count("from_seq", from_seq))]

    def history(self, record_id: str) -> list[WalEvent]:
        """Return every event of one record that was kept, oldest first."""
        return [WalEvent._of_line(line) for line in self.engine.history(string("id", record_id))]

    def changed_since(self, seq: int) -> list[str]:
        """Return the ids upserted at ``seq`` or later, each once, also if the log was compacted since.

        Deletions are left out: ``replay`` has every event since the last compaction, and ``history`` every
        one of a record.
        """
        return self.engine.changed_since(count("seq", seq))

    def as_of(self, when: int | datetime) -> StoreView:
        """Look at the store as it was after event ``when``, or at a moment with a time zone."""
        return look_back(self.engine, when)

    def verify(self, *, progress: Progress | None = None) -> VerifyReport:
        """Read the files again and say what they prove; nothing of the project is opened or made for it."""
        engine, progress = self._engine, function_or_none("progress", progress)
        if engine is None:
            found = verify_path(os.fspath(log_folder(self.project_root)), progress, self.head_file)
        else:
            found = engine.verify(progress)
        return VerifyReport.from_dict(found)

    def chain_valid(self) -> bool:
        """Say whether the files on disk are unaltered as far as a chain can tell."""
        return self.verify().valid

    def accept_head(self) -> None:
        """Take the log as it is for the right one, after a change that was meant: a checkout, a copy.

        Until then ``verify`` goes on to report that the head it remembers is lost.
        """
        with self._lenient_engine() as engine:
            engine.accept_head()

    # Care.

    def compact(self, *, keep_history: bool = True, progress: Progress | None = None) -> int:
        """Start a new log from the present state; return how many events the old one had.

        The new log commits to the state and to the old log by their hashes. Without
        ``keep_history`` the old events are dropped and cannot be looked at again. It is refused while
        a tail with whole events could still be taken back. What ``progress``
        raises is raised when all is done: it cannot cancel the call.
        """
        progress = function_or_none("progress", progress)
        return self.engine.compact(keep_history=flag("keep_history", keep_history), progress=progress)

    def backup(self, *, progress: Progress | None = None) -> Path:
        """Make a consistent copy inside the store's folder and return where it is.

        What ``progress`` raises is raised when the copy is made: it cannot cancel the call.
        """
        return Path(self.engine.backup(function_or_none("progress", progress)))

    def restore(
        self, source: str | os.PathLike[str], *, damaged: bool = False, progress: Progress | None = None
    ) -> dict[str, Any] | None:
        """Put the store back to a backup, or to what a repair or restore set aside in ``quarantine/``.

        What is replaced is set aside in turn. A damaged copy is refused unless ``damaged`` is given:
        then it comes back as it is. A tail in ``quarantine/`` takes its place behind the bytes that it
        was cut from and is repaired; only then something is returned, as ``repair`` tells it: what was
        written since the cut is among ``changed``, and in the folder ``kept``. What ``progress`` raises
        is raised when all is put back: it cannot cancel the call.
        """
        folder, damaged = path("source", source), flag("damaged", damaged)
        progress = function_or_none("progress", progress)
        with self._lenient_engine() as engine:
            return engine.restore(os.fspath(folder), progress, damaged=damaged)

    def repair(self, *, unproven: bool = False, progress: Progress | None = None) -> dict[str, Any]:
        """Bring back what something in the folder proves, set damaged bytes aside, and return what was done.

        ``healed`` counts the places and embeddings that came back, ``changed`` has the ids whose records
        are other now, ``lost`` the events and embeddings that stay lost, ``unsettled`` the ids that those
        events seem to speak of, ``kept`` the folder of what was set aside, ``quarantine`` what else lies
        there: tails with whole events, and what a log that was cut is known to have held. Where nothing
        proves the state that the log starts from, the call is refused; ``unproven=True`` takes it as it
        is and marks every record of it. What ``progress`` raises is raised when all is repaired: it
        cannot cancel the call.
        """
        unproven, progress = flag("unproven", unproven), function_or_none("progress", progress)
        with self._lenient_engine() as engine:
            return engine.repair(progress, unproven=unproven)

    @contextmanager
    def _lenient_engine(self) -> Iterator[Engine]:
        """Lend an engine that also opens a damaged store: this is the way out of damage."""
        if self._engine is not None:
            yield self._engine
            return
        engine = self._make_engine(strict=False)
        try:
            yield engine
        finally:
            engine.close()

    # One-line calls of the modules that stand below: the store is their first argument.

    _governance_to_esdb_status = staticmethod(_governance_to_esdb_status)
    migrate_from_json = migrate.migrate_from_json
    choose_search_fields = search.choose_search_fields
    search = search.search
    record_token_metric = metrics.record_token_metric
    get_token_metrics = metrics.get_token_metrics
    token_efficiency_report = metrics.token_efficiency_report
    find_skills = metrics.find_skills
    record_skill_run = metrics.record_skill_run
    attach = vectors.attach
    attach_many = vectors.attach_many
    detach = vectors.detach
    drop_space = vectors.drop_space
    embedding = vectors.embedding
    matrix = vectors.matrix
    nearest = vectors.nearest
    reembed = reembedding.reembed
    spaces = vectors.spaces
    use_space = vectors.use_space
    query = selection.query
    export_records = selection.export_records
    create_index = selection.create_index
    drop_index = selection.drop_index
    indexes = selection.indexes
    update = updates.update

    def invalidate(self, record_id: str, reason: str, dep_graph: DepGraph | None = None) -> RollbackReport:
        """Invalidate a record and what rests on it, by default along the edges in the store."""
        return invalidate(record_id, reason, self, dep_graph)


def open_store(project_root: str | os.PathLike[str], **options: Any) -> ChronoStore:
    """Open a project's store; the options are those of ``ChronoStore``."""
    return ChronoStore(project_root, **options).open()


def _shifted(progress: Progress | None, before: int, total: int) -> Progress | None:
    """Let the progress of one file among several count as progress of them all."""
    if progress is None:
        return None
    return lambda done, _: progress(before + done, total)
