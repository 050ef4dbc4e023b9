"""The right answer of a recall, computed the slow and obvious way.

Everything here is plain Python and NumPy, written from the description of the score and the pipeline
and not from the engine. Nothing is clever: every list is sorted whole, every pair is looked at.
The engine has to agree with it.
"""

from __future__ import annotations

import math

from lifting import Surroundings, lifted
from plain_words import question_words, text_words
from reference_fusion import fused
from reference_parts import (
    NAMES,
    USE_BONUS,
    Answer,
    Block,
    Memory,
    Question,
    Scored,
    centrality,
    cosine,
    like,
    log_normalised,
    recency,
    uncertainty,
    weighted,
    weighted_degree,
    without_similarity,
)

__all__ = [
    "NAMES",
    "Answer",
    "Block",
    "Memory",
    "Question",
    "Scored",
    "candidates",
    "centrality",
    "cosine",
    "framed",
    "like",
    "log_normalised",
    "recall",
    "recency",
    "uncertainty",
    "weighted",
    "without_similarity",
]

#: How much of a choice is score, and how much is being unlike what was chosen.
MMR_SCORE, MMR_LIKENESS = 0.7, 0.3
#: What is less alike is not held against a block.
NEAR_COPY = 0.8


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
    if question.by_words:
        return min(words / best_words, 1.0)
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
    return list(best(worth, len(worth) if likeness_decides(question) else question.expansion))


def likeness_decides(question: Question) -> bool:
    """Likeness to a query counts more than anything else does."""
    return question.query is not None and question.weights[0] > max(question.weights[1:])


def surrounded(
    memory: Memory, question: Question, similar: dict[str, float], expanded: dict[str, float]
) -> dict[str, float]:
    """What surrounds a candidate lifts it as in a search; the best keeps what the best has alone."""
    alone = {**similar, **expanded}
    blocks = {name: memory.block(name) for name in alone}
    linked = {edge[:2] for edge in memory.shown_edges()} - memory.of_likeness
    pairs = neighbours(memory) | {frozenset(pair) for pair in linked}
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
    #: Those that came by a link, or were said beside others.
    expanded: dict[str, float] = {}
    weights: tuple[float, ...] = question.weights
    if question.query is None:
        weights = without_similarity(weights)
        chosen = {block.id for block in memory.blocks if is_wanted(block, question)} | sure
    else:
        similar = seeds(memory, question)
        found = set(similar)
        similar |= {block_id: similarity(memory, question, block_id) for block_id in sure - found}
        linked = expansion(memory, question, found, sure)
        others = [*linked, *beside(memory, question, found, similar, linked)]
        expanded = {block_id: similarity(memory, question, block_id) for block_id in others}
        similar = surrounded(memory, question, similar, expanded)
        chosen = found | sure | set(expanded)
    degrees = {block_id: weighted_degree(memory, block_id) for block_id in chosen}
    largest = max(degrees.values(), default=0.0)
    most = max((memory.block(block_id).reinforcement_count for block_id in chosen), default=0)
    scored = []
    for block_id in chosen:
        block = memory.block(block_id)
        fresh = recency(block, question)
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


def in_turn(memory: Memory, pool: list[Scored], chosen: list[Scored]) -> list[tuple[Scored, bool]]:
    """The pool by its scores, near copies of what is chosen already behind others; and which they are."""
    chosen, left, order = list(chosen), list(pool), []

    def likeness(item: Scored) -> float:
        mine = memory.block(item.id).embedding
        alike = max((cosine(mine, memory.block(other.id).embedding) for other in chosen), default=0.0)
        return alike if alike >= NEAR_COPY else 0.0

    while left:
        pick = min(left, key=lambda item: (MMR_LIKENESS * likeness(item) - MMR_SCORE * item.score, item.id))
        left.remove(pick)
        order.append((pick, likeness(pick) > 0))
        chosen.append(pick)
    return order


def parted(
    question: Question, scored: list[Scored], places: int
) -> tuple[list[Scored], list[Scored], list[Scored]]:
    """What fills the places, what takes those of near copies, and what moves up if more must go.

    Where likeness counts most, these are the most alike.
    """
    if not likeness_decides(question):
        return scored[: 2 * question.k], [], []
    spares = math.ceil(places / 10)
    alike = sorted(scored, key=lambda item: -item.components[0])[: max(places + spares, 2 * places)]
    first = sorted(alike[:places], key=lambda item: (-item.score, item.id))
    return first, alike[places : places + spares], alike[places + spares :]


def diversified(memory: Memory, parts: tuple[list[Scored], ...], chosen: list[Scored]) -> list[Scored]:
    """Where there are spare ones, near copies come last, behind those of them that are worth more."""
    first, spare, rest = parts
    order = in_turn(memory, first, chosen)
    if not spare:
        return [item for item, _ in order]
    made = [item for item, copy in order if not copy]
    for part in ([item for item, copy in order if copy] + spare, rest):
        made += [item for item, _ in in_turn(memory, part, chosen + made)]
    return made


def recall(memory: Memory, question: Question) -> Answer:
    """The whole pipeline."""
    scored = candidates(memory, question)
    if not question.frame:
        parts = parted(question, scored, question.k)
        ranked = diversified(memory, parts, []) if question.diversify else parts[0]
        return Answer(ranked[: question.k], scored)
    return framed(memory, question, scored)


def framed(memory: Memory, question: Question, scored: list[Scored]) -> Answer:
    """Guarantees first, then contradictions."""
    sure = [item for item in scored if item.guaranteed]
    places = max(question.k - len(sure), 0)
    parts = parted(question, [item for item in scored if not item.guaranteed], places)
    order = diversified(memory, parts, sure)
    results, waiting = sure + order[:places], order[places:]
    suppressed: list[str] = []
    while (loser := first_loser(memory, question, results)) is not None:
        results.remove(loser)
        suppressed.append(loser.id)
        if waiting:
            results.append(waiting.pop(0))
    clashes = sorted(
        pair
        for pair in map(canonical, shown_contradictions(memory))
        if set(pair) <= {item.id for item in sure}
    )
    return Answer(results, scored, suppressed, clashes)


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
                return (block.confidence, recency(block, question))

            # Of two that stand alike the one with the greater id goes.
            if standing(one) != standing(other):
                return min(one, other, key=standing)
            return max(one, other, key=lambda item: item.id)
    return None
