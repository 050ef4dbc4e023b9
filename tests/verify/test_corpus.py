"""The independent verifier gives every log of the corpus the verdict that was written by hand."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from verdicts import CORPUS, FOLDERS, LOGS, MIB, VERIFIER, expected, log_of, verdict_of, verify_log


def line(label: str, prev_hash: str = "") -> tuple[bytes, str]:
    """A line of ours with a label of any length, and its hash."""
    fields = {
        "op": "upsert",
        "prev_hash": prev_hash,
        "record": {"id": "r", "label": label},
        "record_id": "r",
    }
    fields |= {"recursion_depth": 0, "seq": 1, "ts": ""}
    text = json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()
    digest = hashlib.sha256(text).hexdigest()
    return b'{"hash":"' + digest.encode() + b'",' + text[1:] + b"\n", digest


@pytest.mark.parametrize("name", LOGS)
def test_log_gets_its_verdict(name: str) -> None:
    report = verify_log.verify_bytes(*log_of(name))
    assert verdict_of(report) == expected(LOGS[name]), LOGS[name]["note"]


@pytest.mark.parametrize("name", FOLDERS)
def test_folder_gets_its_verdict(name: str) -> None:
    report = verify_log.verify_folder(CORPUS / "folders" / name)
    assert verdict_of(report) == expected(FOLDERS[name]), FOLDERS[name]["note"]
    assert report["base"] == FOLDERS[name]["base"]


def test_every_file_has_a_verdict_and_is_what_the_generator_makes(tmp_path: Path) -> None:
    subprocess.run([sys.executable, CORPUS / "make_corpus.py", tmp_path], check=True)

    def files(root: Path) -> dict[str, bytes]:
        paths = [path for part in ("logs", "folders") for path in (root / part).rglob("*") if path.is_file()]
        paths += [root / "verdicts.json", root / "folder_verdicts.json"]
        return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}

    made, kept = files(tmp_path), files(CORPUS)
    assert made.keys() == kept.keys()
    assert [name for name in made if made[name] != kept[name]] == []
    assert sum(map(len, kept.values())) < 5 * MIB // 2


def test_line_of_16_mib_is_the_longest() -> None:
    room = 16 * MIB - len(line("")[0]) + 1
    longest, head = line("x" * room)
    after, _ = line("after", head)
    assert len(longest) == 16 * MIB + 1
    assert verify_log.verify_bytes(longest + after)["valid"]
    too_long, head = line("x" * (room + 1))
    report = verify_log.verify_bytes(too_long + line("after", head)[0])
    assert verdict_of(report) == {
        "valid": False,
        "damage": [[0, "unreadable"]],
        "tail_offset": None,
        "events": 1,
        "scopes": [],
        "returned": [],
        "damaged_synced": False,
    }


def test_long_lines_that_are_no_lines() -> None:
    honest, _ = line("honest")
    blank = verify_log.verify_bytes(b" " * (16 * MIB) + b"\n" + honest)
    assert (blank["valid"], blank["blank_lines"], blank["events"]) == (True, 1, 1)
    too_long = verify_log.verify_bytes(b" " * (33 * MIB) + b"\n" + honest)
    assert verdict_of(too_long)["damage"] == [[0, "unreadable"]]
    torn = verify_log.verify_bytes(honest + b"x" * (33 * MIB))
    assert (torn["valid"], torn["tail"]["offset"], torn["tail"]["length"]) == (
        True,
        len(honest),
        33 * MIB,
    )
    unreadable = verify_log.verify_bytes(b" " * (33 * MIB) + b"x\n" + honest)
    assert verdict_of(unreadable)["damage"] == [[0, "unreadable"]]


def test_limit_of_digits_does_not_hang_on_the_environment() -> None:
    """An interpreter told to accept fewer digits, or any number, judges alike."""
    for digits in ("640", "0", "4300"):
        for name, code in (("integer_4300_digits", 0), ("integer_4301_digits", 1)):
            command = [sys.executable, VERIFIER, CORPUS / "logs" / f"{name}.wal"]
            environment = {**os.environ, "PYTHONINTMAXSTRDIGITS": digits}
            assert subprocess.run(command, env=environment, capture_output=True).returncode == code


@pytest.mark.parametrize(("what", "code"), [("honest", 0), ("edited", 1), ("nothing_here", 2)])
def test_exit_code_says_the_verdict(what: str, code: int) -> None:
    command = [sys.executable, VERIFIER, CORPUS / "logs" / f"{what}.wal", "--json"]
    done = subprocess.run(command, capture_output=True)
    assert done.returncode == code
    if code < 2:
        assert json.loads(done.stdout)["valid"] == (code == 0)


def test_log_only_leaves_out_what_is_beside_the_log() -> None:
    folder = CORPUS / "folders" / "base_missing"
    assert subprocess.run([sys.executable, VERIFIER, folder], capture_output=True).returncode == 1
    assert (
        subprocess.run([sys.executable, VERIFIER, folder, "--log-only"], capture_output=True).returncode == 0
    )


def test_project_folder_is_found(tmp_path: Path) -> None:
    inner = tmp_path / ".chronomemory"
    inner.mkdir()
    (inner / "events.wal").write_bytes(line("one")[0])
    assert verify_log.verify_folder(tmp_path) == verify_log.verify_folder(inner)
    assert verify_log.verify_folder(tmp_path)["events"] == 1


def test_notes_say_what_no_verdict_shows() -> None:
    def notes(name: str) -> str:
        return " ".join(verify_log.verify_bytes(*log_of(name))["notes"])

    assert notes("honest") == ""
    assert "unknown_fields" in notes("foreign_unknown_fields")
    assert "shorter than the last sync" in notes("synced_beyond_end")
    assert "shorter" not in notes("synced_other_log")
    missing = verify_log.verify_folder(CORPUS / "folders" / "archive_missing")["notes"]
    assert "history unavailable" in " ".join(missing)
