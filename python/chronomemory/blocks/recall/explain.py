"""Why a block is where it is: the five parts of its score, drawn so that they can be seen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from chronomemory.blocks.types import ScoredBlock, ScoringWeights

__all__ = ["COMPONENTS", "bar", "explained", "shares"]

COMPONENTS = ("similarity", "confidence", "recency", "centrality", "reinforcement")

_EIGHTHS = " ▏▎▍▌▋▊▉"
_BAR_COLUMNS = 24
_CONTENT_LETTERS = 60


def shares(block: ScoredBlock, weights: ScoringWeights) -> Iterator[tuple[str, float, float, float]]:
    """Yield each component with its value, its weight and what it adds to the score."""
    for name, value, weight in zip(COMPONENTS, block.components, weights.as_tuple(), strict=True):
        yield name, value, weight, value * weight


def bar(value: float, columns: int = _BAR_COLUMNS) -> str:
    """Return a bar for a value from 0 to 1, exact to an eighth of a column.

    >>> bar(0.5, 4), bar(0.0, 4), bar(1.0, 4)
    ('██', '', '████')
    """
    eighths = round(max(0.0, min(1.0, value)) * columns * 8)
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")


def explained(blocks: Iterable[ScoredBlock], weights: ScoringWeights) -> str:
    """Return a drawing: for each block its score and the five parts, as long as what they add."""
    lines: list[str] = []
    for place, block in enumerate(blocks, 1):
        marks = [
            word
            for word, is_so in (("guaranteed", block.guaranteed), ("by link", block.was_expanded))
            if is_so
        ]
        content = " ".join(block.content.split())
        if len(content) > _CONTENT_LETTERS:
            content = content[: _CONTENT_LETTERS - 1] + "…"
        remark = f"  ({', '.join(marks)})" if marks else ""
        lines.append(f"{place}. {block.score:.3f}  {content}{remark}")
        for name, value, weight, added in shares(block, weights):
            lines.append(f"   {name:<13} {value:>6.3f} × {weight:.2f} = {added:>6.3f}  {bar(added)}".rstrip())
    return "\n".join(lines)
