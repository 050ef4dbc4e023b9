"""A store that is opened from segments answers as one that is loaded from its log."""

from __future__ import annotations

import json
import random
import shutil
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoStore
from chronomemory.engines import ENGINES
from chronomemory.errors import HistoryUnavailable, LogCorrupted

SECRET = "canary-5b1e7c"


@pytest.fixture(autouse=True)
def small_segments() -> Iterator[None]:
    """Seal after eight events, and at every close."""
    before = ENGINES.seal
    ENGINES.seal = (8, 1, 1)
    yield
    ENGINES.seal = before


def segments(project: Path) -> list[Path]:
    return sorted((project / ".chronomemory" / "index" / "state").glob("*.rows"))


def fill(project: Path, seed: int, rounds: int = 6) -> None:
    """Write records of several users in several sessions: new, changed, deleted, expiring."""
    draw = random.Random(seed)
    for number in range(rounds):
        with ChronoStore(project) as store:
            for _ in range(draw.randrange(1, 30)):
                user = draw.choice([None, "ann", "bob"])
                handle = store if user is None else store.scoped(user=user)
                record_id = f"{user}-{draw.randrange(20)}"
                data = {"n": draw.randrange(100), "round": number}
                if draw.random() < 0.2:
                    data["expires_at"] = draw.choice(["2001-01-01T00:00:00Z", "2099-01-01T00:00:00Z"])
                kind, label = draw.choice(["fact", "task"]), f"word{draw.randrange(30)} é\u2028x"
                handle.upsert(
                    {"id": record_id, "kind": kind, "label": label, "data": data, "confidence": draw.random()}
                )
                if draw.random() < 0.1:
                    handle.delete(record_id)
            if draw.random() < 0.3:
                store.compact()


def answers(project: Path, verify: str) -> list[object]:
    """Everything that a few questions get, with the segments or without."""
    with ChronoStore(project, verify=verify) as store:
        found: list[object] = []
        for handle in (store, store.everyone(), store.scoped(user="ann")):
            for order in (None, "created", "-updated", "-confidence", "id"):
                page = handle.query(status=None, order_by=order) if order else handle.query(status=None)
                found.append([(record.to_dict(), record.created_at, record.updated_at) for record in page])
            found.append(handle.count(by="kind"))
            found.append([(hit.record.id, hit.score) for hit in handle.search("word3 word7")])
            found.append([record.id for record in handle.query(where={"data.n": {"gte": 50}}, status=None)])
        for number in range(20):
            found.append([repr(event) for event in store.everyone().history(f"ann-{number}")])
        found.append(store.health().last_seq)
        found.append(store.verify().to_dict() | {"checked_at": None})
        return found


@pytest.mark.parametrize("seed", range(6))
def test_segments_change_no_answer(tmp_path: Path, seed: int) -> None:
    fill(tmp_path, seed)
    assert segments(tmp_path)
    assert answers(tmp_path, "later") == answers(tmp_path, "full")


def test_an_open_store_goes_on_behind_its_segments(tmp_path: Path) -> None:
    fill(tmp_path, 1)
    with ChronoStore(tmp_path) as store:
        for number in range(100):
            store.upsert({"id": f"new-{number}", "label": f"fresh{number}"})
            store.upsert({"id": "same", "label": f"turn{number}"})
            assert store.get("same").label == f"turn{number}"
        assert len(store.history("same")) == 100
        assert [hit.record.id for hit in store.search("fresh77")] == ["new-77"]
    with ChronoStore(tmp_path) as store:
        assert store.get("new-50").label == "fresh50" and store.get("same").label == "turn99"
        assert len(store.history("same")) == 100


