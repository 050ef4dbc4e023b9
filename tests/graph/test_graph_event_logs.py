"""Events are only ever appended, each id once, and a replay leads to the graph."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from chronomemory.graph import (
    DuplicateEventError,
    Edge,
    InMemoryEventLog,
    JsonlMemoryEventLog,
    MemoryEventLog,
    Node,
    PathError,
    Workspace,
)
from chronomemory.graph.log_home import LogHome
from workbench import TS, Bench, Clock, event, furnish


@pytest.fixture(params=["memory", "file", "workspace"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryEventLog]:
    if request.param == "memory":
        yield InMemoryEventLog()
    elif request.param == "file":
        yield JsonlMemoryEventLog(tmp_path / "alone" / "events.jsonl")
    else:
        with Workspace.create(tmp_path / "workspace", clock=Clock()) as workspace:
            yield workspace.events


def test_it_is_an_event_log(log: MemoryEventLog) -> None:
    assert isinstance(log, MemoryEventLog)
    assert log.events() == []
    assert log.event("e") is None


def test_events_stay_in_the_order_of_their_appending(log: MemoryEventLog) -> None:
    for name in ("b", "a", "c"):
        log.append(event(name, "said" if name != "a" else "done", data={"name": name}))
    assert [one.id for one in log.events()] == ["b", "a", "c"]
    assert [one.id for one in log.events("said")] == ["b", "c"]
    assert log.events("never") == []
    assert log.event("a") == event("a", "done", data={"name": "a"})


def test_an_id_is_taken_once(log: MemoryEventLog) -> None:
    log.append(event("e"))
    before = log.events()
    with pytest.raises(DuplicateEventError, match="'e'") as refused:
        log.append(event("e", "other"))
    assert refused.value.event_id == "e"
    with pytest.raises(DuplicateEventError):
        log.append_many([event("f"), event("g"), event("f")])
    assert log.events() == before


def test_an_event_without_an_id_is_given_one(log: MemoryEventLog) -> None:
    log.append(event("said-00000002"))
    given = [log.append(event("")).id for _ in range(2)]
    assert given == ["said-00000003", "said-00000004"] or given == ["said-00000002", "said-00000003"]
    assert len({one.id for one in log.events()}) == 3


def test_a_replay_counts_what_it_skips_and_cannot_read(log: MemoryEventLog) -> None:
    if isinstance(getattr(log, "home", None), LogHome):
        pytest.skip("the events of a workspace come with what they tell of")
    log.append(event("1", "node.saved", data={"nodes": [Node("a", "k").to_dict()]}))
    log.append(event("2", "said"))
    log.append(event("3", "node.saved", data={"nodes": [{"id": "b"}]}))
    log.append(event("4", "path.merged", path_id="nobody", data={}))
    replayed = log.replay()
    assert replayed.nodes == {"a": Node("a", "k")}
    assert (replayed.applied, replayed.skipped, replayed.unreadable) == (1, 1, 2)


def test_a_replay_leads_to_the_live_graph(bench: Bench) -> None:
    furnish(bench)
    bench.graph.save_node(Node("bob", "person", "Robert"))
    bench.runtime.merge("try", "main")
    replayed = bench.events.replay()
    assert list(replayed.nodes.values()) == bench.graph.nodes() or replayed.nodes == {
        node.id: node for node in bench.graph.nodes()
    }
    assert replayed.edges == {edge.id: edge for edge in bench.graph.edges()}
    assert replayed.paths == {path.id: path for path in bench.graph.paths()}
    assert replayed.profiles == {profile.id: profile for profile in bench.graph.profiles()}


def test_a_path_that_has_ended_takes_no_events(bench: Bench) -> None:
    furnish(bench)
    bench.runtime.abandon("try", "it led nowhere")
    with pytest.raises(PathError, match="takes no new events"):
        bench.events.append(event("late", path_id="try"))
    assert bench.events.event("late") is None


class TestAFileAlone:
    def test_earlier_bytes_never_change(self, tmp_path: Path) -> None:
        path = tmp_path / "events.jsonl"
        log, content = JsonlMemoryEventLog(path), b""
        for number in range(5):
            log.append(event(f"e{number}", data={"n": number, "text": "line\u2028end"}))
            grown = path.read_bytes()
            assert grown.startswith(content)
            assert grown.count(b"\n") == number + 1 == len(grown.decode().splitlines())
            content = grown
        with pytest.raises(DuplicateEventError):
            log.append(event("e1"))
        assert path.read_bytes() == content

    @pytest.mark.parametrize(
        ("line", "reason"),
        [
            (b'{"id": "x", "kind"', "not JSON"),
            (b'\xff{"id": "x"}', "not UTF-8"),
            (b"[1, 2]", "no object"),
            (b'{"kind": "said", "ts": "2026-05-18T09:00:00Z"}', "no id"),
            (b'{"id": "x", "kind": "said", "ts": "never"}', "ts"),
            (b'{"id": "x", "id": "y", "kind": "said", "ts": "2026-05-18T09:00:00Z"}', "not JSON"),
        ],
    )
    def test_a_malformed_line_is_told_with_its_number_and_the_others_load(
        self, tmp_path: Path, line: bytes, reason: str
    ) -> None:
        path = tmp_path / "events.jsonl"
        log = JsonlMemoryEventLog(path)
        log.append(event("a"))
        path.write_bytes(path.read_bytes() + line + b"\n")
        log.append(event("b"))
        before = path.read_bytes()
        (finding,) = log.diagnose()
        assert (finding.code, finding.line) == ("malformed-line", 2)
        assert reason in finding.message
        assert [one.id for one in log.events()] == ["a", "b"]
        assert path.read_bytes() == before

    def test_a_line_that_was_cut_is_told_and_stays(self, tmp_path: Path) -> None:
        path = tmp_path / "events.jsonl"
        log = JsonlMemoryEventLog(path)
        log.append_many([event("a"), event("b")])
        path.write_bytes(path.read_bytes()[:-20])
        (finding,) = log.diagnose()
        assert (finding.code, finding.line, finding.message) == (
            "malformed-line",
            2,
            "the last line was not finished",
        )
        cut = path.read_bytes()
        log.append(event("c"))
        assert path.read_bytes().startswith(cut + b"\n")
        assert [one.id for one in log.events()] == ["a", "c"]

    def test_duplicates_and_schemas_are_told(self, tmp_path: Path) -> None:
        path = tmp_path / "events.jsonl"
        log = JsonlMemoryEventLog(path)
        log.append(event("a"))
        line = path.read_bytes()
        path.write_bytes(line + line + line.replace(b"event/1", b"event/9").replace(b'"a"', b'"z"'))
        assert [(one.code, one.line, one.id) for one in log.diagnose()] == [
            ("duplicate-id", 2, "a"),
            ("unknown-schema", 3, "z"),
        ]
        assert [one.id for one in log.events()] == ["a"]

    def test_lines_are_plain_json(self, tmp_path: Path) -> None:
        path = tmp_path / "events.jsonl"
        JsonlMemoryEventLog(path).append(event("a", refs=("n",)))
        assert json.loads(path.read_text(encoding="utf-8")) == {
            "schema": "chronomemory.event/1",
            "id": "a",
            "kind": "said",
            "ts": TS,
            "path_id": None,
            "refs": ["n"],
            "data": {},
        }

    def test_it_follows_no_link(self, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").write_bytes(b"precious")
        path = tmp_path / "events.jsonl"
        path.symlink_to(tmp_path / "elsewhere")
        with pytest.raises(OSError):
            JsonlMemoryEventLog(path).append(event("a"))
        assert (tmp_path / "elsewhere").read_bytes() == b"precious"


def test_two_processes_append_to_one_workspace(tmp_path: Path) -> None:
    with Workspace.create(tmp_path) as one, Workspace.open(tmp_path) as other:
        for number in range(4):
            (one if number % 2 else other).events.append(event(f"e{number}"))
            (one if number % 2 else other).graph.save_edge(Edge(f"g{number}", "a", "b", "k"))
        assert [each.id for each in one.events.events("said")] == ["e0", "e1", "e2", "e3"]
        assert one.graph.export() == other.graph.export()
        assert {each.code for each in one.diagnose()} == {"missing-endpoint"}


def test_an_erasure_keeps_the_order_of_the_other_events(workspace: Workspace) -> None:
    workspace.graph.save(nodes=[Node("ann", "person", "Ann"), Node("tea", "drink")])
    workspace.graph.save_node(Node("ann", "person", "Ann Lee"))
    workspace.store.erase(ids=["node:tea"], reason="asked for")
    assert [one.id for one in workspace.events.events()] == ["node.saved-00000001", "node.saved-00000002"]
    assert workspace.replay() == workspace.snapshot()
