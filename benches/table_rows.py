"""The rows of the table."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

__all__ = ["Line", "Note", "Times", "ratio"]

Times = list[float]


@dataclass
class Line:
    """One row of the table; speeds are of how many there were in each of the times."""

    question: str
    count: int
    ours: Times
    loop: Times | None = None
    loop_count: int = 0
    sha: Times | None = None
    write: Times | None = None
    bar: float | None = None
    bar_on: str = "loop"

    def cells(self) -> list[str]:
        loop_count = self.loop_count or self.count
        shares = {
            "loop": ratio(self.loop, self.ours, self.count / loop_count),
            "sha": ratio(self.sha, self.ours),
            "write": ratio(self.write, self.ours),
        }
        return [
            self.question,
            _speed(self.count, self.ours),
            _speed(loop_count, self.loop),
            _number(shares["loop"], " ×"),
            _speed(self.count, self.sha),
            _number(shares["sha"]),
            _speed(self.count, self.write),
            _number(shares["write"]),
            *_verdict(shares[self.bar_on], self.bar, at_least=True),
        ]


@dataclass
class Note:
    """A row that is one number."""

    question: str
    said: str
    value: float
    bar: float | None = None

    def cells(self) -> list[str]:
        return [self.question, self.said, *["–"] * 6, *_verdict(self.value, self.bar, at_least=False)]


def ratio(theirs: Times | None, ours: Times, scale: float = 1.0) -> float | None:
    """Compare speeds round by round: what slows the machine down for a while slows both."""
    if theirs is None:
        return None
    return median(their / our * scale for their, our in zip(theirs, ours, strict=True))


def _speed(count: int, times: Times | None) -> str:
    return "–" if times is None else f"{count / median(times) / 1000:,.0f}"


def _number(value: float | None, unit: str = "") -> str:
    return "–" if value is None else f"{value:.3f}{unit}"


def _verdict(value: float | None, bar: float | None, *, at_least: bool) -> tuple[str, str]:
    if value is None or bar is None:
        return "–", "–"
    met = value >= bar if at_least else value <= bar
    return f"{'≥' if at_least else '≤'} {bar}", "yes" if met else "**no**"
