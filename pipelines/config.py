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
from typing import Any, ClassVar, TypeVar

from dboost.errors import UsageError
from dboost.files.paths import local_path

from . import registries
from .flags import flag

Settings = TypeVar("Settings", bound="LogSettings")


class Expected(Exception):
    """A value is not what its key takes; the text says what it takes."""


@dataclass(frozen=True)
class Takes:
    """A parser that says what it takes.

    Parameters
    ----------
    read : function
        From what was given to the value; raises ``Expected``.
    wants : function () -> str
        What is taken, in words; asked for by an error and by ``--help`` only.
    choices : function () -> words, optional
        The words that are taken, where there are few.
    """

    read: Callable[[object], Any]
    wants: Callable[[], str]
    choices: Callable[[], Iterable[str]] | None = None

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


def whole(low: int) -> Takes:
    """An integer that is at least `low`."""
    wanted = f"an integer of at least {low}"

    def parse(value: object) -> int:
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


def labels(value: object) -> tuple[Any, ...]:
    """Labels: a TOML array, or one flag with commas; a flag takes JSON too, for labels that hold commas.

    Whole numbers of a flag are numbers; ``["1", "2"]`` as JSON are texts.
    """
    found: Any = value
    if isinstance(value, str):
        try:
            found = json.loads(value) if value.lstrip().startswith("[") else [_label(word) for word in value.split(",")]
        except json.JSONDecodeError:
            found = None
    if not isinstance(found, list | tuple) or not found or not all(isinstance(one, str | int) for one in found):
        raise Expected("labels separated by commas, or a JSON array of them")
    return tuple(found)


def _label(word: str) -> str | int:
    return int(word) if word.lstrip("-").isdecimal() and str(int(word)) == word else word


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


def factors(value: object) -> dict[str, Any] | tuple[Any, ...]:
    """A table of feature to factor, or a factor for every column; a flag takes either as JSON."""
    wanted = "a table {feature = factor} or a number for each feature, above 0 or inf"
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except json.JSONDecodeError:
            raise Expected(wanted + ' (as a flag in JSON: {"price": 0.5, "id": "inf"})') from None
    if isinstance(value, Mapping) and value:
        return {str(name): _factor(one, wanted) for name, one in value.items()}
    if isinstance(value, list | tuple) and value:
        return tuple(_factor(one, wanted) for one in value)
    raise Expected(wanted)


def _factor(value: object, wanted: str) -> float | str:
    """A number above 0, which JSON has no other way to say is infinite than the word."""
    number = math.inf if value == "inf" else value
    if isinstance(number, bool) or not isinstance(number, int | float) or not number > 0:
        raise Expected(wanted)
    return "inf" if math.isinf(number) else float(number)


def _families(value: object) -> Any:
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


families = Takes(_families, lambda: f"one of {', '.join(registries.families())}, or JSON with its parameters")


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

    log_format: str = key(
        one_of("auto", "table", "plain", "json"), "auto", "auto: table on a terminal, else plain lines"
    )
    debug: bool = key(boolean, False, "show the traceback of an error")


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
    to: str | None = key(
        one_named(registries.places),
        None,
        "kind of cluster that is made for the run, and removed after it (default: local)",
    )
    workers: int | None = key(
        whole(0),
        None,
        "workers of the cluster that is made; 0: threads of this process, no cluster (default: by cores and memory)",
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

    data: str | None = key(string, None, "Parquet file or folder, or the output of `dboost prepare`", positional=2)
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


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """The model, and how it is fitted."""

    loss: str | None = key(
        one_named(registries.losses),
        None,
        "what is minimised; squared, epsilon_insensitive, poisson, huber and quantile are regression, multitask takes "
        "columns (default: by the labels, log for two classes and multinomial for more)",
    )
    epsilon: float | None = key(
        real(0.0),
        None,
        "of loss epsilon_insensitive half the width of its tube, of huber the error from which it is linear "
        "(default: theirs)",
    )
    quantile: float | None = key(
        real(0.0, open_end=True), None, "of loss quantile: the share of labels that is to be below (default: 0.5)"
    )
    width: float | None = key(
        real(0.0, open_end=True), None, "of loss quantile: how far its kink is rounded off (default: 0.1)"
    )
    penalty: str | None = parameter("penalty", one_named(registries.penalties), "what ties the weights of a feature")
    hypotheses: Any = key(families, None, "what is weighed, a family of hypotheses (default: the raw columns)")
    alpha: float | str | None = parameter(
        "alpha",
        real(0.0, word="auto"),
        "strength of the penalty on the mean loss; auto is 0.05 of the least that uses no feature",
    )
    update: str | None = parameter("update", one_named(registries.updates), "how weights move")
    select: str | None = parameter("select", one_named(registries.selections), "order of features")
    sweeps: int | None = key(
        whole(1),
        None,
        "sweeps of updates gradboost and adaboost between two scorings; 1 is the paper's loop (default: until solved)",
    )
    rows_per_round: int | None = key(whole(1), None, "features that may join in one round (default: chosen by the fit)")
    tol: float | None = parameter("tol", real(0.0, open_end=True), "certified relative duality gap to reach")
    max_rounds: int | None = parameter("max_rounds", whole(1), "limit of rounds")
    max_passes: int | None = key(whole(1), None, "limit of passes over the data (default: none)")
    max_seconds: float | None = key(real(0.0, open_end=True), None, "limit of seconds of training (default: none)")
    max_active_rows: int | None = key(whole(1), None, "limit of features in use (default: none)")
    fit_intercept: bool | None = parameter("fit_intercept", boolean, "fit an intercept, which is never penalised")
    standardize: bool | None = parameter(
        "standardize", boolean, "scale columns for the penalty; weights are reported unscaled"
    )
    penalty_factors: Any = key(
        factors,
        None,
        'what multiplies alpha for single features: {"price": 0.5, "id": "inf"}; inf leaves one out (default: 1 each)',
    )
    offset: tuple[str, ...] | None = key(
        names, None, "column that is added to the scores as it is; several classes need one each (default: none)"
    )
    classes: tuple[Any, ...] | None = key(
        labels, None, "all labels there may be, of which the data need not hold every one (default: those it holds)"
    )
    class_weight: Any = key(
        label_weights, None, 'balanced, or weights by label: {"spam": 2}, {"1": 2} (default: every class weighs 1)'
    )
    random_state: int | None = parameter("random_state", whole(0), "seed of every random choice")


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
            where = name if source else flag(name)
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
            raise UsageError(f"{name} is missing: give {flag(name)} or set it in the --config file")
