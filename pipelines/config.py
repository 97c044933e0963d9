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
from typing import Any, TypeVar

from dboost.errors import UsageError
from dboost.paths import local_path

Settings = TypeVar("Settings", bound="LogSettings")


class Expected(Exception):
    """A value is not what its key takes; the text says what it takes."""


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


def whole(low: int) -> Callable[[object], int]:
    """An integer that is at least `low`."""

    def parse(value: object) -> int:
        try:
            number = int(value) if isinstance(value, int | str) and not isinstance(value, bool) else low - 1
        except ValueError:
            number = low - 1
        if number < low:
            raise Expected(f"an integer of at least {low}")
        return number

    return parse


def real(low: float, *, open_end: bool = False, word: str | None = None) -> Callable[[object], Any]:
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

    return parse


def one_of(*choices: str) -> Callable[[object], str]:
    """One of a few words."""

    def parse(value: object) -> str:
        if value not in choices:
            raise Expected("one of " + ", ".join(choices) + near(str(value), choices))
        return str(value)

    return parse


def names(value: object) -> tuple[str, ...]:
    """Column names: a TOML array, or one flag with commas (a name that holds a comma needs the file)."""
    found = value.split(",") if isinstance(value, str) else value
    if not isinstance(found, list | tuple) or not found or not all(isinstance(name, str) and name for name in found):
        raise Expected("one or more column names, separated by commas")
    return tuple(found)


def label_weights(value: object) -> Any:
    """ "balanced", or a table of label to weight (a flag takes it as JSON)."""
    wanted = 'the word "balanced" or a table {label = weight}'
    if value == "balanced":
        return value
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except json.JSONDecodeError:
            raise Expected(wanted + ' (as a flag in JSON: {"spam": 2})') from None
    if not isinstance(value, Mapping) or not value:
        raise Expected(wanted)
    weigh = real(0.0)
    return {label: weigh(weight) for label, weight in value.items()}


def families(value: object) -> Any:
    """A family of hypotheses as a table with its name, or several to be joined; a flag takes the name, or JSON."""
    wanted = 'a table {family = "products", max_degree = 2}, or several in an array'
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.lstrip().startswith(("{", "[")) else {"family": value}
        except json.JSONDecodeError:
            raise Expected(wanted + ' (as a flag a name, or JSON: {"family": "products", "max_degree": 2})') from None
    tables: list[Any] = value if isinstance(value, list) else [value]
    if not tables or not all(isinstance(table, Mapping) and isinstance(table.get("family"), str) for table in tables):
        raise Expected(wanted)
    return [dict(table) for table in tables]


def options(value: object) -> dict[str, Any]:
    """A table handed to the file system (a flag takes it as JSON)."""
    try:
        table = json.loads(value) if isinstance(value, str) else value
    except json.JSONDecodeError:
        table = None
    if not isinstance(table, dict):
        raise Expected("a table of options (as a flag: a JSON object)")
    return table


def key(parse: Callable[[object], Any], default: Any, help: str, *, positional: int = 0) -> Any:
    """A field of a settings class: its parser, its default, what `--help` says.

    With `positional` it may also be given without its flag; the arguments come in the order of these numbers.
    """
    return field(default=default, metadata={"parse": parse, "help": help, "positional": positional})


@dataclass(frozen=True, kw_only=True)
class LogSettings:
    """What every command takes."""

    log_format: str = key(one_of("auto", "table", "plain", "json"), "auto", "table on a terminal, plain lines in a log")
    debug: bool = key(boolean, False, "show the traceback of an error")


@dataclass(frozen=True, kw_only=True)
class OutputSettings:
    """Where the result goes."""

    out: str | None = key(string, None, "folder to write; it must not exist")
    force: bool = key(boolean, False, "replace the output folder of an earlier run")


@dataclass(frozen=True, kw_only=True)
class ClusterSettings:
    """Where the work runs."""

    scheduler: str | None = key(string, None, "address of a Dask scheduler (default: DASK_SCHEDULER_ADDRESS)")
    connect_timeout: float = key(real(0.0, open_end=True), 30.0, "seconds to wait for the scheduler")
    workers: int | None = key(whole(0), None, "workers of the embedded cluster; 0: threads of this process, no cluster")
    memory_limit: str | None = key(string, None, 'memory of each worker of the embedded cluster, such as "2GiB"')


