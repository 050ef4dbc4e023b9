"""The blocks face: blocks, tags, links, contradictions, sessions and retrieval frames."""

from __future__ import annotations

from chronomemory.blocks import queries
from chronomemory.blocks.engine import (
    Blocks,
    create_engine,
    create_test_engine,
    open_blocks,
    open_test_blocks,
)
from chronomemory.blocks.errors import BatchConflict, ConfigError, FrameError, IntegrityError, UnknownBlock
from chronomemory.blocks.ids import content_hash
from chronomemory.blocks.items import MemoryItem, MemoryPage
from chronomemory.blocks.life.consolidation import ConsolidateResult, DreamResult
from chronomemory.blocks.life.curation import CurateResult
from chronomemory.blocks.life.embedding import ReembedResult
from chronomemory.blocks.life.learning import KeepResult, LearnDocumentResult
from chronomemory.blocks.life.linking import ConnectResult, DisconnectResult
from chronomemory.blocks.life.outcomes import OutcomeResult
from chronomemory.blocks.memory import Memory, each_memory
from chronomemory.blocks.queries import *  # noqa: F403
from chronomemory.blocks.storage.frames import Frame, FrameFilters
from chronomemory.blocks.survey import MemoryStatus
from chronomemory.blocks.system import MemorySystem
from chronomemory.blocks.types import (
    ArchiveReason,
    BlockStatus,
    CachePolicy,
    DecayTier,
    Dropped,
    Edge,
    ForgetResult,
    FrameResult,
    LearnResult,
    ScoredBlock,
    ScoringWeights,
    log_normalise_reinforcement,
)
from chronomemory.face.spaces import bytes_to_embedding, embedding_to_bytes

__all__ = [
    "ArchiveReason",
    "BatchConflict",
    "BlockStatus",
    "Blocks",
    "CachePolicy",
    "ConfigError",
    "ConnectResult",
    "ConsolidateResult",
    "CurateResult",
    "DecayTier",
    "DisconnectResult",
    "DreamResult",
    "Dropped",
    "Edge",
    "ForgetResult",
    "Frame",
    "FrameError",
    "FrameFilters",
    "FrameResult",
    "IntegrityError",
    "KeepResult",
    "LearnDocumentResult",
    "LearnResult",
    "Memory",
    "MemoryItem",
    "MemoryPage",
    "MemoryStatus",
    "MemorySystem",
    "OutcomeResult",
    "ReembedResult",
    "ScoredBlock",
    "ScoringWeights",
    "UnknownBlock",
    "bytes_to_embedding",
    "content_hash",
    "create_engine",
    "create_test_engine",
    "each_memory",
    "embedding_to_bytes",
    "log_normalise_reinforcement",
    "open_blocks",
    "open_test_blocks",
]
__all__ += queries.__all__
