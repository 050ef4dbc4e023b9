"""The session in the guide is what a server answers over stdio, call by call."""

from __future__ import annotations

import json
import re
from pathlib import Path

from assistants import Talk, process, talk

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "mcp.md"


def transcript() -> list[tuple[str, dict[str, object], str]]:
    """Return the calls of the guide: tool, arguments and the answer that the guide shows."""
    [fence] = re.findall(
        r"^```console\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    calls = []
    for part in re.split(r"^> ", fence, flags=re.MULTILINE)[1:]:
        asked, _, answer = part.partition("\n")
        tool, _, arguments = asked.partition(" ")
        calls.append((tool, json.loads(arguments), answer.strip()))
    return calls


def without_times(text: str) -> str:
    return re.sub(r"next_cursor=\S+", "next_cursor=CURSOR", re.sub(r"\d{4}-\d\d-\d\d", "DAY", text))


def test_the_session_of_the_guide_over_stdio(tmp_path: Path) -> None:
    project = tmp_path / "web"
    project.mkdir()
    calls = transcript()
    assert {tool for tool, _, _ in calls} >= {
        "add_memory",
        "list_memories",
        "search_memories",
        "supersede_memory",
        "retract_memory",
    }

    async def work(talk: Talk) -> None:
        for tool, arguments, answer in calls:
            got = await talk.raw(tool, **arguments)
            assert without_times(got.content[0].text) == without_times(answer), tool

    talk(process(project, "--user", "ann"), work)
