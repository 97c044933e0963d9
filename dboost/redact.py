"""Secrets out of everything that is printed, raised or written: URLs, storage options, ``key=value`` text.

Covers: the user information and the signed query parameters of URLs, strings under a key that names a secret, and the
exact values that a run was given as secrets. Does not cover: secrets inside data files.

What is hidden follows from where a secret stands, never from how a word sounds: a key is secret when the whole of it
names one (``password``, ``X-Amz-Signature``; not ``passes`` or ``tokenizer``). Numbers are never hidden, because the
results of a run stand under keys that the data chose: a class may be called ``password``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

MASK = "***"

# A shorter secret is not searched for outside the place it was given in: it would blank ordinary text.
SHORTEST_SOUGHT = 4
# From this length a secret is hidden inside a longer word too; a shorter one could be a part of an ordinary word.
SOUGHT_IN_WORDS = 8

# A key is split into words at every sign that is no letter or digit, and where a capital begins: AWSAccessKeyId.
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
# Last words of a key that name a secret and nothing else.
_PLAIN = frozenset({"password", "passwd", "passphrase", "authorization", "apikey", "accesskey", "secretkey"})
# Last words that are ordinary words of prose and of data, too.
_COMMON = frozenset({"secret", "token", "credential", "credentials", "signature", "sig", "sas", "pwd"})
_KEYS = frozenset({"api", "access", "account", "secret", "private", "session", "shared"})
# The names that file systems give to the two halves of a pair of keys; secret only as the whole key of an option.
_OPTIONS = frozenset({"key", "auth"})

# One or two slashes: a path object makes `s3:/` of `s3://`. A scheme of one letter is a drive, and the @ in a file URL
# belongs to a name. The user goes up to the last @ before a slash, or behind `name:no-port` over slashes, which keys of
# S3 hold; the bound keeps the search linear in the length of the text, and is above the length of any such key.
_USER = re.compile(
    r"(?<![A-Za-z0-9+.\-])(?!file:)(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]+:/{1,2})"
    r"(?P<user>[^\s/?#@'\"]*(?:@[^\s/?#@'\"]*)*|[^\s/?#@'\":\[]*:(?!\d*(?:[/?#'\"]|$))[^\s?#@'\"]{0,512})@",
    re.IGNORECASE,
)
_PARAMETER = re.compile(r"(?P<head>[?&](?P<key>[\w.\-]+)=)(?P<value>[^\s&;#'\"]+)")

_HEAD = re.compile(r"(?<![\w.\-])(?P<key>[A-Za-z_][\w.\-]*)(?P<quote>[\"']?)\s*(?P<sign>[=:])\s*")
_QUOTED = re.compile(r"b?\"(?P<a>[^\"]*)\"|b?'(?P<b>[^']*)'")
_BARE = re.compile(r"(?:(?:Bearer|Basic|Token)\s+)?[^\s&;,\"'}\])]+", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?[\d_.]+(?:e[+-]?\d+)?%?", re.IGNORECASE)


def _strength(key: str) -> int:
    """How surely a key names a secret: 3 `password`, `api_key`; 2 `client_secret`; 1 `token`; 0 not at all."""
    words = [word.lower() for word in _WORDS.findall(key)]
    if not words:
        return 0
    if words[-1] == "id" and len(words) > 2:
        words = words[:-1]
    if words[-1] in _PLAIN or (len(words) > 1 and words[-1] == "key" and words[-2] in _KEYS):
        return 3
    if words[-1] in _COMMON:
        return 2 if len(words) > 1 else 1
    return int(key.lower() in _OPTIONS)


def is_secret_key(key: str) -> bool:
    """Whether a string under this key is hidden: the whole key names a secret."""
    return _strength(key) > 0


def redact_urls(text: str, secrets: Iterable[str] = ()) -> str:
    """Return `text` with the user information and the signed parameters of URLs hidden.

    This is for text that holds names which the data chose: labels, columns, files.

    Parameters
    ----------
    text : str
    secrets : iterable of str
        Values known to be secret; hidden wherever they occur. Numbers and values of fewer than four characters are
        not searched for: that would blank ordinary text and protect nothing.
    """
    for secret in sorted(set(secrets), key=len, reverse=True):
        if len(secret) >= SHORTEST_SOUGHT and not _NUMBER.fullmatch(secret):
            edge = "" if len(secret) >= SOUGHT_IN_WORDS else r"\w"
            bounded = f"(?<!{edge}){re.escape(secret)}(?!{edge})" if edge else re.escape(secret)
            text = re.sub(bounded, MASK, text)
    if ":/" in text:
        text = _USER.sub(rf"\g<scheme>{MASK}@", text)
    return _PARAMETER.sub(_masked_parameter, text)


def _masked_parameter(found: re.Match[str]) -> str:
    return found["head"] + MASK if is_secret_key(found["key"]) else found[0]


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Return the text of a message with every secret replaced by ``***``.

    Besides what `redact_urls` hides, these are values behind a key that names a secret: ``password=...``,
    ``'secret': '...'``, ``api-key: ...``.

    Parameters
    ----------
    text : str
    secrets : iterable of str
        As for `redact_urls`.
    """
    text = redact_urls(text, secrets)
    parts, done = [], 0
    for head in _HEAD.finditer(text):
        if head.start() < done:
            continue
        hidden = _hidden(text, head)
        if hidden is not None:
            start, stop = hidden
            parts += [text[done:start], MASK]
            done = stop
    return "".join([*parts, text[done:]])


