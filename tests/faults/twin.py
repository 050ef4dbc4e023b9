"""A store after an erasure is what it would be if something else had been said in place of what went.

Two stores live the same random life (`twins.py`): writes, batches, embeddings, tokens, edges, compactions,
copies and their return, damage and repairs, prunings. What the first one says of some records is erased, now
and then; its twin never said it. After each step both verifiers accept, and no byte of the folder holds what
was erased; after each erasure of all of it both stores answer alike: what is, what was at every seq, the
history of each record, what is near, and what a search finds, to the last digit of a score.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import harness
import numpy as np
from chronomemory import ChronoStore
from chronomemory.errors import HistoryUnavailable
from speech import OWNERS, WORDS
from traces import found_in
from twins import DIM, FOLDER, SPACES, Twins
from workload import second_opinion

STEPS_A_PROJECT = 40
A_ROUND = 10
#: What a store says of itself; there is no reason for two to say the same.
OWN = ("erasure:", "pruned:", "vector:", "F")

T = TypeVar("T", bound=Twins)


def handles(store: ChronoStore) -> dict[str, Any]:
    named = {owner: store.scoped(user=owner) for owner in sorted({*OWNERS} - {None})}
    return {"": store, **named}


def shown(records: Any, without: set[str]) -> list[dict[str, Any]]:
    return [one.to_dict() for one in records if not one.id.startswith(OWN) and one.id not in without]


def past_of(store: ChronoStore, seq: int, without: set[str]) -> list[dict[str, Any]] | None:
    try:
        return shown(store.everyone().as_of(seq).query(status=None, faces=True), without)
    except HistoryUnavailable:
        return None


def histories(twins: Twins, store: ChronoStore) -> dict[str, Any]:
    everyone = store.everyone()
    return {
        name: [(event.seq, event.op, event.record) for event in everyone.history(name)] for name in twins.kept
    }


def first_difference(what: str, one: Any, other: Any) -> list[str]:
    if one == other:
        return []
    if isinstance(one, list) and isinstance(other, list):
        at = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), -1)
        if at >= 0:
            return [f"{what}: {one[at]} instead of {other[at]}"]
        return [f"{what}: {len(one)} instead of {len(other)}: {(one[len(other) :] or other[len(one) :])[:2]}"]
    return [f"{what}: {one} instead of {other}"]


def compared(twins: Twins, *, whole: bool) -> list[str]:
    """What the two say otherwise."""
    a, b, wrong, living = twins.a, twins.b, [], set(twins.victims)
    for name, handle in handles(a).items():
        other = handles(b)[name]
        both = [shown(one.query(status=None, faces=True), living) for one in (handle, other)]
        wrong += first_difference(f"records of {name or 'all'}", *both)
        for space in SPACES:
            if space in {known.name for known in a.vectors.spaces()}:
                asked = np.ones(DIM, dtype=np.float32)
                near = [
                    [
                        (hit.record_id, hit.score)
                        for hit in one.vectors.nearest(asked, space=space, k=1000, status=None)
                    ]
                    for one in (handle, other)
                ]
                near[0] = [hit for hit in near[0] if hit[0] not in living]
                wrong += first_difference(f"what is near {name or 'all'} in {space}", *near)
        if living:
            continue
        for text in (WORDS[0], " ".join(WORDS[2:5]), WORDS[7] + " nothing"):
            found = [[(hit.id, hit.score) for hit in one.search(text, limit=50)] for one in (handle, other)]
            wrong += first_difference(f"what {name or 'all'} finds for {text!r}", *found)
        if "tokens" in {known.name for known in a.vectors.spaces()}:
            tokens = np.eye(3, DIM, dtype=np.float32)
            found = [
                [(hit.id, hit.score) for hit in one.search(WORDS[1], query_tokens=tokens, limit=50)]
                for one in (handle, other)
            ]
            wrong += first_difference(f"what {name or 'all'} finds by tokens", *found)
    if whole and not wrong:
        one, other_one = histories(twins, a), histories(twins, b)
        for name in one if not twins.is_pruned else ():
            wrong += first_difference(f"history of {name}", one[name], other_one[name])
        for seq in sorted({*range(1, a.wal_seq() + 1)} - twins.unsettled):
            then = [past_of(store, seq, living) for store in (a, b)]
            if then[0] is None and then[1] is not None and not twins.is_pruned:
                wrong.append(f"the past at {seq} is not to be had, and the twin's is")
            elif None not in then:
                wrong += first_difference(f"records at {seq}", *then)
    return wrong


def checked(twins: Twins, outcome: harness.Outcome) -> list[str]:
    """What is wrong after a step."""
    wrong = [*twins.wrong]
    report = twins.a.verify()
    wrong += [str(damage) for damage in (*report.damage, *report.returned)]
    if report.remembered not in ("kept", "unseen"):
        wrong.append(f"the head is {report.remembered}: {report.remembered_reason}")
    wrong += second_opinion(twins.a.project_root)
    if not twins.b.verify().valid:
        wrong.append("the twin is not valid")
    places = found_in(twins.a.project_root / FOLDER, twins.gone, twins.gone_rows)
    outcome.count("looks for what went", bool(twins.gone))
    return wrong + [f"what was erased is in {place}" for place in places]


@dataclass(frozen=True, slots=True)
class Breed(Generic[T]):
    """What pairs of a kind are called, how they are born, and when and how they are compared."""

    name: str
    born: Callable[[Path, str], T]
    #: After so many steps all that is to go goes, and everything is compared.
    a_round: int
    #: What differs, or None where it is too early to compare; whether the round is over.
    compare: Callable[[T, bool], list[str] | None]

    def live(self, seed: str, steps: int, outcome: harness.Outcome) -> None:
        """One pair and its life; the first step that goes wrong is the last."""
        with harness.project(f"{self.name}-{seed}", outcome) as root, warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            twins = self.born(root, seed)

            def step(number: int) -> list[str]:
                is_last = number % self.a_round == self.a_round - 1
                try:
                    outcome.count(twins.step(all_of_them=is_last))
                    wrong = checked(twins, outcome)
                    if not wrong and (differences := self.compare(twins, is_last)) is not None:
                        wrong = differences
                        outcome.count("comparisons")
                except Exception as error:  # whatever it is, the seed and what was done must be told
                    wrong = [f"{type(error).__name__}: {error}"]
                return [f"after {twins.did[-12:]}: {one}" for one in wrong]

            harness.live(seed, steps, outcome, step)
            twins.close()


def compared_in_time(twins: Twins, is_last: bool) -> list[str] | None:
    return compared(twins, whole=is_last) if is_last or "erase" in twins.did[-1] else None


TWINS = Breed("twin", Twins, A_ROUND, compared_in_time)


def work(order: harness.Order, outcome: harness.Outcome) -> None:
    """Let pairs of stores live, and compare them."""
    harness.in_projects(order, outcome, STEPS_A_PROJECT, TWINS.live)


if __name__ == "__main__":
    harness.main("twins", work)
