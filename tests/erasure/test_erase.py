"""After an erasure no byte of the folder holds the text, and everything else is as before."""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chronomemory import ChronoRecord, ChronoStore
from chronomemory._core import canonical_json, event_hash, file_holds
from chronomemory.blocks import Memory
from chronomemory.errors import InvalidArgument, InvalidRecord

TOOL = Path(__file__).parents[2] / "tools" / "verify_log.py"


def holding(root: Path, text: str) -> list[str]:
    """The files that hold a text, unpacked where they are packed."""
    files = [path for path in sorted(root.rglob("*")) if path.is_file()]
    return [path.name for path in files if file_holds(path, [text.lower().encode()])]


def everything(store: ChronoStore) -> dict[str, dict[str, Any]]:
    records = store.query(faces=True, status=None, rag_filter=False, min_confidence=0.0)
    return {record.id: record.to_dict() for record in records if not record.id.startswith("vector:")}


def is_valid_for_both(store: ChronoStore) -> bool:
    found = store.verify()
    folder = store.project_root / ".chronomemory"
    second = subprocess.run([sys.executable, TOOL, folder], capture_output=True, text=True, check=False)
    return found.valid and not found.returned and second.returncode == 0


def lived(root: Path, seed: int) -> tuple[ChronoStore, dict[str, str]]:
    """A store with a random life, and what only each of its records ever said."""
    chance = random.Random(seed)
    secrets = {f"R{number}": f"Geheim{number} é/{chance.random()}" for number in range(6)}
    store = ChronoStore(root, head_file=root / "head", salt=(False, True, "scope")[seed % 3])
    for number in range(45):
        name = f"R{chance.randrange(6)}"
        known = store.get(name)
        is_there = known is not None and known.status != "tombstone"
        match chance.choices(("put", "delete", "batch", "compact", "backup", "attach"), (9, 1, 2, 2, 1, 2))[
            0
        ]:
            case "put":
                store.upsert({"id": name, "label": f"{secrets[name]} {number}", "data": {"n": number}})
            case "delete" if is_there:
                store.delete(name)
            case "batch":
                names = chance.sample(sorted(secrets), 3)
                store.upsert_many([{"id": other, "label": secrets[other]} for other in names])
            case "compact":
                store.compact()
            case "backup":
                store.backup()
            case "attach" if is_there:
                row = np.array([chance.random() for _ in range(4)], dtype=np.float32)
                store.vectors.attach(name, row, model="random")
    return store, secrets


@pytest.mark.parametrize("seed", range(6))
def test_no_byte_is_left_and_all_else_stays(tmp_path: Path, seed: int) -> None:
    store, secrets = lived(tmp_path, seed)
    with store:
        before = everything(store)
        store.search("geheim1")
        gone, *kept = random.Random(seed).sample(sorted(secrets), 6)
        histories = {name: store.history(name) for name in kept}
        vectors = {name: store.vectors.get(name) for name in kept} if store.vectors.spaces() else {}
        planned = store.erase(ids=[gone], reason="asked for", dry_run=True)
        assert everything(store) == before
        told = store.erase(ids=[gone], reason="asked for")
        assert told.lines >= planned.lines
        assert (told.seq is None) == (gone not in before)
        assert holding(tmp_path, secrets[gone]) == []
        before.pop(gone, None)
        after = everything(store)
        assert {name: record for name, record in after.items() if not name.startswith("erasure:")} == before
        assert {name: store.history(name) for name in kept} == histories
        assert store.history(gone) == []
        for name, row in vectors.items():
            assert (row is None and store.vectors.get(name) is None) or np.array_equal(
                row, store.vectors.get(name)
            )
        assert is_valid_for_both(store)
        assert store.erase(ids=[gone], reason="asked for").seq is None
        store.upsert({"id": gone, "label": "another"})
        store.compact()
        assert is_valid_for_both(store)
        assert store.verify().remembered == "kept"
    with ChronoStore(tmp_path, head_file=tmp_path / "head") as again:
        assert len(again.history(gone)) == 1


def test_the_past_at_any_moment_knows_nothing_of_it(tmp_path: Path) -> None:
    store, secrets = lived(tmp_path, 4)
    with store:
        last = store.wal_seq()
        views = [store.as_of(seq) for seq in range(1, last + 1)]
        seen = [{name: view.get(name) for name in secrets} for view in views]
        store.erase(ids=["R2"], reason="asked for")
        for seq, before in enumerate(seen, 1):
            view = store.as_of(seq)
            assert {name: view.get(name) for name in secrets} == {**before, "R2": None}


