"""The profile ``reference``: entities, observations and relations, as in the reference memory server.

An entity is a record of kind ``entity`` with its name as label, a relation one of kind ``relation``. Their
ids are digests of their names, so two processes that create the same thing create one record. Each call is
one atomic batch.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeGuard, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from chronomemory._core import canonical_json
from chronomemory.errors import InvalidArgument, UnknownRecord
from chronomemory.face.arguments import HIDDEN
from chronomemory.mcp.reading import Answer, heading
from chronomemory.mcp.rendering import quoted
from chronomemory.mcp.served_store import ServedStore
from chronomemory.mcp.shapes import Named
from chronomemory.mcp.toolbox import READS, RETRACTS, WRITES, Row
from chronomemory.record import ChronoRecord
from chronomemory.updates import Look, run

ENTITY, RELATION = "entity", "relation"
_DIGITS = 32
#: How many entities a question looks at, at most, and how many observations an entity has.
_MOST_FOUND, _MOST_OBSERVATIONS = 200, 5_000

T = TypeVar("T")
Fields = dict[str, Any]


@dataclass(frozen=True)
class Graph:
    """Some entities and relations, and how many of both were left out."""

    entities: list[Fields]
    relations: list[Fields]
    left_out: int = 0


class KnowledgeGraph:
    """The entities and relations of a scope."""

    def __init__(self, served: ServedStore) -> None:
        self._served = served

    # Writing.

    def create_entities(self, entities: Sequence[Fields]) -> list[Fields]:
        """Make entities that are not there yet; return those that were made."""

        def work(look: Look) -> list[Fields]:
            made: dict[str, tuple[Fields, ChronoRecord]] = {}
            for entity in entities:
                name = entity["name"]
                if name in made or self._entity(look, name) is not None or self._shared(name) is not None:
                    continue
                row = {**entity, "observations": list(dict.fromkeys(entity["observations"]))}
                made[name] = row, self._record(look, row)
            return self._written(look, made.values())

        return self._run(work)

    def create_relations(self, relations: Sequence[Fields]) -> list[Fields]:
        """Make relations that are not there yet; return those that were made."""

        def work(look: Look) -> list[Fields]:
            made: dict[str, tuple[Fields, ChronoRecord]] = {}
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

    def add_observations(self, observations: Sequence[Fields]) -> list[Fields]:
        """Add observations to entities that are there; return which of them are new."""

        def work(look: Look) -> list[Fields]:
            changed: dict[str, ChronoRecord] = {}
            added = []
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
                added.append({"entityName": row["entityName"], "addedObservations": new})
            if changed:
                look.upsert(list(changed.values()))
            return added

        return self._run(work)

    def delete_entities(self, names: Sequence[str]) -> int:
        """Delete entities and their relations, except those of a shared entity; return how many."""

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

    def delete_observations(self, deletions: Sequence[Fields]) -> int:
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

    def delete_relations(self, relations: Sequence[Fields]) -> int:
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
        self._served.check_writable()
        return run(self._served.door, work)

    def _written(self, look: Look, made: Iterable[tuple[Fields, ChronoRecord]]) -> list[Fields]:
        pairs = list(made)
        if pairs:
            look.upsert([record for _, record in pairs])
        return [row for row, _ in pairs]

    def _delete(self, look: Look, records: Sequence[ChronoRecord]) -> None:
        if records:
            look.write(*(("delete", name) for name in dict.fromkeys(record.id for record in records)))

    def _all(self, kind: str) -> list[ChronoRecord]:
        """Return the visible records of a kind, one's own before the shared ones."""
        found, own = self._visible(kind)
        ranked = sorted(zip(own, found, strict=True), key=lambda pair: not pair[0])
        return [record for _, record in ranked]

    def _own(self, kind: str) -> list[ChronoRecord]:
        found, own = self._visible(kind)
        return [record for record, is_own in zip(found, own, strict=True) if is_own]

    def _visible(self, kind: str) -> tuple[list[ChronoRecord], list[bool]]:
        found = list(self._served.door.query(kind=kind))
        return found, self._served.door.engine.are_own([record.id for record in found])

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

    def _record(self, look: Look, row: Fields) -> ChronoRecord:
        data = _data(row["observations"], {"entityType": row["entityType"]})
        return ChronoRecord(
            id=look.own_id(_key(ENTITY, row["name"])), kind=ENTITY, label=row["name"], data=data
        )

    def _relation_id(self, look: Look, relation: Fields) -> str:
        return look.own_id(_key(RELATION, [relation["from"], relation["relationType"], relation["to"]]))


