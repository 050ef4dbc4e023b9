"""Entities with observations, and relations between them, kept as plain records.

An entity is a record of kind ``entity`` with its name as label, a relation one of kind ``relation``. Their
ids are digests of what they are called, so that two processes that make the same thing make one. Each call is
one atomic batch, written only if nobody changed meanwhile what it was made from.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard, TypeVar

from chronomemory._core import canonical_json
from chronomemory.errors import ChronoError, InvalidArgument, UnknownRecord
from chronomemory.mcp.quoting import quoted
from chronomemory.mcp.served_store import ServedStore
from chronomemory.record import ChronoRecord
from chronomemory.updates import Look, run

__all__ = ["Graph", "KnowledgeGraph"]

ENTITY, RELATION = "entity", "relation"
_DIGITS = 32
#: How many entities a question looks at, at most, and how many observations an entity has.
_MOST_FOUND, _MOST_OBSERVATIONS = 200, 5_000

T = TypeVar("T")
Row = dict[str, Any]


@dataclass(frozen=True)
class Graph:
    """Some entities and relations, and how many of both were left out."""

    entities: list[Row]
    relations: list[Row]
    left_out: int = 0


class KnowledgeGraph:
    """The entities and relations of a scope."""

    def __init__(self, served: ServedStore) -> None:
        self._served = served

    # Writing.

    def create_entities(self, entities: Sequence[Row]) -> list[Row]:
        """Make entities that are not there yet; return those that were made."""

        def work(look: Look) -> list[Row]:
            made: dict[str, tuple[Row, ChronoRecord]] = {}
            for entity in entities:
                name = entity["name"]
                if name in made or self._entity(look, name) is not None or self._shared(name) is not None:
                    continue
                row = {**entity, "observations": list(dict.fromkeys(entity["observations"]))}
                made[name] = row, self._record(look, row)
            return self._written(look, made.values())

        return self._run(work)

    def create_relations(self, relations: Sequence[Row]) -> list[Row]:
        """Make relations that are not there yet; return those that were made."""

        def work(look: Look) -> list[Row]:
            made: dict[str, tuple[Row, ChronoRecord]] = {}
            for relation in relations:
                key = self._relation_id(look, relation)
                known = look.get(key)
                if key in made or (known is not None and known.status == "active"):
                    continue
                label = f"{relation['from']} {relation['relationType']} {relation['to']}"
                record = ChronoRecord(id=key, kind=RELATION, label=label, data={"relation": dict(relation)})
                made[key] = dict(relation), record
            return self._written(look, made.values())

        return self._run(work)

    def add_observations(self, observations: Sequence[Row]) -> list[Row]:
        """Add observations to entities that are there; return which of them are new."""

        def work(look: Look) -> list[Row]:
            changed: dict[str, ChronoRecord] = {}
            told = []
            for row in observations:
                # Rows of one entity go on from each other: of several copies the last would win.
                record = changed.get(row["entityName"]) or self._known(look, row["entityName"])
                held = record.data["observations"]
                new = [text for text in dict.fromkeys(row["contents"]) if text not in held]
                if len(held) + len(new) > _MOST_OBSERVATIONS:
                    raise InvalidArgument(
                        f"observations: an entity has at most {_MOST_OBSERVATIONS:,}",
                        field="observations",
                        recovery="Divide the entity, or delete observations that no longer matter.",
                    )
                if new:
                    record.data = _data([*held, *new], record.data)
                    changed[row["entityName"]] = record
                told.append({"entityName": row["entityName"], "addedObservations": new})
            if changed:
                look.upsert(list(changed.values()))
            return told

        return self._run(work)

    def delete_entities(self, names: Sequence[str]) -> int:
        """Take entities away, and the relations that begin or end there; return how many entities.

        Relations may name what is no entity, or none any more: they go as well, unless the name is that of an
        entity that is shared, which stays.
        """

        def work(look: Look) -> int:
            gone = [
                record for name in dict.fromkeys(names) if (record := self._entity(look, name)) is not None
            ]
            ends = {record.label for record in gone}
            ends |= {name for name in names if not _is_entity(self._shared(name))}
            loose = [
                record
                for record in self._own(RELATION)
                if (row := _relation(record)) and ({row["from"], row["to"]} & ends) and look.get(record.id)
            ]
            self._delete(look, [*gone, *loose])
            return len(gone)

        return self._run(work)

    def delete_observations(self, deletions: Sequence[Row]) -> int:
        """Take observations away; entities that are not there are passed over."""

        def work(look: Look) -> int:
            changed: dict[str, ChronoRecord] = {}
            count = 0
            for row in deletions:
                record = changed.get(row["entityName"]) or self._entity(look, row["entityName"])
                if record is None:
                    continue
                held, unwanted = record.data["observations"], set(row["observations"])
                kept = [text for text in held if text not in unwanted]
                if len(kept) < len(held):
                    count += len(held) - len(kept)
                    record.data = _data(kept, record.data)
                    changed[row["entityName"]] = record
            if changed:
                look.upsert(list(changed.values()))
            return count

        return self._run(work)

    def delete_relations(self, relations: Sequence[Row]) -> int:
        """Take relations away."""

        def work(look: Look) -> int:
            ids = dict.fromkeys(self._relation_id(look, relation) for relation in relations)
            found = [
                known for key in ids if (known := look.get(key)) is not None and known.status == "active"
            ]
            self._delete(look, found)
            return len(found)

        return self._run(work)

    # Reading.

    def read(self, max_tokens: int) -> Graph:
        """Return the whole graph, as much of it as fits."""
        return self._shown(self._all(ENTITY), max_tokens, every=True)

    def search(self, query: str, max_tokens: int) -> Graph:
        """Return the entities whose name, type or observations have these words, best first."""
        if not query.strip():
            return self.read(max_tokens)
        hits = self._served.door.search(query, kind=ENTITY, limit=_MOST_FOUND)
        records = [hit.record for hit in hits]
        found = {record.id for record in records}
        # Part of a word is no word: what only contains the letters comes behind.
        letters = query.casefold()
        records += [each for each in self._all(ENTITY) if each.id not in found and letters in _letters(each)]
        return self._shown(records, max_tokens)

    def open(self, names: Sequence[str], max_tokens: int) -> Graph:
        """Return the entities of these names."""
        wanted = dict.fromkeys(names)
        records = {record.label: record for record in self._all(ENTITY) if record.label in wanted}
        return self._shown([records[name] for name in wanted if name in records], max_tokens)

    def _shown(self, records: Iterable[ChronoRecord], max_tokens: int, *, every: bool = False) -> Graph:
        """Return entities and the relations of which one end is among them, within a budget."""
        budget, entities, left_out = self._served.budget(max_tokens, self._served.notes()), [], 0
        names: set[str] = set()
        for record in records:
            row = _entity(record)
            if row is None or row["name"] in names:
                continue
            if budget.take(row, quoted(row)):
                entities.append(row)
            else:
                left_out += 1
            names.add(row["name"])
        relations = []
        for record in self._all(RELATION):
            relation = _relation(record)
            if relation is None or not (every or {relation["from"], relation["to"]} & names):
                continue
            if budget.take(relation, quoted(relation)):
                relations.append(relation)
            else:
                left_out += 1
        return Graph(entities, relations, left_out)

    # What lies below.

    def _run(self, work: Callable[[Look], T]) -> T:
        if self._served.read_only:
            raise ChronoError(
                "this server only reads: nothing was written",
                recovery="Start it without --read-only to write.",
            )
        return run(self._served.door, work)

    def _written(self, look: Look, made: Iterable[tuple[Row, ChronoRecord]]) -> list[Row]:
        pairs = list(made)
        if pairs:
            look.upsert([record for _, record in pairs])
        return [row for row, _ in pairs]

    def _delete(self, look: Look, records: Sequence[ChronoRecord]) -> None:
        if records:
            look.write(*(("delete", name) for name in dict.fromkeys(record.id for record in records)))

    def _all(self, kind: str) -> list[ChronoRecord]:
        """Return what is seen of a kind, one's own first, so that it comes before what is shared."""
        found = list(self._served.door.query(kind=kind))
        own = self._served.door.engine.are_own([record.id for record in found])
        ranked = sorted(zip(own, found, strict=True), key=lambda pair: not pair[0])
        return [record for _, record in ranked]

    def _own(self, kind: str) -> list[ChronoRecord]:
        """Return what may be changed of a kind."""
        found = list(self._served.door.query(kind=kind))
        own = self._served.door.engine.are_own([record.id for record in found])
        return [record for record, is_own in zip(found, own, strict=True) if is_own]

    def _entity(self, look: Look, name: str) -> ChronoRecord | None:
        known = look.get(look.own_id(_key(ENTITY, name)))
        return known if _is_entity(known) else None

    def _shared(self, name: str) -> ChronoRecord | None:
        known = self._served.door.get(_key(ENTITY, name))
        return known if known is not None and known.status == "active" else None

    def _known(self, look: Look, name: str) -> ChronoRecord:
        found = self._entity(look, name) or self._shared(name)
        if not _is_entity(found):
            raise UnknownRecord(
                f"Entity with name {name[:200]} not found",
                id=name,
                recovery="Make it with create_entities first, or look for its name with search_nodes.",
            )
        return found

    def _record(self, look: Look, row: Row) -> ChronoRecord:
        data = _data(row["observations"], {"entityType": row["entityType"]})
        return ChronoRecord(
            id=look.own_id(_key(ENTITY, row["name"])), kind=ENTITY, label=row["name"], data=data
        )

    def _relation_id(self, look: Look, relation: Row) -> str:
        return look.own_id(_key(RELATION, [relation["from"], relation["relationType"], relation["to"]]))


