"""Makes blocks of a long text: by its paragraphs, the long ones by their sentences."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from chronomemory.face.arguments import count, function, string, string_list
from chronomemory.face.results import Result, counted

__all__ = ["CHUNK_WORDS", "Chunker", "LearnDocumentResult", "chunks"]

#: Takes a text apart, such as into sentences.
Chunker = Callable[[str], Sequence[str]]

#: So many words a block of a document has at most, unless a single sentence is longer.
CHUNK_WORDS = 256

_BETWEEN_PARAGRAPHS = re.compile(r"\n[^\S\n]*\n+")
_BETWEEN_SENTENCES = re.compile(r"(?<=[.!?…])\s+")
_HEADING = re.compile(r"#{1,6}\s+\S.*")


@dataclass(frozen=True, slots=True)
class LearnDocumentResult(Result):
    """How many pieces a document had, what became of them, and which blocks they are, in their order."""

    chunks_total: int = 0
    chunks_created: int = 0
    chunks_duplicate: int = 0
    consolidations: int = 0
    blocks_promoted: int = 0
    block_ids: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """How much was learned."""
        return (
            f"{counted(self.chunks_total, 'piece')} of a document: {self.chunks_created} learned, "
            f"{self.chunks_duplicate} known already, {self.blocks_promoted} active now."
        )


def chunks(text: str, size: int = CHUNK_WORDS, chunker: Chunker | None = None) -> list[str]:
    """Return the pieces of a text, none of more than ``size`` words if its sentences allow it.

    Each paragraph is one piece, under the heading above it if there is one. What a chunker gives is put
    together again, in order, up to the size.

    >>> chunks("# Tea\\n\\nAnna likes tea. She drinks it black.\\n\\nBob does not.")
    ['# Tea\\nAnna likes tea. She drinks it black.', 'Bob does not.']
    """
    string("text", text)
    count("chunk_size", size, 1, None)
    if chunker is not None:
        return list(_together(string_list("chunker", function("chunker", chunker)(text)), size))
    return [piece for paragraph in _paragraphs(text) for piece in _of_paragraph(paragraph, size)]


def _paragraphs(text: str) -> Iterator[str]:
    heading = ""
    for paragraph in _BETWEEN_PARAGRAPHS.split("\n".join(text.splitlines())):
        paragraph = paragraph.strip()
        if _HEADING.fullmatch(paragraph):
            # One heading right below another: both stand above what follows.
            heading += paragraph + "\n"
        elif paragraph:
            yield heading + paragraph
            heading = ""
    if heading:
        yield heading.strip()


def _of_paragraph(paragraph: str, size: int) -> Iterator[str]:
    if _words(paragraph) <= size:
        yield paragraph
    else:
        yield from _together(_BETWEEN_SENTENCES.split(paragraph), size)


def _together(sentences: Sequence[str], size: int) -> Iterator[str]:
    """Put sentences together until one more would be too many words."""
    held: list[str] = []
    words = 0
    for sentence in (sentence.strip() for sentence in sentences):
        more = _words(sentence)
        if held and words + more > size:
            yield " ".join(held)
            held, words = [], 0
        if sentence:
            held.append(sentence)
            words += more
    if held:
        yield " ".join(held)


def _words(text: str) -> int:
    return len(text.split())