@dataclass(frozen=True, kw_only=True)
class DataSettings:
    """Which data, and which of its columns."""

    data: str | None = key(string, None, "Parquet file or folder, or the output of `dboost prepare`", positional=2)
    split: str | None = key(string, None, "split of a prepared folder (default: train to train, else test)")
    features: tuple[str, ...] | None = key(
        names, None, "numeric columns, one list column, or indices,values (default: what the manifest says, else all)"
    )
    label: tuple[str, ...] | None = key(names, None, "column of the label; several for tasks (default: the manifest's)")
    weight: str | None = key(string, None, "column of the example weights")
    n_features: int | None = key(whole(1), None, "number of columns of indices,values (default: the manifest's)")


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """The estimator's parameters; a key that is not given keeps the estimator's default."""

    loss: str | None = key(
        string,
        None,
        "log, exp, multinomial or multitask (default: by the labels); squared or epsilon_insensitive for regression",
    )
    epsilon: float | None = key(real(0.0), None, "half the width of the tube of loss epsilon_insensitive")
    penalty: str | None = key(string, None, "l1, l1/l2, l1/linf, l1/l2+l1, l2, l2_squared, smooth_l1 or none")
    hypotheses: Any = key(families, None, "what is weighed: columns, products or kernels with their parameters")
    alpha: float | str | None = key(real(0.0, word="auto"), None, "strength of the penalty on the mean loss, or auto")
    update: str | None = key(string, None, "newton, gradboost, adaboost or forward")
    select: str | None = key(string, None, "order of features: greedy, cyclic, random, template or template_uniform")
    sweeps: int | None = key(whole(1), None, "updates between two scorings of gradboost and adaboost; 1: the paper's")
    rows_per_round: int | None = key(whole(1), None, "features that may join in one round")
    tol: float | None = key(real(0.0, open_end=True), None, "certified relative duality gap to reach")
    max_rounds: int | None = key(whole(1), None, "limit of rounds")
    max_passes: int | None = key(whole(1), None, "limit of passes over the data")
    max_seconds: float | None = key(real(0.0, open_end=True), None, "limit of seconds of training")
    max_active_rows: int | None = key(whole(1), None, "limit of features in use")
    fit_intercept: bool | None = key(boolean, None, "fit an intercept, which is never penalised")
    standardize: bool | None = key(boolean, None, "scale columns for the penalty; weights are reported unscaled")
    class_weight: Any = key(label_weights, None, "balanced, or weights by label")
    random_state: int | None = key(whole(0), None, "seed of every random choice")


def near(word: str, known: Iterable[str]) -> str:
    """The sentence that names the nearest known word, or nothing."""
    found = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {found[0]!r}?" if found else ""


def load(kind: type[Settings], file: str | None, flags: Mapping[str, object]) -> Settings:
    """Settings from a TOML file and the flags that override it.

    Parameters
    ----------
    kind : a settings class
    file : path of the TOML file, or None
    flags : mapping of key to value
        What the command line gave; keys without a value are absent.

    Raises
    ------
    UsageError
        For an unreadable file, an unknown key (with the nearest known one) or a value of the wrong kind.
    """
    known = {item.name: item for item in dataclasses.fields(kind)}
    values: dict[str, Any] = {}
    for source, given in ((file, read_toml(file) if file else {}), (None, flags)):
        for name, value in given.items():
            where = name if source else "--" + name.replace("_", "-")
            if name not in known:
                raise UsageError(f"unknown key {name!r}{near(name, known)}", file=source)
            try:
                values[name] = known[name].metadata["parse"](value)
            except Expected as wanted:
                raise UsageError(f"{where}: found {value!r}, expected {wanted}", file=source) from None
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
            raise UsageError(f"{name} is missing: give --{name.replace('_', '-')} or set it in the --config file")
