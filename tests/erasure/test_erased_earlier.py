"""A store from before anything could be erased says all the rest as before, once something is.

The store of ``data/november``, and every sound folder of the corpus: stores of version 1 among them, other
tools' logs, adopted ones, packed and unpacked archives, logs that were erased from before.
"""

from __future__ import annotations

import fcntl
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoStore
from chronomemory.blocks import Memory
from chronomemory.errors import Busy, ChronoError, HistoryUnavailable, InvalidRecord
from test_erase import holding
from verdicts import CORPUS, FOLDERS, verify_log

sys.path.insert(0, str(CORPUS))
from cases_base import state_file
from cases_packed import frame
from craft import Chain, sha256

EARLIER = Path(__file__).parents[1] / "data" / "november"
SOUND = sorted(name for name, verdict in FOLDERS.items() if verdict["valid"] and not verdict.get("returned"))
#: Of these nothing can be erased: history has a hole, or the log has lost its end, or something is no file.
REFUSED = {
    "archive_folder",
    "archive_missing",
    "archive_older_missing",
    "erased_seqs_that_jump",
    "past_pruned_otherwise",
    "replaced_backed_up",
    "replaced_cut",
    "replaced_left_hint",
    "replaced_never",
}
#: What a store says of itself.
OWN = ("erasure:", "pruned:", "vector:", "search:", "__", "act:")


def november(root: Path) -> Path:
    shutil.copytree(EARLIER, root / ".chronomemory", ignore=shutil.ignore_patterns("expected.json"))
    return root


def history_of(store: ChronoStore, name: str) -> list[str] | None:
    try:
        return [event.hash for event in store.everyone().history(name)]
    except (HistoryUnavailable, OSError):
        return None


def answers(store: ChronoStore, without: set[str]) -> dict[str, Any]:
    """What a store says of all records but some: now, at every seq, and by what lies near."""
    everyone = store.everyone()
    last = store.wal_seq()
    names = [
        record.id
        for record in everyone.query(status=None, faces=True)
        if record.id not in without and not record.id.startswith(OWN)
    ]
    then: dict[int, Any] = {}
    for seq in range(1, last + 1):
        try:
            view = everyone.as_of(seq).query(status=None, faces=True)
        except (HistoryUnavailable, OSError):
            continue
        then[seq] = [one.to_dict() for one in view if one.id not in without and not one.id.startswith(OWN)]
    told: dict[str, Any] = {
        "records": {name: record.to_dict() for name in names if (record := everyone.get(name)) is not None},
        "histories": {name: history_of(store, name) for name in names},
        "then": then,
    }
    return told


def is_valid_for_both(store: ChronoStore) -> bool:
    found, second = store.verify(), verify_log.verify_folder(store.project_root / ".chronomemory")
    return found.valid and not found.returned and second["valid"] and not second["returned"]


def moments_of(store: ChronoStore, without: set[str]) -> dict[str, Any]:
    """When each record was made and spoken of last, where that is known."""
    records = store.everyone().query(status=None, faces=True)
    return {
        one.id: (one.created_at, one.updated_at)
        for one in records
        if one.id not in without and not one.id.startswith(OWN)
    }


def contents(root: Path) -> dict[str, bytes]:
    """What lies in a folder, but for what anybody may make anew at any time."""
    files = (root / ".chronomemory").rglob("*")
    named = {path.relative_to(root / ".chronomemory").as_posix(): path for path in files if path.is_file()}
    return {
        name: path.read_bytes()
        for name, path in named.items()
        if name.startswith(("events.wal", "base/", "archive/", "vectors/", "quarantine/", "backup/"))
    }


def up_to(told: dict[str, Any], last: int) -> dict[str, Any]:
    return {**told, "then": {seq: view for seq, view in told["then"].items() if seq <= last}}


@pytest.mark.parametrize(
    ("gone", "history"),
    [
        (("R1",), "redact"),
        (("R45",), "redact"),
        (("B3", "B4", "R18"), "redact"),
        (("B3", "B4", "R18"), "drop"),
        (("R4",), "redact"),
    ],
)
def test_a_store_of_november_says_all_the_rest(tmp_path: Path, gone: tuple[str, ...], history: str) -> None:
    with ChronoStore(november(tmp_path)) as store:
        last = store.wal_seq()
        labels = [record.label for name in gone if (record := store.get(name)) is not None]
        planned = store.erase(ids=gone, reason="asked for", dry_run=True)
        away = {*gone, *planned.belonging}
        before, near = answers(store, away), store.vectors.nearest([1.0] + [0.0] * 7, k=60, space="demo")
        moments = moments_of(store, away)
        told = store.erase(ids=gone, reason="asked for", history=history)
        assert (told.unsalted, told.belonging) == (told.lines, planned.belonging)
        after = up_to(answers(store, away), last)
        if history == "drop":
            assert set(after.pop("then")) == set()
            assert not any(after.pop("histories").values())
            before = {name: before[name] for name in after}
        assert after == before
        assert moments_of(store, away) == moments
        assert [(one.record_id, one.score) for one in near if one.record_id not in away] == [
            (one.record_id, one.score) for one in store.vectors.nearest([1.0] + [0.0] * 7, k=60, space="demo")
        ]
        assert all(holding(tmp_path, label) == [] for label in labels)
        assert is_valid_for_both(store)
        assert store.verify().remembered == "kept"
    with Memory(tmp_path) as memory:
        assert memory.recall("harbour lantern", top_k=8)


