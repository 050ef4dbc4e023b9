"""The index of an archive cannot lie: cut, damaged, old or of another archive, the history stays the same."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from chronomemory import ChronoStore
from containers import forge, sections

#: So many that the footer is long enough to be forged.
EVENTS = 15_000
NAMES = [f"R{n}" for n in range(0, 400, 30)] + ["nobody"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    chance = random.Random(1)
    for part in range(2):
        with ChronoStore(tmp_path, durability="off") as store:
            rows = [{"id": f"R{chance.randrange(400)}", "label": f"{part} {n}"} for n in range(EVENTS)]
            store.upsert_many(rows)
            store.compact(keep_history=True)
    return tmp_path


def histories(root: Path) -> list[list[tuple[int, object]]]:
    with ChronoStore(root) as store:
        return [[(event.seq, event.record) for event in store.history(name)] for name in NAMES]


def indexes(root: Path) -> list[Path]:
    return sorted((root / ".chronomemory" / "index").glob("*.history"))


def test_a_damaged_index_is_made_again(root: Path) -> None:
    chance = random.Random(2)
    expected = histories(root)
    assert sum(map(len, expected)) > 100 and expected[-1] == []
    file = indexes(root)[0]
    whole = file.read_bytes()
    damaged = [b"", b"CMHIST\0\2" + bytes(72), whole[: chance.randrange(len(whole))], whole + b"x"]
    for section in sections(file).values():
        for length in (1, len(section)):
            bent = bytearray(whole)
            at = chance.randrange(section.start, section.stop - length + 1)
            bent[at : at + length] = bytes(byte ^ 0x5A for byte in bent[at : at + length])
            damaged.append(bytes(bent))
    for bad in damaged:
        file.write_bytes(bad)
        assert histories(root) == expected
        with ChronoStore(root) as store:
            assert store.verify().altered_indexes == ()
    for section in sections(file).values():
        assert len(section) == 8 * EVENTS
    file.write_bytes(bytes(len(whole)))
    assert histories(root) == expected
    assert file.read_bytes() == whole


def test_an_index_of_another_archive_is_not_believed(root: Path) -> None:
    expected = histories(root)
    one, other = indexes(root)
    one.write_bytes(other.read_bytes())
    assert histories(root) == expected
    assert one.read_bytes() != other.read_bytes()


def test_an_index_with_right_checksums_and_wrong_places_is_altered(root: Path) -> None:
    histories(root)
    file = indexes(root)[0]
    places = sections(file)[2]
    one = file.read_bytes()[places.start : places.start + 8]
    forge(file, one, (0).to_bytes(8, "little"))
    with ChronoStore(root) as store:
        assert store.verify().rung == "index altered"
        assert [found.path for found in store.verify().altered_indexes] == [f"index/{file.name}"]
    file.unlink()
    with ChronoStore(root) as store:
        assert store.verify().altered_indexes == ()


def test_an_erasure_removes_the_indexes_of_rewritten_archives(root: Path) -> None:
    histories(root)
    before = indexes(root)
    with ChronoStore(root) as store:
        store.erase(ids=["R30"], reason="asked for")
        assert [*store.history("R30")] == []
    assert not set(before) & set(indexes(root))
    expected = histories(root)
    assert expected[NAMES.index("R30")] == [] and histories(root) == expected
