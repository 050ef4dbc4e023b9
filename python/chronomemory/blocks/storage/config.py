"""Reads and changes settings, among them the clock of active hours; refuses values that look secret."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from chronomemory.blocks.ids import CONFIG, config_key, looks_scoped
from chronomemory.errors import InvalidArgument, InvalidRecord
from chronomemory.face.arguments import contents, count, finite, must, string, within
from chronomemory.face.batch import Connection
from chronomemory.record import ChronoRecord
from chronomemory.scope import SHARED, Scope, carrying

#: Whose keys are secrets whatever they are called, and what a key is for that nobody else may have.
_SERVICES = (
    "anthropic|claude|openai|gpt|azure|gemini|google|gcp|vertex|aws|amazon|bedrock|groq|grok|xai|mistral|cohere"
    "|perplexity|pplx|replicate|nvidia|huggingface|hf|together|fireworks|deepseek|openrouter|voyage|jina|tavily"
    "|elevenlabs|pinecone|qdrant|weaviate|langsmith|langchain|github|gitlab|slack|stripe|twilio|sendgrid|llm"
)
_PURPOSES = "account|deploy|encryption|license|master|service|signing|ssh|storage|subscription"

#: A word for a secret anywhere in a name, and one that says so only at its end: token_budget is no secret.
_NAME = re.compile(
    r"api[_-]?key|secret|passw|passphrase|credential|private[_-]?key|(access|auth|bearer|refresh)[_-]?(key|token)"
    r"|(^|[_\-. ]|(?-i:(?<=[a-z])(?=T)))(token|pwd)$"
    rf"|(^|[_\-. ])({_SERVICES}|{_PURPOSES})([_\-. ]?\w+)*?[_\-. ]?key\d*$",
    re.IGNORECASE,
)

#: Whose keys look how.
_SHAPES = {
    "OpenAI, Anthropic, Stripe": r"\b[srp]k[-_][A-Za-z0-9_-]{16,}",
    "GitHub": r"\b(?:gh[oprsu]_[A-Za-z0-9]{20,}|github_pat_\w{20,})",
    "GitLab": r"\bgl[a-z]{2,5}-[\w-]{20,}",
    "Slack": r"\bxox[a-z]-[\w-]{10,}|\bxapp-[\w-]{10,}",
    "Amazon": r"\bA(?:KIA|SIA|ROA|IDA)[A-Z0-9]{16}\b",
    "Google": r"\bAIza[\w-]{30,}|\bya29\.[\w-]{20,}|\bGOCSPX-[\w-]{20,}",
    "Hugging Face, npm, PyPI": r"\bhf_[A-Za-z0-9]{20,}|\bnpm_[A-Za-z0-9]{30,}|\bpypi-[\w-]{30,}",
    "Groq, xAI, Perplexity": r"\bgsk_[A-Za-z0-9]{16,}|\bxai-[\w-]{16,}|\bpplx-[\w-]{16,}",
    "Replicate, NVIDIA": r"\br8_[A-Za-z0-9]{16,}|\bnvapi-[\w-]{16,}",
    "SendGrid": r"\bSG\.[\w-]{16,}\.[\w-]{16,}",
    "DigitalOcean, Shopify": r"\bdo[a-z]_v1_[a-f0-9]{32,}|\bshp[a-z]{2}_[a-fA-F0-9]{32}",
    "signed tokens": r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}",
    "private keys": r"-----BEGIN [A-Z ]*PRIVATE KEY",
    "headers": r"(?i:\bbearer\s+[\w.~+/-]{16,})",
    "addresses with a password": r"\b\w[\w+.-]*://[^\s/:@]+:[^\s/@]+@",
}
_VALUE = re.compile("|".join(_SHAPES.values()))


def looks_secret(name: str, value: str) -> bool:
    """Say whether a name or a value is that of a secret.

    >>> looks_secret("token_budget", "2000"), looks_secret("note", "ghp_" + "a1" * 18)
    (False, True)
    """
    return _NAME.search(name) is not None or _VALUE.search(value) is not None


TOTAL_ACTIVE_HOURS = "total_active_hours"
#: What every store begins with, and what holds until someone sets it.
DEFAULT_CONFIG = {TOTAL_ACTIVE_HOURS: "0.0", "prune_threshold": "0.05", "top_k": "10"}
_DEFAULTS = {**DEFAULT_CONFIG, "inbox_threshold": "10"}

#: No recall gives more.
MOST_RESULTS = 10_000

#: The settings that are numbers, and which numbers they may be.
_NUMBERS: dict[str, Callable[[str], float]] = {
    TOTAL_ACTIVE_HOURS: lambda value: finite(TOTAL_ACTIVE_HOURS, float(value), least=0.0),
    "prune_threshold": lambda value: within("prune_threshold", float(value)),
    "top_k": lambda value: count("top_k", int(value), 1, MOST_RESULTS),
    "inbox_threshold": lambda value: count("inbox_threshold", int(value), 1, None),
}


@lru_cache(maxsize=4096)
def config_keys(key: str, scope: Scope) -> tuple[str, ...]:
    """Return the ids under which a setting may stand, one's own first; a clock is nobody else's."""
    if key == TOTAL_ACTIVE_HOURS:
        return (config_key(key, scope.of_clock),)
    return tuple(config_key(key, wider) for wider in scope.narrowest_first())


def get_config(conn: Connection, key: str) -> str | None:
    """Return a setting, one's own before what is wider, or None; a value that it must not have is none."""
    found = (_usable(key, conn.record(name)) for name in config_keys(key, conn.scope))
    return next((value for value in found if value is not None), None)


