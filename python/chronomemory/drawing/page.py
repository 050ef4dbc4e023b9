"""How a page is put together that needs nothing but a browser, and in which texts of others do no harm."""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape
from importlib import resources
from typing import Any

from chronomemory.drawing.wording import excerpt

__all__ = ["TITLE_LETTERS", "counted", "page_of"]

#: A title is a line, whatever somebody named it by.
TITLE_LETTERS = 300

#: Nothing in the data may end its element, begin a comment, or end a line of a script.
_ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


def page_of(body: str, scripts: tuple[str, ...], data: dict[str, Any], texts: dict[str, str]) -> str:
    """Return a page with this body, whose marks stand for texts, these scripts in order, and their data.

    Only the scripts and the style of the page itself are let run, by their digests, and nothing is loaded.
    """
    style, script = _file("style.css"), "\n".join(map(_file, scripts))
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    safe = {mark: escape(excerpt(text)) for mark, text in texts.items()}
    return _filled(
        _file("page.html"),
        {
            "__POLICY__": policy,
            "__TITLE__": escape(excerpt(texts["__HEADING__"], TITLE_LETTERS)),
            "__STYLE__": style,
            "__BODY__": _filled(_file(body), safe),
            "__DATA__": _spelled(data),
            "__SCRIPT__": script,
        },
    )


def counted(count: int, noun: str) -> str:
    """Spell a number of things as the pages do."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _file(name: str) -> str:
    return (resources.files("chronomemory.drawing") / "web" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _filled(page: str, parts: dict[str, str]) -> str:
    # In one walk: what a text says must not be taken for a mark of the page.
    made, rest = [], page
    for mark, part in parts.items():
        before, rest = rest.split(mark, 1)
        made += [before, part]
    return "".join((*made, rest))


def _spelled(data: dict[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPES)
