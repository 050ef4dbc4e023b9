"""Every verb says what it did, in one line and as a dict."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import chronomemory.blocks as face
import pytest
from chronomemory.blocks import Memory
from chronomemory.face.results import Result


def two(memory: Memory) -> list[str]:
    return [memory.remember("Fact 0", ["work"]).block_id, memory.remember("Fact 90").block_id]


VERBS: dict[str, Callable[[Memory], Any]] = {
    "LearnResult": lambda m: m.learn("Fact 0"),
    "LearnDocumentResult": lambda m: m.learn_document("Fact 0"),
    "ConsolidateResult": lambda m: m.consolidate(),
    "CurateResult": lambda m: m.curate(),
    "DreamResult": lambda m: m.dream(),
    "OutcomeResult": lambda m: m.outcome([*two(m), "nobody"], 1.0),
    "ConnectResult": lambda m: m.connect(*two(m), "supports", note="why"),
    "DisconnectResult": lambda m: m.disconnect(*two(m)),
    "ForgetResult": lambda m: m.forget(two(m)[0]),
    "KeepResult": lambda m: m.keep(two(m)),
    "ReembedResult": lambda m: (two(m), m.reembed())[1],
    "ScoredBlock": lambda m: (two(m), m.recall("about 0"))[1][0],
    "FrameResult": lambda m: (two(m), m.frame("attention", "about 0", token_budget=1))[1],
    "Dropped": lambda m: (two(m), m.frame("attention", "about 0", token_budget=1))[1].dropped[0],
    "MemoryItem": lambda m: (two(m), m.list())[1][0],
    "MemoryStatus": lambda m: (two(m), m.status())[1],
}


@pytest.mark.parametrize("name", VERBS)
def test_it_is_a_line_and_a_dict(memory: Memory, name: str) -> None:
    result = VERBS[name](memory)
    assert type(result) is getattr(face, name)
    assert name in face.__all__
    assert result.summary.strip()
    assert "\n" not in result.summary
    assert str(result) == result.summary
    told = result.to_dict()
    assert json.loads(json.dumps(told)) == told
    assert told


def test_none_is_forgotten() -> None:
    of_blocks = [kind for kind in Result.__subclasses__() if kind.__module__.startswith(face.__name__)]
    own = {kind.__name__ for kind in of_blocks} | {"DreamResult"}
    assert own == set(VERBS)


def test_a_dict_has_what_the_result_has(memory: Memory) -> None:
    ids = two(memory)
    told = memory.connect(*ids, "supports", note="why").to_dict()
    low, high = sorted(ids)
    assert told == {
        "source_id": low,
        "target_id": high,
        "weight": 0.65,
        "action": "created",
        "relation": "supports",
        "note": "why",
    }
    frame = memory.frame("attention", "about 0", token_budget=1).to_dict()
    assert frame["dropped"] == [{"block_id": name, "reason": "budget"} for name in ids]
    assert memory.frame("attention", "about 0").to_dict()["blocks"][0]["tags"] == ["work"]
    assert "weights" not in frame


def test_a_dream_can_be_taken_apart(memory: Memory) -> None:
    memory.learn("Fact 0")
    consolidated, curated = told = memory.dream()
    assert (consolidated, curated) == (told.consolidated, told.curated)
    assert bool(told) and not memory.dream()


def test_a_block_is_told_in_one_line(memory: Memory) -> None:
    memory.remember("A long\ntext " + "word " * 40 + "0")
    line = memory.recall("about 0")[0].summary
    assert line.endswith("…")
    assert len(line) < 80