def _key(kind: str, called: Any) -> str:
    return f"{kind.upper()}-{hashlib.sha256(canonical_json([called])).hexdigest()[:_DIGITS]}"


def _data(observations: Sequence[str], before: Fields) -> Fields:
    """Return the data of an entity; a search reads ``content``."""
    content = "\n".join([str(before.get("entityType", "")), *observations])
    return {**before, "observations": list(observations), "content": content}


def _entity(record: ChronoRecord) -> Fields | None:
    """Return an entity, or None for a foreign record of that kind."""
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


def _relation(record: ChronoRecord) -> Fields | None:
    stored = record.data.get("relation")
    names = ("from", "to", "relationType")
    if not isinstance(stored, dict) or not all(isinstance(stored.get(name), str) for name in names):
        return None
    return {name: stored[name] for name in names}


def _letters(record: ChronoRecord) -> str:
    content = record.data.get("content")
    return f"{record.label}\n{content if isinstance(content, str) else ''}".casefold()


#: How long names and texts may be, and how many come in one call.
_NAME, _TEXT, _MANY = 500, 20_000, 1_000


def _named(given: str) -> str:
    """Return a name in NFC, so that two Unicode forms of it are one; refuse one with invisible controls."""
    if hidden := HIDDEN.search(given):
        raise ValueError(f"a name must not have the invisible character U+{ord(hidden[0]):04X} in it")
    return unicodedata.normalize("NFC", given)


Name = Annotated[str, Field(min_length=1, max_length=_NAME), AfterValidator(_named)]
Text = Annotated[str, Field(min_length=1, max_length=_TEXT)]
MaxTokens = Annotated[int, Field(ge=300, le=20_000, description="Most tokens of the answer")]


