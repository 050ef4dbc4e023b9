"""The storage functions for tasks: those of ``sync``, awaited; each takes microseconds."""

from __future__ import annotations

from chronomemory.blocks import sync
from chronomemory.face.awaited import awaited

__all__ = [
    "add_tags",
    "block_exists",
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

add_tags = awaited(sync.add_tags)
block_exists = awaited(sync.block_exists)
end_session = awaited(sync.end_session)
get_active_blocks = awaited(sync.get_active_blocks)
get_active_blocks_with_embeddings = awaited(sync.get_active_blocks_with_embeddings)
get_active_session = awaited(sync.get_active_session)
get_block = awaited(sync.get_block)
get_blocks_by_tag_pattern = awaited(sync.get_blocks_by_tag_pattern)
get_config = awaited(sync.get_config)
get_contradictions_for_blocks = awaited(sync.get_contradictions_for_blocks)
get_edges_for_block = awaited(sync.get_edges_for_block)
get_frame = awaited(sync.get_frame)
get_inbox_blocks = awaited(sync.get_inbox_blocks)
get_inbox_count = awaited(sync.get_inbox_count)
get_neighbours = awaited(sync.get_neighbours)
get_tags = awaited(sync.get_tags)
get_total_active_hours = awaited(sync.get_total_active_hours)
get_weighted_degree = awaited(sync.get_weighted_degree)
insert_block = awaited(sync.insert_block)
insert_contradiction = awaited(sync.insert_contradiction)
insert_edge = awaited(sync.insert_edge)
list_frames = awaited(sync.list_frames)
reinforce_blocks = awaited(sync.reinforce_blocks)
reinforce_edges = awaited(sync.reinforce_edges)
remove_tags = awaited(sync.remove_tags)
resolve_contradiction = awaited(sync.resolve_contradiction)
seed_builtin_data = awaited(sync.seed_builtin_data)
set_config = awaited(sync.set_config)
set_total_active_hours = awaited(sync.set_total_active_hours)
start_session = awaited(sync.start_session)
update_block_scoring = awaited(sync.update_block_scoring)
update_block_status = awaited(sync.update_block_status)
upsert_frame = awaited(sync.upsert_frame)
