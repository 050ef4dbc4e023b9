"""Compares two texts: whether they state the same, and whether one of them denies something.

Two texts state the same only if they are equal apart from the amount of white space in a line and a full stop
at the end. All else may carry information: 5 and 50, mW and MW, Anna and Bob, not and never.
"""

from __future__ import annotations

import re

from chronomemory._core import statement_pieces

#: A full stop behind the last word of a sentence.
_FULL_STOP = re.compile(r"(?<=[^\W\d_]{2})\.$")


def differ(one: str, other: str) -> bool:
    """Return whether two texts differ in something that may carry information.

    >>> differ("The key is in the vault.", " The key  is in the vault"), differ("Take 5 mW", "Take 5 MW")
    (False, True)
    """
    return one != other and _plain(one) != _plain(other)


def _plain(text: str) -> str:
    """Return a text without what tells nothing apart; the lines of a longer text keep their white space."""
    text = text.strip()
    return text if "\n" in text else _FULL_STOP.sub("", " ".join(text.split()))


_DENYING_WORDS = """no not never none nobody nothing nowhere neither nor cannot without hardly
dont doesnt didnt isnt arent wasnt werent cant couldnt wont wouldnt shouldnt hasnt havent hadnt mustnt"""
_DENYING = frozenset(_DENYING_WORDS.split())


def one_denies(one: str, other: str) -> bool:
    """Return whether two texts differ in how often they deny something; English words only.

    >>> one_denies("Ice is safe", "Ice isn't safe"), one_denies("Never go there", "Do not go there")
    (True, False)
    """
    return _denials(one) != _denials(other)


def _denials(text: str) -> int:
    return sum(piece in _DENYING for piece in statement_pieces(text))
