"""Cuts a text into words by Unicode's own tables, without the engine."""

from __future__ import annotations

import unicodedata

import snowballstemmer

LONGEST_WORD_BYTES = 64
_COMMON = """a about all also am an and any are as at be been being but by can could d did do does doing
done each for from had has have having he her him his how i if in into is it its just ll m may
me might my no not of on or other our out re s she should so some such t than that the their
them then there these they this to too up us ve very was we were what when where which who why
will with would you your between both don down during few here hers let more most nor off once
only over own same those through under until whom whose yours"""
COMMON_WORDS = frozenset(_COMMON.split())
_PLAIN = """æ=ae ð=d ø=o þ=th đ=d ħ=h ı=i ĸ=k ł=l ŋ=n œ=oe ŧ=t ƀ=b ƒ=f ƙ=k ƚ=l ƴ=y ƶ=z ǥ=g ȷ=j ȼ=c ȿ=s ɇ=e
ɉ=j ɍ=r ɏ=y ɓ=b ɖ=d ɗ=d ɛ=e ɣ=g ɨ=i ɲ=n ɔ=o ʉ=u"""
#: Letters that have no decomposition, and what is typed for them.
PLAIN = dict(pair.split("=") for pair in _PLAIN.split())
#: What the names of scripts begin with that are written without spaces, or in syllables that carry endings.
UNSPACED = (
    *(
        "CJK ",
        "HIRAGANA ",
        "KATAKANA",
        "COMBINING KATAKANA",
        "HANGUL ",
        "THAI ",
        "LAO ",
        "MYANMAR ",
        "KHMER ",
    ),
    *("IDEOGRAPHIC ITERATION MARK", "IDEOGRAPHIC CLOSING MARK", "IDEOGRAPHIC NUMBER ZERO", "HENTAIGANA "),
)
#: Whose marks are left out: those of other scripts make another letter.
POINTED = ("COMBINING ", "HEBREW ", "ARABIC ", "VARIATION SELECTOR")
TELLING = ("KATAKANA", "DEVANAGARI", "GRANTHA", "OLD PERMIC", "GLAGOLITIC", "MUSICAL", "BINDU BELOW")

_stemmer = snowballstemmer.stemmer("english")


def is_left_out(c: str) -> bool:
    """Say whether a character only changes how others look."""
    category, name = unicodedata.category(c), unicodedata.name(c, "")
    if category in ("Mn", "Me"):
        return name.startswith(POINTED) and not any(script in name for script in TELLING)
    return (category == "Cf" and c != "\u200b") or name == "ARABIC TATWEEL" or "EMOJI MODIFIER" in name


def folded(text: str) -> str:
    """Take away what nobody has to type."""
    kept = "".join(c for c in unicodedata.normalize("NFKD", text) if not is_left_out(c))
    composed = unicodedata.normalize("NFC", kept.casefold())
    return "".join(PLAIN.get(c, c) for c in composed)


def is_picture(c: str) -> bool:
    """Say whether a character is a word of its own: an emoji, but no part of a drawn line."""
    name = unicodedata.name(c, "")
    drawn = name.startswith(
        ("BOX DRAWINGS ", "BRAILLE PATTERN", "REPLACEMENT CHARACTER", "OBJECT REPLACEMENT")
    )
    blocks = "\u2580" <= c <= "\u259f"
    return unicodedata.category(c) == "So" and not drawn and not blocks


def runs(text: str) -> list[str]:
    """Split where there is neither letter, digit, mark nor picture."""
    is_part = [unicodedata.category(c)[0] in "LNM" or is_picture(c) for c in text]
    return "".join(c if part else " " for c, part in zip(text, is_part, strict=True)).split(" ")


def words(text: str) -> list[str]:
    """Return the folded words, endings still on."""
    found: list[str] = []
    for run in runs(folded(text)):
        before, word = "", ""
        for c in run:
            if is_picture(c) or unicodedata.name(c, "").startswith(UNSPACED):
                found += [word] if word else []
                found += [c, before + c] if before else [c]
                before, word = c, ""
            else:
                before, word = "", word + c
        found += [word] if word else []
    return [cut(word) for word in found]


def cut(word: str) -> str:
    """Shorten a word to the longest there are, at a character's end."""
    return word.encode()[:LONGEST_WORD_BYTES].decode(errors="ignore")


def stem(word: str) -> str:
    """Take off an English ending."""
    plain = len(word) > 2 and word.isascii() and word.isalpha()
    return str(_stemmer.stemWord(word)) if plain else word


def text_words(text: str) -> list[str]:
    """Return the words that a text of a record is found by."""
    return [stem(word) for word in words(text)]


def question_words(text: str) -> list[str]:
    """Return the words that a question asks for, each once: common ones only if it has no others."""
    found = words(text)
    telling = [word for word in found if word not in COMMON_WORDS]
    return list(dict.fromkeys(stem(word) for word in telling or found))
