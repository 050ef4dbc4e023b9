"""Adds blocks to the memory, changes them, archives them, and keeps those of a session beyond it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any

from chronomemory._core import canonical_json
from chronomemory.blocks.engine import READER, Blocks
from chronomemory.blocks.errors import IntegrityError
from chronomemory.blocks.ids import BLOCK, FACE, block_key, content_hash, given_id, plain_id
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
from chronomemory.face.moments import instant, now, parse_instant
from chronomemory.face.results import Result, counted
from chronomemory.filters import Where
from chronomemory.record import ChronoRecord
from chronomemory.scope import Scope, carrying
from chronomemory.selection import query

#: The fields of a block that hold its circumstances; the engine reads all but the metadata.
CIRCUMSTANCES = ("conversation", "previous", "speaker", "time", "metadata", "expires_at", "turns")


def circumstances(
    *,
    conversation: str | None = None,
    previous: str | None = None,
    time: datetime | None = None,
    speaker: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    expires_at: datetime | None = None,
    turns: Sequence[str] = (),
) -> dict[str, Any]:
    """Return what is known of these as fields of a block.

    >>> circumstances(previous="3f2a", speaker="Anna")
    {'previous': 'block:3f2a', 'speaker': 'Anna'}
    """
    details: dict[str, Any] = {}
    if conversation is not None:
        details["conversation"] = string("conversation", conversation, empty=False)
    if previous is not None:
        details["previous"] = block_key(given_id(string("previous", previous, empty=False)))
    if speaker is not None:
        details["speaker"] = string("speaker", speaker, empty=False)
    if time is not None:
        details["time"] = instant("time", time).isoformat()
    if metadata is not None:
        if not isinstance(metadata, Mapping):
            raise must("metadata", "be a mapping", metadata)
        details["metadata"] = dict(metadata)
    if expires_at is not None:
        details["expires_at"] = instant("expires_at", expires_at).astimezone(timezone.utc).isoformat()
    if turns:
        details["turns"] = string_list("turns", turns, empty=False)
    return details


CREATED, DUPLICATE, REACTIVATED = "created", "duplicate_rejected", "reactivated"
EDITED, MERGED, RESTORED = "edited", "merged", "restored"

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
_STANDING = ("decay_lambda", "evidence", "learned_at", "reinforcement_count")


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
    details: Mapping[str, Any] | None = None,
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
    record.data.update(details or {})
    return record


def learn(
    blocks: Blocks, record: ChronoRecord, *, again: bool = True, ignores_case: bool = False
) -> LearnResult:
    """Put a block into the inbox: one event. The same content again is refused, unless it was archived.

    The block that states it already gets the new tags and, with ``again``, the time of this statement.
    """
    if blocks.store.engine.upsert_if("new", record, FACE):
        return LearnResult(plain_id(record.id), CREATED)
    return blocks.run(lambda conn: put_into_inbox(conn, record, again=again, ignores_case=ignores_case))


def _named_apart(known: ChronoRecord | None, record: ChronoRecord) -> ChronoRecord:
    """Return a new block under an id of its own if the block with its id states something else.

    Ids ignore case, which tells units apart (5 mW and 5 MW), speakers, times and metadata.
    """
    if known is None or (
        known.data["content"].strip() == record.data["content"].strip() and same_circumstances(known, record)
    ):
        return record
    metadata = canonical_json(record.data.get("metadata", {})).decode()
    text = "\n".join([record.data["content"].strip(), *_who_and_when(record), metadata])
    return replace(record, id=block_key(content_hash(text, record.scope or Scope(), exact=True)))


def _who_and_when(record: ChronoRecord) -> tuple[str, str]:
    return str(record.data.get("speaker", "")), str(record.data.get("time", ""))


def same_circumstances(one: ChronoRecord, other: ChronoRecord) -> bool:
    """Return whether two blocks have the same speaker and time, and no metadata that differ."""
    known, new = (record.data.get("metadata") or {} for record in (one, other))
    return _who_and_when(one) == _who_and_when(other) and all(
        known[name] == new[name] for name in known.keys() & new.keys()
    )


def put_into_inbox(
    conn: Connection, record: ChronoRecord, *, again: bool = True, ignores_case: bool = False
) -> LearnResult:
    """Put a block into the inbox as part of a batch; a block that states the same gets its tags instead."""
    if not ignores_case:
        record = _named_apart(conn.record(record.id), record)
    block_id, known = plain_id(record.id), conn.record(record.id)
    if known is None:
        conn.put(record)
        return LearnResult(block_id, CREATED)
    if known.status == BlockStatus.ARCHIVED:
        return return_to_inbox(conn, record)
    inherit(conn, known, record, again=again)
    return LearnResult(block_id, DUPLICATE)


def inherit(conn: Connection, survivor: ChronoRecord, record: ChronoRecord, *, again: bool = True) -> None:
    """Give a block the tags, the metadata and the later expiry of one that states the same.

    With ``again`` it was stated again just now, which makes it newer than other values of its subject.
    """
    has, data = survivor.data.get("tags", {}), record.data
    patch: dict[str, Any] = {"restated_at": now()} if again else {}
    new = {tag: True for tag in tags_of(record) if tag not in has}
    if new:
        tier = DecayTier.of([*has, *new], survivor.data["category"]).value
        patch |= {"tags": new, "decay_lambda": min(survivor.data.get("decay_lambda", tier), tier)}
    if data.get("metadata"):
        patch["metadata"] = data["metadata"]
    if turns := data.get("turns"):
        patch["turns"] = list(dict.fromkeys([*survivor.data.get("turns", ()), *turns]))
    ends, later = survivor.data.get("expires_at"), data.get("expires_at")
    if ends is not None and (
        later is None or parse_instant("expires_at", later) > parse_instant("expires_at", ends)
    ):
        patch["expires_at"] = later
    if patch:
        conn.patch(survivor.id, {"data": patch})


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
    if "metadata" in new:
        data["metadata"] = dict.fromkeys(known.data.get("metadata") or {}) | new["metadata"]
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
    record = _named_apart(conn.record(record.id), record)
    new_id = plain_id(record.id)
    if new_id == old_id:
        raise InvalidRecord(
            f"supersedes: {old_id!r} says just that", field="supersedes", recovery="Say what is other now."
        )
    if known_block(conn, old_id).status == BlockStatus.ARCHIVED:
        raise IntegrityError(f"the block {old_id!r} is archived", recovery="Learn the new content alone.")
    learned = put_into_inbox(conn, record)
    conn.patch(record.id, {"data": {"supersedes": old_id}})
    archive(conn, old_id, "superseded", superseded_by=new_id)
    return replace(learned, superseded=(old_id,))


def archive(conn: Connection, block_id: str, reason: str, *, superseded_by: str | None = None) -> None:
    """Put a block away, and say what took its place."""
    update_block_status(conn, block_id, BlockStatus.ARCHIVED.value, archive_reason=reason)
    if superseded_by is not None:
        conn.patch(block_key(block_id), {"data": {"superseded_by": superseded_by}})


def restore(conn: Connection, block_id: str) -> LearnResult:
    """Put an archived block back into the inbox as it was, with its tags."""
    known = known_block(conn, block_id)
    if known.status != BlockStatus.ARCHIVED:
        raise IntegrityError(f"the block {block_id!r} is not archived", recovery="Restore an archived block.")
    gone = dict.fromkeys(("archive_reason", "superseded_by", "supersedes"))
    conn.patch(known.id, {"status": BlockStatus.INBOX.value, "data": gone})
    return LearnResult(block_id, RESTORED)


def forget(conn: Connection, block_id: str) -> ForgetResult:
    """Archive a block because someone asked for it; the log still has it."""
    known = conn.record(block_key(block_id))
    if known is not None and (new := known.data.get("superseded_by")) is not None:
        raise IntegrityError(f"the block {block_id!r} was replaced", recovery=f"Forget {new!r} instead.")
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
    record = _named_apart(conn.record(record.id), record)
    new_id = plain_id(record.id)
    links, contradictions = shown_edges(conn, [block_id]), open_contradictions(conn, [block_id])
    known = conn.record(record.id)
    record.data |= {name: old.data[name] for name in CIRCUMSTANCES if name in old.data}
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
    "metadata",
    "expires_at",
    "turns",
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
        return f"{counted(len(self.kept), 'block')} kept beyond the session."


def chosen_to_keep(blocks: Blocks, block_ids: Sequence[str] | None, where: Where | None) -> list[str]:
    """Return the ids of the blocks that are named, or of those of a session for which something holds."""
    if (block_ids is None) == (where is None):
        got = "neither" if where is None else "both"
        raise InvalidArgument(f"either block_ids or where must be given, got {got}", field="block_ids")
    if block_ids is not None:
        return [given_id(block_id) for block_id in unique_strings("block_ids", block_ids)]
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
    draft = replace(
        old, id=block_key(content_hash(old.data["content"], scope)), data=carrying(scope, old.data)
    )
    new_id = plain_id(_named_apart(conn.record(draft.id), draft).id)
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

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
SENTENCE_ENDS = re.compile(r"(?<=[.!?…])\s+")
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


def _parted(text: str) -> Iterator[str]:
    """Return what stands between empty lines; a fenced block of code is never parted."""
    lines: list[str] = []
    fence = ""
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1][0] == fence[0] and len(mark[1]) >= len(fence):
            fence = ""
        if line.strip() or fence:
            lines.append(line)
        elif lines:
            yield "\n".join(lines)
            lines = []
    if lines:
        yield "\n".join(lines)


def _paragraphs(text: str) -> Iterator[str]:
    heading = ""
    for paragraph in map(str.strip, _parted(text)):
        if _HEADING.fullmatch(paragraph):
            # One heading right below another: both stand above what follows.
            heading += paragraph + "\n"
        elif paragraph:
            yield heading + paragraph
            heading = ""
    if heading:
        yield heading.strip()


def _of_paragraph(paragraph: str, size: int) -> Iterator[str]:
    if _words(paragraph) <= size or _FENCE.search(paragraph):
        yield paragraph
    else:
        yield from _together(SENTENCE_ENDS.split(paragraph), size)


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
