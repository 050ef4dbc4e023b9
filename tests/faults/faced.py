"""Is a store with all faces, after an erasure, what it would be if that had never been said?

Two stores live the same life (`faces.py`): plain records, blocks of several people, episodes and facts, a
graph, pages; with compactions, copies and their return, damage and repairs. What only the first one says
goes, now and then, by ids, by scope or by a condition (`victims.py`). After each step both verifiers accept
and no byte of the folder holds what was erased; after each erasure all that did not go is as it was before;
and once nothing of it is left, both stores give the same answers, through every face, now and at any seq.
"""

from __future__ import annotations

import warnings

import harness
from answers import differing
from pasts import Pasts
from twin import checked

STEPS_A_PROJECT = 48
#: After so many steps all that is to go goes, and everything is compared.
A_ROUND = 16


def live(seed: str, steps: int, outcome: harness.Outcome) -> None:
    """One pair and its life; the first step that goes wrong is the last."""
    with harness.project(f"faced-{seed}", outcome) as root, warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        twins = Pasts(root, seed)

        def step(number: int) -> list[str]:
            is_last = number % A_ROUND == A_ROUND - 1
            try:
                outcome.count(twins.step(all_of_them=is_last))
                wrong = checked(twins, outcome)
                if not wrong and is_last:
                    wrong = differing(twins)
                    outcome.count("comparisons")
            except Exception as error:  # whatever it is, the seed and what was done must be told
                wrong = [f"{type(error).__name__}: {error}"]
            return [f"after {twins.did[-12:]}: {one}" for one in wrong]

        harness.live(seed, steps, outcome, step)
        twins.close()


def work(order: harness.Order, outcome: harness.Outcome) -> None:
    """Let pairs of stores with all faces live, and compare them."""
    harness.in_projects(order, outcome, STEPS_A_PROJECT, live)


if __name__ == "__main__":
    harness.main("twins with faces", work)
