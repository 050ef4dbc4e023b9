"""Links, hashtags and hidden parts of a Markdown text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import unquote

_HIDING = re.compile(
    r"\\(?P<sign>[^\w\s])|(?P<ticks>(?<!`)`+)"
    # A comment that does not end hides all that follows. Obsidian has comments of its own.
    r"|<!--(?P<comment>.*?)(?:-->|\Z)|%%(?P<aside>.*?)%%"
    r"|(?P<strike>~~(?!~~))|<(?P<tag>del|s|strike)>"
    # What stands inside a tag, and where a reference leads to; a bare address is shown, a footnote too.
    r"|</?(?P<inside>[A-Za-z][\w-]*(?:\s[^<>]*)?/?)>"
    r"|^[ ]{0,3}\[(?!\^)(?P<reference>[^\[\]\r\n]+\]:[^\r\n]*)$",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
#: What may end a strike. Scanning for it takes no memory, a pattern of the struck text many times its length.
_STRIKE_ENDS = re.compile(r"\\.|(?P<end>~~)", re.DOTALL)
_TAG_ENDS = re.compile(r"<(?P<end>/)?(?P<tag>del|s|strike)>", re.IGNORECASE)
_TICKS = re.compile("`+")
_HIDDEN = ("comment", "aside", "inside", "reference")
_CODE = re.compile(r"\\[^\w\s]|(?P<ticks>(?<!`)`+)")


def divided(text: str) -> tuple[str, str]:
    r"""Return what a text shows as holding, and what it hides or strikes.

    >>> divided(r"Tea <!-- at 75 --> is ~~not~~ good, \<!-- and so on.")
    ('Tea  is  good, <!-- and so on.', ' at 75 \nnot')
    """
    hidden: list[str] = []

    def shown(found: re.Match[str]) -> tuple[str, int]:
        if found["sign"]:
            return found["sign"], found.end()
        if found["strike"] or found["tag"]:
            end = _end_of(found, text)
            if end is None and found["strike"]:
                return "~", found.start() + 1
            struck = found["tag"] if end is None else text[found.end() : end.start()]
            hidden.extend([struck] if struck else [])
            return "", (end or found).end()
        hidden.extend(found[name] for name in _HIDDEN if found[name])
        return "", found.end()

    return _replaced(_HIDING, text, shown, lambda code: code), "\n".join(hidden)


def without_code(text: str) -> str:
    """Return a text with a blank in place of its code."""
    return _replaced(_CODE, text, lambda found: (found[0], found.end()), lambda _: " ")


def _end_of(begin: re.Match[str], text: str) -> re.Match[str] | None:
    """Return what ends a strike or a tag that strikes; such tags do not nest."""
    if begin["strike"]:
        return next((one for one in _STRIKE_ENDS.finditer(text, begin.end()) if one["end"]), None)
    name = begin["tag"].lower()
    ends = _TAG_ENDS.finditer(text, begin.end())
    end = next((one for one in ends if not one["end"] or one["tag"].lower() == name), None)
    return end if end is not None and end["end"] else None


def _replaced(
    pattern: re.Pattern[str],
    text: str,
    other: Callable[[re.Match[str]], tuple[str, int]],
    code: Callable[[str], str],
) -> str:
    """Replace matches outside of code, and code itself, which ends at as many backticks as it begins with."""
    ends: dict[int, list[int]] = {}
    for run in reversed(list(_TICKS.finditer(text))) if "`" in text else ():
        ends.setdefault(len(run[0]), []).append(run.end())
    parts, here = [], 0
    while found := pattern.search(text, here):
        parts.append(text[here : found.start()])
        here = found.end()
        if not found["ticks"]:
            instead, here = other(found)
            parts.append(instead)
            continue
        known = ends.get(len(found[0]), [])
        while known and known[-1] <= here:
            known.pop()
        here = known.pop() if known else here
        parts.append(code(text[found.start() : here]) if here > found.end() else found[0])
    return "".join((*parts, text[here:]))


_WIKI = re.compile(r"!?\[\[([^\[\]|\r\n]+)(?:\|([^\[\]\r\n]*))?\]\]")
_MARKDOWN = re.compile(
    r"!?\[([^\[\]\r\n]*)\]\((?:<([^<>\r\n]+)>|([^\s()]+(?:\([^\s()]*\)[^\s()]*){0,99}))"
    r"(?:\s+(?:[^\s()][^()\r\n]*)?)?\)"
)
#: An address from behind its scheme on: so a long word is not tried as a scheme at each of its letters.
_ADDRESS = re.compile(r"://[^\s<>\[\]\"'`]+")
_IN_SCHEME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-")
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:")


@dataclass(frozen=True, slots=True)
class LinkText:
    """A link in a text; ``kind`` is wiki, markdown or address."""

    kind: str
    target: str
    label: str = ""


def links_in(text: str) -> list[LinkText]:
    """Return the links of a text, in their order, each once.

    >>> [link.target for link in links_in("[[person-alice|Al]], [x](topic-a.md) and https://example.org/a.")]
    ['person-alice', 'topic-a.md', 'https://example.org/a']
    """
    if "](" not in text and "[[" not in text and "://" not in text:
        return []
    # Where each link is first: a text may repeat a few links a million times.
    found: dict[LinkText, int] = {}
    covered: list[tuple[int, int]] = []
    has_addresses = "://" in text
    for wiki in _WIKI.finditer(text):
        named = LinkText("wiki", wiki[1].strip().rstrip("\\"), (wiki[2] or "").strip())
        found.setdefault(named, wiki.start())
        if has_addresses:
            covered.append(wiki.span())
    for link in _MARKDOWN.finditer(text):
        found.setdefault(LinkText("markdown", link[2] or link[3], link[1]), link.start())
        if has_addresses:
            covered.append(link.span())
    covered.sort(reverse=True)
    end = 0
    for start, address in _addresses(text):
        while covered and covered[-1][0] <= start:
            end = max(end, covered.pop()[1])
        if start >= end:
            found.setdefault(LinkText("address", address.rstrip(".,;:!?)*_~")), start)
    return sorted(found, key=found.__getitem__)


def without_links(text: str) -> str:
    return _MARKDOWN.sub(r"\1", _WIKI.sub(" ", text))


def _addresses(text: str) -> Iterator[tuple[int, str]]:
    here = 0
    while (colon := text.find("://", here)) >= 0:
        start = colon
        while start > here and text[start - 1] in _IN_SCHEME:
            start -= 1
        while start < colon and not text[start].isalpha():
            start += 1
        here = colon + len("://")
        rest = _ADDRESS.match(text, colon) if start < colon else None
        if rest is not None:
            yield start, text[start : rest.end()]
            here = rest.end()


def call_of(target: str) -> str | None:
    """Return what a link calls a page, so that spellings of one name are equal; None if it leads elsewhere.

    >>> call_of("Person-Alice#Work"), call_of("./notes/My%20Note.md"), call_of("https://example.org")
    ('person-alice', 'notes/my note', None)
    """
    if _SCHEME.match(target):
        return None
    name = re.split(r"[#^]", unquote(target), maxsplit=1)[0].strip()
    name = re.sub(r"\.md$", "", name, flags=re.IGNORECASE)
    name = re.sub(r"^(?:\.{0,2}/)+", "", name)
    return unicodedata.normalize("NFC", name).casefold() or None


def calls_of(link: LinkText, within: str = "") -> list[str]:
    """Return what a link may call a page, the likeliest first; ``within`` is the folder of its note.

    >>> calls_of(LinkText("markdown", "../b/Note.md"), "a/c"), calls_of(LinkText("wiki", "Note"), "a")
    (['a/b/note', 'b/note'], ['note'])
    """
    call = call_of(link.target)
    if call is None:
        return []
    way = unquote(link.target)
    if not within or way.startswith("/") or (link.kind == "wiki" and not way.startswith(".")):
        return [call]
    steps = unicodedata.normalize("NFC", within).casefold().split("/")
    up = re.match(r"(?:\.{1,2}/)*", way)
    above = 0 if up is None else up[0].count("../")
    kept = steps[: max(0, len(steps) - above)]
    return list(dict.fromkeys(("/".join((*kept, call)), call)))


def calls_in(text: str, within: str = "") -> list[str]:
    calls = (call for link in links_in(text) for call in calls_of(link, within))
    return list(dict.fromkeys(calls))


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
