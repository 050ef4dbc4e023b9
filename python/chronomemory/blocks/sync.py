"""The storage functions for scripts: the same names as in the package, without ``await``."""

from __future__ import annotations

from chronomemory.blocks import ids
from chronomemory.blocks.storage import blocks, config, edges, frames, sessions
from chronomemory.face import spaces

add_tags = blocks.add_tags
block_exists = blocks.block_exists
bytes_to_embedding = spaces.bytes_to_embedding
content_hash = ids.content_hash
embedding_to_bytes = spaces.embedding_to_bytes
end_session = sessions.end_session
get_active_blocks = blocks.get_active_blocks
get_active_blocks_with_embeddings = blocks.get_active_blocks_with_embeddings
get_active_session = sessions.get_active_session
get_block = blocks.get_block
get_blocks_by_tag_pattern = blocks.get_blocks_by_tag_pattern
get_config = config.get_config
get_contradictions_for_blocks = edges.get_contradictions_for_blocks
get_edges_for_block = edges.get_edges_for_block
get_frame = frames.get_frame
get_inbox_blocks = blocks.get_inbox_blocks
get_inbox_count = blocks.get_inbox_count
get_neighbours = edges.get_neighbours
get_tags = blocks.get_tags
get_total_active_hours = config.get_total_active_hours
get_weighted_degree = edges.get_weighted_degree
insert_block = blocks.insert_block
insert_contradiction = edges.insert_contradiction
insert_edge = edges.insert_edge
list_frames = frames.list_frames
reinforce_blocks = blocks.reinforce_blocks
reinforce_edges = edges.reinforce_edges
remove_tags = blocks.remove_tags
resolve_contradiction = edges.resolve_contradiction
seed_builtin_data = frames.seed_builtin_data
set_config = config.set_config
set_total_active_hours = config.set_total_active_hours
start_session = sessions.start_session
update_block_scoring = blocks.update_block_scoring
update_block_status = blocks.update_block_status
upsert_frame = frames.upsert_frame
