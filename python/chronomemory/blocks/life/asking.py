"""What models say of blocks: an analyser of a content, a judge of two, a counter of tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from chronomemory.errors import InvalidRecord
from chronomemory.face.arguments import contents, count, string, string_list, within
from chronomemory.face.models import Answers, KeptAnswers

#: Looks at a content and may say ``alignment`` (0..1), ``tags`` and a ``summary``.
Analyser = Callable[[str], Mapping[str, Any]]
#: Says how much two contents contradict each other, from 0 to 1.
Judge = Callable[[str, str], float]
#: Says how long a text is for a model.
TokenCounter = Callable[[str], int]


class BlockAnswers(Answers):
    """What an analyser, a judge and a counter said; each may be missing."""

    def __init__(
        self,
        analyser: Analyser | None,
        judge: Judge | None,
        counter: TokenCounter | None,
        kept: KeptAnswers | None = None,
    ) -> None:
        super().__init__(kept)
        self._analyser = analyser
        self._judge = judge
        self._counter = counter

    @property
    def judges(self) -> bool:
        """Whether there is someone to ask about contradictions."""
        return self._judge is not None

    def analysis(self, content: str) -> dict[str, Any]:
        """Return what the analyser says of a content."""
        analyser = self._analyser
        if analyser is None:
            return {}
        return self.answer(("analysis", content), lambda: _said(analyser(content)))

    def contradiction(self, content: str, other: str) -> float:
        """Return how much two contents contradict each other."""
        judge = self._judge
        if judge is None:
            return 0.0
        return self.answer(
            ("judgement", content, other), contents(lambda: within("contradiction", judge(content, other)))
        )

    def tokens(self, content: str) -> int:
        """Return how long a content is for a model."""
        counter = self._counter
        if counter is None:
            return len(content) // 4
        return self.answer(
            ("tokens", content), contents(lambda: count("token_count", counter(content), most=None))
        )


@contents
def _said(analysis: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an analyser said, in the shapes that a block can take."""
    if not isinstance(analysis, Mapping):
        raise InvalidRecord(
            f"analysis must be a mapping, got {type(analysis).__name__}",
            field="analysis",
            recovery="An analyser that has nothing to say returns {}.",
        )
    said: dict[str, Any] = {"tags": set(string_list("tags", analysis.get("tags") or (), empty=False))}
    if analysis.get("summary"):
        said["summary"] = string("summary", str(analysis["summary"]))
    if analysis.get("alignment") is not None:
        said["alignment"] = within("alignment", analysis["alignment"])
    return said
