"""Which reasons an erasure refuses: those in which a caller repeats what is to be erased."""

from __future__ import annotations

from pathlib import Path

import pytest
from chronomemory import ChronoStore
from chronomemory.errors import InvalidArgument

DUE = {"expires_at": "2020-01-01T00:00:00Z"}


@pytest.mark.parametrize("name", ["R1", "expired"])
def test_a_sweep_of_everyone_is_not_stopped_by_what_one_user_wrote(tmp_path: Path, name: str) -> None:
    with ChronoStore(tmp_path) as store:
        store.scoped(user="ann").upsert({"id": name, "label": "expired", "data": DUE})
        store.scoped(user="tom").upsert({"id": "R2", "label": "it has expired", "data": DUE})
        swept = store.everyone().sweep(erase=True)
        assert set(swept.ids) == {name, "R2"}
        assert swept.erased is not None
        assert swept.erased.lines == 2


def test_a_sweep_with_a_reason_of_its_own_is_not_compared_either(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.scoped(user="ann").upsert({"id": "year", "label": "door codes go with the year", "data": DUE})
        assert store.everyone().sweep(erase=True, reason="door codes go with the year").ids == ("year",)


def test_ordinary_words_in_labels_do_not_block_a_reason(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        for name, label in (("R1", "asked"), ("R2", "ticket 17"), ("R3", "for")):
            store.upsert({"id": name, "label": label})
        assert store.erase(ids=["R1", "R2", "R3"], reason="asked for, ticket 17").lines == 3


@pytest.mark.parametrize("reason", ["R1 asked for it", "because Mia lives in Elm Street"])
def test_an_id_or_a_whole_sentence_that_is_erased_is_refused(tmp_path: Path, reason: str) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "R1", "label": "Mia lives in Elm Street"})
        with pytest.raises(InvalidArgument, match="reason"):
            store.erase(ids=["R1"], reason=reason)