def test_what_erased_acts_had_taught_other_blocks_stays(tmp_path: Path) -> None:
    chance = random.Random(5)
    texts = [f"Fact {number} of {chance.random()}" for number in range(5)]
    with Memory(tmp_path) as memory:
        ids = [memory.remember(text).block_id for text in texts]
        memory.consolidate()
        for _ in range(8):
            memory.outcome(chance.sample(ids, 3), chance.random())
    with ChronoStore(tmp_path) as store:
        store.compact()
        before = everything(store)
        gone = [name for name in before if ids[1] in name]
        told = store.erase(ids=gone, reason="asked for")
        assert told.again > 0
        after = {name: record for name, record in everything(store).items() if name[:8] != "erasure:"}
        assert after == {name: record for name, record in before.items() if name not in gone}
        assert holding(tmp_path, texts[1]) == []
        assert holding(tmp_path, ids[1]) == [], "an id is a digest of what was said"
        assert is_valid_for_both(store)


def test_a_scope_means_all_that_ever_carried_it(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        mia, tom = store.scoped(user="miranda.elm"), store.scoped(user="tom")
        mia.upsert({"id": "M1", "label": "Miranda.Elm one"})
        store.compact()
        mia.delete("M1")
        mia.upsert({"id": "M2", "label": "Miranda.Elm two"})
        store.scoped(user="miranda.elm", session="1").upsert({"id": "M3", "label": "Miranda.Elm three"})
        store.scoped(agent="a", session="1").upsert({"id": "T2", "label": "nobody's"})
        tom.upsert({"id": "T1", "label": "Tom one"})
        told = store.erase(scope={"user": "miranda.elm"}, reason="asked for")
        assert set(told.ids) == {"M1", "M2", "M3"}
        assert holding(tmp_path, "Miranda.Elm") == []
        assert tom.get("T1") is not None
        assert is_valid_for_both(store)


def test_what_records_say_now_is_found_whosever_they_are(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "S", "label": "spilled"})
        store.scoped(user="mia").upsert({"id": "M", "label": "spilled"})
        store.upsert({"id": "T", "label": "kept"})
        told = store.erase(where={"label": "spilled"}, reason="asked for")
        assert set(told.ids) == {"S", "M"}
        assert holding(tmp_path, "spilled") == []


def test_again_keeps_the_present_and_drops_the_past(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "A", "label": "what was wrong"})
        store.upsert({"id": "A", "label": "what is right"})
        told = store.erase(ids=["A"], again=["A"], reason="corrected")
        assert told.again == 1
        record = store.get("A")
        assert record is not None
        assert record.label == "what is right"
        assert len(store.history("A")) == 1
        assert holding(tmp_path, "what was wrong") == []
        assert is_valid_for_both(store)


def test_history_can_be_dropped_as_a_whole(tmp_path: Path) -> None:
    with ChronoStore(tmp_path, salt=False) as store:
        for number in range(4):
            store.upsert({"id": f"R{number % 2}", "label": f"said {number}"})
        told = store.erase(where={"id": "R1"}, history="drop", reason="asked for")
        assert told.unsalted == told.lines == 2
        assert list((tmp_path / ".chronomemory").glob("archive/*")) == []
        assert holding(tmp_path, "said 1") == holding(tmp_path, "said 3") == []
        assert store.get("R0") is not None
        assert is_valid_for_both(store)


@pytest.mark.parametrize("name", ["erasure:1", "pruned:4", "vector:default", "__compact__", ""])
def test_what_the_log_says_of_itself_is_not_erased(tmp_path: Path, name: str) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "A"})
        with pytest.raises(InvalidRecord):
            store.erase(ids=[name], reason="asked for")


def test_a_reason_that_names_what_goes_is_refused(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "mia@example.org", "label": "Mia lives here"})
        for reason in ("mia@example.org asked", "that mia lives here", "x" * 201):
            with pytest.raises(ValueError, match="reason"):
                store.erase(ids=["mia@example.org"], reason=reason)
        assert store.get("mia@example.org") is not None