class _Given(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class Entity(_Given):
    """A thing with a name, a type and what was observed of it."""

    name: Name
    entityType: Name  # noqa: N815
    observations: Annotated[list[Text], Field(max_length=_MANY)]


class Relation(_Given):
    """How one entity stands to another, in the active voice."""

    from_: Name = Field(alias="from")
    to: Name
    relationType: Name  # noqa: N815


class Additions(_Given):
    """What to add to an entity."""

    entityName: Name  # noqa: N815
    contents: Annotated[list[Text], Field(max_length=_MANY)]


class Deletions(_Given):
    """What to take from an entity."""

    entityName: Name  # noqa: N815
    observations: Annotated[list[Text], Field(max_length=_MANY)]


class ToldEntity(TypedDict):
    name: str
    entityType: str
    observations: list[str]


ToldRelation = TypedDict("ToldRelation", {"from": str, "to": str, "relationType": str})


class EntityList(Named):
    entities: list[ToldEntity]


class RelationList(Named):
    relations: list[ToldRelation]


class Added(TypedDict):
    entityName: str
    addedObservations: list[str]


class AddedList(Named):
    results: list[Added]


class Done(Named):
    success: bool
    message: str


class ToldGraph(Named):
    entities: list[ToldEntity]
    relations: list[ToldRelation]
    left_out: int


def create_entities(
    served: ServedStore, entities: Annotated[list[Entity], Field(max_length=_MANY)]
) -> Answer:
    """Create multiple new entities in the knowledge graph. Entities that exist are left as they are."""
    made = KnowledgeGraph(served).create_entities([entity.model_dump() for entity in entities])
    return _listed(served, "entities", made, f"{len(made)} of {len(entities)} entities created")


def create_relations(
    served: ServedStore, relations: Annotated[list[Relation], Field(max_length=_MANY)]
) -> Answer:
    """Create multiple new relations between entities, in the active voice. Known ones are left out."""
    made = KnowledgeGraph(served).create_relations(
        [relation.model_dump(by_alias=True) for relation in relations]
    )
    return _listed(served, "relations", made, f"{len(made)} of {len(relations)} relations created")


def add_observations(
    served: ServedStore, observations: Annotated[list[Additions], Field(max_length=_MANY)]
) -> Answer:
    """Add new observations to existing entities."""
    added = KnowledgeGraph(served).add_observations([row.model_dump() for row in observations])
    return _listed(served, "results", added, "observations added")


def delete_entities(
    served: ServedStore,
    entityNames: Annotated[list[Name], Field(max_length=_MANY)],  # noqa: N803
) -> Answer:
    """Delete multiple entities and their relations. The log keeps their history."""
    count = KnowledgeGraph(served).delete_entities(entityNames)
    return _done(served, f"{count} of {len(entityNames)} entities deleted")


def delete_observations(
    served: ServedStore, deletions: Annotated[list[Deletions], Field(max_length=_MANY)]
) -> Answer:
    """Delete specific observations from entities."""
    count = KnowledgeGraph(served).delete_observations([row.model_dump() for row in deletions])
    return _done(served, f"{count} observations deleted")


def delete_relations(
    served: ServedStore, relations: Annotated[list[Relation], Field(max_length=_MANY)]
) -> Answer:
    """Delete multiple relations."""
    count = KnowledgeGraph(served).delete_relations([row.model_dump(by_alias=True) for row in relations])
    return _done(served, f"{count} of {len(relations)} relations deleted")


def read_graph(served: ServedStore, max_tokens: MaxTokens = 4000) -> Answer:
    """Read the entire knowledge graph, as much of it as fits into max_tokens."""
    return _graph(served, KnowledgeGraph(served).read(max_tokens))


def search_nodes(
    served: ServedStore, query: Annotated[str, Field(max_length=10_000)], max_tokens: MaxTokens = 4000
) -> Answer:
    """Search for nodes by words in their name, type and observations, best first."""
    return _graph(served, KnowledgeGraph(served).search(query, max_tokens))


def open_nodes(
    served: ServedStore, names: Annotated[list[Name], Field(max_length=_MANY)], max_tokens: MaxTokens = 4000
) -> Answer:
    """Open specific nodes by their names, with the relations at either end."""
    return _graph(served, KnowledgeGraph(served).open(names, max_tokens))


def _listed(served: ServedStore, name: str, rows: Sequence[dict[str, Any]], words: str) -> Answer:
    lines = [*heading(served, words, served.notes()), *(f"- {quoted(row)}" for row in rows)]
    return Answer({**served.named(), name: list(rows)}, lines)


def _done(served: ServedStore, message: str) -> Answer:
    return Answer(
        {**served.named(), "success": True, "message": message}, heading(served, message, served.notes())
    )


def _graph(served: ServedStore, graph: Graph) -> Answer:
    counts = f"{len(graph.entities)} entities, {len(graph.relations)} relations, {graph.left_out} left out"
    nothing = not graph.entities and not graph.left_out
    lines = heading(served, counts, served.notes(nothing_found=nothing))
    lines += [f"- entity {quoted(row)}" for row in graph.entities]
    lines += [f"- relation {quoted(row)}" for row in graph.relations]
    structured = {"entities": graph.entities, "relations": graph.relations, "left_out": graph.left_out}
    return Answer({**served.named(), **structured}, lines)


ROWS = [
    Row(create_entities, "Create entities", EntityList, WRITES),
    Row(create_relations, "Create relations", RelationList, WRITES),
    Row(add_observations, "Add observations", AddedList, WRITES),
    Row(delete_entities, "Delete entities", Done, RETRACTS),
    Row(delete_observations, "Delete observations", Done, RETRACTS),
    Row(delete_relations, "Delete relations", Done, RETRACTS),
    Row(read_graph, "Read the graph", ToldGraph, READS),
    Row(search_nodes, "Search nodes", ToldGraph, READS),
    Row(open_nodes, "Open nodes", ToldGraph, READS),
]
