"""Secrets out of everything that is printed or written: URLs, storage options, key=value text.

Covers: user information and signed query parameters of URLs, values under secret-sounding keys, and the exact values
that a run was given as secrets. Does not cover: secrets inside data files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

MASK = "***"

_SECRET_WORDS = (
    r"(?:pass(?:word|wd|phrase)?|secret|token|credential|signature|sig|api[_-]?key|access[_-]?key|account[_-]?key|sas)"
)
_SECRET_KEY = re.compile(_SECRET_WORDS, re.IGNORECASE)
# `user:password@` and `token@` both carry a secret; a bare host has no @.
_USER_INFO = re.compile(r"(?P<scheme>[a-zA-Z][\w+.-]*://)[^\s/?#@]*(?:@[^\s/?#@]*)*@")
_PARAMETER = re.compile(
    rf"(?P<key>[\w.\-]*{_SECRET_WORDS}[\w.\-]*)(?P<gap>[\"']?\s*[=:]\s*[\"']?)(?P<value>[^\s&;,\"'}}\])]+)",
    re.IGNORECASE,
)


def is_secret_key(key: str) -> bool:
    """Whether a value under this key is hidden."""
    return bool(_SECRET_KEY.search(key)) or key.lower() in {"key", "auth", "authorization"}


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Return `text` with every secret replaced by ``***``.

    Parameters
    ----------
    text : str
    secrets : iterable of str
        Values known to be secret; hidden wherever they occur. Values of fewer than four characters are not replaced:
        they would blank ordinary words and protect nothing.
    """
    for secret in sorted(set(secrets), key=len, reverse=True):
        if len(secret) >= 4:
            text = text.replace(secret, MASK)
    text = _USER_INFO.sub(rf"\g<scheme>{MASK}@", text)
    return _PARAMETER.sub(rf"\g<key>\g<gap>{MASK}", text)


def redact_value(value: Any, secrets: Iterable[str] = ()) -> Any:
    """Return a JSON-like value with the secrets of every level hidden."""
    if isinstance(value, Mapping):
        return {
            key: MASK if is_secret_key(str(key)) and item is not None else redact_value(item, secrets)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [redact_value(item, secrets) for item in value]
    return redact(value, secrets) if isinstance(value, str) else value


def secret_values(value: Any, under_secret: bool = False) -> set[str]:
    """The exact secrets of a settings mapping, to be hidden wherever they turn up."""
    if isinstance(value, Mapping):
        return set().union(
            *(secret_values(item, under_secret or is_secret_key(str(key))) for key, item in value.items()), set()
        )
    if isinstance(value, list | tuple):
        return set().union(*(secret_values(item, under_secret) for item in value), set())
    return {value} if under_secret and isinstance(value, str) else set()
