"""A log that was swapped for one from before a compaction or a restore is found out."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from chronomemory import ChronoStore, _core
from chronomemory.errors import LogCorrupted
from recovering import labels, quiet
from verdicts import essence, verify_log

HOME = ".chronomemory"
LOG = "events.wal"


@pytest.fixture(autouse=True)
def nobody_remembers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last head is noted outside the project; here it is not, as on another machine."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "nobody"))


def write(store: ChronoStore, *names: str) -> None:
    for name in names:
        store.upsert({"id": name, "label": "true"})


def forget_heads(tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "nobody", ignore_errors=True)


def assert_missed(project: Path) -> None:
    """Both verifiers say that the log is missing, and nobody writes to the one that is there."""
    report = ChronoStore(project).verify()
    assert not report.valid
    assert "log-missing" in {found.kind for found in report.damage}
    second = verify_log.verify_folder(project)
    kinds = {(found["path"], found["kind"]) for found in second["damage"]}
    assert (LOG, "log-missing") in kinds and not second["valid"]
    assert kinds == {(found.path, found.kind) for found in report.damage}
    for act in (lambda store: write(store, "new"), lambda store: store.compact()):
        with quiet(), ChronoStore(project) as store, pytest.raises(LogCorrupted):
            act(store)


def files(project: Path) -> set[str]:
    home = project / HOME
    return {path.name for inner in ("base", "archive") for path in (home / inner).glob("*")}


@pytest.mark.parametrize("keep_history", [True, False])
@pytest.mark.parametrize("between", [0, 2])
@pytest.mark.parametrize("compactions", [1, 2])
@pytest.mark.parametrize("later", [0, 2])
def test_a_log_from_before_a_compaction_is_not_the_log(
    tmp_path: Path, keep_history: bool, between: int, compactions: int, later: int
) -> None:
    project = tmp_path / "project"
    log = project / HOME / LOG
    with ChronoStore(project) as store:
        write(store, "a", "b", "c")
    old = log.read_bytes()
    with ChronoStore(project) as store:
        for number in range(between):
            write(store, f"between {number}")
        for number in range(compactions):
            write(store, f"before {number}")
            store.compact(keep_history=keep_history)
        retired = labels(project)
        for number in range(later):
            write(store, f"later {number}")
    before = files(project)
    log.write_bytes(old)
    forget_heads(tmp_path)
    assert_missed(project)
    assert files(project) == before
    with quiet(), ChronoStore(project) as store:
        with pytest.raises(LogCorrupted):
            store.upkeep.repair()
        assert store.upkeep.repair(unproven=True)["unproven"]
    assert labels(project) == retired
    assert ChronoStore(project).verify().valid


def test_who_put_the_old_log_back_on_purpose_says_so(tmp_path: Path) -> None:
    """What a later log started from is not removed by whoever goes on."""
    project = tmp_path / "project"
    home = project / HOME
    with ChronoStore(project) as store:
        write(store, "a", "b")
    old = (home / LOG).read_bytes()
    with ChronoStore(project) as store:
        write(store, "c")
        store.compact()
    later = {path.read_bytes() for inner in ("base", "archive") for path in (home / inner).iterdir()}
    (home / LOG).write_bytes(old)
    forget_heads(tmp_path)
    with quiet(), ChronoStore(project) as store:
        store.upkeep.accept_head()
        assert store.verify().valid
        write(store, "d")
        store.compact()
    assert labels(project) == dict.fromkeys("abd", "true")
    assert later <= {path.read_bytes() for path in home.rglob("*") if path.is_file()}


def test_a_compaction_that_was_interrupted_is_no_such_thing(tmp_path: Path) -> None:
    """Base and archive are there then, the log is the old one, and the hint still speaks of it."""
    project = tmp_path / "project"
    home = project / HOME
    with ChronoStore(project) as store:
        write(store, "a", "b", "c")
    old = {name: (home / name).read_bytes() for name in (LOG, "synced")}
    with ChronoStore(project) as store:
        store.compact()
    for name, content in old.items():
        (home / name).write_bytes(content)
    forget_heads(tmp_path)
    assert ChronoStore(project).verify().valid
    assert verify_log.verify_folder(project)["valid"]
    with ChronoStore(project) as store:
        write(store, "d")
        store.compact()
    assert labels(project) == dict.fromkeys("abcd", "true")


@pytest.mark.parametrize("compacted", ["never", "before", "behind"])
@pytest.mark.parametrize("later", [1, 3])
def test_a_log_from_before_a_restore_is_not_the_log(tmp_path: Path, compacted: str, later: int) -> None:
    project = tmp_path / "project"
    with ChronoStore(project) as store:
        write(store, "a", "b", "c")
        if compacted == "before":
            store.compact()
            write(store, "d")
        copy = store.backup()
        write(store, "left")
        if compacted == "behind":
            store.compact()
            write(store, "left too")
        store.upkeep.restore(copy)
        restored = labels(project)
        for number in range(later):
            write(store, f"later {number}")
    (aside,) = (project / HOME / "quarantine").glob("*-before-restore")
    shutil.copy(aside / LOG, project / HOME / LOG)
    forget_heads(tmp_path)
    assert_missed(project)
    with quiet(), ChronoStore(project) as store:
        with pytest.raises(LogCorrupted):
            store.upkeep.repair()
        store.upkeep.restore(copy)
    assert labels(project) == restored


@pytest.mark.parametrize("is_copy_there", [True, False])
@pytest.mark.parametrize("swapped", [0, -1])
def test_what_a_restore_left_does_not_come_back(tmp_path: Path, is_copy_there: bool, swapped: int) -> None:
    """The log that was left holds all that was synced, and more that is not true any more."""
    project = tmp_path / "project"
    home = project / HOME
    logs = []
    with ChronoStore(project) as store:
        write(store, "a", "b")
        copy = store.backup()
        for name in ("left", "left too"):
            write(store, name)
            logs.append((home / LOG).read_bytes())
        store.upkeep.restore(copy)
    (home / LOG).write_bytes(logs[swapped])
    if not is_copy_there:
        shutil.rmtree(copy)
    forget_heads(tmp_path)
    assert_missed(project)
    with quiet(), ChronoStore(project) as store:
        told = store.upkeep.repair()
    assert (told["lost"], told["unproven"]) == ([], [])
    assert labels(project) == {"a": "true", "b": "true"}


def test_a_log_that_only_a_copy_knows_is_not_the_log(tmp_path: Path) -> None:
    """History was dropped, and the base is gone: but the log that was synced began with another event."""
    project = tmp_path / "project"
    with ChronoStore(project) as store:
        write(store, "a", "b")
        store.compact()
        copy = store.backup()
        write(store, "c")
        store.compact(keep_history=False)
        write(store, "d")
        (base,) = (project / HOME / "base").iterdir()
    shutil.copy(copy / LOG, project / HOME / LOG)
    base.unlink()
    forget_heads(tmp_path)
    assert_missed(project)


def test_a_log_of_rubbish_is_refused_with_a_way_out(tmp_path: Path) -> None:
    """No copy holds what was synced last: whoever takes one all the same is told how."""
    project = tmp_path / "project"
    with ChronoStore(project) as store:
        write(store, "a", "b")
        copy = store.backup()
        write(store, "left")
        store.upkeep.restore(copy)
        write(store, "c")
    (project / HOME / LOG).write_bytes(b"rubbish\n")
    with quiet(), ChronoStore(project) as store:
        with pytest.raises(LogCorrupted) as refused:
            store.upkeep.repair()
        assert "unproven=True" in refused.value.recovery
        assert set(store.upkeep.repair(unproven=True)["unproven"]) == {"a", "b"}


@pytest.mark.parametrize("is_compacted", [False, True])
@pytest.mark.parametrize("went_on", [False, True])
@pytest.mark.parametrize("damage", ["gone", "torn", "one byte", "its beginning"])
def test_the_last_line_behind_a_restore_is_known(
    tmp_path: Path, is_compacted: bool, went_on: bool, damage: str
) -> None:
    """The log that was set aside holds that line as well: it is this log's all the same."""
    project = tmp_path / "project"
    log = project / HOME / LOG
    with ChronoStore(project) as store:
        write(store, "a", "b")
        if is_compacted:
            store.compact()
        write(store, "last")
        copy = store.backup()
        if went_on:
            write(store, "left")
        store.upkeep.restore(copy)
    truth = labels(project)
    *lines, last = log.read_bytes().splitlines(keepends=True)
    at = len(last) // 2
    struck = {
        "gone": b"",
        "torn": last[:-20],
        "one byte": last[:at] + bytes([last[at] ^ 1]) + last[at + 1 :],
        "its beginning": bytes(70) + last[70:],
    }
    log.write_bytes(b"".join(lines) + struck[damage])
    forget_heads(tmp_path)
    with quiet(), ChronoStore(project) as store, pytest.raises(LogCorrupted):
        write(store, "new")
    with quiet(), ChronoStore(project) as store:
        assert store.upkeep.repair()["lost"] == []
    assert labels(project) == truth


