"""Makes blocks of the inbox active: duplicates are archived, better versions replace, others are linked.

Finding neighbours takes long, so it is done before a batch begins. Every batch that makes blocks active
leaves a mark: one that finds another mark than before looks for neighbours again, and one that is overtaken
by a mark is not written. A batch is in conflict only with changes of the blocks that it changes.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from chronomemory._core import Edition
from chronomemory.blocks.engine import READER, SPACES, Blocks
from chronomemory.blocks.ids import (
    BLOCK,
    CONFIG,
    block_key,
    config_key,
    contradiction_key,
    edge_key,
    plain_id,
)
from chronomemory.blocks.life.asking import BlockAnswers
from chronomemory.blocks.life.curation import CurateResult, is_permanent
from chronomemory.blocks.life.learning import archive, inherit, same_circumstances
from chronomemory.blocks.storage.blocks import learned_at, tags_of
from chronomemory.blocks.storage.config import hours_for
from chronomemory.blocks.storage.edges import LIKENESS, new_contradiction, new_edge, scope_of_pair
from chronomemory.blocks.storage.forming import FORMING
from chronomemory.blocks.types import BlockStatus, DecayTier, Edge
from chronomemory.embedders import Embedder, Matrix
from chronomemory.embedders.protocol import as_matrix
from chronomemory.face.batch import Connection
from chronomemory.face.models import NoAnswer, Unanswered, rehearse
from chronomemory.face.results import Result, counted
from chronomemory.face.spaces import Reading
from chronomemory.numpy_later import np, npt
from chronomemory.record import ChronoRecord
from chronomemory.scope import Scope, carrying
from chronomemory.types import HasEngine

#: For each newcomer the active blocks that are like it, with the cosine.
Near = list[list[tuple[str, float]]]

#: How many neighbours of a newcomer are looked at.
_NEIGHBOURS = 64
_MARK = "last_arrival"


def leave_mark(conn: Connection) -> None:
    """Let others know, as part of a batch, that blocks have become active."""
    owner = conn.scope.of_owner
    data = carrying(owner, {"value": uuid.uuid4().hex})
    conn.put(ChronoRecord(id=config_key(_MARK, owner), kind=CONFIG, data=data))


def _mark(conn: Connection) -> str | None:
    found = conn.record(config_key(_MARK, conn.scope.of_owner))
    return None if found is None else str(found.data["value"])


def unit_rows(vectors: Matrix) -> npt.NDArray[np.float64]:
    """Return vectors of length one; what has no direction stays as it is."""
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    rows: npt.NDArray[np.float64] = vectors / np.where(norms > 0, norms, 1.0)
    return rows


class Neighbours:
    """The active neighbours of some vectors, as of the moment in which they were looked for."""

    def __init__(self, blocks: Blocks, model: str, vectors: Matrix, least: float) -> None:
        self._model = model
        self._vectors = vectors
        self._least = least
        self._known = _mark(blocks.look())
        self._near = self._looked(blocks.store)

    def caught_up(self, conn: Connection) -> Near:
        """Return them with those that have come since; the batch is in conflict with any that come now."""
        return self._near if _mark(conn) == self._known else self._looked(conn.store)

    def _looked(self, store: HasEngine) -> Near:
        rows = np.ascontiguousarray(self._vectors, dtype=np.float32)
        return store.engine.blocks.nearest(SPACES.of(self._model), rows, _NEIGHBOURS, self._least)


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
    #: Each block that was archived because another states the same, with that other one.
    merged: dict[str, str] = field(default_factory=dict)
    edges: int = 0
    contradictions: int = 0

    @property
    def summary(self) -> str:
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
        self.merged |= other.merged
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
        old = next((other for other in alike if self._state_the_same(record, active[other][1])), None)
        if old is not None:
            self.conn.record(block_key(old))  # what takes over, or is taken over, must be there in the end
            if active[old][0] >= SAME:
                inherit(self.conn, active[old][1], record)
                archive(self.conn, block_id, "superseded", superseded_by=old)
                self.result.duplicates.append(block_id)
                self.result.merged[block_id] = old
                return False
        analysed = self.answers.analysis(record.data["content"])
        tags = {*tags_of(record), *analysed.get("tags", ())}
        data: dict[str, Any] = {"embedding_model": self.model}
        if old is not None and self._may_replace(active[old][1], tags):
            ranked.remove(old)
            tags |= set(tags_of(active[old][1]))
            archive(self.conn, old, "superseded", superseded_by=block_id)
            self.result.superseded.append(old)
            self.result.merged[old] = block_id
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

    def _state_the_same(self, record: ChronoRecord, other: ChronoRecord) -> bool:
        """Return whether one of two texts with nearly the same vector may stand for both."""
        new, old = record.data["content"], other.data["content"]
        if not same_circumstances(record, other):
            return False
        return self.answers.may_merge(old, new) and self.answers.contradiction(new, old) <= _CONTRADICTS_ABOVE

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


#: How many blocks are embedded at once, and how many become part of the memory at once.
_EMBEDDED_BLOCKS, _TOGETHER = 500, 32

#: Fetches records as part of a batch.
Fetch = Callable[[Connection, Iterable[str]], Edition]
#: Puts a block into the inbox at an hour, as part of a batch, and returns its id.
Change = Callable[[Connection, float], str]


@dataclass
class Consolidation:
    """One walk through the inbox.

    ``write`` runs a batch, ``hour`` writes down how late it is. As part of a batch, ``look`` has records
    fetched, with those that every batch depends on, and ``tick`` writes the hour.
    """

    blocks: Blocks
    embedder: Embedder
    answers: BlockAnswers
    write: Callable[[Callable[[Connection], ConsolidateResult]], ConsolidateResult]
    hour: Callable[[], float]
    look: Callable[[Connection, Iterable[str], Fetch], object]
    tick: Callable[[Connection], float]
    result: ConsolidateResult = field(default_factory=ConsolidateResult)
    #: The blocks that stay in the inbox, and why.
    failed: dict[str, Exception] = field(default_factory=dict)
    _succeeded: int = 0
    _failed_before: int = 0

    def run(self, limit: int | None = None) -> ConsolidateResult:
        """Take in what waits, or so much of it; what went wrong with some of it is told at the end."""
        while limit is None or self.result.processed < limit:
            most = _EMBEDDED_BLOCKS if limit is None else min(_EMBEDDED_BLOCKS, limit - self.result.processed)
            waiting = self.blocks.store.engine.blocks.records(
                BLOCK, "inbox", most + len(self.failed), own=True
            )
            records = [record for record in waiting if record.id not in self.failed][:most]
            if not records:
                break
            with self.blocks.connect() as conn:
                reading = READER.read(conn, records, _content, self.embedder)
            for start in range(0, len(records), _TOGETHER):
                self._take(records[start : start + _TOGETHER], reading.part(start, start + _TOGETHER))
                self._check_that_some_succeed()
        for error in self.failed.values():
            raise error
        return self.result

    def _check_that_some_succeed(self) -> None:
        """A model that is down is not asked about everything that waits."""
        if self.result.processed > self._succeeded:
            self._succeeded, self._failed_before = self.result.processed, len(self.failed)
        elif len(self.failed) - self._failed_before >= _TOGETHER:
            raise next(reversed(self.failed.values()))

    def take_at_once(
        self, record: ChronoRecord, change: Change, others: Iterable[str] = ()
    ) -> ConsolidateResult:
        """Take in a block that a change puts into the inbox, both in one batch, or neither.

        The batch calls the engine twice: it fetches the block, the ``others``, and the neighbours of
        the block with their links to it, and it is written. Another batch that makes blocks active meanwhile
        writes the same mark, so that this one is run again.
        """
        content, model = _content(record), self.embedder.model_name
        vectors = as_matrix(self.embedder.embed_batch([content]), 1)
        reading = READER.with_tokens(self.blocks.store, vectors, [content], self.embedder)
        looked_at = [record.id, config_key(_MARK, self.blocks.scope.of_owner), *others]
        near: Near = []

        def fetch(conn: Connection, ids: Iterable[str]) -> Edition:
            rows, least = np.ascontiguousarray(vectors, dtype=np.float32), least_cosine(self.answers)
            known, fetched, near[:] = conn.store.engine.blocks.arrival(
                plain_id(record.id), list(ids), SPACES.of(model), rows, _NEIGHBOURS, least
            )
            return conn.keep(known, fetched)

        def work(conn: Connection) -> ConsolidateResult:
            for error in self.failed.values():
                raise error
            self.look(conn, looked_at, fetch)
            hours = self.tick(conn)
            block_id = change(conn, hours)
            placed = conn.record(block_key(block_id))
            if placed is None or placed.status != BlockStatus.INBOX:
                return ConsolidateResult()
            _mark(conn)
            arrival = Arrival(conn, hours, model, self.answers)
            return arrival.run([placed], reading, near, self.failed)

        self._write(work)
        return self.result

    def _take(self, records: Sequence[ChronoRecord], reading: Reading) -> None:
        model, hours = self.embedder.model_name, self.hour()
        found = Neighbours(self.blocks, model, reading.vectors, least_cosine(self.answers))

        def work(conn: Connection) -> ConsolidateResult:
            arrival = Arrival(conn, hours, model, self.answers)
            return arrival.run(records, reading, found.caught_up(conn), self.failed)

        self._write(work)

    def _write(self, work: Callable[[Connection], ConsolidateResult]) -> None:
        """Run a batch; the models are asked outside of it, until all their answers are known."""
        while True:
            try:
                self.result.add(self.write(work))
                return
            except Unanswered:
                self._rehearse(work)

    def _rehearse(self, work: Callable[[Connection], ConsolidateResult]) -> None:
        """Put the questions of a batch, by one that is never written; what nobody answers is left out."""
        while True:
            try:
                rehearse(self.blocks, work, self.answers)
                return
            except NoAnswer as nothing:
                self.failed[nothing.about] = nothing.error


def _content(record: ChronoRecord) -> str:
    content: str = record.data["content"]
    return content


class DreamResult(NamedTuple):
    """What a dream did; true if there was something in the inbox."""

    consolidated: ConsolidateResult
    curated: CurateResult

    def __bool__(self) -> bool:
        return bool(self.consolidated.processed)

    def __str__(self) -> str:
        return self.summary

    @property
    def summary(self) -> str:
        return f"{self.consolidated.summary} {self.curated.summary}"

    def to_dict(self) -> dict[str, Any]:
        """Return both as JSON can carry them."""
        return {"consolidated": self.consolidated.to_dict(), "curated": self.curated.to_dict()}
