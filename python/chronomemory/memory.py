"""The memory of an agent: blocks, the turns of conversations, records and pages behind one handle."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from chronomemory import blocks
from chronomemory.blocks.configuration import Place
from chronomemory.blocks.ids import BLOCK, any_key, block_key, plain_id
from chronomemory.blocks.items import MemoryItem, item_of
from chronomemory.blocks.life.asking import TokenCounter, estimated_tokens
from chronomemory.blocks.life.learning import SENTENCE_ENDS
from chronomemory.blocks.memory import MemoryOptions
from chronomemory.blocks.retrieval import cut_to_fit
from chronomemory.blocks.storage.config import MOST_RESULTS
from chronomemory.blocks.storage.frames import bullet
from chronomemory.blocks.types import LearnResult, ScoredBlock
from chronomemory.conversation import Conversation
from chronomemory.embedders.lexical import COMMON_WORDS
from chronomemory.episodes import Episode
from chronomemory.episodes.ids import episode_key, fact_key
from chronomemory.erasure import Erased, erase_seen
from chronomemory.errors import InvalidArgument, UnknownRecord
from chronomemory.face.arguments import count, function_or_none, must, string, string_list
from chronomemory.face.awaited import Awaited, awaited_verb
from chronomemory.face.results import Result, counted
from chronomemory.scope import NOT_GIVEN
from chronomemory.search import Hit
from chronomemory.tools import Tools, is_generic, memory_tools, profile
from chronomemory.types import Unpack

Extractor = Callable[[Sequence[Mapping[str, str]]], Iterable[str]]
Messages = str | Mapping[str, str] | Sequence[Mapping[str, str]]

_SESSION, _AGENT = "main", "assistant"
_BLOCKS, _TURNS, _RECORDS = 10, 6, 5
_RECORD_FLOOR = 1 / 3
#: Ids of what other sections of a context show, and of facts made of turns.
_SHOWN_ELSEWHERE = (block_key(""), episode_key(""), fact_key(""))
_SECTIONS = {
    "constitution": "Always true",
    "block": "Known",
    "turn": "Recent turns",
    "record": "Records and pages",
}


@dataclass(frozen=True, slots=True)
class AddResult(Result):
    """What became of messages: the ids of the turns, and the results of what was remembered of them."""

    turns: tuple[str, ...]
    learned: tuple[LearnResult, ...] = ()

    @property
    def summary(self) -> str:
        return (
            f"{counted(len(self.turns), 'turn')} kept, {counted(len(self.learned), 'statement')} remembered."
        )


@dataclass(frozen=True, slots=True)
class Citation(Result):
    """One entry of a context: where it comes from. Its number in the text is ``number``."""

    number: int
    kind: str
    id: str
    content: str
    time: datetime | None = None
    source: str = ""
    speaker: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        return f"[{self.number}] {self.kind} {self.id}: {self.content}"


@dataclass(frozen=True, slots=True)
class Context(Result):
    """A text for a prompt, with its citations; ``overflow`` tokens of the constitution exceed the budget."""

    text: str
    citations: tuple[Citation, ...]
    tokens: int
    budget: int

    @property
    def overflow(self) -> int:
        """How many tokens the constitution needs beyond the budget."""
        return max(0, self.tokens - self.budget)

    @property
    def summary(self) -> str:
        return f"{counted(len(self.citations), 'citation')}, {self.tokens} of {self.budget} tokens."

    def __str__(self) -> str:
        return self.text


class Memory(blocks.Memory):
    """A memory that works without any model or network; the asynchronous twin is ``MemorySystem``.

    With names it is the memory of a user, an agent, a session, or of several together: it sees what is theirs
    and what is wider, and what it learns is theirs. Without names it is what all share.

    >>> import tempfile
    >>> with Memory(tempfile.mkdtemp(), user="ann") as memory:
    ...     _ = memory.remember("Ann is allergic to peanuts")
    ...     print(memory.context("what is Ann allergic to?"))
    ## Known
    - [1] Ann is allergic to peanuts
    """

    def add(
        self,
        messages: Messages,
        *,
        session: str = NOT_GIVEN,
        agent: str = NOT_GIVEN,
        extractor: Extractor | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> AddResult:
        """Keep messages (``role``, ``content``) as turns, and remember what they state."""
        said = _messages(messages)
        if metadata is not None and not isinstance(metadata, Mapping):
            raise must("metadata", "be a mapping", metadata)
        choose = function_or_none("extractor", extractor)
        talk = self._conversation(session, agent)
        # First the extractor: if it fails, nothing was written, and the call can be made again.
        extracted = [] if choose is None else string_list("extractor", choose(said))
        turns = [talk.say(one["content"], role=one["role"], metadata=metadata) for one in said]
        keys = [episode_key(turn.id) for turn in turns]
        stated = [(text, keys) for text in extracted]
        if choose is None:
            texts = zip(map(_statement, said), keys, strict=True)
            stated = [(text, [key]) for text, key in texts if text]
        learned: list[LearnResult] = []
        for text, made_of in stated:
            learned.append(
                self.remember(
                    text,
                    source="conversation",
                    conversation=turns[0].session,
                    previous=learned[-1].block_id if learned else None,
                    speaker=self.blocks.scope.user,
                    metadata=metadata,
                    turns=made_of,
                )
            )
        return AddResult(tuple(keys), tuple(learned))

    def context(
        self,
        query: str,
        budget: int = 1000,
        *,
        session: str = NOT_GIVEN,
        agent: str = NOT_GIVEN,
        token_counter: TokenCounter | None = None,
    ) -> Context:
        """Return one text for a prompt with citations: constitution, blocks, turns, records and pages.

        Only the constitution may exceed the ``budget``. A generic query gets the most used and the newest
        blocks.
        """
        asked = string("query", query)
        writing = _Writing(count("budget", budget), token_counter or self._counter or estimated_tokens)
        always = self.recall(None, frame="self", tags=["self/constitutional"], top_k=MOST_RESULTS)
        for block in always:
            writing.add("constitution", _cited_block(block), must=True)
        known: Sequence[ScoredBlock | MemoryItem] = (
            self._profile() if is_generic(asked) else self.recall(asked, top_k=_BLOCKS)
        )
        for one in known:
            writing.add("block", _cited_block(one))
        has_turns = self.blocks.scope.user is not None
        for turn in self._conversation(session, agent).turns(_TURNS) if has_turns else ():
            writing.add("turn", _cited_turn(turn))
        for hit in self._records(asked):
            writing.add("record", _cited_hit(hit))
        return writing.finish()

    def erase(
        self,
        ids: Iterable[str] | None = None,
        *,
        everything: bool = False,
        reason: str,
        dry_run: bool = False,
    ) -> Erased:
        """Erase memories by ids, or ``everything`` of these names, from all files. It cannot be undone."""
        if (ids is None) != everything:
            raise InvalidArgument("either ids or everything=True must be given", field="ids")
        scope, store = self.blocks.scope, self.blocks.store
        order: dict[str, Any] = {"reason": string("reason", reason, empty=False), "dry_run": dry_run}
        if ids is None:
            if not scope.to_dict():
                raise InvalidArgument(
                    "everything: this memory has no names, and what is shared is of all",
                    field="everything",
                    recovery="Open the memory of a user, or name ids.",
                )
            if scope.user is not None:
                return erase_seen(store, scope=scope.to_dict(), **order)
            # An agent or a session does not see the records of its users.
            seen = [record.id for record in store.query(status=None, expired=True, faces=True)]
            owned = zip(seen, store.engine.are_own(seen), strict=True)
            return erase_seen(store, [record_id for record_id, is_own in owned if is_own], **order)
        keys = [any_key(given) for given in string_list("ids", ids, empty=False)]
        for key, is_own in zip(keys, store.engine.are_own(keys), strict=True):
            if not is_own or store.engine.with_expired().get(key) is None:
                raise UnknownRecord(f"{key!r} is no memory of {scope}", id=key)
        return erase_seen(store, self._with_copies(keys), **order)

    def _with_copies(self, keys: Sequence[str]) -> list[str]:
        """Return ids of memories, of earlier wordings and merged texts, and of turns that state them."""
        found, new = dict.fromkeys(keys), list(keys)
        while new:
            names = [plain_id(key) for key in new if key.startswith(block_key(""))]
            known = self.blocks.store.engine.with_expired().get_many(new)
            also = [str(turn) for record in known if record for turn in record.data.get("turns", ())]
            same = {"or": [{"data.superseded_by": {"in": names}}, {"data.turns": {"in": new}}]}
            also += [
                record.id
                for record in self.blocks.store.query(kind=BLOCK, status=None, expired=True, where=same)
            ]
            new = [record_id for record_id in dict.fromkeys(also) if record_id not in found]
            found |= dict.fromkeys(new)
        return list(found)

    def export(self) -> list[dict[str, Any]]:
        """Return all memories, archived ones too, as JSON can carry them, oldest first."""
        return [item.to_dict() for item in reversed(self.list(status=None))]

    def tools(self) -> Tools:
        """Return tools for function calling: JSON schemas for any provider, and a dispatcher."""
        return memory_tools(self)

    def _conversation(self, session: str, agent: str) -> Conversation:
        own = self.blocks.scope
        return Conversation(
            self,
            _SESSION if session is NOT_GIVEN and own.session is None else session,
            agent=_AGENT if agent is NOT_GIVEN and own.agent is None else agent,
        )

    def _profile(self) -> list[MemoryItem]:
        newest = self.list(limit=3 * _BLOCKS)
        store = self.blocks.store
        records = store.get_many([block_key(item.id) for item in newest])
        sections = profile(store, [record for record in records if record is not None], _BLOCKS)
        return [item_of(record) for records in sections.values() for record in records]

    def _records(self, query: str) -> list[Hit]:
        """Return plain records and entries of pages that have a third of the words of a query."""
        found = self.blocks.store.search(query, limit=4 * _RECORDS)
        others = [hit for hit in found if not hit.id.startswith(_SHOWN_ELSEWHERE)]
        asked = _stems(query)
        enough = len(asked) * _RECORD_FLOOR
        return [hit for hit in others if len(asked & _stems(_text_of(hit))) > enough][:_RECORDS]


class MemorySystem(blocks.MemorySystem):
    """The asynchronous twin of ``Memory``: the same verbs, awaited.

    >>> import asyncio, tempfile
    >>> async def live() -> str:
    ...     async with MemorySystem(tempfile.mkdtemp(), user="ann") as system:
    ...         await system.add([{"role": "user", "content": "I live in Oslo"}])
    ...         return (await system.recall("where do I live?"))[0].content
    >>> asyncio.run(live())
    'I live in Oslo'
    """

    def __init__(self, place: Place, **options: Unpack[MemoryOptions]) -> None:
        Awaited.__init__(self, Memory(place, **options))

    add = awaited_verb(Memory.add)
    context = awaited_verb(Memory.context)
    erase = awaited_verb(Memory.erase)
    export = awaited_verb(Memory.export)

    def tools(self) -> Tools:
        """Return tools for function calling; ``acall`` awaits one."""
        return memory_tools(self)


class _Writing:
    """A context in the making: entries are added as long as the budget lasts."""

    def __init__(self, budget: int, counter: TokenCounter) -> None:
        self._budget = budget
        self._counter = counter
        self._lines: dict[str, list[str]] = {}
        self._citations: list[Citation] = []
        self._known: set[str] = set()

    def add(self, section: str, cited: Citation, *, must: bool = False) -> None:
        """Add an entry, or its first sentences; not what an earlier entry says already."""
        if cited.content in self._known:
            return
        number = len(self._citations) + 1
        lines = self._lines.get(section, [])

        def with_entry(content: str) -> dict[str, list[str]]:
            return {**self._lines, section: [*lines, bullet(f"[{number}] {content}")]}

        content: str | None = cited.content
        if not must:
            content = cut_to_fit(cited.content, self._budget, lambda text: self._cost(with_entry(text)))
        if content is None:
            return
        self._lines = with_entry(content)
        self._citations.append(replace(cited, number=number))
        self._known.add(cited.content)

    def finish(self) -> Context:
        """Return the context; its sections are in the order in which they were begun."""
        return Context(_rendered(self._lines), tuple(self._citations), self._cost(self._lines), self._budget)

    def _cost(self, lines: Mapping[str, Sequence[str]]) -> int:
        return count("token_count", self._counter(_rendered(lines)), most=None)


def _rendered(sections: Mapping[str, Sequence[str]]) -> str:
    return "\n\n".join("\n".join([f"## {_SECTIONS[name]}", *lines]) for name, lines in sections.items())


def _messages(given: Messages) -> list[dict[str, str]]:
    if isinstance(given, str):
        given = {"role": "user", "content": given}
    if isinstance(given, Mapping):
        given = [given]
    if not isinstance(given, Sequence):
        raise must("messages", "be a text, or messages with a role and a content", given)
    messages = []
    for one in given:
        # A message that only calls a tool has no content.
        if not isinstance(one, Mapping) or "role" not in one or not one.keys() & {"content", "tool_calls"}:
            raise must("messages", "be a text, or messages with a role and a content", one)
        content = string("content", _text_of_parts(one.get("content")))
        if content.strip():
            messages.append({"role": string("role", one["role"], empty=False), "content": content})
    if not messages:
        raise must("messages", "have at least one with a content", given)
    return messages


def _text_of_parts(content: Any) -> Any:
    if content is None:
        return ""
    if not isinstance(content, Sequence) or isinstance(content, str):
        return content
    texts = (part.get("text") if isinstance(part, Mapping) else part for part in content)
    return "\n".join(text for text in texts if isinstance(text, str))


#: Marks at the end of a question: Latin, full width, Arabic, Armenian, Ethiopic; Greek uses a semicolon.
_QUESTION = re.compile(r"[?？؟՞፧][\"'”’)\]]*$|[\u0370-\u03ff]\s*;$")


def _statement(message: Mapping[str, str]) -> str:
    """Return what the user states in a message: its lines and sentences that are no questions."""
    if message["role"].lower() != "user":
        return ""
    lines = []
    for line in message["content"].strip().splitlines():
        sentences = [one for one in SENTENCE_ENDS.split(line) if not _QUESTION.search(one.rstrip())]
        if sentences or not line.strip():
            lines.append(" ".join(sentences))
    return "\n".join(lines).strip()


def _cited_block(block: ScoredBlock | MemoryItem) -> Citation:
    shared = ("id", "content", "time", "source", "speaker", "metadata")
    return Citation(number=0, kind=BLOCK, **{name: getattr(block, name) for name in shared})


def _cited_turn(turn: Episode) -> Citation:
    return Citation(
        number=0,
        kind="turn",
        id=episode_key(turn.id),
        content=f"{turn.source_node}: {turn.content}",
        time=turn.timestamp,
        source="conversation",
        speaker=turn.source_node,
        metadata=dict(turn.metadata),
    )


def _cited_hit(hit: Hit) -> Citation:
    data = hit.record.data
    source, speaker = data.get("source"), data.get("speaker")
    return Citation(
        number=0,
        kind=hit.record.kind,
        id=hit.id,
        content=_text_of(hit),
        time=hit.record.created_at,
        source=source if isinstance(source, str) else "",
        speaker=speaker if isinstance(speaker, str) else None,
    )


def _text_of(hit: Hit) -> str:
    content = hit.record.data.get("content")
    return content if isinstance(content, str) and content else hit.record.label


_WORD = re.compile(r"\w+")
#: So many first letters tell words apart: live and lives are one.
_STEM_LETTERS = 4


def _stems(text: str) -> set[str]:
    """Return the first letters of the words of a text, common ones aside."""
    return {word[:_STEM_LETTERS] for word in _WORD.findall(text.lower()) if word not in COMMON_WORDS}
