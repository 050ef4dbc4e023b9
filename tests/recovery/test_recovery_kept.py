"""All that recovery sets aside can be brought back, or the refusal says why not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from chronomemory import ChronoError, ChronoStore
from recovering import labels, only, quiet


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / ".chronomemory"


def filled(project: Path, records: int = 6) -> ChronoStore:
    store = ChronoStore(project)
    for number in range(records):
        store.upsert({"id": f"R-{number}", "label": f"value {number}"})
    return store


def flip(path: Path, at: int, count: int = 1) -> None:
    data = bytearray(path.read_bytes())
    for place in range(count):
        data[at + 3 * place] ^= 1
    path.write_bytes(data)


def only_line(home: Path, store: ChronoStore) -> None:
    store.compact(keep_history=False)
    store.close()
    flip(home / "events.wal", 299)


def base_alone(home: Path, store: ChronoStore) -> None:
    store.compact()
    store.close()
    (home / "snapshot.json").unlink()
    flip(only(home / "base"), 40, 3)


def archive_alone(home: Path, store: ChronoStore) -> None:
    store.compact()
    store.close()
    flip(only(home / "archive"), 200, 3)


@pytest.mark.parametrize("damaged", [False, True])
@pytest.mark.parametrize("harm", [only_line, base_alone, archive_alone])
def test_what_has_no_state_to_go_back_to_is_refused_in_words(
    tmp_path: Path, home: Path, harm: Callable[[Path, ChronoStore], None], damaged: bool
) -> None:
    harm(home, filled(tmp_path, 2))  # few, for each byte of a damaged base is searched
    with quiet(), ChronoStore(tmp_path) as store:
        told = store.upkeep.repair()
        before = labels(tmp_path)
        assert list((home / told["kept"]).iterdir())
        with pytest.raises(ChronoError) as refused:
            store.upkeep.restore(home / told["kept"], damaged=damaged)
        assert "no state in it to go back to" in str(refused.value)
        assert "restore() takes a backup" in refused.value.recovery
        assert labels(tmp_path) == before
        assert store.verify().valid


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("times", [1, 3])
def test_a_damaged_log_that_was_set_aside_comes_back(
    tmp_path: Path, home: Path, compacted: bool, times: int
) -> None:
    store = filled(tmp_path)
    if compacted:
        store.compact()
    for number in range(6, 10):
        store.upsert({"id": f"R-{number}", "label": f"value {number}"})
    store.close()
    before = labels(tmp_path)
    at = (home / "events.wal").read_bytes().index(b"value 7")
    flip(home / "events.wal", at, times)
    with quiet(), ChronoStore(tmp_path) as store:
        told = store.upkeep.repair()
        store.upkeep.restore(home / told["kept"], damaged=True)
        assert not store.verify().valid
        store.upkeep.repair()
    lost = {"R-7"} if times > 1 else set()
    assert labels(tmp_path) == {name: text for name, text in before.items() if name not in lost}


def test_a_single_file_of_quarantine_is_refused_in_words(tmp_path: Path, home: Path) -> None:
    with filled(tmp_path) as store:
        kept = home / "quarantine" / "20261115T190743-x.0.f32-rows.jsonl"
        kept.parent.mkdir()
        kept.write_text("{}\n")
        with pytest.raises(ChronoError, match="a single file") as refused:
            store.upkeep.restore(kept)
        assert "takes a folder" in refused.value.recovery


def test_a_folder_that_is_not_there_is_still_not_found(tmp_path: Path) -> None:
    with filled(tmp_path) as store, pytest.raises(FileNotFoundError):
        store.upkeep.restore(tmp_path / "nowhere")
