"""A memory of blocks for scripts: learn, consolidate, recall, and tell how it went.

Reading writes nothing: the built-in frames and settings hold without being stored, and are written with the
first batch. Learning is no batch, and stays one event.
"""

from __future__ import annotations

import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import Any, TypedDict, TypeVar

from chronomemory._core import Edition
from chronomemory.blocks.clock import Clock
from chronomemory.blocks.configuration import Config, Place, configured
from chronomemory.blocks.engine import READER, SPACES, Blocks
from chronomemory.blocks.guide import guide
from chronomemory.blocks.ids import BLOCK, EDGE, any_key, block_key, given_id
from chronomemory.blocks.items import MemoryItem, MemoryPage, item_of, listed
from chronomemory.blocks.life.asking import Analyser, BlockAnswers, Judge, Merge, TokenCounter, merging
from chronomemory.blocks.life.consolidation import ConsolidateResult, Consolidation, DreamResult, Fetch
from chronomemory.blocks.life.curation import CurateResult, curate
from chronomemory.blocks.life.embedding import ReembedResult, reembed
from chronomemory.blocks.life.learning import (
    CHUNK_WORDS,
    DUPLICATE,
    EDITED,
    MERGED,
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
    put_into_inbox,
    restore,
    supersede,
)
from chronomemory.blocks.life.linking import ConnectResult, DisconnectResult, IfExists, connect, disconnect
from chronomemory.blocks.life.outcomes import OutcomeResult, heard_of, note_shown, tell_outcome
from chronomemory.blocks.retrieval import KeptFrames, Question, explained, frame_of, recall
from chronomemory.blocks.storage.blocks import known_block, tags_of
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
from chronomemory.blocks.survey import MemoryStatus, survey
from chronomemory.blocks.types import BlockStatus, ForgetResult, FrameResult, LearnResult, ScoredBlock
from chronomemory.embedders import Embedder, LexicalEmbedder, Matrix, Vector, check_embedder, usual_floor
from chronomemory.errors import ChronoError, InvalidArgument, InvalidRecord
from chronomemory.event import WalEvent
from chronomemory.face.arguments import (
    contents,
    count,
    finite,
    flag,
    function_or_none,
    public_names,
    string,
    string_list,
    unique_strings,
    within,
)
from chronomemory.face.batch import Connection
from chronomemory.face.handle import open_handle
from chronomemory.face.models import KeptAnswers
from chronomemory.face.moments import Seconds, micros
from chronomemory.filters import Where, where_json
from chronomemory.record import ChronoRecord
from chronomemory.scope import NOT_GIVEN, Scope
from chronomemory.store import ChronoStore
from chronomemory.types import Unpack
from chronomemory.watching import timed

T = TypeVar("T")
Own = TypeVar("Own", bound="Memory")
# Named here because ``Memory.list`` hides the builtin in the annotations of its class.
_Events = list[WalEvent]
_Shown = list[list[str]]
#: A frame that weighs similarity less shows blocks whatever the query is.
_FLOOR_FROM_WEIGHT = 0.2
#: How many blocks that were shown without being relevant are remembered.
_REMEMBERED = 10_000


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
    merge: Merge


class MemoryOptions(MemoryModels, total=False):
    """The options of ``Memory``."""

    exploration: float
    min_similarity: float | None
    prefer_newest: bool
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
    metadata: Mapping[str, Any] | None
    expires_at: datetime | None
    turns: Sequence[str]


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


