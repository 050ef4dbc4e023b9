"""What frames show does not come up ever more often because frames showed it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from chronomemory import Memory
from shares import share

SUBJECTS = ("harbour", "orchard", "library", "kitchen", "workshop", "meadow")
DEEDS = ("painted", "repaired", "measured", "photographed", "cleaned", "described", "visited", "closed")
FRAMES = share(200, 1000)
LIMIT = 10


def shown(memory: Memory, question: str) -> list[str]:
    frame = memory.frame("attention", question, top_k=LIMIT, token_budget=100_000)
    return [block.content for block in frame.blocks]


def test_many_frames_about_others_leave_an_answer_as_it_was(tmp_path: Path) -> None:
    chance = np.random.default_rng(5)
    with Memory(tmp_path) as memory:
        for subject in SUBJECTS:
            for number, deed in enumerate(DEEDS):
                memory.learn(f"{subject} {deed} by visitor {number}")
        memory.consolidate()
        before = shown(memory, "who painted and repaired the orchard?")
        assert len(before) == LIMIT and before[0].startswith("orchard")
        for _ in range(FRAMES):
            shown(memory, f"who {chance.choice(DEEDS)} the {chance.choice(SUBJECTS[2:])}?")
        after = shown(memory, "who painted and repaired the orchard?")
        assert len(set(before) & set(after)) >= LIMIT - 1
        assert after[0] == before[0]
