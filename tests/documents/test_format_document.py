"""The worked examples of docs/format.md are true."""

from __future__ import annotations

import hashlib
import json
import re

from chronomemory.pages.text.entries import EntryText, read_entry, spell_entry
from verdicts import ROOT, verify_log

PAGE = (ROOT / "docs" / "format.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    """The only fenced block in this language."""
    (text,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(text)


def test_lines_are_valid_and_as_long_as_it_says() -> None:
    log = block("ndjson").encode()
    report = verify_log.verify_bytes(log)
    assert report["valid"]
    assert report["events"] == 2
    assert [len(line) + 1 for line in log.split(b"\n")[:-1]] == [286, 293]


def test_hash_is_that_of_the_payload() -> None:
    payload = block("json").removesuffix("\n").encode()
    line = block("ndjson").encode().split(b"\n")[0]
    assert f"SHA-256 of these {len(payload)} bytes" in PAGE
    assert hashlib.sha256(payload).hexdigest() == json.loads(line)["hash"]
    assert line == b'{"hash":"' + line[9:73] + b'",' + payload[1:]


def test_synced_fits_the_lines() -> None:
    log, synced = block("ndjson").encode(), bytes.fromhex(block("hex"))
    assert len(synced) == 120
    report = verify_log.verify_bytes(log + b"garbage\n", synced)
    assert report["valid"]
    assert report["tail"]["offset"] == len(log)


def test_floats_are_spelled_as_it_says() -> None:
    assert verify_log.canonical(2.0**89) == b"6.189700196426902e+26"
    assert float("6.189700196426901e+26") != 2.0**89
    assert verify_log.canonical(562949953421312.25) == b"562949953421312.2"
    assert float("562949953421312.3") == 562949953421312.25
    for text in ("1.0", "0.0001", "9999999999999998.0", "1e-05", "1e+16", "1.5e+300", "5e-324"):
        assert f"`{text}`" in PAGE
        assert verify_log.canonical(float(text)) == text.encode()


def test_entries_of_pages_are_spelled_as_it_says() -> None:
    """Bytes are API: an entry that was spelled once is spelled so for ever."""
    examples = [json.loads(line) for line in block("jsonl").splitlines()]
    assert len(examples) == 8
    for told in examples:
        entry = EntryText(
            entry_id=told["id"],
            timestamp=told["timestamp"],
            tags=tuple(told["tags"]),
            content=told["content"],
            superseded="superseded_by" in told,
            superseded_by=told.get("superseded_by"),
            reason=told.get("reason"),
        )
        assert spell_entry(entry, told["eol"]) == told["spelled"]
        assert read_entry(told["spelled"], told["eol"]) == entry
