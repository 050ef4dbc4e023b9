"""Every example of the quick start runs, and gives what its comments say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from chronomemory import ChronoRecord, ChronoStore, EsdbBridge

GUIDE = Path(__file__).parents[3] / "shared" / "seeds" / "esdb-quick-start.txt"

#: What a line of code looks like there; every other line is prose.
CODE = re.compile(r"#|from |with |if |store\b|rec\b|print\(|\.\.\.$|\)|\w+ ?=")


def blocks(text: str) -> list[list[str]]:
    """Cut the guide into its code examples: runs of lines that are code."""
    found: list[list[str]] = [[]]
    for line in text.splitlines():
        if CODE.match(line):
            found[-1].append(line)
        elif found[-1]:
            found.append([])
    return [block for block in found if block]


def indented(block: list[str]) -> str:
    """Give a block the indentation back that the text lost.

    The body of a ``with`` goes on to the end of its block, unless it is just ``...``;
    the body of an ``if`` is one line. Inside brackets indentation means nothing.
    """
    lines: list[str] = []
    level = 0
    for line in block:
        lines.append("    " * level + line)
        if lines[-1].lstrip() == "...":
            level = 0
        elif line.startswith(("with ", "if ")) and line.endswith(":"):
            level += 1
        elif len(lines) > 1 and lines[-2].lstrip().startswith("if "):
            level -= 1
    return "\n".join(lines) + "\n"


def write_json(project: Path, requirements: int, testcases: int) -> None:
    folder = project / ".specsmith"
    folder.mkdir()
    for name, prefix, number in (
        ("requirements", "REQ", requirements),
        ("testcases", "TEST", testcases),
    ):
        objects = [{"id": f"{prefix}-{n:03}", "title": f"{prefix} {n}"} for n in range(number)]
        (folder / f"{name}.json").write_text(json.dumps(objects), encoding="utf-8")


@pytest.mark.skipif(not GUIDE.exists(), reason="the guide is not beside this checkout")
@pytest.mark.parametrize("confirmed", [True, False])
def test_the_guide(tmp_path: Path, capsys: pytest.CaptureFixture[str], confirmed: bool) -> None:
    examples = blocks(GUIDE.read_text(encoding="utf-8"))
    assert len(examples) == 11
    write_json(tmp_path, 12, 10)
    namespace: dict[str, object] = {"confirmed": confirmed}
    for example in examples:
        source = indented(example).replace("/path/to/project", tmp_path.as_posix())
        exec(compile(source, GUIDE.name, "exec"), namespace)
        store = namespace.get("store")
        assert isinstance(store, ChronoStore)
        store.close()  # section 8 leaves it open, which would warn
    printed = capsys.readouterr().out.splitlines()
    assert printed[:3] == [
        "Water freezes at 0°C at standard pressure 1.0",
        "tombstone",
        "Chain valid: True",
    ]
    assert re.fullmatch(r"Compacted [1-9]\d* events → snapshot \+ 1-line WAL", printed[3])
    backup = Path(printed[4].removeprefix("Backup at: "))
    assert backup.parent == tmp_path / ".chronomemory" / "backup"
    assert (backup / "events.wal").is_file()
    assert printed[5] == "{'requirements': 12, 'testcases': 10, 'skipped': 0}"
    assert "'backend': 'ChronoStore WAL'" in printed[6]
    assert "'chain_valid': True" in printed[6]
    assert len(printed) == 7

    for name in ("all_records", "facts", "rag_context", "high_conf"):
        records = namespace[name]
        assert isinstance(records, list)
        assert [record.id for record in records] == ["FACT-001"]
    assert namespace["requirements"] == []
    assert len(namespace["reqs"]) == 12  # type: ignore[arg-type]
    assert len(namespace["tests"]) == 10  # type: ignore[arg-type]
    hypothesis = store.get("HYP-001")
    assert hypothesis is not None
    assert hypothesis.confidence == (1.0 if confirmed else 0.0)
    assert hypothesis.is_hypothesis is False
    assert hypothesis.evidence[-1] == "bench-B-seed42: nll_gap=0.031"
    assert store.chain_valid()
    store.close()
    assert (tmp_path / ".chronomemory" / "events.wal").is_file()
    assert (tmp_path / ".chronomemory" / "snapshot.json").is_file()


class TestOurOwnExamples:
    """The same walk without the guide at hand."""

    def test_write_read_and_delete(self, tmp_path: Path) -> None:
        boiling = ChronoRecord(
            id="FACT-7",
            label="Water boils at 100°C at standard pressure",
            confidence=1.0,
            evidence=["measurement 7"],
        )
        with ChronoStore(tmp_path) as store:
            store.upsert(boiling)
        with ChronoStore(tmp_path) as store:
            assert store.query() == store.query(kind="fact") == [boiling]
            assert store.query(rag_filter=True) == store.query(min_confidence=0.9) == [boiling]
            assert store.query(kind="requirement") == []
            store.delete("FACT-7")
            found = store.get("FACT-7")
            assert found is not None
            assert found.status == "tombstone"
            assert store.query() == []
            assert store.chain_valid() is True

    def test_compact_and_back_up(self, tmp_path: Path) -> None:
        with ChronoStore(tmp_path) as store:
            for number in range(5):
                store.upsert(ChronoRecord(id=f"FACT-{number}"))
            assert store.compact() == 5
            backup = store.backup()
        assert backup.parent == tmp_path / ".chronomemory" / "backup"
        assert (tmp_path / ".chronomemory" / "snapshot.json").is_file()
        assert (tmp_path / ".chronomemory" / "events.wal").read_bytes().count(b"\n") == 1

    @pytest.mark.parametrize("confirmed", [True, False])
    def test_a_hypothesis_is_settled_after_the_store_was_closed(
        self, tmp_path: Path, confirmed: bool
    ) -> None:
        store = ChronoStore(tmp_path)
        store.open()
        store.close()
        store.upsert(
            ChronoRecord(
                id="HYP-7",
                kind="hypothesis",
                is_hypothesis=True,
                confidence=0.75,
                source_type="inferred",
                evidence=["REQ-7"],
            )
        )
        record = store.get("HYP-7")
        assert record is not None
        record.is_hypothesis = False
        record.source_type = "observed"
        record.confidence = 1.0 if confirmed else 0.0
        record.evidence.append("experiment 7")
        store.upsert(record)
        assert store.get("HYP-7") == record
        store.close()

    def test_migrate_and_bridge(self, tmp_path: Path) -> None:
        write_json(tmp_path, 12, 10)
        assert len(EsdbBridge(project_dir=tmp_path).requirements()) == 12
        with ChronoStore(tmp_path) as store:
            counts = store.migrate_from_json(tmp_path / ".specsmith")
            assert counts == {"requirements": 12, "testcases": 10, "skipped": 0}
        bridge = EsdbBridge(project_dir=str(tmp_path))
        assert bridge.status().to_dict()["backend"] == "ChronoStore WAL"
        assert len(bridge.requirements()) == 12
        assert len(bridge.testcases()) == 10
