"""The storage functions for scripts: the same names as in the package, without ``await``."""

from __future__ import annotations

from chronomemory.blocks.ids import content_hash
from chronomemory.blocks.storage.blocks import (
    add_tags,
    block_exists,
    get_active_blocks,
    get_active_blocks_with_embeddings,
    get_block,
    get_blocks_by_tag_pattern,
    get_inbox_blocks,
    get_inbox_count,
    get_tags,
    insert_block,
    reinforce_blocks,
    remove_tags,
    update_block_scoring,
    update_block_status,
)
from chronomemory.blocks.storage.config import (
    get_config,
    get_total_active_hours,
    set_config,
    set_total_active_hours,
)
from chronomemory.blocks.storage.edges import (
    get_contradictions_for_blocks,
    get_edges_for_block,
    get_neighbours,
    get_weighted_degree,
    insert_contradiction,
    insert_edge,
    reinforce_edges,
    resolve_contradiction,
)
from chronomemory.blocks.storage.frames import get_frame, list_frames, seed_builtin_data, upsert_frame
from chronomemory.blocks.storage.sessions import end_session, get_active_session, start_session
from chronomemory.face.spaces import bytes_to_embedding, embedding_to_bytes

__all__ = [
    "add_tags",
    "block_exists",
    "bytes_to_embedding",
    "content_hash",
    "embedding_to_bytes",
    "end_session",
    "get_active_blocks",
    "get_active_blocks_with_embeddings",
    "get_active_session",
    "get_block",
    "get_blocks_by_tag_pattern",
    "get_config",
    "get_contradictions_for_blocks",
    "get_edges_for_block",
    "get_frame",
    "get_inbox_blocks",
    "get_inbox_count",
    "get_neighbours",
    "get_tags",
    "get_total_active_hours",
    "get_weighted_degree",
    "insert_block",
    "insert_contradiction",
    "insert_edge",
    "list_frames",
    "reinforce_blocks",
    "reinforce_edges",
    "remove_tags",
    "resolve_contradiction",
    "seed_builtin_data",
    "set_config",
    "set_total_active_hours",
    "start_session",
    "update_block_scoring",
    "update_block_status",
    "upsert_frame",
]
