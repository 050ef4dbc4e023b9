"""Do compaction, backup, restore and repair do what they say, and say what they did?"""

from __future__ import annotations

from pathlib import Path

from cli_answer import Run


def test_compact_says_how_short_the_log_became(run: Run, log: Path) -> None:
    for number in range(5):
        run("put", "A", "--confidence", str(number / 10))
    before = log.stat().st_size
    told = run("compact", "--json").document
    assert told == {
        "events": 5,
        "bytes_before": before,
        "bytes_after": log.stat().st_size,
        "history_kept": True,
    }
    assert log.read_bytes().count(b"\n") == 1
    assert "nothing to compact" in run("compact").stdout
    run("put", "B")
    assert "kept in the archive" in run("compact").stdout
    assert run("verify").code == 0


def test_compact_can_drop_history(run: Run) -> None:
    run("put", "A")
    run("put", "A")
    assert "dropped" in run("compact", "--drop-history").stdout
    assert run("compact", "--json", "--drop-history").document["history_kept"] is False


def test_backup_and_restore(run: Run, tmp_path: Path) -> None:
    run("put", "A", "--label", "one")
    folder = run("backup", "--json").document["path"]
    assert Path(folder).is_dir()
    run("put", "A", "--label", "two")
    told = run("restore", folder, "--json").document
    assert told == {"path": folder, "seq": 1, "records": 1}
    assert run("get", "A", "--json").document["label"] == "one"
    assert "restored: 1 active record as of event 1" in run("restore", folder).stdout
    assert "chronomemory restore" in run("backup").stdout


def test_restore_from_nothing(run: Run, tmp_path: Path) -> None:
    run("put", "A")
    assert run("restore", tmp_path / "nowhere").code == 2
    (tmp_path / "empty").mkdir()
    answer = run("restore", tmp_path / "empty")
    assert answer.code == 1
    assert "error: " in answer.stderr
    assert run("get", "A").code == 0


def test_a_damaged_log_is_repaired_and_nothing_is_hidden(run: Run, log: Path, tmp_path: Path) -> None:
    for number in range(3):
        run("put", f"R-{number}", "--label", "original")
    assert "nothing is damaged" in run("repair").stdout
    assert run("repair", "--json").document["damage"] == []
    log.write_bytes(log.read_bytes().replace(b"original", b"forgery!", 1))
    refused = run("compact")
    assert refused.code == 1
    assert refused.stderr.splitlines()[-2].startswith("error: ")
    assert refused.stderr.splitlines()[-1].startswith("  try: ")
    shown = run("repair")
    assert shown.code == 0
    assert "altered" in shown.stdout
    kept = next(word for word in shown.stdout.split() if word.startswith("quarantine/"))
    assert (tmp_path / ".chronomemory" / kept).exists()
    assert run("verify").code == 0
    assert len(run("query", "--json").listing) == 2
