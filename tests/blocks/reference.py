"""What is the right answer of a recall, computed the slow and obvious way?

Everything here is plain Python and NumPy, written from the description of the score and the pipeline
and not from the engine. Nothing is clever: every list is sorted whole, every pair is looked at.
The engine has to agree with it.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

import numpy as np
from lifting import Surroundings, lifted
from plain_words import question_words, text_words
from reference_fusion import fused

NAMES = ("similarity", "confidence", "recency", "centrality", "reinforcement")

#: A hub of few links is lifted while it is fresh.
FLOOR_BELOW, FRESH_ABOVE, FLOOR_SHARE = 0.10, 0.70, 0.5
#: What a link gains by being used.
USE_BONUS = 0.10
#: How much of a choice is score, and how much is being unlike what was chosen.
MMR_SCORE, MMR_LIKENESS = 0.7, 0.3
#: What is less alike is not held against a block.
NEAR_COPY = 0.8
PRIOR_STRENGTH = 2.0


@dataclass
class Block:
    """One block as the reference sees it."""

    id: str
    status: str = "active"
    category: str = "knowledge"
    confidence: float = 0.5
    last_reinforced_at: float = 0.0
    decay_lambda: float = 0.01
    reinforcement_count: int = 0
    tokens: int = 1
    tags: tuple[str, ...] = ()
    embedding: np.ndarray | None = None
    evidence: float = 0.0
    content: str = ""
    conversation: str | None = None
    speaker: str | None = None
    #: The block that it was said after.
    previous: str | None = None
    #: How close it is to a time that the question names.
    closeness: float = 0.0


@dataclass
class Memory:
    """All blocks, the links between them as (a, b, weight, count), and what contradicts what."""

    blocks: list[Block] = field(default_factory=list)
    edges: list[tuple[str, str, float, int]] = field(default_factory=list)
    contradictions: list[tuple[str, str]] = field(default_factory=list)

    def block(self, block_id: str) -> Block:
        return next(block for block in self.blocks if block.id == block_id)

    def shown_edges(self) -> list[tuple[str, str, float, int]]:
        """Links of which no end is archived."""
        shown = {block.id for block in self.blocks if block.status != "archived"}
        return [edge for edge in self.edges if edge[0] in shown and edge[1] in shown]


@dataclass
class Question:
    """What is asked; the defaults are those of the attention frame."""

    hours: float = 0.0
    k: int = 5
    weights: tuple[float, float, float, float, float] = (0.35, 0.15, 0.25, 0.15, 0.10)
    tag_patterns: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    window: float | None = 200.0
    min_confidence: float = 0.0
    guarantees: tuple[str, ...] = ()
    query: np.ndarray | None = None
    text: str | None = None
    #: BM25 of blocks that share words with the text, as float32; without any the text has no signal.
    words: dict[str, float] = field(default_factory=dict)
    expansion: int = 20
    diversify: bool = False
    exploration: float = 0.0
    #: Frames guarantee, suppress and keep to a budget.
    frame: bool = False
    budget: int | None = None


@dataclass
class Scored:
    """One block with all that its score is made of."""

    id: str
    score: float
    components: tuple[float, float, float, float, float]
    expanded: bool = False
    guaranteed: bool = False


@dataclass
class Answer:
    """What a recall gives, or a frame: then also what was dropped, and why."""

    results: list[Scored]
    candidates: list[Scored]
    dropped: list[tuple[str, str]] = field(default_factory=list)
    clashes: list[tuple[str, str]] = field(default_factory=list)
    tokens: int = 0


def like(pattern: str, text: str) -> bool:
    """SQL LIKE: ``%`` is any text, ``_`` one character; ASCII letters match in either case."""
    parts = [{"%": ".*", "_": "."}.get(letter, re.escape(letter)) for letter in pattern]
    return re.fullmatch("".join(parts), text, re.DOTALL | re.IGNORECASE | re.ASCII) is not None


def cosine(one: np.ndarray | None, other: np.ndarray | None) -> float:
    """The cosine, between -1 and 1; 0 where there is no direction to compare."""
    if one is None or other is None or len(one) != len(other):
        return 0.0
    wide, wider = one.astype(np.float64), other.astype(np.float64)
    norms = math.sqrt(wide @ wide) * math.sqrt(wider @ wider)
    return float(np.clip(np.float32((wide @ wider) / norms), -1.0, 1.0)) if norms > 0 else 0.0


def recency(block: Block, hours: float) -> float:
    return math.exp(-block.decay_lambda * max(0.0, hours - block.last_reinforced_at))


def weighted_degree(memory: Memory, block_id: str) -> float:
    mine = [edge for edge in memory.shown_edges() if block_id in edge[:2]]
    return sum(weight + USE_BONUS * math.log1p(count) for _, _, weight, count in mine)


def log_normalised(count: int, most: int) -> float:
    return math.log1p(count) / math.log1p(most) if most > 0 else 0.0


def centrality(degree: float, largest: float, how_recent: float) -> float:
    value = degree / largest if largest > 0 else 0.0
    if value < FLOOR_BELOW and how_recent > FRESH_ABOVE:
        return max(value, FLOOR_SHARE * how_recent)
    return value


def without_similarity(weights: tuple[float, ...]) -> tuple[float, ...]:
    """What the weights are when nothing was asked for."""
    rest = sum(weights[1:])
    return (0.0, *(weight / rest if rest > 0 else 0.0 for weight in weights[1:]))


def weighted(weights: tuple[float, ...], components: tuple[float, ...]) -> float:
    return sum(weight * value for weight, value in zip(weights, components, strict=True))


def uncertainty(block: Block) -> float:
    """How little is known of a block's worth: the deviation of its Beta distribution."""
    strength = PRIOR_STRENGTH + block.evidence
    alpha, beta = block.confidence * strength, (1.0 - block.confidence) * strength
    total = alpha + beta
    return math.sqrt(alpha * beta / (total * total * (total + 1.0)))


