"""How does what was learned become part of the memory?

Each block of the inbox is embedded once, compared with what is active, linked, and promoted; or it
turns out to be known already. Blocks are taken in batches, each of them atomic, so an interrupted
consolidation goes on where it stopped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from chronomemory._core import nearest_blocks
from chronomemory.blocks import embeddings
from chronomemory.blocks.connection import Connection, check_finite
from chronomemory.blocks.curation import is_permanent
from chronomemory.blocks.ids import block_key, contradiction_key, edge_key, plain_id
from chronomemory.blocks.learning import archive
from chronomemory.blocks.storage.blocks import check_tag, tags_of
from chronomemory.blocks.storage.contradictions import insert_contradiction
from chronomemory.blocks.storage.edges import FORMING, new_edge
from chronomemory.blocks.types import BlockStatus, DecayTier, Edge
from chronomemory.embedders import Embedder, Matrix
from chronomemory.embedders.protocol import as_matrix
from chronomemory.errors import InvalidRecord
from chronomemory.record import ChronoRecord

__all__ = ["Analyser", "ConsolidateResult", "Judge", "consolidate_batch"]

#: So alike is the same; so alike says the same better.
SAME, BETTER = 0.95, 0.90
#: Pairs that a judge is asked about, and what it must say.
_JUDGED_FROM, _CONTRADICTS_ABOVE = 0.40, 0.80
#: What a link is made of, how strong it must be, and how many a newcomer gets.
_BY_MEANING, _BY_TAGS, _BY_CATEGORY, _BY_TIME = 0.55, 0.20, 0.15, 0.10
_OTHER_CATEGORY, _TIME_HOURS = 0.30, 8.0
_LINK_FROM, _LINK_COSINE, _LINKS = 0.45, 0.50, 5
#: How many neighbours of a newcomer are looked at.
_NEIGHBOURS = 64

#: Looks at a content and may say ``alignment`` (0..1), ``tags`` and a ``summary``.
Analyser = Callable[[str], Mapping[str, Any]]
#: Says how much two contents contradict each other, from 0 to 1.
Judge = Callable[[str, str], float]


@dataclass(slots=True)
class ConsolidateResult:
    """What became of the inbox."""

    processed: int = 0
    promoted: list[str] = field(default_factory=list)
    duplicates: list[str] = field(default_factory=list)
    superseded: list[str] = field(default_factory=list)
    edges: int = 0
    contradictions: int = 0

    def add(self, other: ConsolidateResult) -> None:
        """Take in what another batch did."""
        self.processed += other.processed
        self.promoted += other.promoted
        self.duplicates += other.duplicates
        self.superseded += other.superseded
        self.edges += other.edges
        self.contradictions += other.contradictions


def embedded(conn: Connection, records: Sequence[ChronoRecord], embedder: Embedder) -> Matrix:
    """Return a vector for each block, embedding each text once; a vector of the same model is kept."""
    rows: list[Any] = [None] * len(records)
    wanted: dict[str, list[int]] = {}
    for at, record in enumerate(records):
        same_model = record.data.get("space") == embeddings.space_of(embedder.model_name)
        known = embeddings.read(conn, record) if same_model else None
        if known is None:
            wanted.setdefault(record.data["content"], []).append(at)
        else:
            rows[at] = embeddings.bytes_to_embedding(known)
    if wanted:
        made = as_matrix(embedder.embed_batch(list(wanted)), len(wanted))
        for row, places in zip(made, wanted.values(), strict=True):
            for at in places:
                rows[at] = row
    return as_matrix(rows, len(records))


def consolidate_batch(
    conn: Connection,
    records: Sequence[ChronoRecord],
    vectors: Matrix,
    *,
    model: str,
    hours: float,
    analyser: Analyser | None = None,
    judge: Judge | None = None,
    counter: Callable[[str], int] | None = None,
) -> ConsolidateResult:
    """Bring some blocks of the inbox into the memory, as part of a batch."""
    work = _Work(conn, hours, model, analyser, judge, counter)
    least = _JUDGED_FROM if judge else _LINK_COSINE
    near = nearest_blocks(
        conn.store.engine,
        embeddings.space_of(model),
        vectors.tobytes(),
        vectors.shape[1],
        _NEIGHBOURS,
        least,
    )
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    unit = vectors / np.where(norms > 0, norms, 1.0)
    among = np.clip(unit @ unit.T, -1.0, 1.0)
    promoted = np.zeros(len(records), dtype=bool)
    for at, record in enumerate(records):
        newcomer = conn.record(record.id)
        if newcomer is None or newcomer.status != BlockStatus.INBOX:
            continue
        others = {block_id: float(cosine) for block_id, cosine in near[at]}
        alike: list[int] = np.nonzero(promoted & (among[at] >= least))[0].tolist()
        others |= {plain_id(records[n].id): float(among[at, n]) for n in alike}
        promoted[at] = work.take(newcomer, vectors[at], others)
    return work.result


@dataclass
class _Work:
    conn: Connection
    hours: float
    model: str
    analyser: Analyser | None
    judge: Judge | None
    counter: Callable[[str], int] | None
    result: ConsolidateResult = field(default_factory=ConsolidateResult)

    def take(self, record: ChronoRecord, vector: np.ndarray, others: dict[str, float]) -> bool:
        """Decide about one block; say whether it is active now."""
        block_id = plain_id(record.id)
        self.result.processed += 1
        found = {other: self.conn.record(block_key(other)) for other in others}
        active = {
            other: (cosine, known)
            for other, cosine in others.items()
            if (known := found[other]) is not None
            and known.status == BlockStatus.ACTIVE
            and other != block_id
        }
        ranked = sorted(active, key=lambda other: (-active[other][0], other))
        if ranked and active[ranked[0]][0] >= SAME:
            self._inherit(active[ranked[0]][1], tags_of(record))
            archive(self.conn, block_id, "superseded", superseded_by=ranked[0])
            self.result.duplicates.append(block_id)
            return False
        analysed = dict(self.analyser(record.data["content"])) if self.analyser else {}
        tags = {*tags_of(record), *map(check_tag, analysed.get("tags") or ())}
        old = None
        if ranked and active[ranked[0]][0] >= BETTER and self._may_replace(active[ranked[0]][1], tags):
            old = ranked.pop(0)
            tags |= set(tags_of(active[old][1]))
            archive(self.conn, old, "superseded", superseded_by=block_id)
            self.result.superseded.append(old)
        data = self._promoted(record, tags, analysed)
        data["embedding_model"] = self.model
        if old is not None:
            data["supersedes"] = old
        patch: dict[str, Any] = {"status": BlockStatus.ACTIVE.value, "data": data}
        if "self_alignment" in data:
            patch["confidence"] = data["self_alignment"]
        self.conn.patch(record.id, patch)
        embeddings.attach(self.conn, block_id, vector, self.model)
        self.result.promoted.append(block_id)
        self._link(record, tags, {other: active[other] for other in ranked})
        self._judge(record, {other: active[other] for other in ranked})
        return True

    def _may_replace(self, old: ChronoRecord, tags: set[str]) -> bool:
        """What never fades is replaced only by what never fades either."""
        return not is_permanent(old) or "self/constitutional" in tags

    def _inherit(self, survivor: ChronoRecord, tags: Sequence[str]) -> None:
        """Give a block the tags of one that says the same: a guarantee outlives the words it came in."""
        has = survivor.data.get("tags", {})
        new = {tag: True for tag in tags if tag not in has}
        if new:
            tier = DecayTier.of([*has, *new], survivor.data["category"]).value
            fading = min(survivor.data.get("decay_lambda", tier), tier)
            self.conn.patch(survivor.id, {"data": {"tags": new, "decay_lambda": fading}})

    def _promoted(self, record: ChronoRecord, tags: set[str], analysed: dict[str, Any]) -> dict[str, Any]:
        content = record.data["content"]
        data: dict[str, Any] = {
            "reinforcement_count": record.data.get("reinforcement_count", 0) + 1,
            "last_reinforced_at": max(self.hours, record.data.get("last_reinforced_at", 0.0)),
            "decay_lambda": DecayTier.of(list(tags), record.data["category"]).value,
            "token_count": self.counter(content) if self.counter else len(content) // 4,
        }
        new_tags = {tag: True for tag in sorted(tags) if tag not in record.data.get("tags", {})}
        if new_tags:
            data["tags"] = new_tags
        if analysed.get("summary"):
            data["summary"] = str(analysed["summary"])
        alignment = analysed.get("alignment")
        if alignment is not None:
            if not 0.0 <= check_finite("alignment", alignment) <= 1.0:
                raise InvalidRecord(f"alignment: {alignment!r} is not within 0 and 1", field="alignment")
            data["self_alignment"] = float(alignment)
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
                self.conn.put(new_edge(*pair, strengths[other], last_active_hours=self.hours))
                self.result.edges += 1

    def _strength(self, record: ChronoRecord, tags: set[str], cosine: float, other: ChronoRecord) -> float:
        theirs = set(tags_of(other))
        shared = len(tags & theirs) / len(tags | theirs) if tags | theirs else 0.0
        kindred = 1.0 if record.data["category"] == other.data["category"] else _OTHER_CATEGORY
        apart = record.data.get("last_reinforced_at", 0.0) - other.data.get("last_reinforced_at", 0.0)
        near = math.exp(-(apart**2) / (2.0 * _TIME_HOURS**2))
        return _BY_MEANING * cosine + _BY_TAGS * shared + _BY_CATEGORY * kindred + _BY_TIME * near

    def _judge(self, record: ChronoRecord, others: dict[str, tuple[float, ChronoRecord]]) -> None:
        if self.judge is None:
            return
        block_id = plain_id(record.id)
        for other, (cosine, known) in others.items():
            pair = Edge.canonical(block_id, other)
            if cosine < _JUDGED_FROM or self.conn.record(contradiction_key(*pair)) is not None:
                continue
            score = check_finite("contradiction", self.judge(record.data["content"], known.data["content"]))
            if score > _CONTRADICTS_ABOVE:
                insert_contradiction(self.conn, block_a_id=pair.from_id, block_b_id=pair.to_id, score=score)
                self.result.contradictions += 1