def test_a_block_of_november_goes_with_what_it_taught_left_to_the_others(tmp_path: Path) -> None:
    told = json.loads((EARLIER / "expected.json").read_bytes())
    gone = told["blocks"][0]
    with ChronoStore(november(tmp_path)) as store:
        planned = store.erase(ids=[f"block:{gone['id']}"], reason="asked for", dry_run=True)
        away = {f"block:{gone['id']}", *planned.belonging}
        before = answers(store, away)["records"]
        store.erase(ids=[f"block:{gone['id']}"], reason="asked for")
        after = answers(store, away)["records"]
        assert {name for name in before if before[name] != after.get(name)} == set()
        assert holding(tmp_path, gone["content"]) == holding(tmp_path, gone["id"]) == []
        assert is_valid_for_both(store)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", SOUND)
def test_a_folder_of_the_corpus_says_all_the_rest(tmp_path: Path, name: str) -> None:
    shutil.copytree(CORPUS / "folders" / name, tmp_path / ".chronomemory")
    with ChronoStore(tmp_path) as store:
        last = store.wal_seq()
        records = [one.id for one in store.everyone().query(status=None, faces=True)]
        mine = [one for one in records if not one.startswith(OWN)]
        if not mine:
            with pytest.raises(InvalidRecord):
                store.erase(ids=["erasure:1"], reason="asked for")
            return
        before, files = answers(store, {mine[0]}), contents(tmp_path)
        try:
            told = store.erase(ids=[mine[0]], reason="asked for")
        except (ChronoError, OSError):
            # A history with a hole in it, a log that lost its end: nothing is erased, and nothing happens.
            assert name in REFUSED
            assert contents(tmp_path) == files
            return
        assert name not in REFUSED
        away = {mine[0], *told.belonging}
        assert store.everyone().get(mine[0]) is None
        assert up_to(answers(store, away), last) == {
            part: {key: value for key, value in of.items() if key not in away} for part, of in before.items()
        }
        assert is_valid_for_both(store)
        store.upsert({"id": "later", "label": "goes on"})
        store.compact()
        assert is_valid_for_both(store)


def jumping(root: Path) -> Path:
    """A log of another tool, whose seqs are 1, 9 and 10."""
    chain = Chain().add(record_id="a", record={"id": "a", "label": "the first"})
    chain.add(seq=9, record_id="b", record={"id": "b"}).add(record_id="c", record={"id": "c"})
    (root / ".chronomemory").mkdir()
    (root / ".chronomemory" / "events.wal").write_bytes(b"".join(chain.lines))
    return root


def test_where_seqs_jump_an_erasure_keeps_no_history(tmp_path: Path) -> None:
    """What is left of 1, 9, 10 without the first two does not show that seqs jump: it could not be judged."""
    with ChronoStore(jumping(tmp_path)) as store:
        files = contents(tmp_path)
        for dry_run in (True, False):
            with pytest.raises(Busy, match=r"jump.*drop"):
                store.erase(ids=["a"], reason="asked for", dry_run=dry_run)
        assert contents(tmp_path) == files
        store.erase(ids=["a"], reason="asked for", history="drop")
        assert holding(tmp_path, "the first") == []
        assert is_valid_for_both(store)


def compact_as_version_1(store: ChronoStore) -> None:
    """What a process of version 1 does: it passes over events that tell of erasures, and knows no trail."""
    folder = store.project_root / ".chronomemory"
    known = [one.to_dict() for one in store.everyone().query(status=None, faces=True)]
    with (folder / "lock").open("r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _retire_as_version_1(folder, known)


def _retire_as_version_1(folder: Path, known: list[dict[str, Any]]) -> None:
    log = (folder / "events.wal").read_bytes()
    lines = [json.loads(line) for line in log.splitlines()]
    records = [record for record in known if not record["id"].startswith(("erasure:", "pruned:"))]
    first, last, head = lines[0]["seq"], lines[-1]["seq"], lines[-1]["hash"]
    base, archive = state_file(last, head, records), frame(log)
    data = {
        "previous_head": head,
        "first_seq": first,
        "last_seq": last,
        "events": len(lines),
        "base": f"base/{sha256(base)}.json",
        "base_sha256": sha256(base),
        "archive": f"archive/{first}-{last}-{sha256(archive)[:16]}.wal.zst",
        "archive_sha256": sha256(archive),
    }
    record = {"id": "__compact__", "kind": "fact", "data": data}
    new = Chain(last + 1).add(op="compact", record_id="__compact__", record=record)
    (folder / data["base"]).write_bytes(base)
    (folder / data["archive"]).write_bytes(archive)
    (folder / "events.wal.tmp").write_bytes(b"".join(new.lines))
    (folder / "events.wal.tmp").rename(folder / "events.wal")


def test_who_has_a_store_open_follows_what_version_1_makes_of_it(tmp_path: Path) -> None:
    """Its base tells nothing of erasures: what is known here of them must not go into a base that follows."""
    with ChronoStore(tmp_path, head_file=tmp_path / "head") as store:
        store.upsert_many([{"id": name, "label": f"of {name}"} for name in "abc"])
        store.erase(ids=["a"], reason="asked for")
        compact_as_version_1(store)
        store.upsert({"id": "d", "label": "of d"})
        store.compact()
        assert [one.id for one in store.query(status=None)] == ["b", "c", "d"]
        assert any(note.startswith("erased at event") for note in store.verify().notes)
        assert is_valid_for_both(store)
        store.erase(ids=["b"], reason="asked for")
        assert is_valid_for_both(store)
        assert store.verify().remembered == "kept"