def matches_tags(block: Block, patterns: tuple[str, ...]) -> bool:
    return not patterns or any(like(pattern, tag) for pattern in patterns for tag in block.tags)


def is_wanted(block: Block, question: Question, *, window: bool = True) -> bool:
    """The filter; what comes by a link may be older than the window."""
    fresh = question.window is None or block.last_reinforced_at > question.hours - question.window
    return (
        block.status == "active"
        and (fresh or not window)
        and matches_tags(block, question.tag_patterns)
        and (not question.categories or block.category in question.categories)
        and block.confidence >= question.min_confidence
    )


def guaranteed_ids(memory: Memory, question: Question) -> set[str]:
    if not question.guarantees:
        return set()
    return {
        block.id
        for block in memory.blocks
        if block.status == "active" and matches_tags(block, question.guarantees)
    }


def seeds(memory: Memory, question: Question) -> dict[str, float]:
    """The best ``10·k`` by meaning and by words, with their similarity."""
    wanted = [block for block in memory.blocks if is_wanted(block, question)]
    by_meaning = {block.id: cosine(question.query, block.embedding) for block in wanted}
    by_words = {block.id: question.words[block.id] for block in wanted if block.id in question.words}
    found = best(by_meaning, 10 * question.k).keys() | best(by_words, 10 * question.k).keys()
    return {block_id: similarity(memory, question, block_id) for block_id in found}


def similarity(memory: Memory, question: Question, block_id: str) -> float:
    """The cosine; where words of the query are found among the blocks, fused with what they say."""
    wanted = [block for block in memory.blocks if is_wanted(block, question)]
    best_words = max((question.words.get(block.id, 0.0) for block in wanted), default=0.0)
    block = memory.block(block_id)
    mine = cosine(question.query, block.embedding)
    if best_words <= 0:
        return mine
    cosines = [cosine(question.query, other.embedding) for other in wanted if has_vector(question, other)]
    words = question.words.get(block_id, 0.0)
    return fused(mine if has_vector(question, block) else None, words, cosines, best_words)


def has_vector(question: Question, block: Block) -> bool:
    return (
        block.embedding is not None
        and question.query is not None
        and len(block.embedding) == len(question.query)
    )


