"""The frontmatter of a page: read as YAML, and edited without touching other keys."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from functools import lru_cache
from typing import Any

from chronomemory.errors import InvalidArgument
from chronomemory.face.arguments import must
from chronomemory.pages.errors import NotAPage
from chronomemory.pages.text.entries import moment_of

try:
    from ruamel.yaml import YAML
    from ruamel.yaml.composer import Composer, ComposerError
    from ruamel.yaml.error import MarkedYAMLError, YAMLError
    from ruamel.yaml.events import AliasEvent
except ImportError as error:  # pragma: no cover (the tests have it)
    raise ImportError(
        "pages need ruamel.yaml: pip install 'chronomemory-rs[pages]'", name="ruamel.yaml"
    ) from error

#: What YAML takes for something other than a text, in one of its versions.
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
#: What a text on its own may hold: no sign that YAML, or a list in it, gives a meaning.
_PLAIN = re.compile(r"[^\W\d_][\w ./()+;=-]*", re.UNICODE)
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}[+-]\d{2}:\d{2}", re.ASCII)
#: What stands in no YAML as it is, or ends a line there.
_UNSEEN = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


def spell_value(value: Any) -> str:
    """Spell a text, a number, yes or no, or a list of texts.

    >>> spell_value("plain"), spell_value("a: b"), spell_value(["one", "2"]), spell_value(False)
    ('plain', '"a: b"', '[one, "2"]', 'false')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(spell_value, value))}]"
    text = str(value)
    if _MOMENT.fullmatch(text):
        return text
    if _PLAIN.fullmatch(text) and text == text.strip() and text.casefold() not in _WORDS and " #" not in text:
        return text
    return _UNSEEN.sub(lambda sign: f"\\u{ord(sign[0]):04x}", json.dumps(text, ensure_ascii=False))


#: A line that is spelled so, or as simply.
_LINE = re.compile(
    r"""(?P<key>[A-Za-z_]+):[ ](?:(?P<yes>true|false)|(?P<number>0|[1-9]\d{0,8})|(?P<list>\[[^\[\]\r\n]*\])"""
    r"""|(?P<moment>\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}[+-]\d{2}:\d{2})|(?P<text>[^\r\n]+))\r?""",
    re.ASCII,
)
_MOMENTS = ("created", "updated")
_QUOTED = re.compile('"[ !#-\\[\\]-~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe]*"')


def read_spelled(yaml: str) -> dict[str, Any] | None:
    """Parse lines as we write them, which is much faster than YAML; None if one differs."""
    values: dict[str, Any] = {}
    for line in yaml.split("\n")[:-1]:
        found = _LINE.fullmatch(line)
        value = None if found is None else _read_value(found)
        if found is None or value is None or found["key"].casefold() in _WORDS or found["key"] in values:
            return None
        values[found["key"]] = value
    return values


def _read_value(found: re.Match[str]) -> Any:
    if found["yes"]:
        return found["yes"] == "true"
    if found["number"]:
        return int(found["number"])
    if found["moment"]:
        if found["key"] not in _MOMENTS or found["moment"].endswith("-00:00"):
            return None
        try:
            return datetime.fromisoformat(found["moment"])
        except ValueError:
            return None
    if not found["list"]:
        return _read_text(found["text"])
    inside = found["list"][1:-1]
    texts = [_read_text(part) for part in inside.split(", ")] if inside else []
    return None if None in texts else texts


def _read_text(text: str) -> str | None:
    if _QUOTED.fullmatch(text):
        return text[1:-1]
    is_plain = _PLAIN.fullmatch(text) and text == text.strip() and text.casefold() not in _WORDS
    return text if is_plain and " #" not in text else None


Mark = tuple[str, int]

