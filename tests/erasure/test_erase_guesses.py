"""Nobody who has only what an erasure left can confirm a guess at what went."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoStore, WalEvent
from chronomemory._core import file_holds
from test_erase import is_valid_for_both

SECRET = 217
#: The numbers that somebody tries.
GUESSES = range(SECRET - 20, SECRET + 20)


def rows(number: int) -> list[dict[str, Any]]:
    return [
        {"id": "k1", "label": "keep"},
        {"id": "mia", "label": f"Mia's number is 555-{number:04}"},
        {"id": "k2", "label": "also"},
    ]


def digest(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def hashes_of(events: list[WalEvent], moment: str, number: int) -> list[str]:
    """The hashes that the lines would have if the number was this one."""
    head, found = events[0].prev_hash, []
    for event in events:
        record = dict(event.record or {})
        if event.record_id == "mia":
            record["label"] = rows(number)[1]["label"]
        line = WalEvent(
            seq=event.seq,
            ts=moment,
            op=event.op,
            record_id=event.record_id,
            record=record,
            prev_hash=head,
            hash="",
            recursion_depth=event.recursion_depth,
        )
        head = line.compute_hash()
        found.append(head)
    return found


def digests_in(root: Path) -> set[str]:
    """Every 64 hex digits that any file of a folder spells, unpacked or not, and beside it."""
    found = set[str]()
    for path in root.rglob("*"):
        text = path.name.encode() + b" " + (path.read_bytes() if path.is_file() else b"")
        found |= {some.decode() for some in re.findall(rb"(?=([0-9a-f]{64}))", text)}
    return found


@pytest.mark.parametrize("salt", ["scope", False])
@pytest.mark.parametrize("earlier", [False, True])
def test_a_dropped_history_is_no_way_to_guess(tmp_path: Path, salt: Any, earlier: bool) -> None:
    home, own = tmp_path / "home", tmp_path / "own"
    with ChronoStore(home, salt=salt, head_file=home / "head") as store:
        store.upsert_many(rows(SECRET))
        before = [event.hash for event in store.replay()]
        if earlier:
            store.compact()
        told = store.erase(ids=["mia"], reason="asked for", history="drop")
        assert told.unsalted == 1
        kept = store.get("k1")
        assert kept is not None
        moment = kept.created_at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        assert is_valid_for_both(store)
        assert store.verify().remembered == "kept"
        store.upsert({"id": "k3"})
        store.compact()
        assert is_valid_for_both(store)
    with ChronoStore(own, salt=False) as mine:
        mine.upsert_many(rows(0))
        shape = mine.replay()
    # The guesser is right about everything but the number, and so finds the lines that there were.
    assert hashes_of(shape, moment, SECRET) == before
    left = digests_in(home)
    for number in GUESSES:
        guessed = [bytes.fromhex(one) for one in hashes_of(shape, moment, number)]
        chain = {digest(bytes(32), *guessed[:place]) for place in range(1, len(guessed) + 1)}
        ways = {*guessed, *chain, *(digest(one, bytes.fromhex(head)) for one in chain for head in left)}
        ways |= {digest(bytes(32), *guessed, bytes.fromhex(head)) for head in left}
        assert not {way.hex() for way in ways} & left, number


@pytest.mark.parametrize(("salt", "found"), [(False, [SECRET]), (True, [])])
def test_a_kept_hash_is_one_only_where_a_line_had_no_salt(
    tmp_path: Path, salt: bool, found: list[int]
) -> None:
    home, own = tmp_path / "home", tmp_path / "own"
    with ChronoStore(home, salt=salt) as store:
        store.upsert_many(rows(SECRET))
        line = json.loads((home / ".chronomemory" / "events.wal").read_bytes().splitlines()[2])
        assert line["record_id"] == "mia"
        told = store.erase(ids=["mia"], reason="asked for")
        assert told.unsalted == (0 if salt else 1)
        (archive,) = (home / ".chronomemory" / "archive").iterdir()
        assert file_holds(archive, [line["hash"].encode()]), "it is kept"
    with ChronoStore(own, salt=False) as mine:
        mine.upsert_many(rows(0))
        shape = mine.replay()
    assert [number for number in GUESSES if line["hash"] in hashes_of(shape, line["ts"], number)] == found


def test_what_a_repair_cut_away_goes_with_a_dropped_history(tmp_path: Path) -> None:
    with ChronoStore(tmp_path, salt=False) as store:
        store.upsert_many(rows(SECRET))
    log = tmp_path / ".chronomemory" / "events.wal"
    head = json.loads(log.read_bytes().splitlines()[-1])["hash"]
    log.write_bytes(log.read_bytes() + f'{{"hash":"{"0" * 64}","prev_hash":"{head}'.encode())
    store = ChronoStore(tmp_path, salt=False)
    with pytest.warns(RuntimeWarning, match="uncommitted"):
        store.open()
    with store:
        store.upsert({"id": "k3"})
        assert list((tmp_path / ".chronomemory" / "quarantine").iterdir())
        store.erase(ids=["mia"], reason="asked for", history="drop")
        assert list((tmp_path / ".chronomemory" / "quarantine").iterdir()) == []
        assert is_valid_for_both(store)