def _key(kind: str, called: Any) -> str:
    return f"{kind.upper()}-{hashlib.sha256(canonical_json([called])).hexdigest()[:_DIGITS]}"


def _data(observations: Sequence[str], before: Row) -> Row:
    """Return what an entity holds; ``content`` is what a search reads."""
    content = "\n".join([str(before.get("entityType", "")), *observations])
    return {**before, "observations": list(observations), "content": content}


def _entity(record: ChronoRecord) -> Row | None:
    """Return an entity as it is told; None for a record of that kind that somebody else made otherwise."""
    observations = record.data.get("observations")
    if not isinstance(observations, list) or not all(isinstance(text, str) for text in observations):
        return None
    return {
        "name": record.label,
        "entityType": str(record.data.get("entityType", "")),
        "observations": observations,
    }


def _is_entity(record: ChronoRecord | None) -> TypeGuard[ChronoRecord]:
    return record is not None and record.status == "active" and _entity(record) is not None


def _relation(record: ChronoRecord) -> Row | None:
    said = record.data.get("relation")
    names = ("from", "to", "relationType")
    if not isinstance(said, dict) or not all(isinstance(said.get(name), str) for name in names):
        return None
    return {name: said[name] for name in names}


def _letters(record: ChronoRecord) -> str:
    content = record.data.get("content")
    return f"{record.label}\n{content if isinstance(content, str) else ''}".casefold()
