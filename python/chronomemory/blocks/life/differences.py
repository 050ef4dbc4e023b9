"""Compares two texts: whether they state the same, and whether one states a newer value of the other.

Two texts state the same only if they are equal apart from the amount of white space in a line and a full stop
at the end. All else may carry information: 5 and 50, mW and MW, Anna and Bob, not and never.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

#: A quoted text, a number with its signs, a word with its apostrophes and hyphens, or any other sign.
_PIECE = re.compile(
    r"""(?P<quoted>"[^"]{1,200}"|“[^”]{1,200}”|„[^“”]{1,200}[“”]|«[^»]{1,200}»"""
    r"""|‘[^’]{1,200}’(?!\w)|(?<!\w)'[^'\n]{1,200}'(?!\w))"""
    r"|(?P<number>[-+±]?\d[\d.,:/]*\d|[-+±]?\d)"
    r"|(?P<word>[^\W\d]\w*(?:['’-]\w+)*)"
    r"|(?P<sign>\S)"
)
_SPELLED_OUT = {"can't": "can not", "cannot": "can not", "won't": "will not", "shan't": "shall not"}
_ENDINGS = {"n't": "not", "'m": "am", "'re": "are", "'ve": "have", "'ll": "will"}
#: A full stop behind the last word of a sentence.
_FULL_STOP = re.compile(r"(?<=[^\W\d_]{2})\.$")
#: Statements that begin alike, with so many words and so large a share of the longer one, have one subject.
_SAME_START, _START_SHARE = 2, 1 / 3
#: Longer texts say more than one thing.
_STATEMENT_LETTERS = 300


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


def is_newer_value(old: str, new: str, query: str) -> bool:
    """Return whether a later text states a new value of a subject; not if the query names the old one.

    >>> is_newer_value("Anna lives in Paris", "Anna lives in Berlin", "where does Anna live?")
    True
    >>> is_newer_value("Anna lives in Paris", "Anna lives in Berlin", "was Anna in Paris?")
    False
    >>> is_newer_value("Anna lives in Paris", "Bob lives in Berlin", "who lives where?")
    False
    """
    if max(len(old), len(new)) > _STATEMENT_LETTERS:
        return False
    was, now = pieces(old), pieces(new)
    if was in (now, pieces(query)):
        return False
    same = next(
        (at for at, (a, b) in enumerate(zip(was, now, strict=False)) if a != b), min(len(was), len(now))
    )
    if same < max(_SAME_START, _START_SHARE * max(len(was), len(now))):
        return False
    return not (set(was[same:]) - set(now)) & set(pieces(query))


@lru_cache(maxsize=4096)
def pieces(text: str) -> tuple[str, ...]:
    """Return the words, numbers, quotations and signs of a statement, without "the" and the last sign.

    >>> pieces("The doctor said: 'Take 5 mg'!")
    ('doctor', 'said', ':', "'Take 5 mg'")
    """
    return tuple(_pieces(text))


@lru_cache(maxsize=4096)
def beginning(text: str) -> tuple[str, ...]:
    """Return the first pieces of a statement: statements with others do not have the same subject.

    >>> beginning("The doctor said: 'Take 5 mg'!")
    ('doctor', 'said')
    """
    return tuple(islice(_pieces(text), _SAME_START))


def _pieces(text: str) -> Iterator[str]:
    for match in _PIECE.finditer(text.strip().rstrip(".!…")):
        piece = match[0]
        if match["quoted"]:
            yield f"'{piece[1:-1]}'"
        elif not match["word"]:
            yield piece
        elif (word := piece.lower()) != "the":
            yield from _spelled_out(word.replace("’", "'"))


def _spelled_out(word: str) -> list[str]:
    if word in _SPELLED_OUT:
        return _SPELLED_OUT[word].split()
    for ending, full in _ENDINGS.items():
        if word.endswith(ending) and len(word) > len(ending):
            return [word.removesuffix(ending), full]
    return [word]


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
    return sum(piece in _DENYING for piece in pieces(text))
