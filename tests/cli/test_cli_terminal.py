"""Nothing that a record says steers a terminal, or hides there, and an interrupt stays quiet."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
import unicodedata
from pathlib import Path

import pytest
from chronomemory import ChronoStore
from chronomemory.cli.output import clean, escaped
from cli_answer import Run

#: Format characters that have a sign of their own, which everybody sees.
SEEN = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
HIDDEN = [
    code
    for code in range(sys.maxunicode + 1)
    if unicodedata.category(chr(code)) in ("Cc", "Cf", "Zl", "Zp") and code not in {*SEEN, 0x200C, 0x200D}
] + [
    *range(0xFE00, 0xFE10),
    *range(0xE0100, 0xE01F0),
    *range(0x180B, 0x1810),
    *range(0x13430, 0x13440),
    0x2800,
    0xE0000,
    0xE0002,
    0xE001F,
    0x34F,
    0x115F,
    0x1160,
    0x17B4,
    0x17B5,
    0x3164,
    0xFFA0,
    0x2065,
]
FEW = "\x85\x9b\x7f\xad\u061c\u180e\u200b\u200f\u2028\u202e\u2060\u2066\u206f\ufeff\ufff9\U000e0001\U000e0041"


def test_all_that_is_hidden_is_made_visible() -> None:
    raw = {code for code in HIDDEN if chr(code) in clean(f"a{chr(code)}b")}
    assert not raw
    assert clean("\ud800") == "\ufffd"
    assert clean("a\tb", keep="\t") == "a\tb"


def test_what_people_write_stays() -> None:
    for text in ("Käse ☃", "日本語", "ไทย", "עברית", "❤️ ☺︎ 🏳️ 1️⃣ ©️", "naïve", "a\u0301", "\u0600"):
        assert clean(text) == text


def test_json_means_the_same() -> None:
    for code in HIDDEN:
        text = f"a{chr(code)}b"
        spelling = json.dumps(text, ensure_ascii=False).encode()
        told = escaped(spelling)
        assert json.loads(told) == text
        assert code < 0x20 or chr(code) not in told.decode()
    assert escaped("Käse\n☃".encode()) == "Käse\n☃".encode()


def test_a_look_is_kept_once_and_only_after_an_emoji() -> None:
    assert clean("❤\ufe0f\ufe0f") == "❤\ufe0f\ufffd"
    assert clean("a\ufe0f1\ufe0f") == "a\ufffd1\ufffd"


@pytest.mark.parametrize(
    "words",
    [
        ("\x1b]0;owned\x07",),
        ("query", "--limit", "\x1b[31mx\u202e"),
        ("query", "--no\x1b[31mx"),
        ("get", "a", "b\x1b[2J"),
        ("blocks", "x\x1b[2J"),
        ("ingest", "/nowhere/\x1b[2J"),
    ],
    ids=str,
)
def test_no_wrong_argument_is_echoed_raw(run: Run, words: tuple[str, ...]) -> None:
    answer = run(*words)
    assert answer.code == 2
    assert not {letter for letter in "\x07\u202e" if letter in answer.stderr}
    assert "\x1b]" not in answer.stderr
    assert "\x1b[2J" not in answer.stderr
    assert "\x1b[31mx" not in answer.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("get", f"id{FEW}", "--json"),
        ("query", "--json"),
        ("history", f"id{FEW}", "--json"),
        ("replay", "--json"),
        ("search", "cold", "--json"),
        ("put", f"id{FEW}", "--json"),
        ("get", f"no{FEW}", "--json"),
        ("query",),
        ("get", f"id{FEW}"),
        ("history", f"id{FEW}"),
        ("get", f"no{FEW}"),
        ("rollback", f"id{FEW}", "--reason", FEW),
    ],
    ids=str,
)
def test_no_command_prints_it_raw(run: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": f"id{FEW}", "label": f"cold {FEW}", "kind": FEW, "data": {FEW: FEW}})
    answer = run(*words)
    printed = answer.stdout + answer.stderr
    assert not {f"U+{ord(letter):04X}" for letter in FEW if letter in printed}
    if "--json" in words and answer.code == 0:
        assert any(FEW in str(told) or FEW in json.dumps(told, ensure_ascii=False) for told in answer.listing)


def test_an_export_is_byte_for_byte_unless_somebody_looks(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "A", "label": FEW})
    command = [sys.executable, "-m", "chronomemory", "export"]
    piped = subprocess.run(command, capture_output=True, cwd=tmp_path, check=True).stdout
    assert FEW in piped.decode()
    master, slave = pty.openpty()
    process = subprocess.Popen(command, stdout=slave, stderr=subprocess.DEVNULL, cwd=tmp_path)
    os.close(slave)
    seen = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:
            break
        if not part:
            break
        seen += part
    os.close(master)
    assert process.wait() == 0
    assert not {letter for letter in FEW if letter in seen.decode()}
    assert json.loads(seen)["label"] == FEW


def _on_a_terminal(*words: str | Path, cwd: Path) -> str:
    """Run a command whose stderr is a terminal; return what appeared there."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "chronomemory", *map(str, words)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=slave,
        cwd=cwd,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(slave)
    seen = b""
    while True:
        try:
            seen += os.read(master, 65_536)
        except OSError:  # the other end is closed
            break
    os.close(master)
    assert process.wait() == 0
    return seen.decode()