def test_an_event_that_another_stands_in_the_place_of_is_named(tmp_path: Path) -> None:
    """Nothing is wrong with the lines, but the one that was synced last is not among them."""
    project = tmp_path / "project"
    log = project / HOME / LOG
    with ChronoStore(project) as store:
        write(store, "a", "b")
    before = log.read_bytes()
    with ChronoStore(project) as store:
        write(store, "c")
    synced = (project / HOME / "synced").read_bytes()
    log.write_bytes(before)
    (project / HOME / "synced").unlink()
    forget_heads(tmp_path)
    with ChronoStore(project) as store:
        write(store, "x", "y")
    (project / HOME / "synced").write_bytes(synced)
    forget_heads(tmp_path)
    report = ChronoStore(project).verify()
    assert any("does not hold event 3" in note for note in report.notes)
    with quiet(), ChronoStore(project) as store:
        assert any("event 3 is lost" in said for said in store.upkeep.repair()["lost"])


def assert_sound(project: Path) -> None:
    report = _core.verify_path(str(project / HOME))
    assert report["valid"], report["damage"]
    assert essence(report) == essence(verify_log.verify_folder(project))


def test_the_folder_of_a_restore_that_was_killed_tells_of_no_other_log(tmp_path: Path) -> None:
    """It keeps the log by a second name, which goes on with it: also behind the last sync."""
    project = tmp_path / "project"
    home = project / HOME
    with ChronoStore(project) as store:
        write(store, "a", "b")
    aside = home / "quarantine" / "20260101T000000-before-restore"
    aside.mkdir(parents=True)
    shutil.copy(home / "synced", aside / "synced")
    (aside / LOG).hardlink_to(home / LOG)
    with ChronoStore(project, durability="off") as store:
        write(store, "c")
        store.sync()
        write(store, "d")
        assert (aside / LOG).read_bytes() == (home / LOG).read_bytes()
        assert_sound(project)
    assert_sound(project)


