"""Adds blocks to the memory, changes them, archives them, and keeps those of a session beyond it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from chronomemory.blocks.engine import READER, Blocks
from chronomemory.blocks.errors import IntegrityError
from chronomemory.blocks.ids import BLOCK, FACE, block_key, content_hash, plain_id
from chronomemory.blocks.storage.blocks import (
    add_tags,
    blocks_among,
    known_block,
    new_block,
    own_of,
    tags_of,
    update_block_status,
)
from chronomemory.blocks.storage.config import hours_for
from chronomemory.blocks.storage.edges import (
    SAID,
    new_contradiction,
    new_edge,
    open_contradictions,
    scope_of_pair,
    shown_edges,
)
from chronomemory.blocks.storage.forming import drop_forming
from chronomemory.blocks.types import ArchiveReason, BlockStatus, DecayTier, Edge, ForgetResult, LearnResult
from chronomemory.errors import InvalidArgument, InvalidRecord, OutOfScope
from chronomemory.face.arguments import contents, count, function, must, string, string_list, unique_strings
from chronomemory.face.batch import Connection
from chronomemory.face.moments import instant
from chronomemory.face.results import Result, counted
from chronomemory.filters import Where
from chronomemory.record import ChronoRecord
from chronomemory.scope import Scope, carrying
from chronomemory.selection import query

#: The fields of a block that hold them; the engine reads them, and so does a search of the whole store.
CIRCUMSTANCES = ("conversation", "previous", "speaker", "time")


def circumstances(
    *,
    conversation: str | None = None,
    previous: str | None = None,
    time: datetime | None = None,
    speaker: str | None = None,
) -> dict[str, str]:
    """Return what is known of these as fields of a block.

    >>> circumstances(previous="3f2a", speaker="Anna")
    {'previous': 'block:3f2a', 'speaker': 'Anna'}
    """
    said: dict[str, str] = {}
    if conversation is not None:
        said["conversation"] = string("conversation", conversation, empty=False)
    if previous is not None:
        said["previous"] = block_key(string("previous", previous, empty=False))
    if speaker is not None:
        said["speaker"] = string("speaker", speaker, empty=False)
    if time is not None:
        said["time"] = instant("time", time).isoformat()
    return said


CREATED, DUPLICATE, REACTIVATED = "created", "duplicate_rejected", "reactivated"
EDITED = "edited"

#: What a block that was put away and is learned again does not keep.
_PAST = (
    "archive_reason",
    "superseded_by",
    "supersedes",
    "evidence",
    "reinforcement_count",
    "self_alignment",
    "summary",
)
#: What a block in other words keeps.
_STANDING = ("decay_lambda", "evidence", "learned_at", "reinforcement_count", *CIRCUMSTANCES)


@contents
def drafted(
    content: str,
    tags: Sequence[str] | None,
    category: str,
    source: str,
    *,
    hours: float,
    session_id: str | None,
    scope: Scope,
    said: Mapping[str, str] | None = None,
) -> ChronoRecord:
    """Return the inbox block of something new, with the circumstances in which it was said."""
    if not isinstance(content, str) or not content.strip():
        raise must("content", "be a text with something in it", content)
    string("content", content)
    tags = [] if tags is None else string_list("tags", tags)
    record = new_block(
        content_hash(content, scope),
        content,
        category,
        source,
        decay_lambda=DecayTier.of(tags, category).value,
        last_reinforced_at=hours,
        tags=tags,
        session_id=session_id,
        scope=scope,
    )
    record.data.update(said or {})
    return record


def learn(blocks: Blocks, record: ChronoRecord) -> LearnResult:
    """Put a block into the inbox: one event. The same content again is refused, unless it was archived.

    Tags that are new come to the block that says it already.
    """
    block_id = plain_id(record.id)
    if blocks.store.engine.insert(record, FACE) is not None:
        return LearnResult(block_id, CREATED)
    known = blocks.store.engine.block_record(record.id)
    if known is None:  # something is there that is no block
        return blocks.run(lambda conn: _in_place(conn, record))
    if known.status == BlockStatus.ARCHIVED:
        return blocks.run(lambda conn: return_to_inbox(conn, record))
    if not record.data.get("tags", {}).keys() <= known.data.get("tags", {}).keys():
        return blocks.run(lambda conn: _tagged(conn, record))
    return LearnResult(block_id, DUPLICATE)


def _tagged(conn: Connection, record: ChronoRecord) -> LearnResult:
    """Give the tags of a block to the one that says the same."""
    known = known_block(conn, plain_id(record.id))
    if known.status == BlockStatus.ARCHIVED:
        return return_to_inbox(conn, record)
    inherit(conn, known, tags_of(record))
    return LearnResult(plain_id(record.id), DUPLICATE)


def inherit(conn: Connection, survivor: ChronoRecord, tags: Sequence[str]) -> None:
    """Give a block the tags of one that says the same: a guarantee outlives the words it came in."""
    has = survivor.data.get("tags", {})
    new = {tag: True for tag in tags if tag not in has}
    if new:
        tier = DecayTier.of([*has, *new], survivor.data["category"]).value
        fading = min(survivor.data.get("decay_lambda", tier), tier)
        conn.patch(survivor.id, {"data": {"tags": new, "decay_lambda": fading}})


def _in_place(conn: Connection, record: ChronoRecord) -> LearnResult:
    """Put a block where there is none."""
    block_id = plain_id(record.id)
    if conn.record(record.id) is not None:
        return LearnResult(block_id, DUPLICATE)
    conn.put(record)
    return LearnResult(block_id, CREATED)


def return_to_inbox(conn: Connection, record: ChronoRecord) -> LearnResult:
    """Bring an archived block back under its id, as new: without its old tags, links and standing."""
    block_id = plain_id(record.id)
    known = known_block(conn, block_id)
    if known.status != BlockStatus.ARCHIVED:
        return LearnResult(block_id, DUPLICATE)
    new = record.data
    data: dict[str, Any] = {name: new[name] for name in ("content", "category", "source", "decay_lambda")}
    data["last_reinforced_at"] = max(new["last_reinforced_at"], known.data.get("last_reinforced_at", 0.0))
    data |= dict.fromkeys(_PAST) | {name: new.get(name) for name in CIRCUMSTANCES}
    data["tags"] = dict.fromkeys(known.data.get("tags", {})) | new.get("tags", {})
    data["learned_at"] = new["learned_at"]
    conn.patch(record.id, {"status": BlockStatus.INBOX.value, "confidence": record.confidence, "data": data})
    drop_forming(conn, block_id)
    # It is shown again from here on, and so are its links: now they can be taken away.
    for link in shown_edges(conn, [block_id]) + open_contradictions(conn, [block_id]):
        conn.delete(link.id)
    return LearnResult(block_id, REACTIVATED)


def supersede(conn: Connection, record: ChronoRecord, old_id: str) -> LearnResult:
    """Put a block into the inbox that takes the place of another, which is put away."""
    new_id = plain_id(record.id)
    if new_id == old_id:
        raise InvalidRecord(
            f"supersedes: {old_id!r} says just that", field="supersedes", recovery="Say what is other now."
        )
    if known_block(conn, old_id).status == BlockStatus.ARCHIVED:
        raise IntegrityError(f"the block {old_id!r} is archived", recovery="Learn the new content alone.")
    known = conn.record(record.id)
    if known is not None and known.status == BlockStatus.ARCHIVED:
        learned = return_to_inbox(conn, record)
    else:
        learned = _in_place(conn, record)
    conn.patch(record.id, {"data": {"supersedes": old_id}})
    archive(conn, old_id, "superseded", superseded_by=new_id)
    return learned


def archive(conn: Connection, block_id: str, reason: str, *, superseded_by: str | None = None) -> None:
    """Put a block away, and say what took its place."""
    update_block_status(conn, block_id, BlockStatus.ARCHIVED.value, archive_reason=reason)
    if superseded_by is not None:
        conn.patch(block_key(block_id), {"data": {"superseded_by": superseded_by}})


def forget(conn: Connection, block_id: str) -> ForgetResult:
    """Put a block away because someone asked for it; the log still knows it."""
    archive(conn, block_id, ArchiveReason.FORGOTTEN.value)
    return ForgetResult(block_id)


def edit(
    conn: Connection, block_id: str, content: str, *, hours: float, session_id: str | None
) -> LearnResult:
    """Say a block in other words: a new block takes its place, with its tags, links and standing."""
    old = known_block(conn, block_id)
    if old.status == BlockStatus.ARCHIVED:
        raise IntegrityError(f"the block {block_id!r} is archived", recovery="Learn the new content instead.")
    tags = tags_of(old)
    scope = old.scope or Scope()
    record = drafted(
        content,
        tags,
        old.data["category"],
        old.data["source"],
        hours=hours_for(conn, old, hours),
        session_id=session_id,
        scope=scope,
    )
    new_id = plain_id(record.id)
    if new_id == block_id:
        conn.patch(old.id, {"data": {"content": content}})
        return LearnResult(block_id, EDITED)
    links, contradictions = shown_edges(conn, [block_id]), open_contradictions(conn, [block_id])
    known = conn.record(record.id)
    if known is None:
        conn.put(record)
    elif known.status == BlockStatus.ARCHIVED:
        return_to_inbox(conn, record)
    else:
        raise IntegrityError(
            f"a block says that already: {new_id!r}", recovery="Forget one of the two, or connect them."
        )
    standing = {name: old.data[name] for name in _STANDING if name in old.data}
    conn.patch(record.id, {"confidence": old.confidence, "data": {**standing, "supersedes": block_id}})
    for link in links:
        pair = Edge.canonical(new_id, _other_end(link, block_id, ("from_id", "to_id")))
        whose = scope_of_pair(conn, *pair)
        moved = new_edge(
            *pair, link.data["weight"], scope=whose, last_active_hours=hours_for(conn, link, hours)
        )
        moved.data["reinforcement_count"] = link.data.get("reinforcement_count", 0)
        moved.data |= {name: link.data[name] for name in (*SAID, "made_by") if name in link.data}
        conn.put(moved)
    for contradiction in contradictions:
        pair = Edge.canonical(new_id, _other_end(contradiction, block_id, ("block_a_id", "block_b_id")))
        whose = scope_of_pair(conn, *pair)
        conn.put(new_contradiction(*pair, contradiction.data["score"], scope=whose))
    archive(conn, block_id, "superseded", superseded_by=new_id)
    return LearnResult(new_id, EDITED)


def _other_end(pair: ChronoRecord, block_id: str, names: tuple[str, str]) -> str:
    one, other = (str(pair.data[name]) for name in names)
    return other if one == block_id else one


#: What a block takes along; what else it has is of its links and of the session.
_TAKEN = (
    "content",
    "category",
    "conversation",
    "source",
    "speaker",
    "time",
    "created_at",
    "decay_lambda",
    "embedding_model",
    "evidence",
    "reinforcement_count",
    "self_alignment",
    "summary",
    "tags",
    "token_count",
)


@dataclass(frozen=True, slots=True)
class KeepResult(Result):
    """Which blocks outlive their session: each by its old id, with the new one."""

    kept: dict[str, str]

    @property
    def summary(self) -> str:
        """How many there are."""
        return f"{counted(len(self.kept), 'block')} kept beyond the session."


def chosen_to_keep(blocks: Blocks, block_ids: Sequence[str] | None, where: Where | None) -> list[str]:
    """Return the ids of the blocks that are named, or of those of a session for which something holds."""
    if (block_ids is None) == (where is None):
        got = "neither" if where is None else "both"
        raise InvalidArgument(f"either block_ids or where must be given, got {got}", field="block_ids")
    if block_ids is not None:
        return list(unique_strings("block_ids", block_ids))
    named = query(blocks.store, kind=BLOCK, status=None, where=where, faces=True)
    found = blocks_among(blocks.store, named)
    waiting = (BlockStatus.INBOX.value, BlockStatus.ACTIVE.value)
    ids = [plain_id(record.id) for record in found if record.status in waiting and _session_of(record)]
    with blocks.connect() as conn:
        return own_of(conn, ids)


def keep(conn: Connection, block_ids: Sequence[str], *, hours: float) -> KeepResult:
    """Write blocks anew without the name of their session, and put the old ones away."""
    foreign = set(block_ids) - set(own_of(conn, block_ids))
    kept = {}
    for block_id in block_ids:
        old = known_block(conn, block_id)
        if block_id in foreign:
            raise OutOfScope(
                f"the block {block_id!r} is wider than {conn.scope}: it is not yours to keep",
                recovery="Name blocks of your own.",
            )
        if old.status != BlockStatus.ARCHIVED and _session_of(old):
            kept[block_id] = _kept(conn, old, hours)
    return KeepResult(kept)


def _session_of(record: ChronoRecord) -> str | None:
    """Return the session that a block ends with; one that has nothing but a session is kept nowhere."""
    scope = record.scope or Scope()
    return scope.session if scope.of_clock != scope else None


def _kept(conn: Connection, old: ChronoRecord, hours: float) -> str:
    """Write one block anew and return its id; one that says the same is there already, and takes its tags."""
    scope = (old.scope or Scope()).without("session")
    new_id = content_hash(old.data["content"], scope)
    known = conn.record(block_key(new_id))
    if known is not None and known.status != BlockStatus.ARCHIVED:
        add_tags(conn, new_id, list(tags_of(old)))
    else:
        _write(conn, old, new_id, scope, hours)
    archive(conn, plain_id(old.id), "superseded", superseded_by=new_id)
    return new_id


def _write(conn: Connection, old: ChronoRecord, new_id: str, scope: Scope, hours: float) -> None:
    data: dict[str, Any] = {name: old.data[name] for name in _TAKEN if name in old.data}
    hours = hours_for(conn, old, hours)
    data |= {"last_reinforced_at": hours, "learned_at": old.data.get("learned_at", hours)}
    # An erasure of the old block names the new one.
    data["supersedes"] = plain_id(old.id)
    new = replace(old, id=block_key(new_id), data=carrying(scope, data))
    if conn.record(new.id) is not None:
        tags, category, source = list(tags_of(old)), data["category"], data["source"]
        again = drafted(data["content"], tags, category, source, hours=hours, session_id=None, scope=scope)
        return_to_inbox(conn, again)
        conn.patch(new.id, {"status": old.status, "confidence": old.confidence, "data": data})
    else:
        conn.put(new)
    READER.hand_on(conn, old, new.id, old.data.get("embedding_model"))


#: Takes a text apart, such as into sentences.
Chunker = Callable[[str], Sequence[str]]

#: So many words a block of a document has at most, unless a single sentence is longer.
CHUNK_WORDS = 256

_BETWEEN_PARAGRAPHS = re.compile(r"\n[^\S\n]*\n+")
_BETWEEN_SENTENCES = re.compile(r"(?<=[.!?…])\s+")
_HEADING = re.compile(r"#{1,6}\s+\S.*")


@dataclass(frozen=True, slots=True)
class LearnDocumentResult(Result):
    """How many pieces a document had, what became of them, and which blocks they are, in their order."""

    chunks_total: int = 0
    chunks_created: int = 0
    chunks_duplicate: int = 0
    consolidations: int = 0
    blocks_promoted: int = 0
    block_ids: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """How much was learned."""
        return (
            f"{counted(self.chunks_total, 'piece')} of a document: {self.chunks_created} learned, "
            f"{self.chunks_duplicate} known already, {self.blocks_promoted} active now."
        )


def chunks(text: str, size: int = CHUNK_WORDS, chunker: Chunker | None = None) -> list[str]:
    """Return the pieces of a text, none of more than ``size`` words if its sentences allow it.

    Each paragraph is one piece, under the heading above it if there is one. What a chunker gives is put
    together again, in order, up to the size.

    >>> chunks("# Tea\\n\\nAnna likes tea. She drinks it black.\\n\\nBob does not.")
    ['# Tea\\nAnna likes tea. She drinks it black.', 'Bob does not.']
    """
    string("text", text)
    count("chunk_size", size, 1, None)
    if chunker is not None:
        return list(_together(string_list("chunker", function("chunker", chunker)(text)), size))
    return [piece for paragraph in _paragraphs(text) for piece in _of_paragraph(paragraph, size)]


def _paragraphs(text: str) -> Iterator[str]:
    heading = ""
    for paragraph in _BETWEEN_PARAGRAPHS.split("\n".join(text.splitlines())):
        paragraph = paragraph.strip()
        if _HEADING.fullmatch(paragraph):
            # One heading right below another: both stand above what follows.
            heading += paragraph + "\n"
        elif paragraph:
            yield heading + paragraph
            heading = ""
    if heading:
        yield heading.strip()


def _of_paragraph(paragraph: str, size: int) -> Iterator[str]:
    if _words(paragraph) <= size:
        yield paragraph
    else:
        yield from _together(_BETWEEN_SENTENCES.split(paragraph), size)


def _together(sentences: Sequence[str], size: int) -> Iterator[str]:
    """Put sentences together until one more would be too many words."""
    held: list[str] = []
    words = 0
    for sentence in (sentence.strip() for sentence in sentences):
        more = _words(sentence)
        if held and words + more > size:
            yield " ".join(held)
            held, words = [], 0
        if sentence:
            held.append(sentence)
            words += more
    if held:
        yield " ".join(held)


def _words(text: str) -> int:
    return len(text.split())