@pytest.mark.parametrize(
    ("words", "title"),
    [
        (("export",), "exporting"),
        (("export", "all.ndjson"), "exporting"),
        (("backup",), "copying"),
        (("backup", "--to", "elsewhere"), "copying"),
    ],
)
def test_long_work_shows_its_progress_on_a_terminal(
    tmp_path: Path, words: tuple[str, ...], title: str
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    with ChronoStore(project) as store:
        store.upsert_many({"id": f"R-{n}", "label": "tea " * 20} for n in range(3_000))
    seen = _on_a_terminal(*words, "-p", "project", cwd=tmp_path)
    assert title in seen
    assert re.search(r"\b[1-9]\d* %", seen), "the bar moved"


def _interruptible() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_an_interrupted_load_says_what_was_kept(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _INTERRUPTED_LOAD, "ingest", "rows.ndjson"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        preexec_fn=_interruptible,
    )
    out, err = process.communicate()
    assert process.returncode == 130, err.decode()
    assert out == b""
    assert b"interrupted: events 1 to 4 are kept" in err
    assert b"try: Run the same command again" in err
    assert b"Traceback" not in err
    with ChronoStore(tmp_path) as store:
        assert sorted(store) == ["R-0", "R-1", "R-2"]


def test_an_interrupt_ends_a_load_at_the_next_batch(tmp_path: Path) -> None:
    rows, log = 100_000, tmp_path / ".chronomemory" / "events.wal"
    text = "green tea " * 10
    (tmp_path / "rows.ndjson").write_text(
        "".join(f'{{"id": "R-{n}", "label": "{text}"}}\n' for n in range(rows))
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "chronomemory", "ingest", "rows.ndjson"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        preexec_fn=_interruptible,
    )
    while process.poll() is None and (not log.exists() or log.stat().st_size < 1 << 20):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130, err.decode()
    assert out == b"" and b"Traceback" not in err
    assert re.search(rb"interrupted: events 1 to [\d,]+ are kept\n.*Run the same command again", err)
    with ChronoStore(tmp_path) as store:
        assert 0 < store.record_count() < rows
        assert store.verify().valid


#: The interrupt comes when the file is in.
_INTERRUPTED_LOAD = """
import os, signal, sys
from pathlib import Path
from chronomemory import ingestion
from chronomemory.cli import main

Path("rows.ndjson").write_text("".join(f'{{"id": "R-{n}"}}\\n' for n in range(3)))
take = ingestion._Load._take

def take_and_interrupt(self, told, name):
    take(self, told, name)
    os.kill(os.getpid(), signal.SIGINT)

ingestion._Load._take = take_and_interrupt
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv[0] = "chronomemory"
main()
"""
