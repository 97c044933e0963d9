"""A command as click has it, from the fields of its settings: flags, arguments, help, completion."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import click

from dboost.errors import UsageError

from .config import Names, Switch, alternatives, choices, hints, load, named_now
from .flags import flag, near_flag
from .registries import in_words

# What `--help` is followed by where all keys are wanted.
ALL = "all"
# Key of the settings file among the parameters of a command.
CONFIG = "config"


class SettingsCommand(click.Command):
    """A command whose parameters are the fields of a settings class."""

    def __init__(self, called: str, summary: str, kind: type[Any], callback: Callable[[Any], Any]) -> None:
        self.called, self.kind = called, kind
        places = [
            click.Argument([f"positional_{item.name}"], required=False, metavar=item.name.upper())
            for item in positionals(kind)
        ]
        items, types = [item for _, found in groups(kind) for item in found], hints(kind)
        super().__init__(
            called.split()[-1],
            params=[
                *places,
                *(_option(item, types[item.name]) for item in items),
                click.Option([f"--{CONFIG}"], metavar="FILE"),
            ],
            callback=lambda **values: callback(load(kind, values[CONFIG], self._given(values))),
            help=summary[0].upper() + summary[1:] + ".",
            context_settings={"allow_extra_args": True, "help_option_names": ["-h", "--help"]},
        )

    def _given(self, values: dict[str, Any]) -> dict[str, Any]:
        """The keys that were given, each in one way; a list of names may come in several parts."""
        found, types = {}, hints(self.kind)
        for item in dataclasses.fields(self.kind):
            both = [values.get(f"positional_{item.name}"), values[item.name]]
            here = [value for value in both if value not in (None, ())]
            if len(here) > 1:
                raise self._twice(f"{item.name} is given as {both[0]!r} and with {flag(item.name)}")
            if here:
                found[item.name] = (
                    ",".join(here[0]) if is_list(types[item.name]) and isinstance(here[0], tuple) else here[0]
                )
        return found

    def _twice(self, what: str) -> UsageError:
        return UsageError(what, hint=f"give it once; see `{self.called} --help`")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The arguments, or an error that is one line with the nearest flag there is."""
        args = [self._named_now(word) for word in args]
        for word in ctx.help_option_names:
            if word in args and args[args.index(word) + 1 : args.index(word) + 2] == [ALL]:
                args.remove(ALL)
                ctx.meta[ALL] = True
        try:
            _, _, order = self.make_parser(ctx).parse_args(args=list(args))
            rest = super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            raise self._unknown(error.option_name) from None
        except click.UsageError as error:
            said = error.format_message().rstrip(".").replace("requires an argument", "expected one argument")
            raise UsageError(said, hint=f"see `{self.called} --help`") from None
        if ctx.args and not ctx.resilient_parsing:
            raise self._unknown(ctx.args[0])
        once = [param for param in order if isinstance(param, click.Option) and not param.multiple and param.name]
        for param in once if not ctx.resilient_parsing else ():
            if once.count(param) > 1:
                raise self._twice(f"{max(param.opts, key=len)} is given twice")
        return rest

    def _named_now(self, word: str) -> str:
        """A flag by its name of today."""
        name, equals, value = word[2:].partition("=")
        key = name.replace("-", "_")
        now = named_now(key, hints(self.kind), flag) if word.startswith("--") else key
        return word if now == key else flag(now) + equals + value

    def _unknown(self, word: str) -> UsageError:
        known = [option for param in self.params for option in (*param.opts, *param.secondary_opts)]
        near = near_flag(word, [*known, "--help"]) if word.startswith("-") else None
        said = f"; did you mean {near!r}?" if near else ""
        return UsageError(f"unknown argument {word!r}{said}", hint=f"see `{self.called} --help`")

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One line: what has to be given, and in which order."""
        places = [item.name for item in positionals(self.kind)]
        words = [name.upper() if name in self.kind.required else f"[{name.upper()}]" for name in places]
        words += [f"{flag(name)} {name.upper()}" for name in self.kind.required if name not in places]
        formatter.write_usage(self.called, " ".join([*words, "[...]"]), prefix="usage: ")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The keys that most need; with `--help all` every key, by the class that has it, the command's own first."""
        types, required, few = hints(self.kind), self.kind.required, self.kind.first and ALL not in ctx.meta
        places = [
            (item.name.upper(), f"the same as {flag(item.name)}" + (" (required)" if item.name in required else ""))
            for item in positionals(self.kind)
        ]

        def named(item: dataclasses.Field[Any]) -> str:
            name = flag(item.name)
            return f"{name}, --no-{name[2:]}" if is_switch(types[item.name]) else f"{name} {item.name.upper()}"

        more = [(f"--{CONFIG} FILE", "TOML file with the same keys; flags win over it"), ("-h, --help", "this text")]
        topics = groups(self.kind)
        if few:
            items = {item.name: item for _, found in topics for item in found}
            rest = [(title, sum(item.name not in self.kind.first for item in found)) for title, found in topics]
            count = ", ".join(f"{title} ({n})" for title, n in rest if n)
            topics = [("used most", [items[name] for name in self.kind.first])]
            more = [*more[:1], ("-h, --help all", f"this text with all keys: {count}")]
        sections = [(title, [(named(item), help_of(item, self.kind)) for item in items]) for title, items in topics]
        for title, rows in [("arguments", places), *sections, ("others", more)]:
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def _option(item: dataclasses.Field[Any], hint: Any) -> click.Option:
    """A key as a flag. Values stay text: one place, ``config``, says what a key takes, for flags and for files."""
    if is_switch(hint):
        return click.Option([f"{flag(item.name)}/--no-{flag(item.name)[2:]}", item.name], default=None)

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        return [word for word in choices(hint) if word.startswith(incomplete)]

    several = bool(item.metadata["many"]) or is_list(hint)
    return click.Option([flag(item.name), item.name], multiple=several, default=None, shell_complete=complete)


def is_list(hint: Any) -> bool:
    """Whether a key takes several names, which a flag may give together or one by one."""
    return hint in (Names, Names | None)


def is_switch(hint: Any) -> bool:
    """Whether a key is a flag with and without ``no-``."""
    return hint in (Switch, Switch | None)


def positionals(kind: type[Any]) -> list[dataclasses.Field[Any]]:
    """The fields that may be given without a flag, in their order."""
    found = [item for item in dataclasses.fields(kind) if item.metadata["positional"]]
    return sorted(found, key=lambda item: int(item.metadata["positional"]))


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
    takes = " or ".join(filter(None, (one.in_help() for _, one in alternatives(hints(kind)[item.name]) if one)))
    note = f"; {takes}" if takes else ""
    head, _, tail = said.partition(" (default: ")
    if item.name in kind.required:
        return f"{head}{note} (required)"
    return f"{head}{note} (default: {tail}" if tail else f"{said}{note}{default_of(item)}"


def default_of(item: dataclasses.Field[Any]) -> str:
    """The default in words; nothing where there is none."""
    shown = item.metadata["shown"]
    found = shown() if shown is not None else item.default
    return "" if found is None or found == () else f" (default: {in_words(found)})"