def test_another_process_that_holds_the_store_follows(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store, ChronoStore(tmp_path, own_engine=True) as other:
        store.upsert({"id": "A", "label": "secret"})
        store.upsert({"id": "B", "label": "plain"})
        assert other.search("secret")
        store.erase(ids=["A"], reason="asked for")
        assert other.get("A") is None
        assert other.history("A") == []
        assert other.search("secret") == []
        other.upsert({"id": "C"})
        assert is_valid_for_both(store)


def test_lines_carry_a_salt_that_no_record_has(tmp_path: Path) -> None:
    with ChronoStore(tmp_path, salt=True) as store:
        event = store.upsert({"id": "A", "label": "said"})
        assert "~" not in (event.record or {})
        assert event.compute_hash() == event.hash
        line = json.loads((tmp_path / ".chronomemory" / "events.wal").read_bytes())
        assert len(line["record"]["~"]) == 16
        assert event.to_json_line() == (tmp_path / ".chronomemory" / "events.wal").read_text().rstrip("\n")
        with pytest.raises(InvalidRecord, match="~"):
            store.upsert({"id": "B", "~": line["record"]["~"]})
        store.compact()
        record = store.get("A")
        assert record is not None
        assert "~" not in record.to_dict()
        (base,) = (tmp_path / ".chronomemory" / "base").iterdir()
        assert len(json.loads(base.read_bytes())["salt"]) == 22
    with ChronoStore(tmp_path, salt=False) as plain:
        plain.upsert({"id": "C"})
        assert b"~" not in (tmp_path / ".chronomemory" / "events.wal").read_bytes().split(b"\n")[1]


def test_by_default_lines_of_records_with_a_scope_are_salted(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "S", "label": "for everyone"})
        store.upsert({"id": "T"})
        ann = store.scoped(user="ann")
        ann.upsert_many([{"id": "A"}, {"id": "B", "label": "of Ann"}])
        store.vectors.attach("S", np.ones(4, dtype=np.float32), model="ones")
        # These do not say whose the record is.
        store.delete("S")
        ann.delete("A")
        lines = (tmp_path / ".chronomemory" / "events.wal").read_text().splitlines()
        events = [json.loads(line) for line in lines]
        salted = [(event["op"], event["record_id"]) for event in events if "~" in event["record"]]
        rows = [event["record_id"] for event in events if event["record_id"].startswith("vector:")]
        own = [("upsert", "A"), ("upsert", "B"), *(("upsert", name) for name in rows)]
        assert rows
        assert salted == [*own, ("delete", "S"), ("delete", "A")]
        told = store.erase(ids=["T", "B"], reason="asked for", dry_run=True)
        assert (told.lines, told.unsalted) == (2, 1)
        assert is_valid_for_both(store)


