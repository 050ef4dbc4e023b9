"""The command line says why something is believed, and takes a rollback back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from chronomemory import ChronoStore, DepGraph
from cli_answer import Run

HOSTILE = "</title><script>alert(1)</script><img src=x onerror=alert(2)>&amp;\"'__TREE__\u202egpj.exe\x1b[31m"


@pytest.fixture(autouse=True)
def beliefs(tmp_path: Path) -> None:
    """DEC-2 stands on DEC-1, that on OBS-1, which turns out to be wrong."""
    with ChronoStore(tmp_path) as store:
        for record_id in ("OBS-1", "DEC-1", "DEC-2"):
            store.upsert({"id": record_id, "label": f"about {record_id}", "confidence": 0.8})
        store.update("OBS-1", evidence=["photo 17"])
        graph = DepGraph(store)
        graph.add_edge("DEC-1", "OBS-1", "derived_from")
        graph.add_edge("DEC-2", "DEC-1", "depends_on")
        store.invalidate("OBS-1", "the gauge was broken")


def test_why_draws_the_way_to_the_ground(run: Run) -> None:
    shown = run("why", "DEC-2").stdout
    places = [
        shown.index(words) for words in ("DEC-2", "depends on  DEC-1", "derived from  OBS-1", "photo 17")
    ]
    assert places == sorted(places)
    assert shown.count("“the gauge was broken”") == 3
    assert "event 3" in shown


def test_why_in_json(run: Run) -> None:
    told = run("why", "DEC-2", "--json").document
    assert told["grounds"][0]["grounds"][0]["id"] == "OBS-1"
    assert told["rollbacks"][0]["rollback_id"] == "ROLLBACK-OBS-1"
    assert told["size"] == 4


def test_depth_and_limit_are_told(run: Run) -> None:
    assert "and 1 more reason" in run("why", "DEC-2", "--depth", "1").stdout
    assert run("why", "DEC-2", "--depth", "0").code == 2
    assert run("why", "DEC-2", "--limit", "2", "--json").document["left_out"] == 1


def test_a_circle_is_named(run: Run, tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        DepGraph(store).add_edge("OBS-1", "DEC-2", "assumes")
    shown = run("why", "DEC-2").stdout
    assert "stands on itself: DEC-2" in shown


def test_what_nobody_knows_is_a_finding(run: Run) -> None:
    answer = run("why", "NOBODY")
    assert (answer.code, answer.stdout) == (1, "")
    assert "no record 'NOBODY'" in answer.stderr


def test_the_page_needs_nothing_and_obeys_nobody(run: Run, tmp_path: Path, other: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": f"ID{HOSTILE}", "label": HOSTILE, "evidence": [HOSTILE], "kind": HOSTILE})
        store.invalidate(f"ID{HOSTILE}", HOSTILE)
        told = store.why(f"ID{HOSTILE}")
    page = other / "why.html"
    assert run("why", told.root.record_id, "--html", page).code == 0
    written = page.read_text(encoding="utf-8")
    assert "default-src 'none'" in written
    assert not re.search(r"(?i)<script|<img|https?:|src=x onerror=alert\(2\)>", written)
    assert written.count("</title>") == 1
    assert "\u202e" not in written
    assert "\x1b" not in written
    assert written.count("<main>") == 1
    assert written.count("&lt;script&gt;") >= 4


def test_the_page_replaces_nothing_unasked(run: Run, other: Path) -> None:
    page = other / "why.html"
    page.write_text("mine")
    refused = run("why", "DEC-2", "--html", page)
    assert (refused.code, page.read_text()) == (2, "mine")
    assert "--force" in refused.stderr
    assert "drew 4 places" in run("why", "DEC-2", "--html", page, "--force").stdout
    assert "DEC-1" in page.read_text()


def test_get_and_history_give_the_reason(run: Run) -> None:
    for command in ("get", "history"):
        shown = run(command, "DEC-2").stdout
        assert "ROLLBACK-OBS-1" in shown
        assert "“the gauge was broken”" in shown
    assert "ROLLBACK" not in run("get", "DEC-2", "--as-of", "3").stdout


def test_a_rollback_is_taken_back(run: Run) -> None:
    told = run("reinstate", "ROLLBACK-OBS-1", "--reason", "it was the cable", "--json").document
    assert [change["record_id"] for change in told["restored"]] == ["OBS-1", "DEC-1", "DEC-2"]
    assert run("get", "DEC-2", "--json").document["status"] == "active"
    for command in ("get", "history", "why"):
        assert "“it was the cable”" in " ".join(run(command, "DEC-2").stdout.split())
    again = run("reinstate", "ROLLBACK-OBS-1", "--reason", "x")
    assert again.code == 2
    assert "taken back already" in again.stderr
    assert run("reinstate", "NOTHING", "--reason", "x").code == 1


def test_what_was_left_alone_is_named(run: Run) -> None:
    run("put", "DEC-2", "--label", "other words")
    answer = run("reinstate", "ROLLBACK-OBS-1", "--reason", "x")
    assert answer.code == 0
    assert "2 records put back" in answer.stdout
    assert "DEC-2 was left alone: it changed since" in answer.stderr
    alone = run("reinstate", "ROLLBACK-OBS-1", "--reason", "x")
    assert alone.code == 1
    assert "nothing was written" in alone.stderr


def test_why_of_what_is_somebodys(run: Run, tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.scoped(user="ann").upsert({"id": "ANNS", "label": "likes tea"})
    assert "likes tea" in run("why", "ANNS", "--user", "ann").stdout
    assert run("why", "ANNS", "--user", "bob").code == 1
    assert run("why", "ANNS").code == 1
