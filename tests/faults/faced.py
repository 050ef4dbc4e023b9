"""A store with all faces is, after an erasure, what it would be if that had never been said.

Two stores live the same life (`faces.py`): plain records, blocks of several people, episodes and facts, a
graph, pages; with compactions, copies and their return, damage and repairs. What only the first one says
goes, now and then, by ids, by scope or by a condition (`victims.py`). After each step both verifiers accept
and no byte of the folder holds what was erased; after each erasure all that did not go is as it was before;
and once nothing of it is left, both stores give the same answers, through every face, now and at any seq.
"""

from __future__ import annotations

import harness
from answers import differing
from pasts import Pasts
from twin import Breed

STEPS_A_PROJECT = 48


FACED = Breed("faced", Pasts, 16, lambda twins, is_last: differing(twins) if is_last else None)


def work(order: harness.Order, outcome: harness.Outcome) -> None:
    """Let pairs of stores with all faces live, and compare them."""
    harness.in_projects(order, outcome, STEPS_A_PROJECT, FACED.live)


if __name__ == "__main__":
    harness.main("twins with faces", work)
