"""When is a model asked? Before a batch begins, and once: never while others wait for the batch to end.

An analyser, a judge or a token counter may take seconds. A batch that meets a question nobody has answered
yet is left, its questions are asked with no lock held, and it is run again with the answers at hand. What was
answered once is kept, so a model that fails now and then is not asked all over again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from chronomemory.blocks.checks import check_count, check_list, check_tag, check_text, check_within
from chronomemory.errors import InvalidRecord

__all__ = ["Analyser", "Answers", "Judge", "KeptAnswers", "NoAnswer", "TokenCounter", "Unanswered"]

#: Looks at a content and may say ``alignment`` (0..1), ``tags`` and a ``summary``.
Analyser = Callable[[str], Mapping[str, Any]]
#: Says how much two contents contradict each other, from 0 to 1.
Judge = Callable[[str, str], float]
#: Says how long a text is for a model.
TokenCounter = Callable[[str], int]

#: So many answers are kept.
_MOST_ANSWERS = 20_000

T = TypeVar("T")


class Unanswered(Exception):  # noqa: N818 (nothing went wrong)
    """A batch needs an answer that is not there yet."""


class NoAnswer(Exception):  # noqa: N818 (it carries the error)
    """A question was put, and all that came back is an error."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error
        #: The record that the question was about.
        self.about = ""


class KeptAnswers:
    """What was answered in the life of a memory; of very many the oldest are let go."""

    def __init__(self) -> None:
        self._given: dict[tuple[str, ...], Any] = {}
        self._look = threading.Lock()

    def get(self, question: tuple[str, ...]) -> Any:
        """Return an answer, or None."""
        return self._given.get(question)

    def keep(self, question: tuple[str, ...], answer: Any) -> None:
        """Keep an answer."""
        with self._look:
            if len(self._given) >= _MOST_ANSWERS:
                del self._given[next(iter(self._given))]
            self._given[question] = answer


class Answers:
    """What an analyser, a judge and a counter said, by what they were asked; a question is put once."""

    def __init__(
        self,
        analyser: Analyser | None,
        judge: Judge | None,
        counter: TokenCounter | None,
        kept: KeptAnswers | None = None,
    ) -> None:
        self._analyser = analyser
        self._judge = judge
        self._counter = counter
        self._kept = kept if kept is not None else KeptAnswers()
        #: Those of this walk, none of which may be let go before it ends.
        self._given: dict[tuple[str, ...], Any] = {}
        self._may_ask = False

    @property
    def judges(self) -> bool:
        """Whether there is someone to ask about contradictions."""
        return self._judge is not None

    @contextmanager
    def asking(self) -> Iterator[None]:
        """For the length of a block, put new questions instead of leaving the batch: no lock may be held."""
        self._may_ask = True
        try:
            yield
        finally:
            self._may_ask = False

    def analysis(self, content: str) -> dict[str, Any]:
        """Return what the analyser says of a content."""
        analyser = self._analyser
        return (
            {} if analyser is None else self._answer(("analysis", content), lambda: _said(analyser(content)))
        )

    def contradiction(self, content: str, other: str) -> float:
        """Return how much two contents contradict each other."""
        judge = self._judge
        if judge is None:
            return 0.0
        return self._answer(
            ("judgement", content, other), lambda: check_within("contradiction", judge(content, other))
        )

    def tokens(self, content: str) -> int:
        """Return how long a content is for a model."""
        counter = self._counter
        if counter is None:
            return len(content) // 4
        return self._answer(("tokens", content), lambda: check_count("token_count", counter(content), 0))

    def _answer(self, question: tuple[str, ...], ask: Callable[[], T]) -> T:
        if question not in self._given:
            known = self._kept.get(question)
            if known is None and not self._may_ask:
                raise Unanswered
            self._given[question] = self._asked(question, ask) if known is None else known
        answer: T = self._given[question]
        return answer

    def _asked(self, question: tuple[str, ...], ask: Callable[[], T]) -> T:
        try:
            answer = ask()
        except Exception as error:
            raise NoAnswer(error) from error
        self._kept.keep(question, answer)
        return answer


def _said(analysis: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an analyser said, in the shapes that a block can take."""
    if not isinstance(analysis, Mapping):
        raise InvalidRecord(
            f"analysis: a {type(analysis).__name__} is not a mapping",
            field="analysis",
            recovery="An analyser that has nothing to say returns {}.",
        )
    said: dict[str, Any] = {
        "tags": {check_tag(tag) for tag in check_list("tags", analysis.get("tags") or ())}
    }
    if analysis.get("summary"):
        said["summary"] = check_text("summary", str(analysis["summary"]))
    if analysis.get("alignment") is not None:
        said["alignment"] = check_within("alignment", analysis["alignment"])
    return said