def best(scores: dict[str, float], number: int) -> dict[str, float]:
    ranked = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
    return dict(ranked[:number])


def expansion(memory: Memory, question: Question, found: set[str], apart: set[str]) -> list[str]:
    """Who is linked to what was found, the strongest link first."""
    strength: dict[str, float] = {}
    for one, other, weight, count in memory.shown_edges():
        for here, there in ((one, other), (other, one)):
            if here in found and there not in found | apart:
                strength[there] = max(strength.get(there, -math.inf), weight + USE_BONUS * math.log1p(count))
    wanted = {
        block_id: value
        for block_id, value in strength.items()
        if is_wanted(memory.block(block_id), question, window=False)
    }
    return list(best(wanted, question.expansion))


def neighbours(memory: Memory) -> set[frozenset[str]]:
    """Pairs of blocks of which one was said right after the other."""
    known = {block.id for block in memory.blocks}
    pairs = {(block.id, block.previous) for block in memory.blocks if block.previous in known}
    return {frozenset(pair) for pair in pairs if pair[0] != pair[1]}


def beside(
    memory: Memory, question: Question, found: set[str], similar: dict[str, float], expanded: list[str]
) -> list[str]:
    """What was said right before or after what was found, beside the best of it first."""
    worth: dict[str, float] = {}
    for pair in neighbours(memory):
        for here in pair & found:
            (there,) = pair - {here}
            is_new = there not in similar and there not in expanded
            if is_new and is_wanted(memory.block(there), question, window=False):
                worth[there] = max(worth.get(there, -math.inf), similar[here])
    return list(best(worth, question.expansion))


def surrounded(
    memory: Memory, question: Question, similar: dict[str, float], expanded: list[str]
) -> dict[str, float]:
    """What surrounds a candidate lifts it as in a search; the best keeps what the best has alone."""
    alone = {**similar, **dict.fromkeys(expanded, 0.0)}
    blocks = {name: memory.block(name) for name in alone}
    pairs = neighbours(memory) | {frozenset(edge[:2]) for edge in memory.shown_edges()}
    around = Surroundings(
        links={pair for pair in pairs if pair <= alone.keys() and pair & similar.keys()},
        groups={name: block.conversation for name, block in blocks.items() if block.conversation},
        closeness={name: block.closeness for name, block in blocks.items()},
    )
    words = set(question_words(question.text or ""))
    named = {block.speaker for block in blocks.values() if words & set(text_words(block.speaker or ""))}
    if len(named) == 1:
        around.speakers = {name for name, block in blocks.items() if block.speaker in named}
    made = lifted(alone, around)
    before, after = (max([0.0, *scores.values()]) for scores in (alone, made))
    return {name: score * before / after if after > before else score for name, score in made.items()}


def candidates(memory: Memory, question: Question) -> list[Scored]:
    """The candidate set with all five components; every maximum is taken over exactly this set."""
    sure = guaranteed_ids(memory, question)
    similar: dict[str, float] = {}
    expanded: list[str] = []
    weights: tuple[float, ...] = question.weights
    if question.query is None:
        weights = without_similarity(weights)
        chosen = {block.id for block in memory.blocks if is_wanted(block, question)} | sure
    else:
        similar = seeds(memory, question)
        found = set(similar)
        similar |= {block_id: similarity(memory, question, block_id) for block_id in sure - found}
        expanded = expansion(memory, question, found, sure)
        expanded += beside(memory, question, found, similar, expanded)
        similar = surrounded(memory, question, similar, expanded)
        chosen = found | sure | set(expanded)
    degrees = {block_id: weighted_degree(memory, block_id) for block_id in chosen}
    largest = max(degrees.values(), default=0.0)
    most = max((memory.block(block_id).reinforcement_count for block_id in chosen), default=0)
    scored = []
    for block_id in chosen:
        block = memory.block(block_id)
        fresh = recency(block, question.hours)
        components = (
            similar.get(block_id, 0.0),
            block.confidence,
            fresh,
            centrality(degrees[block_id], largest, fresh),
            log_normalised(block.reinforcement_count, most),
        )
        score = weighted(weights, components) + question.exploration * uncertainty(block)
        scored.append(Scored(block_id, score, components, block_id in expanded, block_id in sure))
    return sorted(scored, key=lambda item: (-item.score, item.id))