def test_a_salt_finds_its_place_beside_fields_of_other_tools(tmp_path: Path) -> None:
    folder = tmp_path / ".chronomemory"
    folder.mkdir()
    foreign = ChronoRecord(id="F", label="secret").to_dict() | {"\x7f": 1, "~~": 2, "é": {"~": 3}, "\n": 4}
    own = ChronoRecord(id="O", label="secret").to_dict() | {"~": "of another form"}
    lines, head = [], ""
    for seq, record in enumerate((foreign, own), 1):
        event = {"op": "upsert", "prev_hash": head, "record": record, "record_id": record["id"]}
        event |= {"recursion_depth": 0, "seq": seq, "ts": "2026-01-01T00:00:00.000000Z"}
        payload = json.dumps(event, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        head = hashlib.sha256(payload.encode()).hexdigest()
        lines.append(json.dumps(event | {"hash": head}, sort_keys=True))
    (folder / "events.wal").write_text("".join(line + "\n" for line in lines))
    with ChronoStore(tmp_path, salt=True) as store:
        before = everything(store)
        store.erase(ids=["F", "O"], again=["F", "O"], reason="asked for")
        after = everything(store)
        assert {name: after[name] for name in before} == before
        said = [json.loads(line) for line in (folder / "events.wal").read_text().splitlines()][-2:]
        assert [
            event["record"].keys() - record.keys() for event, record in zip(said, (foreign, own), strict=True)
        ] == [
            {"~"},
            set(),
        ]
        assert is_valid_for_both(store)


def test_which_lines_are_salted_is_one_of_three(tmp_path: Path) -> None:
    for wrong in ("always", 1, None):
        with pytest.raises(InvalidArgument, match="salt"):
            ChronoStore(tmp_path, salt=wrong)  # type: ignore[arg-type]


def test_a_forger_who_erases_is_caught_by_the_trail_that_was_noted(tmp_path: Path) -> None:
    with ChronoStore(tmp_path, head_file=tmp_path / "head") as store:
        store.upsert({"id": "A"})
    note = json.loads((tmp_path / "head").read_bytes())
    assert (len(note["trail"]), note["trail_from"]) == (64, 1)
    with ChronoStore(tmp_path, head_file=tmp_path / "head") as store:
        store.compact()
    line = json.loads((tmp_path / ".chronomemory" / "events.wal").read_bytes())
    assert line["record"]["data"]["trail"] == note["trail"]


def foreign(home: Path) -> None:
    """A log that another tool compacted, with what it started from in its snapshot."""
    home.mkdir()
    records = [
        {"id": "mia", "label": "in Elm Street", "data": {}},
        {"id": "tea", "label": "at four", "data": {}},
    ]
    state = {"seq": 9, "last_hash": "f" * 64, "ts": "2026-01-01T00:00:00.000000Z", "records": records}
    (home / "snapshot.json").write_text(json.dumps(state))
    event = {
        "op": "compact",
        "prev_hash": "",
        "record": {"id": "__compact__"},
        "record_id": "__compact__",
        "recursion_depth": 0,
        "seq": 10,
        "ts": "2026-01-01T00:00:00.000000Z",
    }
    (home / "events.wal").write_bytes(canonical_json(event | {"hash": event_hash(event)}) + b"\n")


@pytest.mark.parametrize("is_adopted", [True, False])
def test_what_no_log_of_another_tool_names_is_looked_through(tmp_path: Path, is_adopted: bool) -> None:
    foreign(tmp_path / ".chronomemory")
    with ChronoStore(tmp_path) as store:
        if is_adopted:
            store.upsert({"id": "ours"})
        backup = store.backup()
        if is_adopted:
            store.compact()
        store.upkeep.restore(backup)
        assert store.erase(ids=["mia"], reason="asked for").ids == ("mia",)
        assert holding(tmp_path / ".chronomemory", "elm street") == []
        assert store.get("tea") is not None and is_valid_for_both(store)


def test_what_nobody_ever_had_takes_no_damaged_copy_along(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert_many([{"id": f"r{n}", "label": f"value {n} of it"} for n in range(5)])
    log = tmp_path / ".chronomemory" / "events.wal"
    log.write_bytes(log.read_bytes().replace(b"value 3 of", b"##########"))
    with pytest.warns(RuntimeWarning, match="damage in events.wal"):
        opened = ChronoStore(tmp_path, verify="full")
        opened.open()
    with opened as store:
        store.upkeep.repair()
        aside = [path.name for path in (log.parent / "quarantine").iterdir()]
        for dry_run in (True, False):
            told = store.erase(ids=["r33"], reason="asked for", dry_run=dry_run)
            assert (told.seq, told.ids, told.quarantine) == (None, (), ())
            assert told.unread == tuple(f"quarantine/{name}" for name in aside)
        assert [path.name for path in (log.parent / "quarantine").iterdir()] == aside
        told = store.erase(ids=["r1"], reason="asked for")
        assert told.quarantine == tuple(f"quarantine/{name}" for name in aside) and not told.unread


@pytest.mark.parametrize("seed", range(6))
def test_of_a_scope_that_is_emptied_not_even_the_name_is_left(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    users = [f"name{chance.randrange(10**12):012}" for _ in range(5)]
    with ChronoStore(tmp_path) as store:
        for number in range(60):
            levels = {"user": chance.choice(users)}
            if chance.random() < 0.3:
                levels["session"] = f"room-of-{levels['user']}"
            store.scoped(**levels).upsert({"id": f"{levels['user']}-{number}", "label": f"tea {number}"})
            if chance.random() < 0.1:
                chance.choice([store.compact, store.backup])()
        present = {scope.scope.user for scope in store.scopes()}
        for user in chance.sample(users, 3):
            store.erase(scope={"user": user}, reason="asked for")
            present.discard(user)
            assert holding(tmp_path / ".chronomemory", user) == []
            with ChronoStore(tmp_path, own_engine=True) as other:
                for handle in (store, other):
                    assert {scope.scope.user for scope in handle.scopes()} - {None} == present
                    assert not handle.scoped(user=user).known
        assert is_valid_for_both(store)


@pytest.mark.parametrize("reason", ["", "  ", "a\nfake line", "\x1b[31m", "a\u2028b"])
def test_a_reason_is_one_line_that_can_be_read(tmp_path: Path, reason: str) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "x"})
        with pytest.raises(InvalidArgument) as refused:
            store.erase(ids=["x"], reason=reason)
        assert refused.value.field == "reason"
        assert "x" in store
        assert store.erase(ids=["x"], reason="", dry_run=True).ids == ("x",)
