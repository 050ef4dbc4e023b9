"""Everything that leaves a store comes back, and everything else is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from chronomemory import ChronoRecord, ChronoStore, DepGraph
from chronomemory.blocks import Memory, sync
from cli_answer import Run
from sound import sound

#: The faces and the id prefixes that only they may write.
FACES = {
    "blocks": ("block", "bedge", "contradiction", "frame", "session", "config"),
    "episodes": ("episode", "fact", "rule"),
    "graph": ("profile", "node", "gedge", "path", "plan", "event", "audit"),
    "pages": ("page", "entry"),
}


def everything(project: Path) -> list[ChronoRecord]:
    """All records but the settings, which are of one store alone."""
    with ChronoStore(project) as store:
        found = store.query(status=None, faces=True, expired=True)
    return [record for record in found if not record.id.startswith(("config:", "search:"))]


def without_times(exported: bytes) -> list[dict[str, object]]:
    rows = [json.loads(line) for line in exported.splitlines()]
    return [{name: row[name] for name in row if not name.endswith("_at")} for row in rows]


@pytest.fixture
def full(tmp_path: Path) -> None:
    """A store with every field, many kinds, every status, every face and every depth."""
    with ChronoStore(tmp_path, recursion_depth=2) as store:
        store.upsert(
            ChronoRecord(
                id="odd \u2028 \x1b ☃",
                kind="risk",
                status="mine",
                label="a\nb",
                confidence=0.123456789,
                source_type="synthetic",
                evidence=["x", "y"],
                epistemic_boundary=["z"],
                is_hypothesis=True,
                model_assumptions={"k": None},
                data={"big": 2**80, "float": 1e16, "deep": [[{"x": -0.5}]], "": {"id": "block:no"}},
            )
        )
        store.upsert_many([{"id": name, "confidence": 0.8} for name in "ABC"])
        graph = DepGraph(store)
        graph.add_edge("B", "A", "depends_on")
        store.invalidate("A", "wrong", graph)
        store.delete("C")
        for face, prefixes in FACES.items():
            for prefix in prefixes:
                plain = {"id": f"{prefix}:1", "kind": prefix, "data": {"n": len(prefix)}}
                store.engine.upsert(sound(prefix, n=len(prefix)) if face == "blocks" else plain, face)
        store.engine.delete("entry:1", "pages")
    with ChronoStore(tmp_path) as store:
        store.engine.upsert({**sound("block"), "id": "block:2"}, "blocks")
        store.upsert({"id": "OVER", "data": {"expires_at": "2020-01-01T00:00:00Z"}})
        store.upsert({"id": "LAST", "confidence": 1})


@pytest.mark.usefixtures("full")
def test_records_make_the_round_trip_without_loss(run: Run, tmp_path: Path, other: Path) -> None:
    file = tmp_path / "all.ndjson"
    assert run("export", file).code == 0
    told = run("import", file, "--json", project=other).document
    ours, theirs = everything(tmp_path), everything(other)
    assert told["records"] == len(ours) == len(theirs)
    assert {record.id: record for record in ours} == {record.id: record for record in theirs}
    assert {record.recursion_depth for record in theirs} == {0, 2}
    assert {"tombstone", "invalidated", "hypothesis", "mine"} <= {record.status for record in theirs}
    again = run("export", project=other).stdout.encode()
    assert without_times(again) == without_times(file.read_bytes()), "all but the times comes back"
    assert run("verify", project=other).code == 0


@pytest.mark.usefixtures("full")
def test_export_and_import_join_in_a_pipe(run: Run, tmp_path: Path, other: Path) -> None:
    lines = run("export", "--json").stdout.encode()
    answer = run("import", "-", project=other, stdin=lines)
    assert answer.code == 0
    assert len(everything(other)) == len(everything(tmp_path))


@pytest.mark.usefixtures("full")
def test_a_history_makes_the_round_trip_byte_for_byte(
    run: Run, tmp_path: Path, log: Path, other: Path
) -> None:
    file = tmp_path / "log.ndjson"
    run("export", "--history", file)
    assert file.read_bytes() == log.read_bytes()
    told = run("import", "--history", file, "--json", project=other).document
    assert told["events"] == log.read_bytes().count(b"\n")
    assert (other / ".chronomemory" / "events.wal").read_bytes() == log.read_bytes()
    assert everything(other) == everything(tmp_path)
    assert "byte for byte" in run("import", "--history", file, project=tmp_path_beside(other)).stdout


def tmp_path_beside(path: Path) -> Path:
    fresh = path / "fresh"
    fresh.mkdir()
    return fresh


def test_a_history_is_imported_only_into_an_empty_project(run: Run, tmp_path: Path) -> None:
    run("put", "A")
    file = tmp_path / "log.ndjson"
    run("export", "--history", file)
    answer = run("import", "--history", file)
    assert answer.code == 2
    assert "has a log already" in answer.stderr


def test_no_history_is_imported_over_a_log_that_is_missed(run: Run, tmp_path: Path, log: Path) -> None:
    run("put", "A", "--label", "first")
    file = tmp_path / "log.ndjson"
    run("export", "--history", file)
    run("put", "A", "--label", "second")
    run("compact")
    log.unlink()
    before = sorted(path.name for path in log.parent.rglob("*"))
    answer = run("import", "--history", file)
    assert answer.code == 1 and "log-missing" in answer.stderr
    assert not log.exists() and before == sorted(path.name for path in log.parent.rglob("*"))


@pytest.mark.parametrize(
    ("spoil", "code", "word"),
    [
        (lambda text: text.replace(b"original", b"forgery!", 1), 1, "line 1, byte 0: altered"),
        (lambda text: text.split(b"\n", 1)[1], 1, "line 1"),
        (lambda text: text[:-5], 2, "middle of a write"),
        (lambda text: b"", 2, "holds no events"),
        (lambda text: b"hello\n", 1, "line 1"),
    ],
    ids=["altered", "beheaded", "torn", "empty", "garbage"],
)
def test_a_spoiled_history_is_refused(
    run: Run, tmp_path: Path, other: Path, spoil: object, code: int, word: str
) -> None:
    assert callable(spoil)
    for number in range(3):
        run("put", f"R-{number}", "--label", "original")
    file = tmp_path / "log.ndjson"
    run("export", "--history", file)
    file.write_bytes(spoil(file.read_bytes()))
    answer = run("import", "--history", file, project=other)
    assert (answer.code, answer.stdout) == (code, "")
    assert word in answer.stderr
    assert list(other.iterdir()) == []


def test_a_compacted_history_says_what_carries_it(run: Run, tmp_path: Path, other: Path) -> None:
    run("put", "A")
    run("compact")
    run("put", "B")
    file = tmp_path / "log.ndjson"
    assert "backup and restore" in run("export", "--history", file).stderr
    answer = run("import", "--history", file, project=other)
    assert answer.code == 1
    assert "backup and restore" in answer.stderr
    assert run("import", "-", project=other, stdin=run("export").stdout.encode()).code == 0
    assert len(everything(other)) == 2


def test_an_export_replaces_a_file_only_when_told(run: Run, tmp_path: Path) -> None:
    run("put", "A")
    file = tmp_path / "out.ndjson"
    file.write_text("precious")
    assert run("export", file).code == 2
    assert file.read_text() == "precious"
    told = run("export", file, "--force", "--json").document
    assert told == {"path": str(file), "lines": 1, "bytes": file.stat().st_size}
    assert [path.name for path in tmp_path.glob("*.tmp")] == []


def test_an_export_of_a_damaged_log_is_a_finding(run: Run, tmp_path: Path, log: Path) -> None:
    run("put", "A", "--label", "original")
    run("put", "B")
    log.write_bytes(log.read_bytes().replace(b"original", b"forgery!"))
    answer = run("export")
    assert answer.code == 1
    assert [record["id"] for record in answer.listing] == ["B"]
    assert "chain is invalid" in answer.stderr
    assert run("export", "--history").stdout.encode() == log.read_bytes()


def test_an_empty_store_exports_nothing(run: Run, tmp_path: Path) -> None:
    assert run("export").stdout == ""
    assert run("export", "--history").stdout == ""
    assert list(tmp_path.iterdir()) == []


def rows(*records: dict[str, object]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


@pytest.mark.parametrize(
    ("bad", "word"),
    [
        (b"{", "line 3"),
        (rows({"id": "X", "confidence": 2}), "line 3"),
        (rows({"id": "block:9", "confidence": 2}), "line 3"),
        (rows({"id": "block:9", "recursion_depth": "deep"}), "line 3"),
        (rows({"id": "block:9", "colour": 1}), "colour"),
        (b'{"id": "block:9"', "line 3"),
        (rows({"id": ""}), "line 3"),
        (b"[]\n", "line 3"),
        (b'{"id": "X", "label": "\xff"}\n', "line 3"),
    ],
)
def test_import_names_the_bad_line(run: Run, bad: bytes, word: str) -> None:
    answer = run("import", "-", stdin=rows({"id": "A"}, {"id": "page:1"}) + bad)
    assert answer.code == 2
    assert word in answer.stderr
    assert "error: " in answer.stderr


def test_import_is_last_write_wins(run: Run) -> None:
    run("put", "A", "--label", "old", "--confidence", "0.1")
    run(
        "import",
        "-",
        stdin=rows({"id": "A", "label": "new"}, sound("block"), {**sound("block"), "label": "b"}),
    )
    assert run("get", "A", "--json").document["label"] == "new"
    assert run("get", "block:1", "--json").document["label"] == "b"


def test_ingest_loads_files_and_pipes(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_bytes(rows({"id": "A"}, {"id": "B", "recursion_depth": 4}))
    told = run("ingest", tmp_path / "a.ndjson", "-", "--json", stdin=rows({"id": "C"})).document
    assert told["records"] == 3
    assert told["files"] == [str(tmp_path / "a.ndjson"), "-"]
    assert run("get", "B", "--json").document["recursion_depth"] == 4
    assert "loaded 2 records" in run("ingest", tmp_path / "a.ndjson").stdout
    assert "loaded 0 records" in run("ingest", "-", stdin=b"").stdout


def test_ingest_names_the_bad_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_bytes(rows({"id": "A"}, {"id": "B", "confidence": -1}))
    answer = run("ingest", tmp_path / "a.ndjson")
    assert answer.code == 2
    assert 'a.ndjson line 2 (id "B"), confidence must be from 0 to 1, got -1' in answer.stderr
    assert run("ingest", tmp_path / "missing").code == 2
    assert run("ingest", tmp_path).code == 2


def test_migrate_brings_json_files_in(run: Run, tmp_path: Path) -> None:
    assert run("migrate").code == 2
    folder = tmp_path / ".specsmith"
    folder.mkdir()
    (folder / "requirements.json").write_text('[{"id": "R-1", "title": "x"}, {"title": "no id"}]')
    (folder / "testcases.json").write_text("{")
    answer = run("migrate")
    assert answer.code == 0
    assert "1 requirement and 0 test cases came in, 0 skipped" in answer.stdout
    assert answer.stderr.count("warning: ") == 2
    assert run("migrate", folder, "--json").document == {"requirements": 0, "testcases": 0, "skipped": 1}


def attached(project: Path) -> None:
    with ChronoStore(project) as store:
        store.upsert_many([{"id": "A", "label": "a"}, {"id": "B", "label": "b"}])
        store.vectors.attach_many(["A", "B"], [[1.0, 0.0], [0.0, 1.0]], model="m")
        store.upkeep.set_search_fields(tags=["data.topics"])


def test_embeddings_are_left_out_and_nothing_is_damaged(run: Run, tmp_path: Path, other: Path) -> None:
    attached(tmp_path)
    file = tmp_path / "all.ndjson"
    answer = run("export", file)
    assert answer.code == 0
    assert "2 embeddings left out" in answer.stderr and "backup" in answer.stderr
    ids = {json.loads(line)["id"] for line in file.read_text(encoding="utf-8").splitlines()}
    assert ids == {"A", "B"}
    assert run("import", file, project=other).code == 0
    assert run("verify", project=other).code == 0
    assert run("spaces", "--json", project=other).document == {"spaces": []}
    assert "left out" not in run("export", project=other).stderr


def test_an_import_tells_of_blocks_without_embedding(run: Run, tmp_path: Path, other: Path) -> None:
    file = tmp_path / "all.ndjson"
    with Memory(tmp_path) as memory:
        memory.remember("The deploy key lives in the vault")
        memory.remember("Cats sleep all day")
        memory.learn("This waits in the inbox")
    run("export", file)
    told = run("import", file, "--json", project=other)
    assert told.document["blocks_without_embedding"] == 2
    answer = run("import", file, project=other)
    assert answer.code == 0 and "2 active blocks without embedding" in answer.stderr
    with Memory(other) as memory, memory.blocks.begin() as conn:
        for block in sync.get_active_blocks(conn):
            vector = memory.embedder.embed(block["content"])
            sync.update_block_scoring(conn, block["id"], embedding=vector)
    answer = run("import", file, project=other)
    assert answer.code == 0 and answer.stderr == ""


def test_what_names_embeddings_of_another_store_is_passed_over(run: Run, tmp_path: Path, other: Path) -> None:
    attached(tmp_path)
    attached(other)
    with ChronoStore(tmp_path) as store:
        store.vectors.attach("A", [1.0, 1.0])
        lines = [json.dumps(record.to_dict()) for record in store.query(status=None, faces=True)]
    file = tmp_path / "old.ndjson"
    file.write_text("\n".join(lines), encoding="utf-8")
    assert any('"vector:' in line for line in lines)
    assert run("import", file, "--json", project=other).document["records"] == 3
    assert run("verify", project=other).code == 0
    with ChronoStore(other) as store:
        assert store.vectors.get("A") is not None and store.vectors.nearest([1.0, 0.0])[0].score == 1.0


def test_a_history_that_names_embeddings_is_refused_with_the_reason(
    run: Run, tmp_path: Path, other: Path
) -> None:
    attached(tmp_path)
    file = tmp_path / "log.ndjson"
    told = run("export", "--history", file)
    assert told.code == 0 and "2 embeddings" in told.stderr
    answer = run("import", "--history", file, project=other)
    assert answer.code == 2
    assert "rows lie in files beside the log" in answer.stderr and "backup" in answer.stderr
    assert run("status", "--json", project=other).code == 0
    assert not (other / ".chronomemory" / "events.wal").exists()
