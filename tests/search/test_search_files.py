"""The files of a text index cannot lie: deleted, cut, bent, swapped or old, the answers equal a rebuild."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from chronomemory import ChronoRecord, ChronoStore
from containers import sections
from shares import share

#: Enough that a file is kept.
RECORDS = 20_500
WORDS = [f"word{number}" for number in range(300)] + ["the", "common", "one"]
QUESTIONS = ["word1 word2 the", "common word7 on 12 March 2026", "word299", "the one", "fresh word3"]

Answers = list[list[tuple[str, float]]]


def text_of(chance: random.Random) -> str:
    return " ".join(chance.choices(WORDS, k=6))


def context_of(chance: random.Random) -> dict[str, str]:
    """Draw what surrounds a record; the one that it follows may be gone, or come later."""
    names = {"session": f"s{chance.randrange(500)}", "speaker": f"word{chance.randrange(9)}"}
    return {
        **names,
        "previous": f"R{chance.randrange(RECORDS + 9)}",
        "time": f"2026-03-{chance.randrange(10, 30)}",
    }


def fill(root: Path, seed: int) -> None:
    chance = random.Random(seed)
    with ChronoStore(root) as store:
        store.upsert_many(
            [ChronoRecord(id=f"R{n}", label=text_of(chance), data=context_of(chance)) for n in range(RECORDS)]
        )
        store.search("the")


def answers(store: ChronoStore) -> Answers:
    return [[(hit.id, hit.score) for hit in store.search(question, limit=20)] for question in QUESTIONS]


def index_files(root: Path) -> list[Path]:
    return sorted((root / ".chronomemory" / "index" / "text").glob("*.text"))


def rebuilt(root: Path, into: Path) -> Answers:
    """Answer from a copy that has no index."""
    shutil.copytree(root, into, ignore=shutil.ignore_patterns("text"))
    with ChronoStore(into) as store:
        return answers(store)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        root = tmp_path_factory.mktemp("filled")
        fill(root, 1)
        yield root


@pytest.fixture
def root(filled: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "copy"
    shutil.copytree(filled, copy)
    return copy


def test_a_file_is_kept_and_used(root: Path, tmp_path: Path) -> None:
    [file] = index_files(root)
    before = file.stat().st_mtime_ns
    expected = rebuilt(root, tmp_path / "rebuilt")
    with ChronoStore(root) as store:
        assert answers(store) == expected
    assert index_files(root) == [file]
    assert file.stat().st_mtime_ns == before


def test_bent_files_change_no_answer(root: Path, tmp_path: Path) -> None:
    chance = random.Random(3)
    expected = rebuilt(root, tmp_path / "rebuilt")
    [file] = index_files(root)
    whole = file.read_bytes()
    bent = bytearray(whole)
    bent[chance.randrange(len(bent))] ^= 1 << chance.randrange(8)
    for bad in (b"", whole[: chance.randrange(len(whole))], bytes(bent), whole + b"x", b"x" * 100):
        for old in index_files(root):
            old.unlink()
        file.write_bytes(bad)
        with ChronoStore(root) as store:
            assert answers(store) == expected
    file.unlink()
    shutil.rmtree(file.parent)
    with ChronoStore(root) as store:
        assert answers(store) == expected


@pytest.mark.parametrize("seed", range(share(2, 20)))
def test_a_damaged_section_changes_no_answer(root: Path, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    expected = rebuilt(root, tmp_path / "rebuilt")
    [file] = index_files(root)
    whole = file.read_bytes()
    for section in filter(len, sections(file).values()):
        damaged = bytearray(whole)
        start = chance.choice(section)
        end = min(section.stop, start + chance.choice([1, 4, 5000]))
        damaged[start:end] = bytes(byte ^ 0x5A for byte in damaged[start:end])
        file.write_bytes(damaged)
        with ChronoStore(root) as store:
            assert answers(store) == expected
        with ChronoStore(root) as store:
            assert answers(store) == expected


def test_a_file_that_changes_while_it_is_mapped_stops_no_search(root: Path, tmp_path: Path) -> None:
    expected = rebuilt(root, tmp_path / "rebuilt")
    [file] = index_files(root)
    chance = random.Random(9)
    with ChronoStore(root) as store:
        store.search("word1")
        size = file.stat().st_size
        with file.open("r+b") as opened:
            for start in range(0, size, 1000):
                opened.seek(start)
                opened.write(chance.randbytes(min(500, size - start)))
        for question in QUESTIONS:
            store.search(question)
    with ChronoStore(root) as store:
        assert answers(store) == expected


def test_a_file_of_an_older_version_is_made_again(root: Path, tmp_path: Path) -> None:
    expected = rebuilt(root, tmp_path / "rebuilt")
    [file] = index_files(root)
    whole = file.read_bytes()
    old = b"CMTEXT\x00\x05" + bytes(100)
    file.write_bytes(old + sha256(old).digest())
    with ChronoStore(root) as store:
        assert answers(store) == expected
        assert store.verify().altered_indexes == ()
    assert file.read_bytes()[:8] == whole[:8]


def test_a_folder_in_the_place_of_a_file_changes_no_answer(root: Path, tmp_path: Path) -> None:
    expected = rebuilt(root, tmp_path / "rebuilt")
    [file] = index_files(root)
    file.unlink()
    file.mkdir()
    with ChronoStore(root) as store:
        assert answers(store) == expected


def test_a_file_of_another_store_is_not_believed(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    fill(other, 2)
    expected = rebuilt(root, tmp_path / "rebuilt")
    [file] = index_files(root)
    shutil.copy(index_files(other)[0], file)
    with ChronoStore(root) as store:
        assert answers(store) == expected


def test_an_old_file_is_brought_up_to_date(root: Path, tmp_path: Path) -> None:
    chance = random.Random(5)
    old = index_files(root)[0]
    kept = old.read_bytes()
    with ChronoStore(root) as store:
        for number in range(50):
            store.upsert(ChronoRecord(id=f"R{chance.randrange(RECORDS)}", label="fresh " + text_of(chance)))
            label = "fresh " + text_of(chance)
            store.upsert(ChronoRecord(id=f"NEW{number}", label=label, data=context_of(chance)))
            store.delete(f"R{chance.randrange(RECORDS)}")
        live = answers(store)
    old.write_bytes(kept)
    expected = rebuilt(root, tmp_path / "rebuilt")
    assert live == expected
    with ChronoStore(root) as store:
        assert answers(store) == expected
        store.compact()
        store.upsert(ChronoRecord(id="LAST", label="fresh word3"))
        live = answers(store)
    assert live == rebuilt(root, tmp_path / "again")


def scoped_answers(store: ChronoStore) -> list[Answers]:
    handles = [store, store.everyone(), store.scoped(user="ann"), store.scoped(user="bob", agent="helper")]
    return [answers(handle) for handle in handles]


def change(store: ChronoStore, chance: random.Random, count: int) -> None:
    """Write new records and new contents, and delete some."""
    for _ in range(count):
        user = chance.choice([None, "ann", "bob", "eve"])
        handle = (
            store if user is None else store.scoped(user=user, **chance.choice([{}, {"agent": "helper"}]))
        )
        record_id = f"{user}-{chance.randrange(count)}"
        if handle.get(record_id) is None or chance.random() < 0.7:
            kind = chance.choice(["fact", "task"])
            data = {"tags": ["x"], **context_of(chance), "next": f"{user}-{chance.randrange(count)}"}
            handle.upsert({"id": record_id, "kind": kind, "label": text_of(chance), "data": data})
        else:
            handle.delete(record_id)


@pytest.mark.parametrize("seed", range(share(3, 20)))
def test_an_opened_index_answers_like_a_new_one(root: Path, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    for file in index_files(root):
        file.unlink()
    with ChronoStore(root) as store:
        change(store, chance, 300)
        scoped_answers(store)
    for turn in range(4):
        deed = chance.choice(["nothing", "change", "compact", "fields"])
        with ChronoStore(root) as store:
            change(store, chance, chance.choice([0, 5, 100]))
            if deed == "compact":
                store.compact()
                change(store, chance, 20)
            elif deed == "fields":
                store.upkeep.set_search_fields(text={"label": chance.randrange(1, 9)})
        copy = tmp_path / f"copy{turn}"
        shutil.copytree(root, copy, ignore=shutil.ignore_patterns("text", "state"))
        with ChronoStore(copy, verify="full") as store:
            expected = scoped_answers(store)
        with ChronoStore(root) as store:
            assert scoped_answers(store) == expected, (turn, deed)
            change(store, chance, 30)
            live = scoped_answers(store)
        with ChronoStore(root) as store:
            assert scoped_answers(store) == live, (turn, deed)
            assert store.verify().altered_indexes == ()
        assert len(index_files(root)) == 1


def test_an_index_is_renumbered_once_after_a_compaction(root: Path, tmp_path: Path) -> None:
    [before] = index_files(root)
    with ChronoStore(root) as store:
        store.compact()
    expected = rebuilt(root, tmp_path / "rebuilt")
    with ChronoStore(root) as store:
        assert answers(store) == expected
    [renumbered] = index_files(root)
    assert renumbered.name != before.name
    written = renumbered.stat().st_mtime_ns
    with ChronoStore(root) as store:
        store.upsert({"id": "R7", "label": "fresh word3"})
        live = answers(store)
        assert store.verify().altered_indexes == ()
    assert [(file, file.stat().st_mtime_ns) for file in index_files(root)] == [(renumbered, written)]
    assert live == rebuilt(root, tmp_path / "again")


def test_a_process_that_compacted_writes_an_index_for_others(tmp_path: Path) -> None:
    chance = random.Random(13)
    root = tmp_path / "root"
    with ChronoStore(root) as store:
        store.upsert_many([ChronoRecord(id=f"R{n}", label=text_of(chance)) for n in range(RECORDS)])
        store.delete("R3")
        store.search("the")
        store.compact()
        before = index_files(root)
        store.upsert_many([ChronoRecord(id=f"X{n}", label=text_of(chance)) for n in range(25_000)])
        deadline = time.monotonic() + 60
        while (after := index_files(root)) == before or len(after) != 1:
            assert time.monotonic() < deadline
            answers(store)
            time.sleep(0.01)
        live = answers(store)
    [file] = index_files(root)
    unnumbered = file.read_bytes()
    for _ in range(2):
        with ChronoStore(root) as store:
            assert answers(store) == live
            assert store.verify().altered_indexes == ()
    assert index_files(root) == [file]
    assert file.read_bytes() != unnumbered
    assert live == rebuilt(root, tmp_path / "rebuilt")


#: A word, a group, a speaker and the id of a link of a record that is erased.
CANARIES = {b"canaryword", b"canarysession", b"canaryspeaker", b"canarylink"}


def canaries(file: Path) -> set[bytes]:
    whole = file.read_bytes()
    return {canary for canary in CANARIES if canary in whole}


def test_an_erased_word_is_in_no_file(root: Path) -> None:
    with ChronoStore(root) as store:
        data = {"session": "canarysession", "speaker": "canaryspeaker", "previous": "canarylink"}
        store.upsert({"id": "secret-id", "label": "canaryword", "data": data})
        store.upsert_many([{"id": f"E{n}", "label": "one common"} for n in range(21_000)])
        assert [hit.id for hit in store.search("canaryword")] == ["secret-id"]
        folder = root / ".chronomemory"
        deadline = time.monotonic() + 60
        while not any(canaries(file) == CANARIES for file in index_files(root)):
            assert time.monotonic() < deadline
            store.search("canaryword")
            time.sleep(0.05)
        store.erase(ids=["secret-id"], reason="asked for")
        assert store.search("canaryword") == []
        assert [path for path in folder.rglob("*") if path.is_file() and canaries(path)] == []
    assert [path for path in folder.rglob("*.text") if b"secret-id" in path.read_bytes()] == []


def test_many_changes_are_sealed_again(root: Path, tmp_path: Path) -> None:
    chance = random.Random(7)
    with ChronoStore(root) as store:
        before = index_files(root)
        answers(store)
        for _ in range(3):
            store.upsert_many([ChronoRecord(id=f"X{n}", label=text_of(chance)) for n in range(10_000)])
            live = answers(store)
        # No search waits for it: a thread of the store does it beside them.
        deadline = time.monotonic() + 60
        while len(after := index_files(root)) != 1 or after == before:
            assert time.monotonic() < deadline
            assert answers(store) == live
            time.sleep(0.01)
    assert live == rebuilt(root, tmp_path / "rebuilt")
    with ChronoStore(root) as store:
        assert answers(store) == live


def test_a_restored_past_is_searched_as_it_was(root: Path, tmp_path: Path) -> None:
    with ChronoStore(root) as store:
        expected = answers(store)
        backup = store.backup()
        store.upsert_many([ChronoRecord(id=f"X{n}", label="the one common") for n in range(25_000)])
        assert answers(store) != expected
        store.upkeep.restore(backup)
        assert answers(store) == expected
    assert rebuilt(root, tmp_path / "rebuilt") == expected


def harm(chance: random.Random, folder: Path, older: list[bytes]) -> str:
    """Do something to the files of an index, and say what."""
    deed = chance.choice(["delete", "cut", "bend", "swap", "leave"])
    for file in sorted(folder.glob("*.text")):
        whole = file.read_bytes()
        older.append(whole)
        if deed == "delete":
            file.unlink()
        elif deed == "cut":
            file.write_bytes(whole[: chance.randrange(len(whole))])
        elif deed == "bend":
            at = chance.randrange(len(whole))
            file.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        elif deed == "swap":
            file.write_bytes(chance.choice(older))
    return deed


@pytest.mark.parametrize("seed", range(11, 11 + share(1, 20)))
def test_harm_at_random_between_writes_changes_no_answer(root: Path, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    older: list[bytes] = []
    deeds = []
    for turn in range(6):
        with ChronoStore(root) as store:
            many = 21_000 if turn % 3 == 2 else 40
            names = [f"R{chance.randrange(RECORDS)}" for _ in range(many // 2)]
            names += [f"T{turn}-{number}" for number in range(many // 2)]
            store.upsert_many([ChronoRecord(id=name, label="fresh " + text_of(chance)) for name in names])
            store.delete(names[0])
            live = answers(store)
            if turn == 3:
                store.compact()
                assert answers(store) == live
        assert live == rebuilt(root, tmp_path / f"rebuilt{turn}"), deeds
        deeds.append(harm(chance, root / ".chronomemory" / "index" / "text", older))
    assert len(set(deeds)) > 1
