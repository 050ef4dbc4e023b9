"""A memory of blocks for scripts: learn, consolidate, recall, and tell how it went.

Reading writes nothing: the built-in frames and settings hold without being stored, and are written with the
first batch. Learning is no batch, and stays one event.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from chronomemory._core import Edition, WalEvent
from chronomemory.blocks.clock import Clock
from chronomemory.blocks.configuration import Config, Place, configured
from chronomemory.blocks.engine import READER, SPACES, Blocks
from chronomemory.blocks.guide import guide
from chronomemory.blocks.ids import BLOCK, EDGE, block_key, plain_id
from chronomemory.blocks.life.asking import Analyser, BlockAnswers, Judge, TokenCounter
from chronomemory.blocks.life.consolidation import ConsolidateResult, Consolidation, DreamResult
from chronomemory.blocks.life.curation import CurateResult, curate
from chronomemory.blocks.life.embedding import ReembedResult, reembed
from chronomemory.blocks.life.learning import (
    CHUNK_WORDS,
    DUPLICATE,
    EDITED,
    Chunker,
    KeepResult,
    LearnDocumentResult,
    chosen_to_keep,
    chunks,
    circumstances,
    drafted,
    edit,
    forget,
    keep,
    learn,
    supersede,
)
from chronomemory.blocks.life.linking import ConnectResult, DisconnectResult, IfExists, connect, disconnect
from chronomemory.blocks.life.outcomes import OutcomeResult, heard_of, note_shown, tell_outcome
from chronomemory.blocks.retrieval import KeptFrames, Question, explained, frame_of, recall
from chronomemory.blocks.storage.blocks import tags_of
from chronomemory.blocks.storage.config import MOST_RESULTS, TOTAL_ACTIVE_HOURS, config_keys, get_number
from chronomemory.blocks.storage.forming import FORMING
from chronomemory.blocks.storage.frames import (
    Frame,
    checked_budget,
    define_frame,
    frame_keys,
    is_seeded,
    load_frame,
    seed_keys,
    seed_memory,
)
from chronomemory.blocks.storage.sessions import end_session, has_session, start_session
from chronomemory.blocks.survey import MemoryStatus, listed, survey
from chronomemory.blocks.types import BlockStatus, ForgetResult, FrameResult, LearnResult, ScoredBlock
from chronomemory.embedders import Embedder, LexicalEmbedder, Matrix, Vector, check_embedder
from chronomemory.errors import InvalidArgument
from chronomemory.face.arguments import (
    contents,
    count,
    finite,
    flag,
    public_names,
    string,
    string_list,
    within,
)
from chronomemory.face.batch import Connection
from chronomemory.face.handle import open_handle
from chronomemory.face.models import KeptAnswers
from chronomemory.face.moments import Seconds, micros
from chronomemory.filters import Where, where_json
from chronomemory.scope import NOT_GIVEN, Scope
from chronomemory.store import ChronoStore
from chronomemory.watching import timed

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")
Own = TypeVar("Own", bound="Memory")
# Named here because ``Memory.list`` hides the builtin in the annotations of its class.
_Rows = list[dict[str, Any]]
_Events = list[WalEvent]
_Shown = list[list[str]]


class MemoryModels(TypedDict, total=False):
    """The options of ``Memory`` that no configuration holds: the names, and the models that are called."""

    user: str
    agent: str
    session: str
    shared: bool
    embedder: Embedder | None
    analyser: Analyser | None
    judge: Judge | None
    token_counter: TokenCounter | None


class MemoryOptions(MemoryModels, total=False):
    """The options of ``Memory``."""

    exploration: float
    top_k: int | None
    inbox_threshold: int | None
    prune_threshold: float | None
    seconds: Seconds


class LearnOptions(TypedDict, total=False):
    """The options of ``Memory.learn``."""

    supersedes: str | None
    conversation: str | None
    previous: str | None
    time: datetime | None
    speaker: str | None


def _opened(place: Place, scope: Scope, *, shared: bool) -> Blocks:
    """Return blocks for some names; those that are open already have theirs."""
    if not isinstance(place, Blocks):
        return open_handle(Blocks, place, scope=scope, shared=shared)
    if scope.to_dict() or not shared:
        raise InvalidArgument(
            f"user: these blocks are open for {place.scope} already",
            field="user",
            recovery="Give the folder, or the store, instead of blocks that are open.",
        )
    return place


def _looked_at(frame: str, scope: Scope) -> list[str]:
    """Return the records that a question depends on, beside blocks: its frame, the settings, the clock."""
    settings = (config_keys(key, scope) for key in ("top_k", TOTAL_ACTIVE_HOURS))
    return [*frame_keys(string("frame", frame), scope), *chain.from_iterable(settings)]


@public_names
class Memory:
    """A memory that works without any model or network; the asynchronous twin is ``MemorySystem``.

    With names it is the memory of a user, an agent, a session, or of several together: it sees what is theirs
    and what is wider, and what it learns is theirs. Without names it is what all share.

    >>> import tempfile
    >>> with Memory(tempfile.mkdtemp()) as memory:
    ...     _ = memory.remember("The deploy key lives in the vault")
    ...     memory.recall("where is the deploy key?")[0].content
    'The deploy key lives in the vault'
    """

    def __init__(
        self,
        place: Place,
        *,
        user: str = NOT_GIVEN,
        agent: str = NOT_GIVEN,
        session: str = NOT_GIVEN,
        shared: bool = True,
        embedder: Embedder | None = None,
        analyser: Analyser | None = None,
        judge: Judge | None = None,
        token_counter: TokenCounter | None = None,
        exploration: float = 0.0,
        top_k: int | None = None,
        inbox_threshold: int | None = None,
        prune_threshold: float | None = None,
        seconds: Seconds = time.monotonic,
    ) -> None:
        self._exploration = finite("exploration", exploration, least=0.0)
        #: Settings that were given hold here, whatever the store says.
        self._settings: dict[str, float] = {}
        if top_k is not None:
            self._settings["top_k"] = count("top_k", top_k, 1, MOST_RESULTS)
        if inbox_threshold is not None:
            self._settings["inbox_threshold"] = count("inbox_threshold", inbox_threshold, 1, None)
        if prune_threshold is not None:
            self._settings["prune_threshold"] = within("prune_threshold", prune_threshold)
        self.embedder: Embedder = LexicalEmbedder() if embedder is None else check_embedder(embedder)
        self.blocks = _opened(place, Scope.of(user=user, agent=agent, session=session), shared=shared)
        self._analyser = analyser
        self._judge = judge
        self._counter = token_counter
        self._answers = KeptAnswers()
        self._kept = KeptFrames(seconds)
        self._clock = Clock(seconds)
        self._is_seeded = False
        self._last_learned: str | None = None
        self._session: str | None = None
        #: How many have entered the session, and who may come or go.
        self._inside = 0
        self._door = threading.RLock()
        #: The tick of a batch is confirmed before the next one begins. Nothing slow is done meanwhile.
        self._turn = threading.RLock()

    @classmethod
    def from_config(
        cls: type[Own],
        place: Place | Config | None = None,
        config: Config | None = None,
        **options: Unpack[MemoryModels],
    ) -> Own:
        """Open a memory as a dict, a file (``.json``, ``.toml``) or an object with ``model_dump()`` says.

        A configuration given alone also says where the memory is (``path``).
        """
        place, settings = configured(place, config)
        if options.get("embedder") is None:
            options["embedder"] = settings.pop("embedder")
        return cls(place, **{**settings, **options})

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End an open session and let go."""
        if self._session is not None:
            self.end_session()
        self.blocks.close()

    # Learning.

    def learn(
        self,
        content: str,
        tags: Sequence[str] | None = None,
        category: str = "knowledge",
        source: str = "api",
        *,
        supersedes: str | None = None,
        conversation: str | None = None,
        previous: str | None = None,
        time: datetime | None = None,
        speaker: str | None = None,
    ) -> LearnResult:
        """Put something into the inbox: one small event, no embedding, no model.

        What it ``supersedes``, a block by its id, is put away in the same batch: what was true before is no
        longer recalled. The ``conversation`` in which it was said, the block said right before it
        (``previous``), the ``time`` that it is about and who said it help to find it, and what is beside it.
        """
        hours, scope = self.active_hours(), self.blocks.scope
        said = circumstances(conversation=conversation, previous=previous, time=time, speaker=speaker)
        session_id = self._session
        record = drafted(
            content, tags, category, source, hours=hours, session_id=session_id, scope=scope, said=said
        )
        if supersedes is None:
            learned = learn(self.blocks, record)
        else:
            old = string("supersedes", supersedes)
            learned = self._write(lambda conn: supersede(conn, record, old))
        if learned.status != DUPLICATE:
            self._last_learned = learned.block_id
        return learned

    def remember(
        self,
        content: str,
        tags: Sequence[str] | None = None,
        category: str = "knowledge",
        source: str = "api",
        **options: Unpack[LearnOptions],
    ) -> LearnResult:
        """Learn something and consolidate at once, so that it can be recalled."""
        learned = self.learn(content, tags, category, source, **options)
        self.consolidate()
        return learned

    def learn_document(
        self,
        text: str,
        *,
        chunk_size: int = CHUNK_WORDS,
        chunker: Chunker | None = None,
        tags: Sequence[str] | None = None,
        category: str = "knowledge",
        source: str = "document",
        skip_llm: bool = False,
    ) -> LearnDocumentResult:
        """Learn a long text paragraph by paragraph, and consolidate whenever the inbox is full."""
        ids: list[str] = []
        created = consolidations = promoted = 0
        for piece in chunks(text, chunk_size, chunker):
            learned = self.learn(piece, tags, category, source)
            ids.append(learned.block_id)
            created += learned.status != DUPLICATE
            if self.should_dream:
                promoted += len(self.consolidate(skip_llm=skip_llm).promoted)
                consolidations += 1
        return LearnDocumentResult(
            len(ids), created, len(ids) - created, consolidations, promoted, tuple(dict.fromkeys(ids))
        )

    @property
    def last_learned_block_id(self) -> str | None:
        """The block that was learned last in this session, or None; what was known already is not learned."""
        return self._last_learned

    def consolidate(self, limit: int | None = None, *, skip_llm: bool = False) -> ConsolidateResult:
        """Embed what waits in the inbox, compare it with what is known, link it and make it active.

        With ``skip_llm`` neither analyser nor judge is asked.
        """
        if limit is not None:
            limit = count("limit", limit, most=None)
        return self._consolidation(flag("skip_llm", skip_llm)).run(limit)

    def _consolidation(self, skip_llm: bool = False) -> Consolidation:
        analyser, judge = (None, None) if skip_llm else (self._analyser, self._judge)
        answers = BlockAnswers(analyser, judge, self._counter, self._answers)
        return Consolidation(self.blocks, self.embedder, answers, self._write, self._hour)

    @property
    def should_dream(self) -> bool:
        """Whether so many blocks wait in the inbox that it is time to dream."""
        with self.blocks.connect() as conn:
            return conn.count(BLOCK, "inbox", own=True) >= self._setting(conn, "inbox_threshold")

    def dream(self, *, skip_llm: bool = False) -> DreamResult:
        """Consolidate and curate: what to do when nothing else is to be done."""
        return DreamResult(self.consolidate(skip_llm=skip_llm), self.curate())

    def edit(self, block_id: str, content: str) -> LearnResult:
        """Say a block in other words; the new one takes over tags and links, and waits in the inbox.

        A constitutional block never falls out of ``self``: its new words are consolidated at once.
        """

        def change(conn: Connection, hours: float) -> LearnResult:
            return edit(conn, block_id, content, hours=hours, session_id=self._session)

        with self.blocks.connect() as conn:
            old = conn.record(block_key(string("block_id", block_id)))
        if old is None or old.status != BlockStatus.ACTIVE or "self/constitutional" not in tags_of(old):
            return self._write(lambda conn: change(conn, self._clock.tick(conn)))
        category, source = old.data["category"], old.data["source"]
        scope = old.scope or Scope()
        new = drafted(content, tags_of(old), category, source, hours=0.0, session_id=None, scope=scope)
        self._consolidation().take_at_once(new, change)
        return LearnResult(plain_id(new.id), EDITED)

    def reembed(self) -> ReembedResult:
        """Give every active block an embedding of the present embedder, own ones that have none of it."""
        return reembed(self.blocks, self.embedder, self._write)

    def forget(self, block_id: str) -> ForgetResult:
        """Put a block away."""
        return self._write(lambda conn: forget(conn, block_id))

    def keep(self, block_ids: Sequence[str] | None = None, *, where: Where | None = None) -> KeepResult:
        """Take blocks of a session over into what outlives it: own ones, by their ids or by what they say.

        Each is written anew without the name of its session, and the old one put away, all in one batch.
        """
        chosen = chosen_to_keep(self.blocks, block_ids, where)
        return self._write(lambda conn: keep(conn, chosen, hours=self._clock.tick(conn)))

    # Recall.

    def recall(
        self,
        query: str | None = None,
        *,
        top_k: int | None = None,
        frame: str = "attention",
        tags: Sequence[str] | None = None,
        tag_patterns: Sequence[str] | None = None,
        categories: Sequence[str] | None = None,
        min_confidence: float | None = None,
        min_score: float | None = None,
        window: float | None = None,
        diversify: bool = False,
        expansion: int | None = None,
        where: Where | None = None,
        now: datetime | None = None,
    ) -> list[ScoredBlock]:
        """Return the blocks that matter here, the best first; nothing is changed by asking.

        A block must have one of the ``tags``, letter by letter, or one that is like one of the
        ``tag_patterns``, in which ``%`` is any text and ``_`` one character; either stands for what the frame
        asks for. What is scored below ``min_score`` is left out. ``where`` says of any field of a block's
        record what it must be, as in ``ChronoStore.query``. ``now`` is what "yesterday" is counted from.
        """
        condition = where_json(where)
        if expansion is not None:
            expansion = count("expansion", expansion, 0, MOST_RESULTS)
        diversify = flag("diversify", diversify)
        narrowed: dict[str, Any] = {}
        very = () if tags is None else tuple(string_list("tags", tags))
        if tags is not None or tag_patterns is not None:
            patterns = () if tag_patterns is None else tag_patterns
            narrowed["tag_patterns"] = tuple(string_list("tag_patterns", patterns))
        if categories is not None:
            narrowed["categories"] = tuple(string_list("categories", categories))
        if min_confidence is not None:
            narrowed["min_confidence"] = within("min_confidence", min_confidence)
        if window is not None:
            narrowed["search_window"] = finite("window", window, least=0.0)
        read = self._read(query)
        with self.blocks.connect() as conn:
            conn.fetch(_looked_at(frame, conn.scope))
            asked = load_frame(conn, frame)
            if narrowed:
                asked = asked.model_copy(update={"filters": asked.filters.model_copy(update=narrowed)})
            question = replace(
                self._question(conn, read, query, top_k, now),
                diversify=diversify,
                expansion=expansion,
                tags=very,
                min_score=None if min_score is None else finite("min_score", min_score),
                condition=condition,
            )
            with timed("a recall"):
                return recall(conn, asked, question)

    def frame(
        self,
        name: str,
        query: str | None = None,
        *,
        top_k: int | None = None,
        token_budget: int | None = None,
        token_counter: TokenCounter | None = None,
        explain: bool = False,
        where: Where | None = None,
        tags: Sequence[str] | None = None,
        min_score: float | None = None,
        dates: bool = False,
        now: datetime | None = None,
    ) -> FrameResult:
        """Return a rendered frame, and reinforce the blocks that are in it.

        ``where`` holds for all of them but those that the frame guarantees; so do ``tags``, of which a block
        must have one letter by letter, and ``min_score``. With ``dates`` each says on which day it came.
        """
        condition = where_json(where)
        very = () if tags is None else tuple(string_list("tags", tags))
        least = None if min_score is None else finite("min_score", min_score)
        dates = flag("dates", dates)
        if query is not None:
            string("query", query)
        with self.blocks.connect() as conn:
            seen = self._look_at(conn, _looked_at(name, conn.scope))
            asked = load_frame(conn, name)
            budget = asked.token_budget if token_budget is None else checked_budget(token_budget)
            counter = self._counter if token_counter is None else token_counter
            named = self._kept.name_of(token_counter)
            key = (name, query, top_k, budget, named, condition, very, least, dates, now)
            known = self._kept.get(key, seen)
            if known is not None:
                return self._told(replace(known, cached=True), explain)
            question = self._question(conn, self._read(query), query, top_k, now)
            question = replace(
                question,
                budget=budget,
                counter=counter,
                condition=condition,
                tags=very,
                min_score=least,
                dates=dates,
            )
            result, shown = frame_of(conn, asked, question)
        written = self._write(lambda batch: self._reinforce(batch, shown, name, conn)) if shown else None
        after = self._seen_after(seen, written)
        if after is not None:
            self._kept.follow(seen, after)
            if asked.cache is not None:
                self._kept.keep(key, result, after, asked.cache.ttl_seconds)
        return self._told(result, explain)

    def define_frame(self, frame: Frame) -> None:
        """Write a frame of one's own: it works like a built-in one."""
        self._write(lambda conn: define_frame(conn, frame))

    def outcome(
        self, block_ids: Sequence[str], signal: float, weight: float = 1.0, *, source: str = ""
    ) -> OutcomeResult:
        """Tell blocks how it went, from 0 (bad) to 1 (good), and who says so."""
        asked = self._write(
            lambda conn: tell_outcome(
                conn, block_ids, signal, weight, source=source, passing=self._clock.passing
            )
        )
        return heard_of(self.blocks.look(), asked)

    def connect(
        self,
        source: str,
        target: str,
        relation: str | float | None = None,
        *,
        weight: float | None = None,
        note: str | None = None,
        if_exists: IfExists = "reinforce",
    ) -> ConnectResult:
        """Link two blocks, or count one more use of their link; the result is true if the link is new.

        A number in the place of the relation is the weight.
        """
        return self._write(
            lambda conn: connect(
                conn,
                source,
                target,
                relation,
                weight=weight,
                note=note,
                if_exists=if_exists,
                hours=self._clock.tick(conn),
            )
        )

    def disconnect(self, source: str, target: str) -> DisconnectResult:
        """Take a link away; the result is true if there was one."""
        return self._write(lambda conn: disconnect(conn, source, target))

    def curate(self) -> CurateResult:
        """Archive what has faded, let links fade and take weak ones away."""
        with self.blocks.connect() as conn:
            threshold = self._setting(conn, "prune_threshold")
            return curate(conn, self._write, hours=self._hour(), threshold=threshold)

    # Sessions.

    @property
    def session_id(self) -> str | None:
        """The session that is open here, or None."""
        return self._session

    def begin_session(self, task_type: str = "general") -> str:
        """Open a session, in which time passes, and return its id; one that is open here goes on."""
        with contents:
            string("task_type", task_type)
        with self._door:
            if self._session is not None:
                if has_session(self.blocks.look(), self._session):
                    return self._session
                # It was erased, by another process.
                self.end_session()
            session_id = uuid.uuid4().hex

            def work(conn: Connection) -> None:
                hours = self._clock.now(conn)
                start_session(conn, session_id=session_id, task_type=task_type, start_active_hours=hours)

            self._run(work)
            self._clock.start()
            self._session, self._last_learned = session_id, None
            return session_id

    def end_session(self) -> float:
        """End the session, add its hours to the clock and return them; without a session none passed."""
        with self._door:
            session_id = self._session
            if session_id is None:
                return 0.0
            passed = self._clock.session_hours()

            def work(conn: Connection) -> None:
                self._clock.tick(conn, to_the_last=True)
                if has_session(conn, session_id):
                    end_session(conn, session_id)

            self._write(work)
            self._clock.stop()
            self._session = None
            return passed

    @contextmanager
    def session(self: Own, task_type: str = "general") -> Iterator[Own]:
        """Be in a session for the length of a block; those who are in it at a time share one."""
        self._enter_session(task_type)
        try:
            yield self
        finally:
            self._leave_session()

    def _enter_session(self, task_type: str = "general") -> str:
        """Join the session that is open, or open one, and return its id."""
        with self._door:
            session_id = self.begin_session(task_type)
            self._inside += 1
            return session_id

    def _leave_session(self) -> None:
        """Leave a session that was entered; the last one ends it. Without an entry nothing happens."""
        with self._door:
            if not self._inside:
                return
            self._inside -= 1
            if not self._inside:
                self.end_session()

    # Looking around.

    def list(
        self,
        *,
        status: str | None = "active",
        tag: str | None = None,
        tag_pattern: str | None = None,
        category: str | None = None,
        limit: int | None = None,
    ) -> _Rows:
        """Return blocks as dicts with their tags, in the order in which they came.

        They must have the ``tag`` letter by letter, and one like the ``tag_pattern``, in which ``%`` is any
        text and ``_`` one character.
        """
        with self.blocks.connect() as conn:
            return listed(
                conn, status=status, tag=tag, tag_pattern=tag_pattern, category=category, limit=limit
            )

    def status(self) -> MemoryStatus:
        """Say what there is, and what could be done next."""
        with self.blocks.connect() as conn:
            return survey(
                conn,
                hours=self._clock.now(conn),
                embedder=self.embedder,
                session_id=self._session,
                threshold=int(self._setting(conn, "inbox_threshold")),
            )

    def guide(self, method: str | None = None) -> str:
        """Return how the memory is used, or how one of its verbs is: text for an agent's prompt."""
        return guide(method)

    def history(self, block_id: str) -> _Events:
        """Return every event of a block, oldest first."""
        return self.blocks.store.history(block_key(string("block_id", block_id)))

    # Batches.

    def active_hours(self) -> float:
        """Return how late it is."""
        return self._clock.now(self.blocks.look())

    def _hour(self) -> float:
        """Write the present hour down, before changes that depend on it, and return it."""
        return self._write(self._clock.tick)

    def _write(self, work: Callable[[Connection], T]) -> T:
        with self._turn:
            self._clock.begin()
            done = self._run(work)
            self._clock.ticked()
            return done

    def _setting(self, conn: Connection, key: str) -> float:
        given = self._settings.get(key)
        return get_number(conn, key) if given is None else given

    def _look_at(self, conn: Connection, record_ids: Iterable[str]) -> Edition:
        """Look at several records in one go; at what a memory begins with, too, unless that is known."""
        if self._is_seeded:
            return conn.fetch(record_ids)
        seen = conn.fetch([*record_ids, *seed_keys(conn.scope)])
        self._is_seeded = is_seeded(conn)
        return seen

    def _run(self, work: Callable[[Connection], T]) -> T:
        """Run a batch; the first that writes writes down, too, what a memory begins with."""
        if self._is_seeded:
            return self.blocks.run(work)
        wrote = False

        def seeded(conn: Connection) -> T:
            nonlocal wrote
            done = work(conn)
            wrote = conn.events() > 0
            if wrote:
                seed_memory(conn)
            return done

        done = self.blocks.run(seeded)
        self._is_seeded = self._is_seeded or wrote
        return done

    def _seen_after(self, seen: Edition, written: Connection | None) -> Edition | None:
        """Return what is seen now if nothing changed of it but by a showing, or None."""
        if written is None:
            return seen if self.blocks.store.engine.edition() == seen else None
        return written.seen_after if written.seen_before == seen else None

    def _told(self, result: FrameResult, explain: bool) -> FrameResult:
        if not explain or result.weights is None:
            return result
        return replace(result, explanation=explained(result.blocks, result.weights))

    def _reinforce(
        self, conn: Connection, shown: _Shown, frame: str = "", seen: Connection | None = None
    ) -> Connection:
        """Take note of what was shown; to say that is to look at nothing that others could change.

        How late it is was ``seen`` before, or is looked up.
        """
        passed = self._clock.passing(self.blocks.look() if seen is None else seen)
        note_shown(conn, shown, frame=frame, session_id=self._session, passed=passed)
        return conn

    def _read(self, query: str | None) -> tuple[Vector | None, Matrix | None]:
        """Return the vector and the tokens of a query."""
        if query is None or not string("query", query).strip():
            return None, None
        return SPACES.vector_of(query, self.embedder), READER.query_tokens(query, self.embedder)

    def _question(
        self,
        conn: Connection,
        read: tuple[Vector | None, Matrix | None],
        query: str | None,
        top_k: int | None,
        now: datetime | None,
    ) -> Question:
        return Question(
            hours=self._clock.now(conn),
            k=int(self._setting(conn, "top_k")) if top_k is None else count("top_k", top_k, 1, MOST_RESULTS),
            model=self.embedder.model_name,
            vector=read[0],
            tokens=read[1],
            text=query,
            by_words=isinstance(self.embedder, LexicalEmbedder),
            now_us=time.time_ns() // 1000 if now is None else micros("now", now),
            exploration=self._exploration,
        )


