"""A harness that looks for what was erased would find it, or else finding nothing would say nothing."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from chronomemory import ChronoStore
from traces import contents, found_in, secret, zstd
from twin import compared
from twins import Twins


def hidden(word: str) -> dict[str, bytes]:
    """Places where a word may stand, by what they are."""
    letters = "".join(f"\\u{ord(letter):04X}" for letter in word)
    return {
        "plain": f'{{"label":"{word}"}}'.encode(),
        "in capitals": word.upper().encode(),
        "escaped": f'{{"label":"{letters}"}}'.encode(),
        "behind a beginning that another word gave": b"\x03\x00" + word[4:].encode(),
        "in the second frame": zstd.compress(b"x" * 99) + zstd.compress(word.encode()),
    }


@pytest.mark.parametrize("place", sorted(hidden("")))
def test_a_word_is_found_wherever_it_hides(tmp_path: Path, place: str) -> None:
    dice = random.Random(place)
    word = secret(dice)
    (tmp_path / "file").write_bytes(hidden(secret(dice))[place])
    assert found_in(tmp_path, [word]) == []
    (tmp_path / "file").write_bytes(hidden(word)[place])
    assert found_in(tmp_path, [word]) == ["file"]


def test_a_word_is_found_in_a_name_and_numbers_in_a_file(tmp_path: Path) -> None:
    word, row = secret(random.Random(1)), np.array([0.1, 0.2], dtype=np.float32).tobytes()
    (tmp_path / f"of-{word}").write_bytes(b"")
    (tmp_path / "rows").write_bytes(b"\0" * 8 + row)
    assert found_in(tmp_path, [word], [row]) == [f"of-{word}", "rows (numbers)"]


def test_a_word_is_found_in_everything_that_a_store_makes_of_it(tmp_path: Path) -> None:
    word = secret(random.Random(2))
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "a", "label": f"of {word}"})
        store.search(word)
        store.compact()
        store.backup()
    places = found_in(tmp_path / ".chronomemory", [word])
    assert {place.split("/")[0] for place in places} >= {"archive", "base", "backup", "snapshot.json"}
    assert all(contents(tmp_path / ".chronomemory" / place) for place in places)


def test_twins_that_are_not_alike_are_found(tmp_path: Path) -> None:
    twins = Twins(tmp_path, "1")
    for number in range(6):
        row = {"id": f"K{number}", "label": "harbour lantern"}
        twins.a.upsert(row)
        twins.b.upsert(row)
    assert compared(twins, whole=True) == []
    twins.a.upsert({"id": "K3", "label": "harbour"})
    twins.b.upsert({"id": "K3", "label": "lantern"})
    assert any(one.startswith("records of all") for one in compared(twins, whole=True))
    twins.close()
