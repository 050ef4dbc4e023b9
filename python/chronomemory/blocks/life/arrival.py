"""What becomes of a newcomer: it is known already, says something better, or finds its place beside others.

A batch minds only the blocks that it changes: a neighbour that is used meanwhile, or put away, makes a link
that is a little weaker than it could be, or one that is not shown.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from chronomemory.blocks.declaration import READER
from chronomemory.blocks.ids import block_key, contradiction_key, edge_key, plain_id
from chronomemory.blocks.life.asking import BlockAnswers
from chronomemory.blocks.life.curation import is_permanent
from chronomemory.blocks.life.learning import archive, inherit
from chronomemory.blocks.life.negation import one_denies
from chronomemory.blocks.life.neighbours import Near, leave_mark, unit_rows
from chronomemory.blocks.storage.blocks import learned_at, tags_of
from chronomemory.blocks.storage.config import hours_for
from chronomemory.blocks.storage.contradictions import new_contradiction
from chronomemory.blocks.storage.edges import LIKENESS, new_edge, scope_of_pair
from chronomemory.blocks.storage.forming import FORMING
from chronomemory.blocks.types import BlockStatus, DecayTier, Edge
from chronomemory.face.batch import Connection
from chronomemory.face.models import NoAnswer
from chronomemory.face.readings import Reading
from chronomemory.face.results import Result, counted
from chronomemory.record import ChronoRecord
from chronomemory.scope import Scope

if TYPE_CHECKING:
    import numpy as np
else:
    from chronomemory import numpy_later as np

__all__ = ["Arrival", "ConsolidateResult", "least_cosine"]

#: So alike is the same; so alike says the same better.
SAME, BETTER = 0.95, 0.90
#: Pairs that a judge is asked about, and what it must say.
_JUDGED_FROM, _CONTRADICTS_ABOVE = 0.40, 0.80
#: What a link is made of, how strong it must be, and how many a newcomer gets.
_BY_MEANING, _BY_TAGS, _BY_CATEGORY, _BY_TIME = 0.55, 0.20, 0.15, 0.10
_OTHER_CATEGORY, _TIME_HOURS = 0.30, 8.0
_LINK_FROM, _LINK_COSINE, _LINKS = 0.45, 0.50, 5


@dataclass(slots=True)
class ConsolidateResult(Result):
    """What became of the inbox."""

    processed: int = 0
    promoted: list[str] = field(default_factory=list)
    duplicates: list[str] = field(default_factory=list)
    superseded: list[str] = field(default_factory=list)
    edges: int = 0
    contradictions: int = 0

    @property
    def summary(self) -> str:
        """How many came, and what became of them."""
        return (
            f"{counted(self.processed, 'block')} taken in: {len(self.promoted)} active, "
            f"{len(self.duplicates)} known already, {len(self.superseded)} superseded; "
            f"{counted(self.edges, 'link')}, {counted(self.contradictions, 'contradiction')}."
        )

    def add(self, other: ConsolidateResult) -> None:
        """Take in what another batch did."""
        self.processed += other.processed
        self.promoted += other.promoted
        self.duplicates += other.duplicates
        self.superseded += other.superseded
        self.edges += other.edges
        self.contradictions += other.contradictions


def least_cosine(answers: BlockAnswers) -> float:
    """Return how alike a neighbour must be to be looked at."""
    return _JUDGED_FROM if answers.judges else _LINK_COSINE


@dataclass
class Arrival:
    """Some newcomers, as part of a batch."""

    conn: Connection
    hours: float
    model: str
    answers: BlockAnswers
    result: ConsolidateResult = field(default_factory=ConsolidateResult)

    def run(
        self, records: Sequence[ChronoRecord], reading: Reading, near: Near, left_out: Container[str] = ()
    ) -> ConsolidateResult:
        """Take them in one after the other, but those that are left out, and say what became of them."""
        unit = unit_rows(reading.vectors)
        among = np.clip(unit @ unit.T, -1.0, 1.0)
        promoted = np.zeros(len(records), dtype=bool)
        least = least_cosine(self.answers)
        for at, record in enumerate(records):
            newcomer = None if record.id in left_out else self.conn.record(record.id)
            if newcomer is None or newcomer.status != BlockStatus.INBOX:
                continue
            others = {block_id: float(cosine) for block_id, cosine in near[at]}
            alike: list[int] = np.nonzero(promoted & (among[at] >= least))[0].tolist()
            others |= {plain_id(records[n].id): float(among[at, n]) for n in alike}
            try:
                promoted[at] = self.take(newcomer, reading, at, others)
            except NoAnswer as nothing:
                nothing.about = record.id
                raise
        if promoted.any():
            leave_mark(self.conn)
        return self.result

    def take(self, record: ChronoRecord, reading: Reading, place: int, others: dict[str, float]) -> bool:
        """Decide about one block, read at a place among others; say whether it is active now."""
        block_id = plain_id(record.id)
        self.result.processed += 1
        found = {other: self.conn.glimpse(block_key(other)) for other in others}
        active = {
            other: (cosine, known)
            for other, cosine in others.items()
            if (known := found[other]) is not None
            and known.status == BlockStatus.ACTIVE
            and other != block_id
        }
        ranked = sorted(active, key=lambda other: (-active[other][0], other))
        # Nothing that one says is given up for what another may take away, or what is not always seen.
        alike = (
            other for other in ranked if active[other][0] >= BETTER and active[other][1].scope == record.scope
        )
        old = next((other for other in alike if self._agree(record, active[other][1])), None)
        if old is not None:
            self.conn.record(block_key(old))  # what takes over, or is taken over, must be there in the end
            if active[old][0] >= SAME:
                inherit(self.conn, active[old][1], tags_of(record))
                archive(self.conn, block_id, "superseded", superseded_by=old)
                self.result.duplicates.append(block_id)
                return False
        analysed = self.answers.analysis(record.data["content"])
        tags = {*tags_of(record), *analysed.get("tags", ())}
        data: dict[str, Any] = {"embedding_model": self.model}
        if old is not None and self._may_replace(active[old][1], tags):
            ranked.remove(old)
            tags |= set(tags_of(active[old][1]))
            archive(self.conn, old, "superseded", superseded_by=block_id)
            self.result.superseded.append(old)
            data["supersedes"] = old
        patch: dict[str, Any] = {
            "status": BlockStatus.ACTIVE.value,
            "data": data | self._promoted(record, tags, analysed),
        }
        # What outcomes have taught counts more than a first impression.
        if "alignment" in analysed and not record.data.get("evidence"):
            patch["confidence"] = analysed["alignment"]
        self.conn.patch(record.id, patch)
        READER.attach(self.conn, record.id, reading, place, self.model)
        self.result.promoted.append(block_id)
        self._link(record, tags, {other: active[other] for other in ranked})
        self._judge(record, {other: active[other] for other in ranked})
        return True

    def _hour(self, record: ChronoRecord) -> float:
        return hours_for(self.conn, record, self.hours)

    def _agree(self, record: ChronoRecord, other: ChronoRecord) -> bool:
        """Texts that are nearly the same say the same, unless one denies the other or a judge says no."""
        one, two = record.data["content"], other.data["content"]
        return not one_denies(one, two) and self.answers.contradiction(one, two) <= _CONTRADICTS_ABOVE

    def _may_replace(self, old: ChronoRecord, tags: set[str]) -> bool:
        """What never fades is replaced only by what never fades either."""
        return not is_permanent(old) or "self/constitutional" in tags

    def _promoted(self, record: ChronoRecord, tags: set[str], analysed: dict[str, Any]) -> dict[str, Any]:
        content = record.data["content"]
        data: dict[str, Any] = {
            "reinforcement_count": record.data.get("reinforcement_count", 0) + 1,
            "last_reinforced_at": max(self._hour(record), record.data.get("last_reinforced_at", 0.0)),
            "decay_lambda": _fading(record, tags),
            "token_count": self.answers.tokens(content),
        }
        if "learned_at" not in record.data:
            data["learned_at"] = learned_at(record)
        new_tags = {tag: True for tag in sorted(tags) if tag not in record.data.get("tags", {})}
        if new_tags:
            data["tags"] = new_tags
        if "summary" in analysed:
            data["summary"] = analysed["summary"]
        if "alignment" in analysed:
            data["self_alignment"] = analysed["alignment"]
        return data

    def _link(
        self, record: ChronoRecord, tags: set[str], others: dict[str, tuple[float, ChronoRecord]]
    ) -> None:
        block_id = plain_id(record.id)
        strengths = {
            other: self._strength(record, tags, cosine, known)
            for other, (cosine, known) in others.items()
            if cosine >= _LINK_COSINE
        }
        best = sorted(strengths, key=lambda other: (-strengths[other], other))
        for other in [other for other in best if strengths[other] >= _LINK_FROM][:_LINKS]:
            pair = Edge.canonical(block_id, other)
            known = self.conn.record(edge_key(*pair))
            if known is None or known.status == FORMING:
                link = new_edge(*pair, strengths[other], scope=scope_of_pair(self.conn, *pair))
                link.data |= {"last_active_hours": self._hour(link), "made_by": LIKENESS}
                self.conn.put(link)
                self.result.edges += 1

    def _strength(self, record: ChronoRecord, tags: set[str], cosine: float, other: ChronoRecord) -> float:
        theirs = set(tags_of(other))
        shared = len(tags & theirs) / len(tags | theirs) if tags | theirs else 0.0
        kindred = 1.0 if record.data["category"] == other.data["category"] else _OTHER_CATEGORY
        # Hours of two clocks cannot be compared.
        if (record.scope or Scope()).of_clock != (other.scope or Scope()).of_clock:
            return _BY_MEANING * cosine + _BY_TAGS * shared + _BY_CATEGORY * kindred
        apart = learned_at(record) - learned_at(other)
        # A product, not a power: far apart it is infinite, which is no error, and so near is 0.
        near = math.exp(-(apart * apart) / (2.0 * _TIME_HOURS**2))
        return _BY_MEANING * cosine + _BY_TAGS * shared + _BY_CATEGORY * kindred + _BY_TIME * near

    def _judge(self, record: ChronoRecord, others: dict[str, tuple[float, ChronoRecord]]) -> None:
        if not self.answers.judges:
            return
        for other, (cosine, known) in others.items():
            pair = Edge.canonical(plain_id(record.id), other)
            if cosine < _JUDGED_FROM or self.conn.record(contradiction_key(*pair)) is not None:
                continue
            score = self.answers.contradiction(record.data["content"], known.data["content"])
            if score > _CONTRADICTS_ABOVE:
                scope = scope_of_pair(self.conn, *pair)
                self.conn.put(new_contradiction(*pair, score, scope=scope))
                self.result.contradictions += 1


def _fading(record: ChronoRecord, tags: set[str]) -> float:
    """Return how fast a block fades: as its tags say, and faster in so far as outcomes have taught it."""
    category = record.data["category"]
    tier = DecayTier.of(list(tags), category).value
    if not record.data.get("evidence") or tier == DecayTier.PERMANENT.value:
        return tier
    before = DecayTier.of(tags_of(record), category).value
    faster = max(1.0, float(record.data.get("decay_lambda", before)) / before)
    return max(tier, min(tier * faster, DecayTier.EPHEMERAL.value))
