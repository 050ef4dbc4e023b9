"""Tells whether one of two texts denies the other: words that deny say so, where vectors hardly do."""

from __future__ import annotations

import re

__all__ = ["one_denies"]

_WORD = re.compile(r"\w+(?:['’]\w+)?")
_DENYING_WORDS = """no not never none nobody nothing nowhere neither nor cannot without hardly
dont doesnt didnt isnt arent wasnt werent cant couldnt wont wouldnt shouldnt hasnt havent hadnt mustnt"""
_DENYING = frozenset(_DENYING_WORDS.split())


def one_denies(one: str, other: str) -> bool:
    """Say whether two texts differ in how often they deny something; English words only.

    >>> one_denies("Ice is safe", "Ice isn't safe"), one_denies("Never go there", "Do not go there")
    (True, False)
    """
    return _denials(one) != _denials(other)


def _denials(text: str) -> int:
    words = (word.replace("’", "'") for word in _WORD.findall(text.casefold()))
    return sum(word in _DENYING or word.endswith("n't") for word in words)
