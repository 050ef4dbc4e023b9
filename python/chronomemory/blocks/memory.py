"""A memory of blocks for scripts: learn, consolidate, recall, and tell how it went."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypeVar

from chronomemory.blocks.configuration import Config, Place, configured
from chronomemory.blocks.engine import Blocks
from chronomemory.blocks.guide import guide
from chronomemory.blocks.ids import BLOCK, block_key, plain_id
from chronomemory.blocks.life.asking import Analyser, BlockAnswers, Judge, TokenCounter
from chronomemory.blocks.life.circumstances import circumstances
from chronomemory.blocks.life.consolidation import ConsolidateResult, Consolidation, DreamResult
from chronomemory.blocks.life.curation import CurateResult, curate
from chronomemory.blocks.life.documents import CHUNK_WORDS, Chunker, LearnDocumentResult, chunks
from chronomemory.blocks.life.embedding import ReembedResult, reembed
from chronomemory.blocks.life.keeping import KeepResult, chosen_to_keep, keep
from chronomemory.blocks.life.learning import DUPLICATE, EDITED, drafted, edit, forget, learn, supersede
from chronomemory.blocks.life.linking import ConnectResult, DisconnectResult, IfExists, connect, disconnect
from chronomemory.blocks.life.outcomes import OutcomeResult, heard_of, tell_outcome
from chronomemory.blocks.recall.finding import Finding
from chronomemory.blocks.storage.blocks import tags_of
from chronomemory.blocks.survey import MemoryStatus, listed, survey
from chronomemory.blocks.types import BlockStatus, ForgetResult, LearnResult
from chronomemory.embedders import Embedder
from chronomemory.errors import InvalidArgument
from chronomemory.event import WalEvent
from chronomemory.face.arguments import count, flag, string
from chronomemory.face.batch import Connection
from chronomemory.face.handle import open_handle
from chronomemory.face.models import KeptAnswers
from chronomemory.face.moments import Seconds
from chronomemory.filters import Where
from chronomemory.scope import NOT_GIVEN, Scope

__all__ = ["Memory", "MemoryStatus"]

Own = TypeVar("Own", bound="Memory")
# Named here because ``Memory.list`` hides the builtin in the annotations of its class.
_Rows = list[dict[str, Any]]
_Events = list[WalEvent]


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


class Memory(Finding):
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
        blocks = _opened(place, Scope.of(user=user, agent=agent, session=session), shared=shared)
        try:
            super().__init__(
                blocks,
                seconds,
                embedder=embedder,
                token_counter=token_counter,
                exploration=exploration,
                top_k=top_k,
                inbox_threshold=inbox_threshold,
                prune_threshold=prune_threshold,
            )
        except BaseException:
            if blocks is not place:
                blocks.close()
            raise
        self._analyser = analyser
        self._judge = judge
        self._answers = KeptAnswers()
        self._last_learned: str | None = None

    @classmethod
    def from_config(
        cls: type[Own],
        place: Place | Config | None = None,
        config: Config | None = None,
        *,
        user: str = NOT_GIVEN,
        agent: str = NOT_GIVEN,
        session: str = NOT_GIVEN,
        shared: bool = True,
        embedder: Embedder | None = None,
        analyser: Analyser | None = None,
        judge: Judge | None = None,
        token_counter: TokenCounter | None = None,
    ) -> Own:
        """Open a memory as a dict, a file (``.json``, ``.toml``) or an object with ``model_dump()`` says.

        A configuration given alone says where the memory is, too (``path``).
        """
        told = configured(place, config)
        return cls(
            told.place,
            user=user,
            agent=agent,
            session=session,
            shared=shared,
            embedder=told.embedder if embedder is None else embedder,
            analyser=analyser,
            judge=judge,
            token_counter=token_counter,
            **told.options,
        )

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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
        *,
        supersedes: str | None = None,
        conversation: str | None = None,
        previous: str | None = None,
        time: datetime | None = None,
        speaker: str | None = None,
    ) -> LearnResult:
        """Learn something and consolidate at once, so that it can be recalled."""
        learned = self.learn(
            content,
            tags,
            category,
            source,
            supersedes=supersedes,
            conversation=conversation,
            previous=previous,
            time=time,
            speaker=speaker,
        )
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

    def begin_session(self, task_type: str = "general") -> str:
        """Open a session, in which time passes, and return its id; one that is open here goes on."""
        before = self._session
        session_id = super().begin_session(task_type)
        if session_id != before:
            self._last_learned = None
        return session_id

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

    # What comes back.

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
