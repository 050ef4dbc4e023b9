"""The guide for agents: one card for each verb, from ``guide.txt``, to be put into a prompt."""

from __future__ import annotations

from importlib import resources

from chronomemory.face.arguments import string_or_none

_WHAT = "  What:      "


def _cards() -> dict[str, str]:
    """Return the card of each verb by its name; the first line of a card is the name with parentheses."""
    text = resources.files("chronomemory.blocks").joinpath("guide.txt").read_text(encoding="utf-8")
    return {card.partition("()")[0]: card for card in text.strip().split("\n\n")}


def guide(method: str | None = None) -> str:
    """Return the card of a verb, or all verbs with one line each; for an unknown verb, the known names.

    >>> print(guide("forget").splitlines()[1])
      What:      puts a block away; the log keeps it
    """
    cards = _cards()
    if string_or_none("method", method) is None:
        lines = [
            f"  {name + '()':<18}{card.splitlines()[1].removeprefix(_WHAT)}" for name, card in cards.items()
        ]
        return "\n".join(
            [
                "A memory of blocks: learn as you go, dream at a pause, prompt with frames, tell outcomes.",
                *lines,
                "should_dream says when it is time to dream; guide(name) tells more of a verb.",
                "The verbs of MemorySystem are awaited; should_dream and guide are not.",
            ]
        )
    known = f"There is no verb {method!r}. There are: {', '.join(cards)}."
    return cards.get(str(method), known)
