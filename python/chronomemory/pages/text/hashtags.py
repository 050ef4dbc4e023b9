"""Tags that stand in a text, such as ``#tea`` and ``#tea/green``."""

from __future__ import annotations

import re

from chronomemory.pages.text.links import without_links
from chronomemory.pages.text.showing import without_code

__all__ = ["hashtags_in"]

#: Letters of all scripts with their marks, digits, and ``_ - /``; digits alone are a number.
_HASHTAG = re.compile(
    r"(?<![^\s(\[{\u201c\u2018\u00ab,;:>*~|])#"
    r"(?P<tag>[^\s#!-,.:-@\[-^`{-~\u2000-\u206f\u2e00-\u2e7f\u3000-\u303f\uff01-\uff0f]+)"
)


def hashtags_in(text: str) -> list[str]:
    """Return the tags of a text, each once; what stands in code or in a link is none.

    >>> hashtags_in("Green #tea/green, not #42 nor `#code` nor [[Note#Part]] (#日本)")
    ['tea/green', '日本']
    """
    if "#" not in text:
        return []
    found = (tag["tag"].strip("/-") for tag in _HASHTAG.finditer(without_links(without_code(text))))
    return list(dict.fromkeys(tag for tag in found if tag and not tag.isdigit()))
