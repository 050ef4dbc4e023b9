"""The benchmarks run with our store alone, and the report states what is lost as well as what is won."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benches import harness, parts
from benches.__main__ import main
from benches.report import merged, page


def sections(text: str) -> dict[str, str]:
    return {part.partition("\n")[0]: part.partition("\n")[2] for part in text.split("\n## ")}


def rows(section: str) -> dict[str, list[str]]:
    """The cells of the first table, by the first cell."""
    lines = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return {cells[0]: cells[1:] for cells in reversed(lines)}


def results(**systems: float) -> dict[str, Any]:
    """Results of two tasks in which each system takes so many seconds for 1,000 operations."""

    def result(task: str, system: str, seconds: float) -> dict[str, Any]:
        sample = {"wall": seconds, "cpu": seconds, "count": 1_000, "notes": {}}
        kept = {"part": "write", "task": task, "size": 0, "system": system, "unit": "/s"}
        return {**kept, "rounds": [sample] * 3}

    tasks = ("upsert, normal, 1 thread", "upsert, durable, 1 thread")
    document = {
        "machine": {
            "cpu": "a processor",
            "cores": 2,
            "sha_instructions": False,
            "memory_gb": 8,
            "system": "Linux",
            "python": "3.11",
            "commit": "0123abcd",
            "build": "release",
            "load": 0.1,
            "when": "2026-01-01 00:00 UTC",
            "versions": {"lmdb": "1.0"},
        },
        "profile": {"name": "quick"},
        "skipped": {"tantivy": "not installed"},
        "faults": [],
        "results": [result(task, name, seconds) for task in tasks for name, seconds in systems.items()],
    }
    return merged([document])


def test_our_store_alone_is_measured_and_reported(tmp_path: Path) -> None:
    measured_file, written = tmp_path / "results.json", tmp_path / "benchmarks.md"
    options = [
        "--profile",
        "tiny",
        "--alone",
        "--rounds",
        "1",
        "--only",
        "search",
        "--folder",
        str(tmp_path),
    ]
    assert main(["run", *options, "--results", str(measured_file), "--page", str(written)]) == 0
    measured = json.loads(measured_file.read_text())
    assert measured["faults"] == []
    families = {one["system"].partition("/")[0] for one in measured["results"]}
    assert families == {"ours"}
    for one in measured["results"]:
        assert [set(sample) >= {"wall", "cpu", "count", "notes"} for sample in one["rounds"]] == [True]
    found = sections(written.read_text())
    assert {"Method", "Bars", "Search by words"} <= set(found)
    assert "Writing" not in found
    bars = rows(found["Bars"])
    assert bars["first search"][2] == "– (the bar is about 1,000,000)"
    assert bars["compact"] == ["≤ 6.4 s", "not measured", "–"]
    # The page is made of the file alone, and the same each time.
    before = written.read_text()
    written.unlink()
    assert main(["report", str(measured_file), "--page", str(written)]) == 0
    assert written.read_text() == before


def test_report_lists_what_is_slower_than_the_fastest_peer() -> None:
    found = sections(page(results(ours=2.0, rocksdict=1.0, lmdb=4.0, limit=0.5), []))
    lost = rows(found["Slower than the fastest peer"])["upsert, normal, 1 thread"]
    assert lost == ["", "500/s", "rocksdict 1,000/s", "0.50 ×"]
    assert "upsert, normal, 1 thread" not in rows(found["Faster than the fastest peer"])
    assert rows(found["Writing"])["upsert, normal, 1 thread"][-2:] == ["0.50 ×", "0.25 ×"]


def test_a_later_run_replaces_what_an_earlier_one_measured() -> None:
    text = page(merged([results(ours=2.0, rocksdict=1.0), results(ours=0.5, rocksdict=1.0)]), [])
    assert text.count("**Run**") == 2
    assert rows(sections(text)["Faster than the fastest peer"])["upsert, normal, 1 thread"][-1] == "2.00 ×"


@pytest.mark.parametrize(("peer", "met"), [(1.7, "yes"), (1.5, "**no**")])
def test_bar_is_met_from_its_value_on(peer: float, met: str) -> None:
    bars = rows(sections(page(results(ours=2.0, rocksdict=peer), []))["Bars"])
    bar = bars["single upserts, `normal`, to rocksdict (without SHA instructions)"]
    assert bar == ["≥ 0.8 ×", f"{peer / 2:.2f} ×", met]


def test_report_names_machine_versions_and_what_was_left_out() -> None:
    text = page(results(ours=1.0), [])
    for fact in ("2 cores of a processor", "without SHA instructions", "commit 0123abcd", "lmdb 1.0"):
        assert fact in text
    assert "**tantivy**: not installed" in text


@pytest.mark.parametrize(("answer", "faults"), [(10, 0), (9, 1)])
def test_different_answers_of_two_systems_are_a_fault(tmp_path: Path, answer: int, faults: int) -> None:
    parts.load()
    run = harness.Run(harness.PROFILES["tiny"], tmp_path)
    sample = {"wall": 1.0, "cpu": 1.0, "count": 1, "notes": {}}
    samples = {name: [{**sample, "answer": its}] for name, its in (("ours", 10), ("sqlite", answer))}
    run.keep(harness.TASKS["query of 1 % by kind"], 1_000, samples)
    assert len(run.faults) == faults
    assert [one["system"] for one in run.results] == ["ours", "sqlite"]


def test_unknown_part_is_refused() -> None:
    with pytest.raises(SystemExit, match="unknown parts nothing"):
        main(["run", "--only", "nothing"])
