"""Files of others are refused by their size before they are read, with the file and the reason."""

from __future__ import annotations

import base64
import os
import shutil
import stat
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from chronomemory import ChronoStore, InvalidArgument
from chronomemory.blocks import Memory
from chronomemory.blocks.errors import ConfigError
from chronomemory.bridge import EsdbBridge
from chronomemory.cli.transfer import bring_records
from chronomemory.cli.workspace import read_json
from chronomemory.pages import Pages
from chronomemory.pages.compaction import losses
from chronomemory.pages.errors import SettingsError
from chronomemory.pages.text.entries import escape, unescape
from chronomemory.pages.text.links import links_in
from chronomemory.pages.text.page import read_page
from verdicts import CORPUS

GIB = 1 << 30


def sparse(path: Path, begin: bytes, size: int) -> Path:
    """Make a file that takes no room: it begins so, and goes on with zeros."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(begin)
    os.truncate(path, size)
    return path


@pytest.mark.parametrize("way", ["file", "stream", "fields", "import"])
def test_a_line_longer_than_any_record_is_refused_by_its_number(tmp_path: Path, way: str) -> None:
    rows = sparse(tmp_path / "rows.ndjson", b'{"id":"a"}\n{"id":"b","label":"', GIB)
    with ChronoStore(tmp_path) as store, rows.open("rb") as file:
        calls = {
            "file": lambda: store.ingest(rows),
            "stream": lambda: store.ingest(file),
            "fields": lambda: store.ingest(file, fields={"id": "id"}),
            "import": lambda: bring_records(store, rows, None),
        }
        with pytest.raises(InvalidArgument, match=r"line 2.* is longer than 16 MiB"):
            calls[way]()
        assert store.get("b") is None


def test_a_long_line_is_skipped_if_bad_lines_are(tmp_path: Path) -> None:
    rows = tmp_path / "rows.ndjson"
    long = b'{"id":"b"' + b" " * (17 << 20) + b"}\n"
    rows.write_bytes(b'{"id":"a"}\n' + long + b'{"id":"c"}\n')
    with ChronoStore(tmp_path) as store:
        report = store.ingest(rows, on_error="skip")
        assert (report.records, report.skipped, report.errors[0].line) == (2, 1, 2)
        assert store.get("b") is None and store.get("c") is not None


def test_a_page_file_of_a_gibibyte_is_reported_and_the_others_are_synced(tmp_path: Path) -> None:
    with Pages(tmp_path) as pages:
        sparse(tmp_path / "memory" / "topic-huge.md", b"# Huge\n", GIB)
        (tmp_path / "memory" / "topic-tea.md").write_text("# Tea\n")
        report = pages.sync()
    assert report.created == ("topic-tea",)
    (problem,) = report.problems
    assert problem.file == "topic-huge.md" and "at most 8,388,608" in problem.message


def test_settings_that_are_huge_or_nested_are_refused_by_their_file(tmp_path: Path) -> None:
    with Pages(tmp_path) as pages:
        pages.create("topic-tea", "Tea")
    config = tmp_path / ".chronomemory" / "config.toml"
    for text in (b"a = " + b"[" * 10_000, b"[" + b"a." * 50_000 + b"b]\n"):
        config.write_bytes(text)
        with pytest.raises(SettingsError, match=r"config\.toml"):
            Pages(tmp_path)
    nested = tmp_path / "nested.json"
    nested.write_text("[" * 10_000)
    with pytest.raises(ConfigError, match=r"nested\.json"):
        Memory.from_config(nested)
    with pytest.raises(OSError, match="larger than"):
        Memory.from_config(sparse(tmp_path / "huge.json", b"{", GIB))


def test_a_bridge_reports_a_file_that_is_too_large(tmp_path: Path) -> None:
    sparse(tmp_path / ".specsmith" / "requirements.json", b"[", (16 << 20) + 1)
    with pytest.warns(RuntimeWarning, match="larger than 16,777,216 bytes"):
        assert EsdbBridge(tmp_path).requirements() == []


def test_an_envelope_that_is_too_large_is_refused_by_its_limit(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="larger than 67,108,864 bytes"):
        read_json(sparse(tmp_path / "graph.json", b"[", (64 << 20) + 1))


@pytest.mark.parametrize("begin", [b"{", b'{"moments":[\n', b'{"seq":1,"last_hash":"","ts":"","records":[\n'])
def test_a_huge_snapshot_is_not_taken_into_memory(tmp_path: Path, begin: bytes) -> None:
    place = tmp_path / ".chronomemory"
    place.mkdir()
    shutil.copy(CORPUS / "folders" / "foreign" / "events.wal", place)
    sparse(place / "snapshot.json", begin, GIB // 2)
    asked = f"""
import resource
from chronomemory import ChronoStore
resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29))
found = ChronoStore({str(tmp_path)!r}).verify()
print(found.valid, [(one.path, one.kind) for one in found.damage])
"""
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=False)
    assert done.stdout == "False [('snapshot.json', 'base-missing')]\n", done.stderr


@pytest.mark.parametrize(
    "text",
    [
        "~~" + "ab " * 100_000 + "~~",
        "~~" + "~a" * 150_000 + "~~",
        "<del>" + "ab " * 100_000 + "</del>",
        "~~a~~\n<!-- reason: " + "ab " * 100_000 + " -->",
        "[a](b" + "(x)" * 100_000 + ")",
        "1," * 150_000,
        "~" * 300_000,
    ],
    ids=["strike", "tildes", "tag", "reason", "parentheses", "number", "run"],
)
def test_a_long_piece_of_a_page_takes_little_memory(text: str) -> None:
    head = "## [2026-04-20T14:02:11] {id: 20260420-1402-a1b23c} #tea\n"
    tracemalloc.start()
    try:
        page = read_page(f"# Tea\n\n{head}{text}\n")
        assert not losses(page, page).are_too_many
        assert links_in(text) == [] and unescape(escape(text)) == text
        assert tracemalloc.get_traced_memory()[1] < 32 * len(text)
    finally:
        tracemalloc.stop()


def test_a_deeply_nested_cursor_is_refused_as_any_wrong_one(tmp_path: Path) -> None:
    cursor = base64.urlsafe_b64encode(b"[" * 9_999).decode()
    with ChronoStore(tmp_path) as store:
        for ask in (lambda: store.query(limit=1, after=cursor), lambda: store.search("x", after=cursor)):
            with pytest.raises(InvalidArgument, match="after must be the cursor"):
                ask()


def test_standing_files_of_the_graph_are_private(tmp_path: Path) -> None:
    graph = pytest.importorskip("chronomemory.graph")
    log = graph.JsonlMemoryEventLog(tmp_path / "new" / "events.jsonl")
    log.append(graph.MemoryEvent("e", "note", "2026-01-01T00:00:00Z"))
    modes = [
        stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "new", tmp_path / "new" / "events.jsonl")
    ]
    assert modes == [0o700, 0o600]