@contextmanager
def warnings_ignored() -> Iterator[None]:
    """Let warnings of damage pass."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def in_memory(project: Path, ask: Callable[[Path], object]) -> object:
    """Ask about a store that is loaded without any segment."""
    shutil.rmtree(project / ".chronomemory" / "index", ignore_errors=True)
    seal, ENGINES.seal = ENGINES.seal, None
    try:
        return ask(project)
    finally:
        ENGINES.seal = seal


@warnings_ignored()
def pasts(project: Path) -> list[object]:
    """What earlier states of a store hold, and what is found wrong with it."""
    with ChronoStore(project) as store:
        found: list[object] = [[record.to_dict() for record in store.everyone().query(status=None)]]
        found.append(store.verify().to_dict() | {"checked_at": None})
        for seq in range(store.health().last_seq, 0, -23):
            try:
                view = store.everyone().as_of(seq)
            except (LogCorrupted, HistoryUnavailable) as error:
                found.append(str(error))
            else:
                found.append([(record.to_dict(), record.updated_at) for record in view.query(status=None)])
                found.append([record.id for record in view.query(order_by="-updated")])
        return found


@pytest.mark.parametrize("seed", range(4))
def test_loading_without_segments_seals_as_it_goes(tmp_path: Path, seed: int) -> None:
    fill(tmp_path, seed)
    right = in_memory(tmp_path, pasts)
    assert not segments(tmp_path)
    assert pasts(tmp_path) == right
    assert segments(tmp_path), "what was sealed without a name gets one"
    assert pasts(tmp_path) == right
    assert answers(tmp_path, "later") == in_memory(tmp_path, lambda project: answers(project, "full"))


@pytest.mark.parametrize("seed", range(3))
def test_a_damaged_log_is_sealed_in_files_without_names(tmp_path: Path, seed: int) -> None:
    fill(tmp_path, seed, rounds=3)
    log = tmp_path / ".chronomemory" / "events.wal"
    content = bytearray(log.read_bytes())
    content[random.Random(seed).randrange(len(content))] ^= 1
    log.write_bytes(content)
    right = in_memory(tmp_path, pasts)
    assert pasts(tmp_path) == right
    assert pasts(tmp_path) == right


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_segment_is_never_answered_from(tmp_path: Path, seed: int) -> None:
    fill(tmp_path / "whole", seed)
    right = answers(tmp_path / "whole", "full")
    draw = random.Random(seed)
    for attempt in range(12):
        copy = tmp_path / f"copy{attempt}"
        shutil.copytree(tmp_path / "whole", copy)
        path = draw.choice(segments(copy))
        content = bytearray(path.read_bytes())
        match draw.randrange(3):
            case 0:
                content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
            case 1:
                del content[draw.randrange(len(content)) :]
            case _:
                start = draw.randrange(len(content))
                content[start : start + 4096] = bytes(len(content[start : start + 4096]))
        path.write_bytes(content)
        assert answers(copy, "later") == right, (path.name, attempt)


def test_a_segment_of_another_log_is_not_used(tmp_path: Path) -> None:
    fill(tmp_path / "one", 1)
    fill(tmp_path / "other", 2)
    right = answers(tmp_path / "one", "full")
    state = tmp_path / "one" / ".chronomemory" / "index" / "state"
    shutil.rmtree(state)
    shutil.copytree(tmp_path / "other" / ".chronomemory" / "index" / "state", state)
    assert answers(tmp_path / "one", "later") == right


def test_a_log_line_that_changed_behind_a_segment_is_reported(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        for number in range(50):
            store.upsert({"id": f"r{number}", "label": "water boils"})
    log = tmp_path / ".chronomemory" / "events.wal"
    content = log.read_bytes()
    place = content.index(b"water boils", len(content) // 2)
    log.write_bytes(content[:place] + b"water FROZE" + content[place + 11 :])
    with pytest.warns(RuntimeWarning), ChronoStore(tmp_path, verify="full") as store:
        right = [record.to_dict() for record in store.query(status=None)]
        damage = [one.seq for one in store.verify().damage]
    with ChronoStore(tmp_path, verify="later") as store:
        assert [record.to_dict() for record in store.query(status=None)] == right
        assert [one.seq for one in store.verify().damage] == damage and len(damage) == 1
        with pytest.warns(RuntimeWarning, match="damage in"):
            assert not store.health().ok


def test_a_changed_last_sealed_line_is_reported_when_the_store_is_opened(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        for number in range(50):
            store.upsert({"id": f"r{number}", "label": "water boils"})
    log = tmp_path / ".chronomemory" / "events.wal"
    content = log.read_bytes()
    place = content.rindex(b"water boils")
    log.write_bytes(content[:place] + b"water FROZE" + content[place + 11 :])
    with pytest.warns(RuntimeWarning, match="damage in"), ChronoStore(tmp_path, verify="later") as store:
        assert store.get("r48").label == "water boils"
        assert store.get("r49") is None


def first_line(project: Path) -> dict[str, Any]:
    with (project / ".chronomemory" / "events.wal").open("rb") as log:
        line: dict[str, Any] = json.loads(log.readline())
    return line


@pytest.mark.parametrize("count", [50, 1_100])
def test_a_compaction_goes_on_with_the_trail_behind_segments(tmp_path: Path, count: int) -> None:
    sealed, whole = tmp_path / "sealed", tmp_path / "whole"
    for _ in range(2):
        with ChronoStore(sealed, durability="off") as store:
            for number in range(count):
                store.upsert({"id": f"r{number % 40}", "data": {"n": number}})
    assert segments(sealed)
    shutil.copytree(sealed, whole)
    shutil.rmtree(whole / ".chronomemory" / "index")
    trails = []
    for project in (sealed, whole):
        with ChronoStore(project) as store:
            store.compact()
        data = first_line(project)["record"]["data"]
        trails.append((data["trail"], data["trail_from"]))
    assert trails[0] == trails[1]


def test_what_was_erased_is_in_no_segment(tmp_path: Path) -> None:
    fill(tmp_path, 3)
    with ChronoStore(tmp_path) as store:
        for number in range(20):
            store.scoped(user="eve").upsert({"id": f"{SECRET}-{number}", "label": f"{SECRET} label"})
    with ChronoStore(tmp_path) as store:
        assert store.everyone().get(f"{SECRET}-3") is not None
        store.erase(scope={"user": "eve"}, reason="asked for")
        assert store.everyone().get(f"{SECRET}-3") is None
        store.upsert({"id": "later", "label": "later"})
    with ChronoStore(tmp_path) as store:
        assert store.get("later") is not None and store.everyone().get(f"{SECRET}-3") is None
    files = [path for path in (tmp_path / ".chronomemory").rglob("*") if path.is_file()]
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []


def test_two_stores_on_one_folder_use_the_same_segments(tmp_path: Path) -> None:
    with ChronoStore(tmp_path, own_engine=True) as one, ChronoStore(tmp_path, own_engine=True) as other:
        for number in range(200):
            writer, reader = (one, other) if number % 2 else (other, one)
            writer.upsert({"id": f"r{number % 30}", "label": f"turn{number}"})
            assert reader.get(f"r{number % 30}").label == f"turn{number}"
            if number % 50 == 49:
                writer.compact()
        assert one.count() == other.count() == 30


def test_health_says_how_far_the_chain_is_verified(tmp_path: Path) -> None:
    fill(tmp_path, 1)
    with ChronoStore(tmp_path, verify="full") as store:
        assert store.health().verified_seq == store.health().last_seq
        assert store.health().rung == "remembered"
    with ChronoStore(tmp_path, verify="quick") as store:
        assert (store.health().verified_seq, store.health().rung) == (None, "not verified")
    with ChronoStore(tmp_path) as store:
        deadline = time.monotonic() + 30
        while store.health().verified_seq is None and time.monotonic() < deadline:
            time.sleep(0.05)
        assert store.health().verified_seq == store.health().last_seq
        assert store.health().verified_at is not None and store.health().rung == "remembered"


@pytest.mark.parametrize("verify", ["later", "full"])
def test_a_compaction_leaves_no_segment_of_the_retired_log(tmp_path: Path, verify: str) -> None:
    fill(tmp_path, 2)
    with ChronoStore(tmp_path, verify=verify) as store:
        store.upsert({"id": "one", "label": "more"})
        before = segments(tmp_path)
        store.compact()
        assert not set(before) & set(segments(tmp_path))
        right = [record.to_dict() for record in store.query(status=None)]
    with ChronoStore(tmp_path) as store:
        assert [record.to_dict() for record in store.query(status=None)] == right


@pytest.mark.parametrize("seed", range(4))
def test_a_compaction_writes_the_segment_that_its_base_gives(tmp_path: Path, seed: int) -> None:
    fill(tmp_path, seed)
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "one", "label": "more"})
        store.compact()
        (segment,) = segments(tmp_path)
        report = store.verify()
        assert report.valid and not report.altered_indexes
    with_segments = answers(tmp_path, "quick")
    assert segments(tmp_path) == [segment]
    assert with_segments == answers(tmp_path, "full")


def damage_a_sealed_line(project: Path) -> None:
    """Change a sealed line of a record that was replaced since, so that no read of records notices it."""
    with ChronoStore(project) as store:
        for label in ("first", "second"):
            for number in range(50):
                store.upsert({"id": f"r{number}", "label": label})
    log = project / ".chronomemory" / "events.wal"
    content = log.read_bytes()
    place = content.index(b'"label":"first"', len(content) // 4)
    log.write_bytes(content[:place] + b'"label":"FIRST"' + content[place + 15 :])


def test_the_next_call_warns_once_of_damage_that_a_read_found(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        for number in range(50):
            store.upsert({"id": f"r{number}", "label": "water boils"})
    log = tmp_path / ".chronomemory" / "events.wal"
    content = log.read_bytes()
    place = content.index(b"water boils", len(content) // 2)
    log.write_bytes(content[:place] + b"water FROZE" + content[place + 11 :])
    with ChronoStore(tmp_path, verify="quick") as store:
        ann = store.scoped(user="ann")
        assert len(store.query()) == 49
        with pytest.warns(RuntimeWarning, match="damage in") as warned:
            store.get("r7")
            store.get("r8")
            ann.get("r7")
        assert [warning.filename for warning in warned] == [__file__]
        assert not store.health().ok


def test_a_compaction_refuses_a_log_that_was_damaged_behind_its_segments(tmp_path: Path) -> None:
    damage_a_sealed_line(tmp_path)
    log = tmp_path / ".chronomemory" / "events.wal"
    before = log.read_bytes()
    with ChronoStore(tmp_path, verify="quick") as store:
        assert store.get("r7").label == "second"
        with pytest.raises(LogCorrupted, match="altered"):
            store.compact()
        with pytest.warns(RuntimeWarning, match="damage in"):
            assert not store.health().ok
    assert log.read_bytes() == before


def test_a_backup_reports_damage_behind_segments(tmp_path: Path) -> None:
    damage_a_sealed_line(tmp_path)
    with ChronoStore(tmp_path, verify="quick") as store:
        assert store.get("r7").label == "second"
        store.backup()
        with pytest.warns(RuntimeWarning, match="damage in"):
            assert not store.health().ok