#: What upkeep is for. Links may be of someone who has no block: of shared ones that he used together.
_KEPT_UP = ((BLOCK, "inbox"), (BLOCK, "active"), (EDGE, "active"), (EDGE, FORMING))
#: How many scopes are asked for at once.
_AT_ONCE = 1000


def each_memory(store: ChronoStore, **options: Any) -> Iterator[tuple[Scope, Memory]]:
    """Walk through the memories that hold something of their own: what is shared, then scope by scope.

    The options are those of ``Memory``. Each sees and changes what it would if its names had been given, so a
    dream for all is the dreams of each:

    >>> import tempfile
    >>> from chronomemory import ChronoStore, Memory
    >>> with ChronoStore(tempfile.mkdtemp()) as store:
    ...     for name in "anna", "ben":
    ...         _ = Memory(store, user=name).learn("The lift is out of order")
    ...     for scope, memory in each_memory(store):
    ...         print(scope, len(memory.dream().consolidated.promoted))
    user=anna 1
    user=ben 1
    """
    for scope in _scopes(store):
        blocks = open_handle(Blocks, store, scope=scope)
        with blocks.connect() as conn:
            has_own = any(conn.count(kind, status, own=True) for kind, status in _KEPT_UP)
        if has_own:
            yield scope, Memory(blocks, **options)


def _scopes(store: ChronoStore) -> Iterator[Scope]:
    yield Scope()
    after: Scope | None = None
    while some := store.scopes(after=after, limit=_AT_ONCE):
        yield from (one.scope for one in some if one.scope != Scope())
        after = some[-1].scope
