"""The parser of one command and its help, from the fields of its settings.

Covers: flags and positional arguments, what `--help` says of each (what it is, what it takes, its default, whether it
is required), near misses of flags. Does not cover: what a key takes (``config``), or running a command (``cli``).
"""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any, NoReturn

from dboost.errors import UsageError

from . import config
from .flags import flag, near_flag
from .registries import in_words


class Parser(argparse.ArgumentParser):
    """A parser whose errors are exceptions, because an error is one line."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, hint=f"see `{self.prog} --help`")


def command_parser(called: str, summary: str, kind: type[Any], *, full: bool) -> Parser:
    """The parser of a command.

    Parameters
    ----------
    called : str
        What is typed for the command.
    summary : str
    kind : a settings class
    full : bool
        Whether the help will be shown: only then are the defaults of the library looked up.
    """
    parser = Parser(
        prog=called,
        usage=usage(called, kind),
        description=summary[0].upper() + summary[1:] + ".",
        allow_abbrev=False,
    )
    places = {item.name: item for item in positionals(kind)}
    for item in places.values():
        words = f"the same as {flag(item.name)}" + (" (required)" if item.name in kind.required else "")
        parser.add_argument(f"positional_{item.name}", nargs="?", metavar=item.name.upper(), help=words)
    for title, items in groups(kind):
        group = parser.add_argument_group(title)
        for item in items:
            # Values stay text here: one place, `config`, says what a key takes, for flags and for files.
            extra: dict[str, Any] = {"metavar": item.name.upper()}
            if item.metadata["parse"] is config.boolean:
                extra = {"action": argparse.BooleanOptionalAction}
            elif item.metadata["many"]:
                extra["action"] = "append"
            words = help_of(item, kind) if full else ""
            group.add_argument(flag(item.name), dest=item.name, default=None, help=words.replace("%", "%%"), **extra)
    parser.add_argument("--config", metavar="FILE", help="TOML file with the same keys; flags win over it")
    return parser


def positionals(kind: type[Any]) -> list[dataclasses.Field[Any]]:
    """The fields that may be given without a flag, in their order."""
    found = [item for item in dataclasses.fields(kind) if item.metadata["positional"]]
    return sorted(found, key=lambda item: int(item.metadata["positional"]))


def usage(called: str, kind: type[Any]) -> str:
    """One line: what has to be given, and in which order."""
    places = [item.name for item in positionals(kind)]
    words = [key.upper() if key in kind.required else f"[{key.upper()}]" for key in places]
    words += [f"{flag(key)} {key.upper()}" for key in kind.required if key not in places]
    return " ".join([called, *words, "[...]"])


def groups(kind: type[Any]) -> list[tuple[str, list[dataclasses.Field[Any]]]]:
    """The fields by the class that has them, the command's own first, under the first words of that class."""
    fields = {item.name: item for item in dataclasses.fields(kind)}
    found = []
    for owner in kind.__mro__:
        # A field that a class states anew, with another default, stands once.
        mine = [fields.pop(name) for name in owner.__dict__.get("__annotations__", {}) if name in fields]
        if mine:
            title = "of this command" if owner is kind else str(owner.__doc__).splitlines()[0].rstrip(".")
            found.append((title[0].lower() + title[1:], mine))
    return found


def help_of(item: dataclasses.Field[Any], kind: type[Any]) -> str:
    """What a key is, what it takes, its default, and whether it is required."""
    said = str(item.metadata["help"])
    wants = getattr(item.metadata["parse"], "wants", None)
    note = f"; {wants()}" if wants is not None else ""
    head, _, tail = said.partition(" (default: ")
    if item.name in kind.required:
        return f"{head}{note} (required)"
    return f"{head}{note} (default: {tail}" if tail else f"{said}{note}{default_of(item)}"


def default_of(item: dataclasses.Field[Any]) -> str:
    """The default in words; nothing where there is none."""
    shown = item.metadata["shown"]
    found = shown() if shown is not None else item.default
    if found is None or found == ():
        return ""
    return f" (default: {in_words(found)})"


def unknown_argument(called: str, word: str, kind: type[Any]) -> UsageError:
    """The error for an argument that the command does not take, with the nearest flag there is."""
    known = [flag(item.name) for item in dataclasses.fields(kind)]
    switches = [flag(f"no-{i.name}") for i in dataclasses.fields(kind) if i.metadata["parse"] is config.boolean]
    near = near_flag(word, [*known, *switches, "--config", "--help"]) if word.startswith("-") else None
    said = f"; did you mean {near!r}?" if near else ""
    return UsageError(f"unknown argument {word!r}{said}", hint=f"see `{called} --help`")