def _limits(where: Where | None, tags: Sequence[str] | None, min_score: float | None) -> dict[str, Any]:
    """Return the conditions that ``recall`` and ``frame`` share, as fields of a question."""
    return {
        "condition": where_json(where),
        "tags": () if tags is None else tuple(string_list("tags", tags)),
        "min_score": None if min_score is None else finite("min_score", min_score),
    }


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
        merge: Merge = "same",
        min_similarity: float | None = None,
        prefer_newest: bool = True,
        exploration: float = 0.0,
        top_k: int | None = None,
        inbox_threshold: int | None = None,
        prune_threshold: float | None = None,
        seconds: Seconds = time.monotonic,
    ) -> None:
        self._prefer_newest = flag("prefer_newest", prefer_newest)
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
        self._merge = merging(merge)
        self._least_similarity = usual_floor(self.embedder) if min_similarity is None else min_similarity
        within("min_similarity", self._least_similarity)
        self._analyser = analyser
        self._judge = judge
        self._counter = function_or_none("token_counter", token_counter)
        self._answers = KeptAnswers()
        self._kept = KeptFrames(seconds)
        self._clock = Clock(seconds)
        self._is_seeded = False
        self._last_learned: str | None = None
        #: Whether blocks may wait in the inbox; those that other processes put there are not known.
        self._may_wait = True
        self._session: str | None = None
        #: Blocks that were shown last although they were not relevant to the query: no outcome credits them.
        self._not_relevant: dict[str, None] = {}
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
        metadata: Mapping[str, Any] | None = None,
        expires_at: datetime | None = None,
        turns: Sequence[str] = (),
    ) -> LearnResult:
        """Put something into the inbox: one small event, no embedding, no model.

        The block that it ``supersedes`` is archived in the same batch and no longer recalled. The
        ``conversation`` in which it was said, the block said right before it (``previous``), the ``time``
        that it is about and its ``speaker`` help to find it, and what is beside it. The ``metadata`` is
        returned with it. From ``expires_at`` on it is left out of all answers. It is erased together with the
        ``turns`` of a conversation that it was made of, which are given by their ids.
        """
        record = self._drafted(
            content,
            tags,
            category,
            source,
            hours=self._clock.now(self.blocks.look()),
            conversation=conversation,
            previous=previous,
            time=time,
            speaker=speaker,
            metadata=metadata,
            expires_at=expires_at,
            turns=turns,
        )
        self._may_wait = True
        if supersedes is None:
            return self._put(record)
        old = given_id(string("supersedes", supersedes))
        return self._learned(self._write(lambda conn: supersede(conn, record, old)))

    def _drafted(
        self,
        content: str,
        tags: Sequence[str] | None,
        category: str,
        source: str,
        *,
        hours: float,
        **details: Any,
    ) -> ChronoRecord:
        return drafted(
            content,
            tags,
            category,
            source,
            hours=hours,
            session_id=self._session,
            scope=self.blocks.scope,
            details=circumstances(**details),
        )

    def _put(self, record: ChronoRecord, *, again: bool = True) -> LearnResult:
        return self._learned(learn(self.blocks, record, again=again, ignores_case=self._merge == "similar"))

    def _learned(self, learned: LearnResult) -> LearnResult:
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
        """Learn something and consolidate at once, so that it can be recalled.

        A text joins or replaces a block only if both state the same (see ``merge`` in the guide); the result
        names that block.
        """
        details: dict[str, Any] = dict(options)
        if unknown := details.keys() - LearnOptions.__annotations__.keys():
            raise TypeError(f"remember() got an unexpected keyword argument {min(unknown)!r}")
        if details.pop("supersedes", None) is not None:
            learned = self.learn(content, tags, category, source, **options)
            self.consolidate()
            return learned
        record = self._drafted(content, tags, category, source, hours=0.0, **details)

        def change(conn: Connection, hours: float) -> LearnResult:
            record.data |= {"learned_at": hours, "last_reinforced_at": hours}
            return put_into_inbox(conn, record, ignores_case=self._merge == "similar")

        try:
            learned = self._taken_at_once(record, change)
        except Exception as error:
            if isinstance(error, InvalidRecord) or not isinstance(error, ChronoError):
                # A model failed. The text waits in the inbox for the next consolidation.
                self._put(record)
            raise
        if self._may_wait:
            try:
                self.consolidate()
            except Exception as error:
                message = f"blocks that wait in the inbox were not consolidated: {error!r}"
                warnings.warn(message, RuntimeWarning, stacklevel=2)
        return self._learned(learned)

    def _taken_at_once(
        self,
        record: ChronoRecord,
        change: Callable[[Connection, float], LearnResult],
        merge: Merge | None = None,
        fetched: Iterable[str] = (),
    ) -> LearnResult:
        """Make a change that puts a block into the inbox, and the block active, in one batch."""
        changed: list[LearnResult] = []

        def place(conn: Connection, hours: float) -> str:
            changed.append(change(conn, hours))
            return changed[-1].block_id

        taken = self._consolidation(merge=merge).take_at_once(record, place, fetched)
        learned = changed[-1]
        into = taken.merged.get(learned.block_id)
        replaced = tuple(old for old, new in taken.merged.items() if new == learned.block_id)
        status = learned.status if into is None else MERGED
        return replace(learned, status=status, merged_into=into, superseded=replaced)

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
            hours = self._clock.now(self.blocks.look())
            self._may_wait = True
            # A document that is read again states nothing anew.
            learned = self._put(self._drafted(piece, tags, category, source, hours=hours), again=False)
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
        # Blocks that fail wait for the next consolidation.
        self._may_wait = limit is not None
        return self._consolidation(flag("skip_llm", skip_llm)).run(limit)

    def _consolidation(self, skip_llm: bool = False, merge: Merge | None = None) -> Consolidation:
        analyser, judge = (None, None) if skip_llm else (self._analyser, self._judge)
        answers = BlockAnswers(analyser, judge, self._counter, self._answers, merge or self._merge)
        return Consolidation(
            self.blocks, self.embedder, answers, self._write, self._hour, self._look_at_all, self._clock.tick
        )

    def _look_at_all(self, conn: Connection, record_ids: Iterable[str], fetch: Fetch) -> None:
        """Fetch what a batch depends on: some records, the clock, and what a memory begins with."""
        self._look_at(conn, [*record_ids, *config_keys(TOTAL_ACTIVE_HOURS, conn.scope)], fetch)

    @property
    def should_dream(self) -> bool:
        """Whether so many blocks wait in the inbox that it is time to dream."""
        with self.blocks.connect() as conn:
            return conn.count(BLOCK, "inbox", own=True) >= self._setting(conn, "inbox_threshold")

    def dream(self, *, skip_llm: bool = False) -> DreamResult:
        """Consolidate and curate: what to do when nothing else is to be done."""
        return DreamResult(self.consolidate(skip_llm=skip_llm), self.curate())

    def edit(self, block_id: str, content: str) -> LearnResult:
        """Replace the text of a block: a new block takes over its tags, links and standing, at once."""
        old_id = given_id(block_id)

        def change(conn: Connection, hours: float) -> LearnResult:
            return edit(conn, old_id, content, hours=hours, session_id=self._session)

        with self.blocks.connect() as conn:
            old = conn.record(block_key(old_id))
        if old is None or old.status != BlockStatus.ACTIVE:
            return self._write(lambda conn: change(conn, self._clock.tick(conn)))
        category, source = old.data["category"], old.data["source"]
        scope = old.scope or Scope()
        new = drafted(content, tags_of(old), category, source, hours=0.0, session_id=None, scope=scope)
        return replace(self._taken_at_once(new, change), status=EDITED)

    def reembed(self) -> ReembedResult:
        """Give every active block an embedding of the present embedder, own ones that have none of it."""
        return reembed(self.blocks, self.embedder, self._write)

    def forget(self, block_id: str) -> ForgetResult:
        """Archive a block: it is no longer recalled, and ``restore`` brings it back."""
        return self._write(lambda conn: forget(conn, given_id(block_id)))

    def restore(self, block_id: str) -> LearnResult:
        """Make an archived block active again, beside the one that replaced it: undo a merge or a forget."""
        old_id = given_id(block_id)
        with self.blocks.connect() as conn:
            old = known_block(conn, old_id)
        return self._taken_at_once(old, lambda conn, _: restore(conn, old_id), merge="never")

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
        min_similarity: float | None = None,
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
        limits = _limits(where, tags, min_score)
        if expansion is not None:
            expansion = count("expansion", expansion, 0, MOST_RESULTS)
        diversify = flag("diversify", diversify)
        narrowed: dict[str, Any] = {}
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
            question = self._question(conn, read, query, top_k, now)
            floor = self._floor(asked, min_similarity)
            question = replace(
                question, diversify=diversify, expansion=expansion, min_similarity=floor, **limits
            )
            with timed("a recall"):
                found = recall(conn, asked, question)
        self._note_relevance(found)
        return found

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
        min_similarity: float | None = None,
        dates: bool = False,
        now: datetime | None = None,
    ) -> FrameResult:
        """Return a rendered frame, and reinforce the blocks that are in it.

        ``where`` holds for all of them but those that the frame guarantees; so do ``tags``, of which a block
        must have one letter by letter, and ``min_score``. With ``dates`` each says on which day it came.
        """
        limits = _limits(where, tags, min_score)
        dates = flag("dates", dates)
        if query is not None:
            string("query", query)
        with self.blocks.connect() as conn:
            seen = self._look_at(conn, _looked_at(name, conn.scope))
            asked = load_frame(conn, name)
            budget = asked.token_budget if token_budget is None else checked_budget(token_budget)
            counter = self._counter if token_counter is None else token_counter
            named = self._kept.name_of(token_counter)
            floor = self._floor(asked, min_similarity)
            key = (name, query, top_k, budget, named, *limits.values(), floor, dates, now)
            known = self._kept.get(key, seen)
            if known is not None:
                self._note_relevance(known.blocks)
                return self._told(replace(known, cached=True), explain)
            question = self._question(conn, self._read(query), query, top_k, now)
            question = replace(
                question, budget=budget, counter=counter, dates=dates, min_similarity=floor, **limits
            )
            result, shown = frame_of(conn, asked, question)
        self._note_relevance(result.blocks)
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
        self,
        block_ids: Sequence[str | ScoredBlock] | FrameResult,
        signal: float,
        weight: float = 1.0,
        *,
        source: str = "",
    ) -> OutcomeResult:
        """Rate how useful blocks were, from 0 (bad) to 1 (good), and name who says so.

        Blocks are given by their ids, as hits, or as a frame. Those that were shown without being relevant to
        the query get no credit; of plain ids that is known if this memory showed them last.
        """
        shown = block_ids.blocks if isinstance(block_ids, FrameResult) else block_ids
        if not isinstance(shown, str):
            self._note_relevance(one for one in shown if isinstance(one, ScoredBlock))
            shown = [one.id if isinstance(one, ScoredBlock) else one for one in shown]
        named = [given_id(block_id) for block_id in unique_strings("ids", shown)]
        relevant = [block_id for block_id in named if block_id not in self._not_relevant]
        asked = self._write(
            lambda conn: tell_outcome(
                conn, relevant, signal, weight, source=source, passing=self._clock.passing
            )
        )
        left_out = tuple(block_id for block_id in named if block_id in self._not_relevant)
        return replace(heard_of(self.blocks.look(), asked), not_relevant=left_out)

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

    def get(self, block_id: str) -> MemoryItem | None:
        """Return a memory by its id, whatever its status, or None; a turn, a record or a page entry too."""
        key = any_key(block_id)
        is_block = key.startswith(block_key(""))
        found = self.blocks.store.engine.blocks.get(key) if is_block else self.blocks.store.get(key)
        return None if found is None else item_of(found)

    def list(
        self,
        *,
        status: str | None = "active",
        tag: str | None = None,
        tag_pattern: str | None = None,
        category: str | None = None,
        where: Where | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> MemoryPage:
        """Return memories, newest first.

        Each has the ``tag`` exactly, and one like the ``tag_pattern``, in which ``%`` is any text and ``_``
        one character. ``where``, ``since`` and ``until`` are those of ``ChronoStore.query``. With a ``limit``
        the page has a ``cursor``, which is ``after`` for the next page.
        """
        return listed(
            self.blocks,
            status=status,
            tag=tag,
            tag_pattern=tag_pattern,
            category=category,
            where=where,
            since=since,
            until=until,
            limit=limit,
            after=after,
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
        """Return every event of a block, or of a record of another face, oldest first."""
        return self.blocks.store.history(any_key(block_id))

    # Batches.

    def _hour(self) -> float:
        """Write the present hour down, before changes that depend on it, and return it."""
        return self._write(self._clock.tick)

    def _write(self, work: Callable[[Connection], T]) -> T:
        with self._turn:
            self._clock.begin()
            done = self._run(work)
            self._clock.ticked()
            return done

    def _floor(self, frame: Frame, given: float | None) -> float:
        """Return how relevant blocks must be; a frame that hardly weighs similarity has no floor."""
        if given is not None:
            return within("min_similarity", given)
        return self._least_similarity if frame.weights.similarity >= _FLOOR_FROM_WEIGHT else 0.0

    def _note_relevance(self, shown: Iterable[ScoredBlock]) -> None:
        """Remember the blocks that were shown although they are below the floor."""
        for block in shown:
            self._not_relevant.pop(block.id, None)
            if block.relevance < self._least_similarity:
                self._not_relevant[block.id] = None
        while len(self._not_relevant) > _REMEMBERED:
            self._not_relevant.pop(next(iter(self._not_relevant)), None)

    def _setting(self, conn: Connection, key: str) -> float:
        given = self._settings.get(key)
        return get_number(conn, key) if given is None else given

    def _look_at(
        self, conn: Connection, record_ids: Iterable[str], fetch: Fetch = Connection.fetch
    ) -> Edition:
        """Look at several records in one go; at what a memory begins with, too, unless that is known."""
        if self._is_seeded:
            return fetch(conn, record_ids)
        seen = fetch(conn, [*record_ids, *seed_keys(conn.scope)])
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
            return seen if self.blocks.store.engine.records_at_once([])[0] == seen else None
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
            prefer_newest=self._prefer_newest,
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
