"""The profile ``reference``: entities and relations as records whose ids are digests of their names."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, TypeGuard, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from chronomemory._core import canonical_json
from chronomemory.errors import InvalidArgument, UnknownRecord
from chronomemory.face.arguments import HIDDEN
from chronomemory.mcp.reading import Answer, heading
from chronomemory.mcp.rendering import quoted
from chronomemory.mcp.served_store import ServedStore
from chronomemory.mcp.toolbox import READS, RETRACTS, WRITES, MaxTokens, Row
from chronomemory.record import ChronoRecord
from chronomemory.updates import Look, run

ENTITY, RELATION = "entity", "relation"
_DIGITS = 32
_MOST_FOUND, _MOST_OBSERVATIONS = 200, 5_000

T = TypeVar("T")
Fields = dict[str, Any]


def _run(served: ServedStore, work: Callable[[Look], T]) -> T:
    served.check_writable()
    return run(served.door, work)


def _write(look: Look, made: Mapping[str, tuple[Fields, ChronoRecord]]) -> list[Fields]:
    if made:
        look.upsert([record for _, record in made.values()])
    return [row for row, _ in made.values()]


def _delete(look: Look, records: Sequence[ChronoRecord]) -> None:
    if records:
        look.write(*(("delete", name) for name in dict.fromkeys(record.id for record in records)))


def _visible(served: ServedStore, kind: str) -> list[tuple[bool, ChronoRecord]]:
    found = list(served.door.query(kind=kind))
    own = served.door.engine.are_own([record.id for record in found])
    return sorted(zip(own, found, strict=True), key=lambda pair: not pair[0])


def _all(served: ServedStore, kind: str) -> list[ChronoRecord]:
    return [record for _, record in _visible(served, kind)]


def _own_entity(look: Look, name: str) -> ChronoRecord | None:
    known = look.get(look.own_id(_key(ENTITY, name)))
    return known if _is_entity(known) else None


def _shared_entity(served: ServedStore, name: str) -> ChronoRecord | None:
    known = served.door.get(_key(ENTITY, name))
    return known if known is not None and known.status == "active" else None


def _relation_id(look: Look, relation: Fields) -> str:
    return look.own_id(_key(RELATION, [relation["from"], relation["relationType"], relation["to"]]))


def _key(kind: str, called: Any) -> str:
    return f"{kind.upper()}-{hashlib.sha256(canonical_json([called])).hexdigest()[:_DIGITS]}"


def _data(observations: Sequence[str], before: Fields) -> Fields:
    """Return the data of an entity; a search reads ``content``."""
    content = "\n".join([str(before.get("entityType", "")), *observations])
    return {**before, "observations": list(observations), "content": content}


def _entity(record: ChronoRecord) -> Fields | None:
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


_NAME, _TEXT, _MANY = 500, 20_000, 1_000


def _named(given: str) -> str:
    """Return a name in NFC, so that two Unicode forms of it are one; refuse one with invisible controls."""
    if hidden := HIDDEN.search(given):
        raise ValueError(f"a name must not have the invisible character U+{ord(hidden[0]):04X} in it")
    return unicodedata.normalize("NFC", given)


Name = Annotated[str, Field(min_length=1, max_length=_NAME), AfterValidator(_named)]
Text = Annotated[str, Field(min_length=1, max_length=_TEXT)]


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


class EntityItem(TypedDict):
    name: str
    entityType: str
    observations: list[str]


RelationItem = TypedDict("RelationItem", {"from": str, "to": str, "relationType": str})


class Added(TypedDict):
    entityName: str
    addedObservations: list[str]


class Named(TypedDict):
    store: str
    scope: str


class EntityList(Named):
    entities: list[EntityItem]


class RelationList(Named):
    relations: list[RelationItem]


class AddedList(Named):
    results: list[Added]


class Done(Named):
    success: bool
    message: str


class GraphResult(EntityList, RelationList):
    left_out: int


def create_entities(
    served: ServedStore, entities: Annotated[list[Entity], Field(max_length=_MANY)]
) -> Answer:
    """Create multiple new entities in the knowledge graph. Entities that exist are left as they are."""

    def work(look: Look) -> list[Fields]:
        made: dict[str, tuple[Fields, ChronoRecord]] = {}
        for entity in entities:
            name = entity.name
            if name in made or _own_entity(look, name) or _shared_entity(served, name):
                continue
            row = {**entity.model_dump(), "observations": list(dict.fromkeys(entity.observations))}
            data = _data(row["observations"], {"entityType": entity.entityType})
            key = look.own_id(_key(ENTITY, name))
            made[name] = row, ChronoRecord(id=key, kind=ENTITY, label=name, data=data)
        return _write(look, made)

    made = _run(served, work)
    return _listed(served, "entities", made, f"{len(made)} of {len(entities)} entities created")


def create_relations(
    served: ServedStore, relations: Annotated[list[Relation], Field(max_length=_MANY)]
) -> Answer:
    """Create multiple new relations between entities, in the active voice. Known ones are left out."""

    def work(look: Look) -> list[Fields]:
        made: dict[str, tuple[Fields, ChronoRecord]] = {}
        for row in (relation.model_dump(by_alias=True) for relation in relations):
            key = _relation_id(look, row)
            known = look.get(key)
            if key in made or (known is not None and known.status == "active"):
                continue
            label = f"{row['from']} {row['relationType']} {row['to']}"
            made[key] = row, ChronoRecord(id=key, kind=RELATION, label=label, data={"relation": dict(row)})
        return _write(look, made)

    made = _run(served, work)
    return _listed(served, "relations", made, f"{len(made)} of {len(relations)} relations created")


def add_observations(
    served: ServedStore, observations: Annotated[list[Additions], Field(max_length=_MANY)]
) -> Answer:
    """Add new observations to existing entities."""

    def work(look: Look) -> list[Fields]:
        changed: dict[str, ChronoRecord] = {}
        added = []
        for row in observations:
            # Rows of one entity go on from each other: of several copies the last would win.
            name = row.entityName
            record = changed.get(name) or _own_entity(look, name) or _shared_entity(served, name)
            if not _is_entity(record):
                raise UnknownRecord(
                    f"Entity with name {name[:200]} not found",
                    id=name,
                    recovery="Make it with create_entities first, or look for its name with search_nodes.",
                )
            held = record.data["observations"]
            new = [text for text in dict.fromkeys(row.contents) if text not in held]
            if len(held) + len(new) > _MOST_OBSERVATIONS:
                raise InvalidArgument(
                    f"observations: an entity has at most {_MOST_OBSERVATIONS:,}",
                    field="observations",
                    recovery="Divide the entity, or delete observations that no longer matter.",
                )
            if new:
                record.data = _data([*held, *new], record.data)
                changed[name] = record
            added.append({"entityName": name, "addedObservations": new})
        if changed:
            look.upsert(list(changed.values()))
        return added

    return _listed(served, "results", _run(served, work), "observations added")


def delete_entities(
    served: ServedStore,
    entityNames: Annotated[list[Name], Field(max_length=_MANY)],  # noqa: N803
) -> Answer:
    """Delete multiple entities and their relations. The log keeps their history."""

    def work(look: Look) -> int:
        gone = [record for name in dict.fromkeys(entityNames) if (record := _own_entity(look, name))]
        # The relations of a shared entity stay.
        ends = {record.label for record in gone}
        ends |= {name for name in entityNames if not _is_entity(_shared_entity(served, name))}
        loose = [
            record
            for is_own, record in _visible(served, RELATION)
            if is_own
            and (row := _relation(record))
            and {row["from"], row["to"]} & ends
            and look.get(record.id)
        ]
        _delete(look, [*gone, *(record for record in loose if look.get(record.id))])
        return len(gone)

    return _done(served, f"{_run(served, work)} of {len(entityNames)} entities deleted")


def delete_observations(
    served: ServedStore, deletions: Annotated[list[Deletions], Field(max_length=_MANY)]
) -> Answer:
    """Delete specific observations from entities."""

    def work(look: Look) -> int:
        changed: dict[str, ChronoRecord] = {}
        count = 0
        for row in deletions:
            record = changed.get(row.entityName) or _own_entity(look, row.entityName)
            if record is None:
                continue
            held, unwanted = record.data["observations"], set(row.observations)
            kept = [text for text in held if text not in unwanted]
            if len(kept) < len(held):
                count += len(held) - len(kept)
                record.data = _data(kept, record.data)
                changed[row.entityName] = record
        if changed:
            look.upsert(list(changed.values()))
        return count

    return _done(served, f"{_run(served, work)} observations deleted")


def delete_relations(
    served: ServedStore, relations: Annotated[list[Relation], Field(max_length=_MANY)]
) -> Answer:
    """Delete multiple relations."""

    def work(look: Look) -> int:
        ids = dict.fromkeys(_relation_id(look, relation.model_dump(by_alias=True)) for relation in relations)
        found = [known for key in ids if (known := look.get(key)) is not None and known.status == "active"]
        _delete(look, found)
        return len(found)

    return _done(served, f"{_run(served, work)} of {len(relations)} relations deleted")


def read_graph(served: ServedStore, max_tokens: MaxTokens = 4000) -> Answer:
    """Read the entire knowledge graph, as much of it as fits into max_tokens."""
    return _graph(served, _all(served, ENTITY), max_tokens, every=True)


def search_nodes(
    served: ServedStore, query: Annotated[str, Field(max_length=10_000)], max_tokens: MaxTokens = 4000
) -> Answer:
    """Search for nodes by words in their name, type and observations, best first."""
    if not query.strip():
        return read_graph(served, max_tokens)
    records = [hit.record for hit in served.door.search(query, kind=ENTITY, limit=_MOST_FOUND)]
    found = {record.id for record in records}
    # Part of a word is no word: records that only contain the letters come last.
    letters = query.casefold()
    others = [each for each in _all(served, ENTITY) if each.id not in found]
    texts = [f"{each.label}\n{each.data.get('content', '')}".casefold() for each in others]
    records += [each for each, text in zip(others, texts, strict=True) if letters in text]
    return _graph(served, records, max_tokens)


def open_nodes(
    served: ServedStore, names: Annotated[list[Name], Field(max_length=_MANY)], max_tokens: MaxTokens = 4000
) -> Answer:
    """Open specific nodes by their names, with the relations at either end."""
    records = {record.label: record for record in _all(served, ENTITY)}
    return _graph(served, [records[name] for name in dict.fromkeys(names) if name in records], max_tokens)


def _listed(served: ServedStore, name: str, rows: Sequence[dict[str, Any]], words: str) -> Answer:
    lines = [*heading(served, words, served.notes()), *(f"- {quoted(row)}" for row in rows)]
    return Answer({**served.named(), name: list(rows)}, lines)


def _done(served: ServedStore, message: str) -> Answer:
    return Answer(
        {**served.named(), "success": True, "message": message}, heading(served, message, served.notes())
    )


def _graph(
    served: ServedStore, records: Iterable[ChronoRecord], max_tokens: int, *, every: bool = False
) -> Answer:
    """Show entities and the relations of which one end is among them, within a budget."""
    budget = served.budget(max_tokens, served.notes(), both=True)
    named: dict[str, Fields] = {}
    for row in map(_entity, records):
        if row is not None:
            named.setdefault(row["name"], row)
    entities = [row for row in named.values() if budget.take(row, quoted(row))]
    joined = [row for row in map(_relation, _all(served, RELATION)) if row is not None]
    joined = [row for row in joined if every or {row["from"], row["to"]} & named.keys()]
    relations = [row for row in joined if budget.take(row, quoted(row))]
    left_out = len(named) - len(entities) + len(joined) - len(relations)
    counts = f"{len(entities)} entities, {len(relations)} relations, {left_out} left out"
    lines = heading(served, counts, served.notes(nothing_found=not named))
    lines += [f"- entity {quoted(row)}" for row in entities]
    lines += [f"- relation {quoted(row)}" for row in relations]
    structured = {"entities": entities, "relations": relations, "left_out": left_out}
    return Answer({**served.named(), **structured}, lines)


ROWS = [
    Row(create_entities, "Create entities", WRITES, EntityList),
    Row(create_relations, "Create relations", WRITES, RelationList),
    Row(add_observations, "Add observations", WRITES, AddedList),
    Row(delete_entities, "Delete entities", RETRACTS, Done),
    Row(delete_observations, "Delete observations", RETRACTS, Done),
    Row(delete_relations, "Delete relations", RETRACTS, Done),
    Row(read_graph, "Read the graph", READS, GraphResult),
    Row(search_nodes, "Search nodes", READS, GraphResult),
    Row(open_nodes, "Open nodes", READS, GraphResult),
]
