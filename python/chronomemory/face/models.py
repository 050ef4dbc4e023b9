"""Asks models with no lock held: a batch that meets an unanswered question is run again with the answer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from chronomemory.face.batch import Connection
from chronomemory.face.handle import Handle

_MOST_ANSWERS = 20_000

T = TypeVar("T")

Question = tuple[str, ...]


class Unanswered(Exception):  # noqa: N818 (nothing went wrong)
    """A batch needs an answer that is not there yet."""

    def __init__(self, answers: Answers) -> None:
        super().__init__("a question was put in a batch; face.models.run asks before it is written")
        #: Who could give it, if someone asked.
        self.answers = answers


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
        self._given: dict[Question, Any] = {}
        self._look = threading.Lock()

    def get(self, question: Question) -> Any:
        return self._given.get(question)

    def keep(self, question: Question, answer: Any) -> None:
        with self._look:
            if len(self._given) >= _MOST_ANSWERS:
                del self._given[next(iter(self._given))]
            self._given[question] = answer


class Answers:
    """What models said in one run of batches, by what they were asked; a question is put once."""

    def __init__(self, kept: KeptAnswers | None = None) -> None:
        self._kept = kept if kept is not None else KeptAnswers()
        #: Those of this run, none of which may be let go before it ends.
        self._given: dict[Question, Any] = {}
        self._may_ask = False

    @contextmanager
    def asking(self) -> Iterator[None]:
        self._may_ask = True
        try:
            yield
        finally:
            self._may_ask = False

    def answer(self, question: Question, ask: Callable[[], T]) -> T:
        """Return what is known, or what ``ask`` returns if now is the time to ask."""
        if question not in self._given:
            known = self._kept.get(question)
            if known is None and not self._may_ask:
                raise Unanswered(self)
            if known is None:
                try:
                    known = ask()
                except Exception as error:
                    raise NoAnswer(error) from error
                self._kept.keep(question, known)
            self._given[question] = known
        answer: T = self._given[question]
        return answer


def rehearse(handle: Handle, work: Callable[[Connection], object], answers: Answers) -> None:
    """Put the questions of a batch, by one that is never written; ``NoAnswer`` if one gets none."""
    with answers.asking():
        handle.rehearse(work)


def run(handle: Handle, work: Callable[[Connection], T], answers: Answers) -> T:
    """Run a batch that asks models, and return what it returned; what a model raises is raised."""
    while True:
        try:
            return handle.run(work)
        except Unanswered as question:
            if question.answers is not answers:  # the loop would never end
                raise
            try:
                rehearse(handle, work, answers)
            except NoAnswer as nothing:
                raise nothing.error from None