def diversified(memory: Memory, pool: list[Scored], chosen: list[Scored]) -> list[Scored]:
    """The pool by its scores, near copies of what is chosen already behind others."""
    chosen, left, order = list(chosen), list(pool), []
    while left:

        def worth(item: Scored) -> float:
            mine = memory.block(item.id).embedding
            likeness = max((cosine(mine, memory.block(other.id).embedding) for other in chosen), default=0.0)
            return MMR_SCORE * item.score - MMR_LIKENESS * (likeness if likeness >= NEAR_COPY else 0.0)

        pick = min(left, key=lambda item: (-worth(item), item.id))
        left.remove(pick)
        chosen.append(pick)
        order.append(pick)
    return order


def parted(question: Question, scored: list[Scored]) -> tuple[list[Scored], list[Scored]]:
    """What results are taken from, and what moves up: where likeness counts most, by likeness."""
    if question.query is None or question.weights[0] <= max(question.weights[1:]):
        return scored[: 2 * question.k], []
    number = question.k + math.ceil(question.k / 10)
    alike = sorted(scored, key=lambda item: -item.components[0])[: max(number, 2 * question.k)]
    return sorted(alike[:number], key=lambda item: (-item.score, item.id)), alike[number:]


def recall(memory: Memory, question: Question) -> Answer:
    """The whole pipeline."""
    scored = candidates(memory, question)
    if not question.frame:
        pool, _ = parted(question, scored)
        ranked = diversified(memory, pool, []) if question.diversify else pool
        return Answer(ranked[: question.k], scored)
    return framed(memory, question, scored)


def framed(memory: Memory, question: Question, scored: list[Scored]) -> Answer:
    """Guarantees first, then contradictions, then the budget."""
    sure = [item for item in scored if item.guaranteed]
    pool, rest = parted(question, [item for item in scored if not item.guaranteed])
    order = diversified(memory, pool, sure)
    order += diversified(memory, rest, sure + order)
    places = max(question.k - len(sure), 0)
    results, waiting = sure + order[:places], order[places:]
    dropped: list[tuple[str, str]] = []
    while (loser := first_loser(memory, question, results)) is not None:
        results.remove(loser)
        dropped.append((loser.id, "contradiction"))
        if waiting:
            results.append(waiting.pop(0))
    clashes = sorted(
        pair
        for pair in map(canonical, shown_contradictions(memory))
        if set(pair) <= {item.id for item in sure}
    )
    kept, tokens = [], 0
    for item in results:
        size = memory.block(item.id).tokens
        fits = question.budget is None or tokens + size <= question.budget
        if item.guaranteed or fits or not kept:
            kept.append(item)
            tokens += size
        else:
            dropped.append((item.id, "budget"))
    return Answer(kept, scored, dropped, clashes, tokens)


def canonical(pair: tuple[str, str]) -> tuple[str, str]:
    return (min(pair), max(pair))


def shown_contradictions(memory: Memory) -> list[tuple[str, str]]:
    shown = {block.id for block in memory.blocks if block.status != "archived"}
    return [pair for pair in memory.contradictions if set(pair) <= shown]


def first_loser(memory: Memory, question: Question, results: list[Scored]) -> Scored | None:
    """Who has to go in the first pair of results that contradict each other, if there is one."""
    pairs = {canonical(pair) for pair in shown_contradictions(memory)}
    for place, one in enumerate(results):
        for other in results[place + 1 :]:
            if canonical((one.id, other.id)) not in pairs or (one.guaranteed and other.guaranteed):
                continue
            if one.guaranteed or other.guaranteed:
                return other if one.guaranteed else one

            def standing(item: Scored) -> tuple[float, float]:
                block = memory.block(item.id)
                return (block.confidence, recency(block, question.hours))

            # Of two that stand alike the one with the greater id goes.
            if standing(one) != standing(other):
                return min(one, other, key=standing)
            return max(one, other, key=lambda item: item.id)
    return None
