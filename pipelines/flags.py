"""From the words of the library to those of the command line: ``classes=`` is ``--classes`` there.

The library speaks to people who write Python. What it says reaches the command line too, where the same parameter is a
flag.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Callable, Iterable
from typing import Any

# Parameters of the library that have another name on the command line.
RENAMED = {"sample_weight": "weight", "client": "scheduler"}
# Ways of Python, and how the same is said on the command line; tried in this order, before single parameters.
PHRASES: tuple[tuple[str, str], ...] = (
    (r"\bParquetData\(path, (features=)\[\.\.\.\]\)", r"\1NAME,NAME"),
    (r"\bParquetData\(path, ([^()]*)\)", r"\1"),
    (r"\bParquetData names no label column", "no label column is named"),
    (r"\b(?:use )?Boosted\w+ with (?=loss=)", "use "),
    (r"\buse a regressor\b", "use --loss squared or another of a regression"),
    (r"\balpha_best_=(\S+)", r"the best alpha, \1,"),
    (r"\ba smaller eps than\b", "eps= smaller than"),
    (r", a dict of label to weight, or None\b", ', or JSON such as {"spam": 2}'),
)
# `name=` and a value that may follow at once: a text in quotes, an empty pair of them, a list, or one word. What stands
# within a path, a quoted text or another word is none of ours.
_ASSIGNED = re.compile(
    r"""(?<![\w./'"=-])(?P<name>[a-z]\w*)=(?P<value>"[^"]*"|'[^']*'|\[[^\]]*\]|[\w.+-]*\w)?""", re.ASCII
)
_CALL = re.compile(r"\b(?:dboost\.)?(?P<family>[A-Z]\w+)\((?P<arguments>[^()]*)\)", re.ASCII)
_BARE = re.compile(r"""(?<![\w./'"=-])[a-z]+(?:_[a-z]+)+(?![\w.='"-])""", re.ASCII)
_TWICE = re.compile(r"(--[\w-]+) \(\1\)")


def flag(key: str) -> str:
    """The flag of a key."""
    return "--" + key.replace("_", "-")


def speaker(kind: type[Any]) -> Callable[[str], str]:
    """Turns a sentence of the library into one of the command line, whose flags are the fields of `kind`."""
    from .config import hints
    from .usage import is_switch

    keys = {name: is_switch(hint) for name, hint in hints(kind).items()}
    return lambda sentence: in_flags(sentence, keys)


def in_flags(sentence: str, keys: dict[str, bool]) -> str:
    """A sentence with flags in place of parameters; `keys` are those of the command, and whether each is a switch."""

    def assigned(match: re.Match[str]) -> str:
        name = RENAMED.get(match["name"], match["name"])
        if name not in keys:
            return match[0]
        value = match["value"]
        if keys[name] and value in ("True", "False"):
            return flag(name) if value == "True" else "--no-" + flag(name)[2:]
        return flag(name) if value is None else f"{flag(name)} {_plain(value)}"

    def bare(match: re.Match[str]) -> str:
        name = RENAMED.get(match[0], match[0])
        return flag(name) if name in keys else match[0]

    for pattern, words in PHRASES:
        sentence = re.sub(pattern, words, sentence)
    if "hypotheses" in keys:
        sentence = _CALL.sub(_family, sentence)
    return _TWICE.sub(r"\1", _BARE.sub(bare, _ASSIGNED.sub(assigned, sentence)))


def _plain(value: str) -> str:
    """A value of Python as it is typed in a shell."""
    if value[0] in "'\"":
        return shlex.quote(value[1:-1])
    if value[0] == "[":
        return ",".join(part.strip(" '\"") for part in value[1:-1].split(","))
    return value


def _family(match: re.Match[str]) -> str:
    """A family of hypotheses that is written as a call, as the JSON that ``--hypotheses`` takes."""
    from dboost.hypotheses import FAMILIES

    names = {cls: name for name, (_, cls) in FAMILIES.items()}
    if match["family"] not in names:
        return match[0]
    try:
        call = ast.parse(match[0], mode="eval").body
        assert isinstance(call, ast.Call)
        if call.args:
            return match[0]
        given = {str(item.arg): ast.literal_eval(item.value) for item in call.keywords}
        return f"--hypotheses '{json.dumps({'family': names[match['family']]} | given)}'"
    except (SyntaxError, ValueError, TypeError):
        # An ellipsis, or the name of a variable, stands for something that only Python has.
        return match[0]


def near_flag(word: str, flags: Iterable[str]) -> str | None:
    """The flag nearest to a word, without the dashes that all flags share; None where none is near."""
    import difflib

    bare = {name.lstrip("-"): name for name in flags}
    found = difflib.get_close_matches(word.lstrip("-").replace("_", "-").lower(), list(bare), n=1, cutoff=0.6)
    return bare[found[0]] if found else None
