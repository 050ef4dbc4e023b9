"""The commands of blocks do what they say, and draw what is there."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

from chronomemory.blocks import content_hash
from cli_answer import Run

LAW = "Never share the signing key"
FACTS = ("Deploys run from the main branch", "The main branch is protected")


def learn_all(run: Run) -> None:
    run("learn", LAW, "--tag", "self/constitutional")
    for fact in FACTS:
        run("learn", fact, "-t", "work")
    assert run("dream", "--json").document["promoted"]


def test_learning_says_what_became_of_it(run: Run) -> None:
    learned = run("learn", LAW, "--json").document
    assert (learned["block_id"], learned["status"]) == (content_hash(LAW), "created")
    assert "duplicate rejected" in run("learn", f" {LAW}").stdout
    assert run("learn", "  ").code == 2


def test_dreaming_makes_blocks_active(run: Run) -> None:
    run("learn", LAW)
    assert "1 block taken in: 1 active" in run("dream").stdout
    assert run("blocks", "status", "--json").document["active"] == 1
    assert "archived" in run("curate").stdout


def test_recall_changes_nothing_and_explains(run: Run, log: Path) -> None:
    learn_all(run)
    before = log.read_bytes()
    told = run("recall", "main branch", "--json").document
    assert {block["content"] for block in told["blocks"][:2]} == set(FACTS)
    shown = run("recall", "main branch", "--explain").stdout
    assert shown.count("similarity") == shown.count("reinforcement") == 2
    assert "█" in shown
    assert FACTS[1] in run("recall", "main branch", "-k", "1").stdout
    assert log.read_bytes() == before


def test_nothing_is_said_of_an_inbox_that_is_empty(run: Run) -> None:
    told = run("recall", "anything").stdout
    assert "nothing is known yet" in told
    assert "inbox" not in told
    run("learn", FACTS[0])
    assert "1 block waits in the inbox for: chronomemory dream" in run("recall", "anything").stdout
    run("dream")
    assert "inbox" not in run("recall", "--frame", "self", "anything").stdout


def test_an_empty_frame_prints_nothing(run: Run) -> None:
    told = run("frame", "self")
    assert (told.code, told.stdout) == (0, "")
    assert "the frame is empty: nothing is known yet" in told.stderr
    assert run("frame", "self", "--json").document["text"] == ""


def test_recall_of_nothing_says_what_to_do(run: Run) -> None:
    assert "chronomemory dream" in run("recall", "anything").stdout


def test_a_frame_is_text_for_a_prompt(run: Run) -> None:
    learn_all(run)
    assert run("frame", "self").stdout == f"## Who I am\n- {LAW}\n"
    told = run("frame", "attention", "main branch", "--json", "--budget", "8").document
    assert [item["reason"] for item in told["dropped"]] == ["budget", "budget"]
    assert "left out" in run("frame", "attention", "main branch", "--budget", "8").stdout
    assert "confidence" in run("frame", "task", "--explain").stdout


def test_an_unknown_frame_is_a_finding(run: Run) -> None:
    answer = run("frame", "nobody")
    assert answer.code == 1
    assert "attention" in answer.stderr


def test_outcomes_move_confidence(run: Run) -> None:
    learn_all(run)
    told = run("outcome", content_hash(LAW), "nobody", "--signal", "1", "--json").document
    assert told["confidence"][content_hash(LAW)] > 0.6
    assert told["unknown"] == ["nobody"]
    assert run("outcome", content_hash(LAW), "--signal", "2").code == 2


def test_blocks_are_listed(run: Run) -> None:
    learn_all(run)
    assert len(run("blocks", "ls", "--tag-pattern", "self/%", "--json").document["blocks"]) == 1
    assert run("blocks", "ls", "--tag", "self/%", "--json").document["blocks"] == []
    assert content_hash(LAW) in run("blocks", "ls").stdout
    assert "no blocks" in run("blocks", "ls", "--status", "inbox").stdout


def test_an_endpoint_needs_a_model(run: Run) -> None:
    assert run("recall", "x", "--endpoint", "http://127.0.0.1:1").code == 2
    assert run("recall", "x", "--endpoint", "ftp://here", "--model", "m").code == 2


class Outside(HTMLParser):
    """Finds what a page would load from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [f"{tag} {name}" for name, _ in attrs if name in ("src", "href", "action")]


def test_a_graph_of_nothing_says_so(run: Run, tmp_path: Path) -> None:
    told = run("blocks", "graph", "--html", tmp_path / "graph.html")
    assert told.code == 0
    assert "no blocks to draw yet" in told.stdout


def test_the_graph_is_one_page_that_loads_nothing(run: Run, tmp_path: Path) -> None:
    learn_all(run)
    run("learn", "</script><script>alert(1)</script>")
    told = run("blocks", "graph", "--html", tmp_path / "graph.html", "--json").document
    assert (told["blocks"], told["edges"]) == (4, 1)
    page = (tmp_path / "graph.html").read_text(encoding="utf-8")
    reader = Outside()
    reader.feed(page)
    assert reader.found == []
    assert "alert(1)</script>" not in page
    assert page.count("<script") == 2
