"""Tells settings that look like secrets: a log that is never rewritten is no place for one.

It knows names that only secrets have, and the shapes of keys that their makers made recognisable. It cannot
know a password that looks like a word.
"""

from __future__ import annotations

import re

__all__ = ["looks_secret"]

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
