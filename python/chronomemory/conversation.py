"""Keeps a conversation word by word, as episodes beside a memory of blocks, and recalls over both."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from chronomemory.blocks import Memory, MemorySystem
from chronomemory.blocks.engine import BLOCKS
from chronomemory.blocks.ids import BLOCK, block_key
from chronomemory.episodes import Episode, Episodes
from chronomemory.episodes.classification import is_episode
from chronomemory.episodes.facts import is_fact
from chronomemory.episodes.ids import EPISODE, FACT
from chronomemory.errors import InvalidArgument
from chronomemory.face.arguments import count, string
from chronomemory.face.awaited import Awaited, awaited_verb
from chronomemory.face.moments import Now, utc_now
from chronomemory.face.results import Result
from chronomemory.record import ChronoRecord
from chronomemory.scope import NOT_GIVEN, Answer
from chronomemory.search import Hit, Hits

_KINDS = (BLOCK, EPISODE, FACT)
#: What plain records of these kinds are not called: only a face writes such ids.
_OF_A_FACE = {"or": [{"id": {"starts": f"{kind}:"}} for kind in _KINDS]}
_MOST_RECALLED = 10_000
#: How many more are looked for by their words than are wanted: blocks among them may come by their meaning.
_WIDER = 4


@dataclass(frozen=True)
class Recollection(Result):
    """Something that matters to a question: a block, an episode or a fact."""

    kind: str
    id: str
    content: str
    #: From 0 to 1: its share of the best by words, twice, and of the best block that the memory recalls.
    score: float
    moment: datetime | None = field(default=None, compare=False)

    @property
    def summary(self) -> str:
        return f"{self.score:.3f} {self.kind}: {self.content}"


class Conversation:
    """The turns of a session between the user of a memory and an agent, and a question to turns and blocks.

    >>> import tempfile
    >>> with Memory(tempfile.mkdtemp(), user="ann") as memory:
    ...     _ = memory.remember("Ann prefers trains to planes")
    ...     talk = Conversation(memory, "monday", agent="helper")
    ...     _ = talk.say("I take the train to Oslo on Friday")
    ...     for found in talk.recall("which train to Oslo?"):
    ...         print(found.kind, found.content)
    episode I take the train to Oslo on Friday
    block Ann prefers trains to planes
    """

    def __init__(
        self, memory: Memory, session: str = NOT_GIVEN, *, agent: str = NOT_GIVEN, clock: Now = utc_now
    ) -> None:
        if not isinstance(memory, Memory):
            raise InvalidArgument(
                f"memory must be a Memory, got {type(memory).__name__}",
                field="memory",
                recovery="For a MemorySystem use AwaitedConversation.",
            )
        own = memory.blocks.scope
        if own.user is None:
            raise InvalidArgument(
                "memory: a conversation is of a user, and this memory is of none",
                field="memory",
                recovery="Open the memory of a user: Memory(place, user=…).",
            )
        self._memory = memory
        self._episodes = Episodes(memory.blocks.project)
        self._names = {
            "user": own.user,
            "session": _name("session", own.session, session),
            "agent": _name("agent", own.agent, agent),
        }
        self._clock = clock

    def say(self, content: str, *, role: str = "user", metadata: Mapping[str, Any] | None = None) -> Episode:
        """Keep a turn behind those that are there: rules go by its ``metadata``, ``role`` is who spoke."""
        turn = Episode(
            id=secrets.token_hex(16),
            content=string("content", content),
            timestamp=self._episodes.next_moment(self._clock(), **self._names),
            source_node=string("role", role, empty=False),
            metadata=dict(metadata or {}),
            **self._names,
        )
        self._episodes.put(turn, **self._names)
        return turn

    def turns(self, limit: int = 20) -> list[Episode]:
        """Return the latest turns of this session, in the order in which they were said."""
        names = self._names
        return self._episodes.recent(names["user"], names["session"], names["agent"], limit=limit)[::-1]

    def recall(self, query: str, *, top_k: int = 10) -> Answer[Recollection]:
        """Return what matters to a question, best first and once: blocks, what was said, and facts."""
        most = count("top_k", top_k, 1, _MOST_RECALLED)
        asked = string("query", query)
        blocks = self._memory.recall(asked, top_k=most)
        # One search over all, so that what a word is worth is the same for each.
        hits = self._search(asked, _WIDER * most)
        mine = self._of_a_face(hits)
        if len(mine) < len(hits) == _WIDER * most:
            # Plain records of these kinds took places. To look at the id of all that has the words is slower.
            hits = self._search(asked, _WIDER * most, where=_OF_A_FACE)
            mine = self._of_a_face(hits)
        words = _shares({hit.id: hit.score for hit in mine})
        recalled = _shares({block.id: block.score for block in blocks})
        found = [
            Recollection(
                kind=BLOCK,
                id=block.id,
                content=block.content,
                score=_fused(words.get(block_key(block.id), 0.0), recalled[block.id]),
                moment=block.created_at,
            )
            for block in blocks
        ]
        found += [
            _recollection(hit, _fused(words[hit.id])) for hit in mine if not _is_called_block(hit.record)
        ]
        ranked = sorted(found, key=lambda one: -one.score)
        # Of those that say the same, the first.
        first: dict[str, Recollection] = {}
        for one in ranked:
            first.setdefault(one.content, one)
        return Answer(list(first.values())[:most], scope=hits.scope, known=hits.known)

    def _search(self, asked: str, limit: int, **more: Any) -> Hits:
        return self._memory.blocks.store.search(asked, kind=_KINDS, limit=limit, **more)

    def _of_a_face(self, hits: Iterable[Hit]) -> list[Hit]:
        """Return learned, said or concluded items: plain records of these kinds belong to other programs."""
        engine = self._memory.blocks.store.engine

        def is_ours(record: ChronoRecord) -> bool:
            if _is_called_block(record):
                return BLOCKS.reader.record(engine, record.id) is not None
            return is_episode(record) or is_fact(record)

        return [hit for hit in hits if is_ours(hit.record)]


class AwaitedConversation(Awaited[Conversation]):
    """The same for tasks, beside a ``MemorySystem``."""

    def __init__(
        self, system: MemorySystem, session: str = NOT_GIVEN, *, agent: str = NOT_GIVEN, clock: Now = utc_now
    ) -> None:
        super().__init__(Conversation(system.memory, session, agent=agent, clock=clock))

    say = awaited_verb(Conversation.say)
    turns = awaited_verb(Conversation.turns)
    recall = awaited_verb(Conversation.recall)


def _name(level: str, own: str | None, given: str) -> str:
    """Take the name that the memory has, or else the one that is given; if both are there, they agree."""
    if given is NOT_GIVEN:
        if own is None:
            raise InvalidArgument(f"{level}: a turn has one, and this memory has none", field=level)
        return own
    if own is not None and own != given:
        raise InvalidArgument(f"{level}: the memory is of {own!r}, got {given!r}", field=level)
    return given


def _shares(scores: dict[str, float]) -> dict[str, float]:
    best = max(scores.values(), default=0.0)
    return {name: score / best if best > 0 else 0.0 for name, score in scores.items()}


def _fused(words: float, recalled: float = 0.0) -> float:
    return (2 * words + recalled) / 3


def _is_called_block(record: ChronoRecord) -> bool:
    return record.id.startswith(block_key(""))


def _recollection(hit: Hit, score: float) -> Recollection:
    record, data = hit.record, hit.record.data
    content = data.get("content", record.label)
    stated = data.get("timestamp")
    try:
        moment = datetime.fromisoformat(stated) if isinstance(stated, str) else record.created_at
    except ValueError:
        moment = record.created_at
    return Recollection(record.kind, record.id.partition(":")[2], str(content), score, moment)