STATES = ("active", "dormant", "archived")
#: A clock that is set back by less than this still gives updates that follow each other.
_AHEAD = timedelta(hours=2)
#: Longer than any line: YAML breaks longer ones.
_NO_WIDTH = 1 << 30
_MOST_LETTERS = 1 << 16
_MOST_NODES = 2_000
_DEEPEST = 50
#: The YAML tags that name plain data; any other may stand for an object of a program.
_PLAIN_TAGS = frozenset(
    f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "timestamp", "seq", "map")
)
#: Longer whole numbers are not converted to text: Python refuses those of more than 4,300 digits.
_MOST_BITS = 128

_COUNT = re.compile(r"^entry_count[ \t]*:[ \t]*(\d{1,9})[ \t]*(?:#[^\r\n]*)?\r?$", re.MULTILINE | re.ASCII)
_END = r"---[ \t]*(?=\r?\n|\r?\Z)"
_BLOCK = re.compile(rf"\A\ufeff?---[ \t]*\r?\n(?P<yaml>|(?s:.*?\n)){_END}")
_OPENED = re.compile(r"\A\ufeff?---[ \t]*(?:\r?\n|\Z)")
#: A value on the line of its key, as we would write it or a person would.
_VALUE = r"""(?:"(?:[^"\\\r\n]|\\.)*"|'(?:[^'\r\n]|'')*'|[^\s"'#&*!|>\[\]{}%@`,][^#\r\n]*?)?"""

#: A line that says one thing and leaves nothing open: a comment, a key with a value, or nothing.
_SIMPLE = re.compile(
    rf"(?:#[^\r\n]*|[A-Za-z_][\w-]*:(?:[ \t]+(?:{_VALUE}|\[[^\[\]{{}}\"'#&*!|>%@`\r\n]*\]))?"
    r"[ \t]*(?:[ \t]#[^\r\n]*)?)?\r?"
)


@dataclass(frozen=True, slots=True)
class Meta:
    """The keys of a frontmatter that we know."""

    description: str = ""
    tags: tuple[str, ...] = ()
    state: str = "active"
    created: str = ""
    updated: str = ""
    needs_compact: bool = False
    compact_reason: str = ""
    aliases: tuple[str, ...] = ()

    @property
    def last_update(self) -> str:
        """When it was updated, in UTC, as text that can be ordered; nothing if unsaid."""
        return _utc_or_nothing(self.updated)

    @property
    def written(self) -> str:
        """When the page was written last, in UTC, as text that can be ordered; nothing if unsaid."""
        return _utc_or_nothing(self.updated) or _utc_or_nothing(self.created)


def _utc_or_nothing(text: str) -> str:
    moment = moment_of(text)
    try:
        return "" if moment is None else utc_text(moment)
    except (OverflowError, ValueError):  # beyond the calendar in UTC
        return ""


def utc_text(moment: datetime) -> str:
    """Return a moment in UTC, in a form that can be ordered."""
    return f"{moment.astimezone(timezone.utc).replace(tzinfo=None).isoformat(timespec='seconds')}Z"


def mark_of(head: str, meta: Meta) -> Mark | None:
    """Return how old a text is by what its frontmatter says; None if that says too little."""
    count = _COUNT.search(head, 0, frontmatter_end(head))
    return (meta.last_update, int(count[1])) if count is not None and meta.last_update else None


def mark_after(before: Mark | None, now: datetime, count: int) -> datetime:
    """Return the moment of an update that comes after another: a second later if one second had both."""
    if before is None or before < (utc_text(now), count):
        return now
    moment = moment_of(before[0])
    if moment is None or moment - now.astimezone() > _AHEAD:  # not ours: a date in the future
        return now
    return moment + timedelta(seconds=1)


def frontmatter_end(text: str) -> int:
    """Return where a frontmatter ends, with its last dashes; 0 if a page has none."""
    found = _BLOCK.match(text)
    if found is not None:
        return found.end()
    if _OPENED.match(text):
        raise NotAPage("the frontmatter does not end: a line --- is missing behind it", line=1)
    return 0


