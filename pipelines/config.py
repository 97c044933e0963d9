"""Settings of a run: from a TOML file and flags to one checked, frozen value.

Covers: the keys, their types and ranges, where a value came from, and the near miss for an unknown key. A key is
written once, as a field of a dataclass; the flag, the TOML key and the help text follow from it.
Does not cover: combinations that only the estimator can judge (it refuses them itself, before any data is read).
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from dboost.errors import UsageError
from dboost.files.paths import local_path

from . import registries, trust
from .flags import flag

if TYPE_CHECKING:
    from dboost.data.meaning import Dialect

Settings = TypeVar("Settings", bound="LogSettings")
S = TypeVar("S", bound="DataSettings")


class Expected(Exception):
    """A value is not what its key takes; the text says what it takes."""


@dataclass(frozen=True)
class Takes:
    """A parser that says what it takes."""

    read: Callable[[object], Any]  # from what was given to the value; raises ``Expected``
    wants: Callable[[], str]  # what is taken, in words; asked for by an error and by ``--help`` only
    choices: Callable[[], Iterable[str]] | None = None  # the words that are taken, where there are few

    def __call__(self, value: object) -> Any:
        """The value, or ``Expected``."""
        return self.read(value)


def string(value: object) -> str:
    """A non-empty string."""
    if not isinstance(value, str) or not value:
        raise Expected("a text that is not empty")
    return value


def boolean(value: object) -> bool:
    """true or false."""
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in words:
        return words[value.lower()]
    raise Expected("true or false")


def boolean_or(word: str) -> Takes:
    """true or false, or the one `word`."""

    def parse(value: object) -> Any:
        return value if value == word else boolean(value)

    return Takes(parse, lambda: f'true, false or "{word}"')


def whole(low: int, *, word: str | None = None) -> Takes:
    """An integer that is at least `low`, or the one `word`."""
    wanted = f"an integer of at least {low}" + (f' or "{word}"' if word else "")

    def parse(value: object) -> Any:
        if word is not None and value == word:
            return value
        try:
            number = int(value) if isinstance(value, int | str) and not isinstance(value, bool) else low - 1
        except ValueError:
            number = low - 1
        if number < low:
            raise Expected(wanted)
        return number

    return Takes(parse, lambda: wanted)


def real(low: float, *, open_end: bool = False, word: str | None = None) -> Takes:
    """A finite number of at least `low` (above it with `open_end`), or the one `word`."""
    wanted = f"a finite number {'above' if open_end else 'of at least'} {low:g}" + (f' or "{word}"' if word else "")

    def parse(value: object) -> Any:
        if word is not None and value == word:
            return value
        try:
            number = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else math.nan
        except ValueError:
            number = math.nan
        if not math.isfinite(number) or number < low or (open_end and number == low):
            raise Expected(wanted)
        return number

    return Takes(parse, lambda: wanted)


def one_of(*choices: str) -> Takes:
    """One of a few words."""
    return one_named(lambda: choices)


def one_named(choices: Callable[[], Iterable[str]]) -> Takes:
    """One of the words of a registry, which is looked up when it is needed: `dboost --help` loads no library."""

    def wants() -> str:
        return "one of " + ", ".join(choices())

    def parse(value: object) -> str:
        if not isinstance(value, str) or value not in choices():
            raise Expected(wants() + near(str(value), choices()))
        return str(value)

    return Takes(parse, wants, choices)


def names(value: object) -> tuple[str, ...]:
    """Column names: a TOML array, or one flag with commas (a name that holds a comma needs the file)."""
    found = value.split(",") if isinstance(value, str) else value
    if not isinstance(found, list | tuple) or not found or not all(isinstance(name, str) and name for name in found):
        raise Expected("one or more column names, separated by commas")
    return tuple(found)


def options(value: object) -> dict[str, Any]:
    """A table handed to the file system (a flag takes it as JSON)."""
    try:
        table = json.loads(value) if isinstance(value, str) else value
    except json.JSONDecodeError:
        table = None
    if not isinstance(table, dict) or _holds_null(table):
        raise Expected("a table of options (as a flag: a JSON object, without null, which TOML does not have)")
    return table


def _holds_null(value: object) -> bool:
    if isinstance(value, Mapping):
        return any(map(_holds_null, value.values()))
    return value is None or (isinstance(value, list) and any(map(_holds_null, value)))


def key(
    parse: Callable[[object], Any],
    default: Any,
    help: str,
    *,
    positional: int = 0,
    shown: Callable[[], str | None] | None = None,
    many: bool = False,
) -> Any:
    """A field of a settings class: its parser, its default, what `--help` says.

    With `positional` it may also be given without its flag; the arguments come in the order of these numbers. `shown`
    gives the default in words where it is not the one of the field. With `many` the flag may be given several times.
    """
    about = {"parse": parse, "help": help, "positional": positional, "shown": shown, "many": many}
    return field(default=default, metadata=about)


def parameter(name: str, parse: Callable[[object], Any], help: str) -> Any:
    """A parameter of the estimators; where it is not given, their default holds, which `--help` shows."""
    return key(parse, None, help, shown=registries.default(name))


@dataclass(frozen=True, kw_only=True)
class LogSettings:
    """What is printed."""

    # Keys without which the command does nothing; `--help` marks them.
    required: ClassVar[tuple[str, ...]] = ()
    # Keys that most need, in the order in which `--help` and `run --print` show them; the others come after these, by
    # their topics. Without any all keys are shown.
    first: ClassVar[tuple[str, ...]] = ()

    log_format: str = key(
        one_of("auto", "table", "plain", "json"), "auto", "auto: table on a terminal, else plain lines"
    )
    debug: bool = key(boolean, False, "show the traceback of an error")
    trust: bool = key(boolean, False, "let a file name hosts, programs and places to write outside of its folder")


@dataclass(frozen=True, kw_only=True)
class OutputSettings:
    """Where the result goes."""

    out: str | None = key(string, None, "folder to write; it must not exist")
    force: bool = key(boolean, False, "replace the output folder of an earlier run")


@dataclass(frozen=True, kw_only=True)
class ClusterSettings:
    """Where the work runs."""

    scheduler: str | None = key(
        string, None, "address of a Dask scheduler (default: DASK_SCHEDULER_ADDRESS, else a cluster of this machine)"
    )
    connect_timeout: float = key(real(0.0, open_end=True), 30.0, "seconds to wait for the scheduler")
    rejoin_seconds: float = key(
        real(0.0), 60.0, "seconds to wait for a lost scheduler to be started again at its address; 0: do not wait"
    )
    to: str | None = key(
        one_named(registries.places),
        None,
        "kind of cluster that is made for the run, and removed after it (default: local)",
    )
    workers: int | None = key(
        whole(0),
        None,
        "workers of the cluster that is made; 0: threads of this process, no cluster (default: 0 for small data, else "
        "by cores and memory)",
    )
    memory_limit: str | None = key(
        string, None, 'memory of each of these workers, such as "2GiB" (default: its share of the memory)'
    )
    hosts: tuple[str, ...] | None = key(
        names, None, "machines of kind ssh: the first has the scheduler, the others the workers"
    )
    tls: str | None = key(
        string, None, 'certificates: "temporary" for the life of the cluster, or a folder of ca.pem, cert.pem, key.pem'
    )
    options: dict[str, Any] | None = key(
        options, None, "further settings of that kind of cluster, as its package names them"
    )


@dataclass(frozen=True, kw_only=True)
class DataSettings:
    """Which data, and which of its columns."""

    data: str | None = key(
        string, None, "documents or features: Parquet, .csv or .jsonl, or the output of `dboost prepare`", positional=2
    )
    split: str | None = key(string, None, "split of a prepared folder (default: train to train, else test)")
    features: tuple[str, ...] | None = key(
        names,
        None,
        "numeric columns, one list column, or two of sparse rows "
        "(default: what the manifest says, else indices,values, else all)",
    )
    label: tuple[str, ...] | None = key(names, None, "column of the label; several for tasks (default: the manifest's)")
    weight: str | None = key(string, None, "column of the example weights (default: every example weighs the same)")
    n_features: int | None = key(whole(1), None, "number of columns of indices,values (default: the manifest's)")
    separator: str | None = key(string, None, "of CSV: what stands between fields (default: told by the first rows)")
    encoding: str | None = key(string, None, "of CSV and JSON lines, such as latin-1 (default: by its mark, or UTF-8)")


@dataclass(frozen=True, kw_only=True)
class NewDataSettings(DataSettings):
    """Data that a model is asked about: what it was trained on, or raw documents."""

    text: tuple[str, ...] | None = key(
        names, None, "columns of the text of raw documents (default: those of the training, or text)"
    )


def dialect_of(settings: Any) -> Dialect:
    """How files of text are written, where the settings say it."""
    from dboost.data.meaning import Dialect

    return Dialect(settings.separator, settings.encoding)


def near(word: str, known: Iterable[str]) -> str:
    """The sentence that names the nearest known word, or nothing."""
    found = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {found[0]!r}?" if found else ""


def load(
    kind: type[Settings], file: str | None, flags: Mapping[str, object], *, kept: bool = False, python: bool = False
) -> Settings:
    """Settings from a TOML file and the flags that override it.

    `flags`: what the command line gave; keys without a value are absent.
    `kept`: whether the file is that of work which was broken off, and is judged by who goes on with it.
    `python`: whether the values are arguments of a function, which errors call by their names.
    """
    known = {item.name: item for item in dataclasses.fields(kind)}
    values: dict[str, Any] = {}
    for source, given in ((file, read_toml(file) if file else {}), (None, flags)):
        for name, value in given.items():
            where = name if source or python else flag(name)
            if name not in known:
                raise UsageError(f"unknown key {name!r}{near(name, known)}", file=source)
            if source and name == "trust":
                raise UsageError("a file cannot say that it is trusted", file=source, hint="give --trust")
            try:
                values[name] = known[name].metadata["parse"](value)
            except Expected as wanted:
                raise UsageError(f"{where}: found {value!r}, expected {wanted}", file=source) from None
        if source and not kept and not boolean(flags.get("trust", False)):
            mine = {name: value for name, value in values.items() if name not in flags}
            trust.refuse(mine, Path.cwd(), local_path(source).resolve().parent, file=source)
    return kind(**values)


def read_toml(file: str) -> dict[str, Any]:
    """The table of a TOML file; dashes in keys are underscores."""
    try:
        table = tomllib.loads(local_path(file, "config").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError("there is no such settings file", file=file) from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the settings file cannot be read: {error}", file=file) from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"the settings file is not valid TOML: {error}", file=file) from None
    return {name.replace("-", "_"): value for name, value in table.items()}


def given(settings: Any, kind: type[Any]) -> dict[str, Any]:
    """The values of the fields of `kind` that were given."""
    return {
        item.name: getattr(settings, item.name)
        for item in dataclasses.fields(kind)
        if getattr(settings, item.name) is not None
    }


def needed(settings: Any, *keys: str) -> None:
    """Refuse settings without these keys."""
    for name in keys:
        if getattr(settings, name) is None:
            raise UsageError(f"{name} is missing: give {flag(name)} or set it in the --config file")