def _usable(key: str, record: ChronoRecord | None) -> str | None:
    if record is None:
        return None
    value = str(record.data["value"])
    return value if _may_be(key, value) else None


@lru_cache(maxsize=1024)
def _may_be(key: str, value: str) -> bool:
    """Say whether a setting may have a value; every question asks this anew of what hardly ever changes."""
    try:
        check_setting(key, value)
    except InvalidRecord:
        return False
    return True


def get_number(conn: Connection, key: str) -> float:
    """Return a setting that is a number, or its default."""
    return _number(key, get_config(conn, key) or _DEFAULTS[key])


def _number(key: str, value: str) -> float:
    try:
        return _NUMBERS[key](value)
    except InvalidArgument:
        raise
    except ValueError:
        raise must(key, f"be a number, such as {_DEFAULTS[key]}", value) from None


def set_config(conn: Connection, key: str, value: str) -> None:
    """Write a setting. Keys of services are refused: they belong into the environment."""
    check_setting(key, value)
    scope = conn.scope.of_clock if key == TOTAL_ACTIVE_HOURS else conn.scope
    conn.put(ChronoRecord(id=config_key(key, scope), kind=CONFIG, data=carrying(scope, {"value": value})))


@contents
def check_setting(key: str, value: str) -> None:
    """Refuse a setting that must not be written."""
    string("key", key, empty=False)
    string("value", value)
    if looks_scoped(key):
        raise must("key", "not begin with the digits of a scope", key)
    if looks_secret(key, value):
        raise InvalidRecord(
            f"key: {key!r} looks like a secret, and the log keeps everything",
            field="key",
            recovery="Keep secrets in environment variables.",
        )
    if key in _NUMBERS:
        _number(key, value)


def get_total_active_hours(conn: Connection) -> float:
    """Return how many hours sessions have lasted so far."""
    return get_number(conn, TOTAL_ACTIVE_HOURS)


def glimpse_total_active_hours(conn: Connection, scope: Scope | None = None) -> float:
    """Return the same for a batch that others may go on beside; to set the clock is to mind it again.

    Of another scope than the connection's it is what its clock shows.
    """
    clock = (conn.scope if scope is None else scope).of_clock
    known = _usable(TOTAL_ACTIVE_HOURS, conn.glimpse(config_key(TOTAL_ACTIVE_HOURS, clock)))
    return _number(TOTAL_ACTIVE_HOURS, known or _DEFAULTS[TOTAL_ACTIVE_HOURS])


@contents
def set_total_active_hours(conn: Connection, hours: float) -> None:
    """Set the clock of active hours."""
    set_config(conn, TOTAL_ACTIVE_HOURS, repr(finite("hours", hours, least=0.0)))


def hours_for(conn: Connection, record: ChronoRecord, hours: float) -> float:
    """Return how late it is for a record, on the clock of its scope; ``hours`` is what one's own shows."""
    scope = record.scope or SHARED
    return hours if scope.of_clock == conn.scope.of_clock else glimpse_total_active_hours(conn, scope)