def _hidden(text: str, head: re.Match[str]) -> tuple[int, int] | None:
    """Where the value behind a key stands that is to be hidden."""
    strength = _strength(head["key"])
    if not strength:
        return None
    quoted = _QUOTED.match(text, head.end())
    if head["quote"]:
        # An entry of a mapping as Python or JSON writes it; `column 'password': found ...` is prose.
        return None if quoted is None else _inside(quoted)
    before = text[head.start() - 1 : head.start()]
    if before == "/" or (strength == 1 and (head["sign"] == ":" or head["key"].lower() in _OPTIONS)):
        # /token=red/ is a folder of a partitioned data set, "unexpected token: x" is prose.
        return None
    if strength < 3 and before in ("'", '"'):
        # 'token=red' is the name of a column that holds one category.
        return None
    if quoted is not None:
        return _inside(quoted)
    bare = _BARE.match(text, head.end())
    if bare is None or bare[0] == MASK or (strength < 3 and _NUMBER.fullmatch(bare[0])):
        return None
    return bare.span()


def _inside(quoted: re.Match[str]) -> tuple[int, int]:
    return quoted.span("a") if quoted["a"] is not None else quoted.span("b")


def redact_value(value: Any, secrets: Iterable[str] = ()) -> Any:
    """Return a JSON-like value with the secrets of every level hidden; numbers and keys stay as they are."""
    if isinstance(value, Mapping):
        return {
            key: _masked(item) if is_secret_key(str(key)) else redact_value(item, secrets)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [redact_value(item, secrets) for item in value]
    return redact_urls(value, secrets) if isinstance(value, str) else value


def _masked(value: Any) -> Any:
    """A value under a secret key: its strings are secrets, whatever is around them."""
    if isinstance(value, Mapping):
        return {key: _masked(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(item) for item in value]
    return MASK if isinstance(value, str | bytes) else value


def secret_values(value: Any, under_secret: bool = False) -> set[str]:
    """The exact secrets of a settings mapping, to be hidden wherever they turn up.

    These are strings under secret keys, the password (or the token) in a URL, and the values of its signed parameters.
    """
    if isinstance(value, Mapping):
        found = (secret_values(item, under_secret or is_secret_key(str(key))) for key, item in value.items())
        return set().union(*found)
    if isinstance(value, list | tuple):
        return set().union(*(secret_values(item, under_secret) for item in value))
    if not isinstance(value, str):
        return set()
    return {value} if under_secret else _secrets_of_urls(value)


def _secrets_of_urls(text: str) -> set[str]:
    from urllib.parse import unquote

    found = {p["value"] for p in _PARAMETER.finditer(text) if is_secret_key(p["key"])}
    for url in _USER.finditer(text):
        name, colon, password = url["user"].partition(":")
        found.add(password if colon else name)
    return {form for secret in found for form in (secret, unquote(secret)) if form}