def is_plain(head: str) -> bool:
    """Say whether each line of a frontmatter stands for itself, and can be changed without the others.

    >>> is_plain("---\\na: 1 # one\\n---"), is_plain("---\\na: |\\n  updated: no\\n---"), is_plain("# T")
    (True, False, False)
    """
    found = _BLOCK.match(head)
    return found is not None and all(map(_SIMPLE.fullmatch, found["yaml"].split("\n")))


@lru_cache(maxsize=16)
def read_values(head: str) -> dict[str, Any]:
    """Return all keys of a frontmatter as they are; the answer is kept for callers that ask again."""
    found = _BLOCK.match(head)
    if found is None:
        return {}
    if len(found["yaml"]) > _MOST_LETTERS:
        raise NotAPage(f"the frontmatter is longer than {_MOST_LETTERS:,} characters", line=1)
    if (spelled := read_spelled(found["yaml"])) is not None:
        return spelled
    return deepcopy(_read_yaml(found["yaml"]))


@lru_cache(maxsize=8)  # a page is read several times in a row, and YAML takes milliseconds
def _read_yaml(text: str) -> dict[str, Any]:
    yaml = YAML(typ="safe", pure=True)
    yaml.Composer = _BoundedComposer
    try:
        values = yaml.load(text.replace("\r\n", "\n"))
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = None if mark is None else mark.line + 2
        problem = " ".join(str(error.problem or error.context).split())
        raise NotAPage(f"the frontmatter cannot be read: {problem}", line=line) from None
    except (YAMLError, ValueError, RecursionError, OverflowError, TypeError) as error:
        raise NotAPage(f"the frontmatter cannot be read: {' '.join(str(error).split())}", line=1) from None
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise NotAPage("the frontmatter is no list of keys with values", line=2)
    return dict(values)


class _BoundedComposer(Composer):
    """Composes YAML within limits; aliases are refused, as a few bytes of them stand for gigabytes."""

    nodes = level = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.parser.peek_event()
        self.nodes += 1
        self.level += 1
        problem = None
        if isinstance(event, AliasEvent) or event.anchor is not None:
            problem = "anchors (&) and aliases (*) are not read, write the value out"
        elif event.tag is not None and event.tag not in _PLAIN_TAGS:
            problem = f"the tag {str(event.tag)[:60]!r} is not read, remove it"
        elif self.nodes > _MOST_NODES or self.level > _DEEPEST:
            problem = f"at most {_MOST_NODES:,} keys and values are read, nested at most {_DEEPEST} deep"
        if problem is not None:
            raise ComposerError(None, None, problem, event.start_mark)
        node = super().compose_node(parent, index)
        self.level -= 1
        return node


def read_meta(head: str) -> Meta:
    """Return the known keys of a frontmatter, with defaults; a value of the wrong type is an error."""
    values = read_values(head)
    state = values.get("status")
    try:
        return Meta(
            description=_text(values, "description"),
            tags=_texts(values, "tags") or _texts(values, "tag"),
            state=state if state in STATES else "active",
            created=_moment(values, "created"),
            updated=_moment(values, "updated"),
            needs_compact=values.get("needs_compact") is True,
            compact_reason=_text(values, "compact_reason"),
            aliases=_texts(values, "aliases"),
        )
    except InvalidArgument as error:
        line = re.search(rf"^[\"']?{error.field}[\"']?[ \t]*:", head, re.MULTILINE)
        at = None if line is None else head.count("\n", 0, line.start()) + 1
        raise NotAPage(f"the frontmatter cannot be used: {error}", line=at) from None


def _text(values: Mapping[str, Any], field: str, need: str = "be text") -> str:
    value = values.get(field)
    if value is None or isinstance(value, str):
        return value or ""
    if not isinstance(value, int | float | date) or (
        isinstance(value, int) and value.bit_length() > _MOST_BITS
    ):
        raise must(field, need, value)
    return str(value)


