"""What an agent should know to use the memory: one card for each verb, to be put into a prompt."""

from __future__ import annotations

from dataclasses import dataclass

from chronomemory.face.arguments import string_or_none


@dataclass(frozen=True)
class _Card:
    what: str
    when: str
    not_for: str
    cost: str
    returns: str
    then: str
    example: str

    def __str__(self) -> str:
        return (
            f"  What:      {self.what}\n"
            f"  Use when:  {self.when}\n"
            f"  Don't use: {self.not_for}\n"
            f"  Cost:      {self.cost}\n"
            f"  Returns:   {self.returns}\n"
            f"  Next:      {self.then}\n"
            f"  Example:   {self.example}"
        )


_EVENT = "one small event; no model is asked"
_READ = "a read of a millisecond; nothing is written"

_CARDS = {
    "learn": _Card(
        "puts one thing into the inbox",
        "something was heard that will matter later",
        "for what only this turn needs, or for several things in one text",
        _EVENT,
        "LearnResult: block_id and status (created, duplicate_rejected, reactivated)",
        "dream() when should_dream is true; until then it cannot be recalled",
        'memory.learn("Anna prefers short answers", tags=["self/value"])',
    ),
    "remember": _Card(
        "learns one thing and consolidates at once",
        "it must be recalled a moment later",
        "in a loop over many things: learn them, and dream once",
        "an embedding for each block of the inbox",
        "LearnResult, as learn()",
        "recall() finds it",
        'memory.remember("The deploy key lives in the vault")',
    ),
    "learn_document": _Card(
        "learns a long text, a block for each paragraph",
        "a page, a report or a transcript should be known",
        "for a single fact",
        "learn() for each paragraph; consolidates whenever the inbox is full",
        "LearnDocumentResult: how many pieces, and block_ids in their order",
        "dream(), for what is left in the inbox",
        'memory.learn_document(text, tags=["manual"], source="manual.md")',
    ),
    "consolidate": _Card(
        "makes what waits in the inbox part of the memory: embeds it, compares it, links it",
        "the inbox should be taken in now, and nothing be let go",
        "after every learn()",
        "an embedding for each block; analyser and judge if there are any (skip_llm=True asks neither)",
        "ConsolidateResult: promoted, duplicates, superseded, edges, contradictions",
        "recall() or frame()",
        "memory.consolidate()",
    ),
    "dream": _Card(
        "consolidates the inbox, then curates the rest",
        "should_dream is true, or nothing else is to be done",
        "in a tight loop",
        "as consolidate() and curate()",
        "DreamResult: consolidated and curated; false if the inbox was empty",
        "recall() or frame()",
        "if memory.should_dream: memory.dream()",
    ),
    "recall": _Card(
        "finds the blocks that matter for a question",
        "you want to look at blocks, their ids and scores",
        "for a prompt: frame() renders one, and takes note of what was used",
        _READ,
        "a list of ScoredBlock, the best first",
        "outcome() with the ids of those that were used",
        'memory.recall("where is the deploy key?", top_k=3)',
    ),
    "frame": _Card(
        "renders a text for a prompt: self, attention, task, simulate, or one of your own",
        "a prompt is put together",
        "to look around without counting as use: recall() changes nothing",
        "a recall, and one batch of events for what was shown",
        "FrameResult: text (empty if there is nothing to say), blocks, dropped, warnings",
        "put text into the prompt; later outcome() with the ids of blocks",
        'memory.frame("attention", "where is the deploy key?").text',
    ),
    "outcome": _Card(
        "tells blocks how it went, from 0 (bad) to 1 (good)",
        "it has turned out whether what was recalled was right",
        "without news: 0.5 is an outcome too, and weight 0 is refused",
        _EVENT + " for each block and link",
        "OutcomeResult: the confidence of each block now, and which ids are not active",
        "go on; good ones are linked, bad ones fade faster",
        'memory.outcome([block.id for block in used], 1.0, source="tests passed")',
    ),
    "connect": _Card(
        "links two blocks, or counts one more use of their link",
        "you have read both, and they belong together",
        "to say that they contradict each other: a judge finds that",
        _EVENT,
        "ConnectResult: action (created, reinforced, updated, skipped) and weight; true if the link is new",
        "recall() of one brings the other",
        'memory.connect(one, other, "supports", note="same incident")',
    ),
    "disconnect": _Card(
        "takes a link away",
        "two blocks do not belong together after all",
        "to put a block away: forget()",
        _EVENT,
        "DisconnectResult: removed or not_found; true if there was a link",
        "nothing",
        "memory.disconnect(one, other)",
    ),
    "edit": _Card(
        "says a block in other words, with its tags, links and standing",
        "a block is nearly right",
        "for something new: learn() it",
        "one batch of events",
        "LearnResult with the id of the new block",
        "dream(): the new words wait in the inbox",
        'memory.edit(block_id, "Anna prefers very short answers")',
    ),
    "forget": _Card(
        "puts a block away; the log keeps it",
        "a block should no longer be found",
        "for what is only old: it fades by itself",
        _EVENT,
        "ForgetResult",
        "to learn the same again brings it back as new",
        "memory.forget(block_id)",
    ),
    "keep": _Card(
        "takes blocks of a session over into what outlives it",
        "something that was learned under a session should be known in the next one",
        "without a session in the memory's name: nothing ends there",
        "one batch of events; no model is asked",
        "KeepResult: kept, each old id with the new one",
        "nothing",
        "memory.keep([block_id])",
    ),
    "reembed": _Card(
        "gives active blocks an embedding of the present embedder",
        "status() says that some are found by words alone: the embedder is another one",
        "after learning: consolidation embeds what is new",
        "an embedding for each block that has none of this model",
        "ReembedResult: embedded and model",
        "recall() compares by meaning again",
        "memory.reembed()",
    ),
    "curate": _Card(
        "archives what has faded, weakens old links, and drops those that never came to be",
        "once in a while; dream() does it too",
        "to put a certain block away: forget()",
        "a look at all blocks, and events for what is let go",
        "CurateResult: archived, edges_pruned, edges_decayed, forming_pruned",
        "nothing",
        "memory.curate()",
    ),
    "session": _Card(
        "lets time pass for as long as you are in it",
        "you begin to work",
        "around a single read",
        "an event at each end",
        "the memory itself; begin_session() returns an id, end_session() the hours",
        "learn(), frame(), outcome() inside",
        'with memory.session("coding"): ...',
    ),
    "list": _Card(
        "lists blocks, by status, tag or category",
        "you want to see what there is",
        "to find something by its meaning: recall()",
        _READ,
        "a list of dicts",
        "edit(), forget(), connect() with their ids",
        'memory.list(tag_pattern="self/%")',
    ),
    "status": _Card(
        "says what there is, how late it is, and what could be done next",
        "you do not know what to do next",
        "before every call",
        _READ,
        "MemoryStatus, with a suggestion",
        "follow the suggestion",
        "memory.status().suggestion",
    ),
    "history": _Card(
        "shows every event of a block, oldest first",
        "you ask how a block came to be what it is",
        "to list blocks: list()",
        "a look into the log",
        "a list of events",
        "nothing",
        "memory.history(block_id)",
    ),
}


def guide(method: str | None = None) -> str:
    """Return the card of a verb, or of all of them one line each; an unknown verb gets those there are.

    >>> print(guide("forget").splitlines()[1])
      What:      puts a block away; the log keeps it
    """
    if string_or_none("method", method) is None:
        lines = [f"  {name + '()':<18}{card.what}" for name, card in _CARDS.items()]
        return "\n".join(
            [
                "A memory of blocks: learn as you go, dream at a pause, prompt with frames, tell outcomes.",
                *lines,
                "should_dream says when it is time to dream; guide(name) tells more of a verb.",
                "The verbs of MemorySystem are awaited; should_dream and guide are not.",
            ]
        )
    card = _CARDS.get(str(method))
    if card is None:
        return f"There is no verb {method!r}. There are: {', '.join(_CARDS)}."
    return f"{method}()\n{card}"
