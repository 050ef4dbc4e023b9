"""The profile ``reference``: the nine tools of the reference memory server, with its shapes, and limits."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from chronomemory.face.arguments import HIDDEN
from chronomemory.mcp.knowledge_graph import Graph, KnowledgeGraph
from chronomemory.mcp.quoting import quoted
from chronomemory.mcp.reading import Told, heading
from chronomemory.mcp.served_store import ServedStore
from chronomemory.mcp.shapes import Named
from chronomemory.mcp.toolbox import READS, RETRACTS, WRITES, Row

__all__ = ["ROWS"]

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
    """An entity in an answer."""

    name: str
    entityType: str
    observations: list[str]


ToldRelation = TypedDict("ToldRelation", {"from": str, "to": str, "relationType": str})


class EntityList(Named):
    """Entities."""

    entities: list[ToldEntity]


class RelationList(Named):
    """Relations."""

    relations: list[ToldRelation]


class Added(TypedDict):
    """What was new."""

    entityName: str
    addedObservations: list[str]


class AddedList(Named):
    """What was new, entity by entity."""

    results: list[Added]


class Done(Named):
    """What was deleted."""

    success: bool
    message: str


class ToldGraph(Named):
    """Entities, relations, and how much of both was left out."""

    entities: list[ToldEntity]
    relations: list[ToldRelation]
    left_out: int


def create_entities(served: ServedStore, entities: Annotated[list[Entity], Field(max_length=_MANY)]) -> Told:
    """Create multiple new entities in the knowledge graph. Entities that exist are left as they are."""
    made = KnowledgeGraph(served).create_entities([entity.model_dump() for entity in entities])
    return _listed(served, "entities", made, f"{len(made)} of {len(entities)} entities created")


def create_relations(
    served: ServedStore, relations: Annotated[list[Relation], Field(max_length=_MANY)]
) -> Told:
    """Create multiple new relations between entities, in the active voice. Known ones are left out."""
    made = KnowledgeGraph(served).create_relations(
        [relation.model_dump(by_alias=True) for relation in relations]
    )
    return _listed(served, "relations", made, f"{len(made)} of {len(relations)} relations created")


def add_observations(
    served: ServedStore, observations: Annotated[list[Additions], Field(max_length=_MANY)]
) -> Told:
    """Add new observations to existing entities."""
    added = KnowledgeGraph(served).add_observations([row.model_dump() for row in observations])
    return _listed(served, "results", added, "observations added")


def delete_entities(served: ServedStore, entityNames: Annotated[list[Name], Field(max_length=_MANY)]) -> Told:  # noqa: N803
    """Delete multiple entities and their relations. The log keeps their history."""
    count = KnowledgeGraph(served).delete_entities(entityNames)
    return _done(served, f"{count} of {len(entityNames)} entities deleted")


def delete_observations(
    served: ServedStore, deletions: Annotated[list[Deletions], Field(max_length=_MANY)]
) -> Told:
    """Delete specific observations from entities."""
    count = KnowledgeGraph(served).delete_observations([row.model_dump() for row in deletions])
    return _done(served, f"{count} observations deleted")


def delete_relations(
    served: ServedStore, relations: Annotated[list[Relation], Field(max_length=_MANY)]
) -> Told:
    """Delete multiple relations."""
    count = KnowledgeGraph(served).delete_relations([row.model_dump(by_alias=True) for row in relations])
    return _done(served, f"{count} of {len(relations)} relations deleted")


def read_graph(served: ServedStore, max_tokens: MaxTokens = 4000) -> Told:
    """Read the entire knowledge graph, as much of it as fits into max_tokens."""
    return _graph(served, KnowledgeGraph(served).read(max_tokens))


def search_nodes(
    served: ServedStore, query: Annotated[str, Field(max_length=10_000)], max_tokens: MaxTokens = 4000
) -> Told:
    """Search for nodes by words in their name, type and observations, best first."""
    return _graph(served, KnowledgeGraph(served).search(query, max_tokens))


def open_nodes(
    served: ServedStore, names: Annotated[list[Name], Field(max_length=_MANY)], max_tokens: MaxTokens = 4000
) -> Told:
    """Open specific nodes by their names, with the relations at either end."""
    return _graph(served, KnowledgeGraph(served).open(names, max_tokens))


def _listed(served: ServedStore, name: str, rows: Sequence[dict[str, Any]], words: str) -> Told:
    lines = [*heading(served, words, served.notes()), *(f"- {quoted(row)}" for row in rows)]
    return Told({**served.named(), name: list(rows)}, lines)


def _done(served: ServedStore, message: str) -> Told:
    return Told(
        {**served.named(), "success": True, "message": message}, heading(served, message, served.notes())
    )


def _graph(served: ServedStore, graph: Graph) -> Told:
    counts = f"{len(graph.entities)} entities, {len(graph.relations)} relations, {graph.left_out} left out"
    nothing = not graph.entities and not graph.left_out
    lines = heading(served, counts, served.notes(nothing_found=nothing))
    lines += [f"- entity {quoted(row)}" for row in graph.entities]
    lines += [f"- relation {quoted(row)}" for row in graph.relations]
    structured = {"entities": graph.entities, "relations": graph.relations, "left_out": graph.left_out}
    return Told({**served.named(), **structured}, lines)


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