def _texts(values: Mapping[str, Any], field: str) -> tuple[str, ...]:
    need = "be text, or a list of texts"
    listed = values.get(field)
    if not isinstance(listed, list):
        listed = re.split(r"[,\s]+", _text(values, field, need))
    texts = (_text({field: one}, field, need).removeprefix("#") for one in listed)
    return tuple(dict.fromkeys(one for one in texts if one))


def _moment(values: Mapping[str, Any], field: str) -> str:
    value = values.get(field)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, date):
        return f"{value.isoformat()}T00:00:00"
    text = _text(values, field, "be a date, or text")
    return text if isinstance(value, str) else ""


def new_frontmatter(values: Mapping[str, Any], eol: str = "\n") -> str:
    lines = ["---", *(f"{key}: {spell_value(value)}" for key, value in values.items()), "---"]
    return eol.join(lines)


def edit(head: str, changes: Mapping[str, Any], *, plain: bool, eol: str) -> tuple[str, bool]:
    """Return a head with changed keys (None removes one), all else as spelled, and whether it is plain."""
    if not _BLOCK.match(head):
        kept = {key: value for key, value in changes.items() if value is not None}
        joined = new_frontmatter(kept, eol)
        return (joined + eol + eol + head.lstrip("\r\n") if head else joined), True
    edited = _edit_lines(head, changes, eol)
    if plain and edited is not None:
        return edited, True
    wanted = {key: value for key, value in read_values(head).items() if key not in changes}
    wanted |= {key: value for key, value in changes.items() if value is not None}
    if edited is not None and _says(edited, wanted):
        return edited, True
    return _edit_yaml(head, changes, eol), False


def _says(head: str, wanted: Mapping[str, Any]) -> bool:
    try:
        values = read_values(head)
    except NotAPage:
        return False
    return {key: _compared(value) for key, value in values.items()} == {
        key: _compared(value) for key, value in wanted.items()
    }


def _compared(value: Any) -> Any:
    """Return a value so that a moment is equal to its spelling."""
    return value.isoformat() if isinstance(value, date) else value


def _edit_lines(head: str, changes: Mapping[str, Any], eol: str) -> str | None:
    found = _BLOCK.match(head)
    if found is None:
        return None
    yaml = found["yaml"]
    for key, value in changes.items():
        line = re.compile(
            rf"^(?P<key>{re.escape(key)}[ \t]*:)(?P<gap>[ \t]*)(?P<value>{_VALUE})"
            r"(?P<rest>[ \t]*(?:[ \t]#[^\r\n]*)?)(?=\r?$)",
            re.MULTILINE,
        )
        here = line.search(yaml)
        if value is None:
            if here is not None:
                yaml = yaml[: here.start()] + re.sub(r"\A\r?\n", "", yaml[here.end() :])
        elif here is not None:
            spelled = f"{here['key']}{here['gap'] or ' '}{spell_value(value)}{here['rest']}"
            yaml = yaml[: here.start()] + spelled + yaml[here.end() :]
        elif re.search(rf"^[\"']?{re.escape(key)}[\"']?[ \t]*:", yaml, re.MULTILINE):
            return None
        else:
            yaml += f"{key}: {spell_value(value)}{eol}"
    return head[: found.start("yaml")] + yaml + head[found.end("yaml") :]


def _edit_yaml(head: str, changes: Mapping[str, Any], eol: str) -> str:
    """Change a frontmatter that is written in another way, such as in braces: YAML spells it again."""
    found = _BLOCK.match(head)
    if found is None:
        raise AssertionError("there is a frontmatter")
    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    yaml.width = _NO_WIDTH
    values = yaml.load(found["yaml"].replace("\r\n", "\n"))
    for key, value in changes.items():
        if value is None:
            values.pop(key, None)
        else:
            values[key] = list(value) if isinstance(value, tuple) else value
    spelled = io.StringIO()
    yaml.dump(values, spelled)
    text = spelled.getvalue().replace("\n", eol)
    return head[: found.start("yaml")] + text + head[found.end("yaml") :]