def test_a_compaction_that_was_killed_behind_the_swap_is_done(tmp_path: Path) -> None:
    """The hint speaks of the log that was retired, and a copy was made before anyone wrote another."""
    project = tmp_path / "project"
    home = project / HOME
    with ChronoStore(project) as store:
        write(store, "a", "b")
    hint = (home / "synced").read_bytes()
    with ChronoStore(project) as store:
        store.compact()
        store.backup()
    (home / "synced").write_bytes(hint)
    assert_sound(project)
    with ChronoStore(project) as store:
        write(store, "c")
    assert_sound(project)
    assert labels(project) == dict.fromkeys("abc", "true")


def test_a_restore_to_where_a_log_began_leaves_that_log(tmp_path: Path) -> None:
    """The hint names the very event that the compaction retired last; the log is gone all the same."""
    project = tmp_path / "project"
    with ChronoStore(project) as store:
        write(store, "a", "b")
        copy = store.backup()
        store.compact()
        write(store, "left")
        left = (project / HOME / LOG).read_bytes()
        store.upkeep.restore(copy)
    (project / HOME / LOG).write_bytes(left)
    forget_heads(tmp_path)
    assert_missed(project)
    with quiet(), ChronoStore(project) as store:
        store.upkeep.repair()
    assert labels(project) == dict.fromkeys("ab", "true")


def test_a_moment_before_a_compaction_is_within_reach(tmp_path: Path) -> None:
    """Every archive was replaced by the log that came after it, as it should be."""
    project = tmp_path / "project"
    with ChronoStore(project) as store:
        write(store, "a")
        copy = store.backup()
        write(store, "b")
        store.upkeep.restore(copy)
        write(store, "c")
        moment = store.wal_seq()
        store.compact()
        write(store, "d")
        store.compact()
        assert {record.id for record in store.as_of(moment).query()} == {"a", "c"}


def test_verdicts_on_swapped_logs_agree(tmp_path: Path) -> None:
    """However two logs of one store are mixed, both verifiers say the same."""
    project = tmp_path / "project"
    home = project / HOME
    with ChronoStore(project) as store:
        write(store, "a", "b")
    logs = [(home / LOG).read_bytes()]
    hints = [(home / "synced").read_bytes()]
    with ChronoStore(project) as store:
        copy = store.backup()
        for step in (store.compact, lambda: store.upkeep.restore(copy), store.compact):
            write(store, "c")
            step()
            write(store, "d")
            logs.append((home / LOG).read_bytes())
            hints.append((home / "synced").read_bytes())
    for log in logs:
        for hint in hints:
            (home / LOG).write_bytes(log)
            (home / "synced").write_bytes(hint)
            second = verify_log.verify_folder(project)
            assert essence(_core.verify_path(str(home))) == essence(second)
