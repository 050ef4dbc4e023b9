"""Compaction, backup, restore and repair do what they say, and say what they did."""

from __future__ import annotations

from pathlib import Path

from cli_answer import Run


def test_compact_says_how_short_the_log_became(run: Run, log: Path) -> None:
    for number in range(5):
        run("put", "A", "--confidence", str(number / 10))
    before = log.stat().st_size
    told = run("compact", "--json").document
    assert told.pop("folder_before") > 0 and told.pop("folder_after") > 0
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


def test_prune_says_what_goes_and_what_went(run: Run) -> None:
    for number in range(3):
        run("put", "A", "--confidence", str(number / 10))
        run("compact")
    assert run("prune").code == 2
    assert run("prune", "--older-than-days", "0").code == 2
    asked = ("prune", "--older-than-days", "0", "--reason", "after a day")
    seen = run(*asked, "--dry-run", "--json").document
    assert (seen["seq"], len(seen["archives"]), seen["dry_run"]) == (None, 3, True)
    told = run(*asked, "--json").document
    assert told["archives"] == seen["archives"] and told["folder_after"] < told["folder_before"]
    assert "nothing to prune" in run(*asked).stdout
    assert "after a day" in run("verify").stdout
    run("backup")
    run("backup")
    assert "pruned" in run("prune", "--keep-backups", "1").stdout
    assert run("verify").code == 0
