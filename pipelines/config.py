"""Settings: every key is declared once, and flags, keys of files, arguments of functions and help follow from that.

A key is a field of a dataclass: its type says what it takes, and pydantic reads a value so, wherever it is from. What
is not given is None or the default, and settings that code makes of checked values are not checked again.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, ValidationError

from dboost.errors import UsageError, type_name
from dboost.files.paths import local_path
from dboost.former_names import PARAMETERS, warn_renamed

from . import registries, trust
from .flags import flag

if TYPE_CHECKING:
    from dboost.data.meaning import Dialect

Settings = TypeVar("Settings", bound="LogSettings")
S = TypeVar("S", bound="DataSettings")

# Characters of a value in a message.
_SHOWN = 60


# ---- types ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Says:
    """What a type takes, in words."""

    words: str
    shown: bool | Callable[[], str] = False  # whether `--help` says so too, or what it says in place of it
    flag: str = ""  # how a flag is written, for a text that could not be read

    def of(self, value: object) -> str:
        """What is expected in place of a value."""
        return self.words + (f" (as a flag {self.flag})" if self.flag and isinstance(value, str) else "")

    def in_help(self) -> str:
        """What `--help` says."""
        return self.shown() if callable(self.shown) else self.words if self.shown else ""


@dataclass(frozen=True)
class OneOf:
    """One of the words of a registry, which is looked up when it is needed: `dboost --help` loads no library."""

    choices: Callable[[], Iterable[str]]
    shown: Callable[[], str] | None = None  # what `--help` says where the words are not all that is to be said
    several: bool = False  # whether there may be more of them, with commas

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return AfterValidator(self._known).__get_pydantic_core_schema__(source, handler)

    def _known(self, value: str) -> str:
        for word in value.split(",") if self.several else (value,):
            if word not in self.choices():
                raise ValueError(word)
        return value

    def of(self, value: object) -> str:
        """What is expected in place of a value."""
        return "one of " + ", ".join(self.choices())

    def in_help(self) -> str:
        """What `--help` says."""
        return self.of(None) if self.shown is None else self.shown()


def _boolean(value: object) -> object:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if isinstance(value, str):
        return words.get(value.lower(), value)
    if isinstance(value, int) and not isinstance(value, bool):
        raise ValueError(value)
    return value


def _integer(value: object) -> object:
    if isinstance(value, bool | float):
        raise ValueError(value)
    return int(value) if isinstance(value, str) else value


def _number(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError(value)
    return float(value) if isinstance(value, str) else value


def parts(value: object) -> object:
    """A text with commas as its parts."""
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


def from_json(value: object) -> object:
    """A text as the JSON that a flag takes."""
    return json.loads(value) if isinstance(value, str) else value


def _no_null(value: Any) -> Any:
    if value is None:
        raise ValueError(value)
    for one in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        _no_null(one)
    return value


Text = Annotated[str, Field(min_length=1), Says("a text that is not empty")]
Switch = Annotated[bool, BeforeValidator(_boolean), Says("true or false")]
FromZero = Annotated[int, BeforeValidator(_integer), Field(ge=0), Says("an integer of at least 0", True)]
FromOne = Annotated[int, BeforeValidator(_integer), Field(ge=1), Says("an integer of at least 1", True)]
FromTwo = Annotated[int, BeforeValidator(_integer), Field(ge=2), Says("an integer of at least 2", True)]
NonNegative = Annotated[
    float, BeforeValidator(_number), Field(ge=0, allow_inf_nan=False), Says("a finite number of at least 0", True)
]
Positive = Annotated[
    float, BeforeValidator(_number), Field(gt=0, allow_inf_nan=False), Says("a finite number above 0", True)
]
# A TOML array, or one flag with commas; a name that holds a comma needs the file.
Names = Annotated[
    tuple[Text, ...],
    BeforeValidator(lambda value: value.split(",") if isinstance(value, str) else value),
    Field(min_length=1),
    Says("one or more column names, separated by commas"),
]
Options = Annotated[
    dict[str, Any],
    BeforeValidator(from_json),
    AfterValidator(_no_null),
    Says("a table of options (as a flag: a JSON object, without null, which TOML does not have)"),
]


def alternatives(hint: Any) -> Iterator[tuple[Any, Any]]:
    """The types that a key may have, but for None, each with what is said of it."""
    if get_origin(hint) in (Union, UnionType):
        for one in get_args(hint):
            yield from alternatives(one)
    elif get_origin(hint) is Annotated:
        said = [one for one in hint.__metadata__ if isinstance(one, Says | OneOf)]
        yield get_args(hint)[0], said[0] if said else None
    elif get_origin(hint) is Literal:
        words = get_args(hint)
        yield str, OneOf(lambda: words) if len(words) > 1 else Says(f'"{words[0]}"', True)
    elif hint is not NoneType:
        yield hint, None


def expected(hint: Any, value: object) -> str:
    """What a type takes, in words, with the word that is near to what was given."""
    said = [one for _, one in alternatives(hint) if one is not None]
    return " or ".join(one.of(value) for one in said) + near(str(value), choices(hint))


def choices(hint: Any) -> list[str]:
    """The words that a type takes, where it takes such."""
    return [word for _, one in alternatives(hint) if isinstance(one, OneOf) for word in one.choices()]


_HINTS: dict[Any, dict[str, Any]] = {}


def hints(kind: type[Any]) -> dict[str, Any]:
    """The types of the keys of a settings class."""
    if kind not in _HINTS:
        found = get_type_hints(kind, include_extras=True)
        _HINTS[kind] = {item.name: found[item.name] for item in dataclasses.fields(kind)}
    return _HINTS[kind]


# ---- keys ----------------------------------------------------------------------------------------------------------


def key(
    default: Any,
    help: str = "",
    *,
    positional: int = 0,
    shown: Callable[[], str | None] | None = None,
    many: bool = False,
) -> Any:
    """A field of a settings class: its default, what `--help` says.

    With `positional` it may also be given without its flag; the arguments come in the order of these numbers. `shown`
    gives the default in words where it is not the one of the field. With `many` the flag may be given several times.
    """
    return field(default=default, metadata={"help": help, "positional": positional, "shown": shown, "many": many})


def parameter(name: str, help: str) -> Any:
    """A parameter of the estimators; where it is not given, their default holds, which `--help` shows."""
    return key(None, help, shown=registries.default(name))


@dataclass(frozen=True, kw_only=True)
class LogSettings:
    """What is printed."""

    # Keys without which the command does nothing; `--help` marks them.
    required: ClassVar[tuple[str, ...]] = ()
    # Keys that most need, in the order in which `--help` and `run --print` show them; the others come after these, by
    # their topics. Without any all keys are shown.
    first: ClassVar[tuple[str, ...]] = ()

    log_format: Literal["auto", "table", "plain", "json"] = key("auto", "auto: table on a terminal, else plain lines")
    debug: Switch = key(False, "show the traceback of an error")
    trust: Switch = key(False, "let a file name hosts, programs and places to write outside of its folder")


@dataclass(frozen=True, kw_only=True)
class OutputSettings:
    """Where the result goes."""

    out: Text | None = key(None, "folder to write; it must not exist")
    force: Switch = key(False, "replace the output folder of an earlier run")


@dataclass(frozen=True, kw_only=True)
class ModelFolderSettings:
    """Which model."""

    model: Text | None = key(None, "folder of a model, a run or a retraining", positional=1)


@dataclass(frozen=True, kw_only=True)
class ClusterSettings:
    """Where the work runs."""

    scheduler: Text | None = key(
        None, "address of a Dask scheduler (default: DASK_SCHEDULER_ADDRESS, else a cluster of this machine)"
    )
    connect_timeout: Positive | None = key(None, "seconds to wait for the scheduler (default: 30)")
    rejoin_seconds: NonNegative | None = key(
        None,
        "seconds to wait for a lost scheduler to be started again at its address; 0: do not wait (default: 60)",
    )
    to: Annotated[str, OneOf(registries.places)] | None = key(
        None, "kind of cluster that is made for the run, and removed after it (default: local)"
    )
    workers: FromZero | None = key(
        None,
        "workers of the cluster that is made; 0: threads of this process, no cluster (default: 0 for small data, else "
        "by cores and memory)",
    )
    memory_limit: Text | None = key(
        None, 'memory of each of these workers, such as "2GiB" (default: its share of the memory)'
    )
    hosts: Names | None = key(None, "machines of kind ssh: the first has the scheduler, the others the workers")
    tls: Text | None = key(
        None, 'certificates: "temporary" for the life of the cluster, or a folder of ca.pem, cert.pem, key.pem'
    )
    options: Options | None = key(None, "further settings of that kind of cluster, as its package names them")


@dataclass(frozen=True, kw_only=True)
class DataSettings:
    """Which data, and which of its columns."""

    data: Text | None = key(
        None, "documents or features: Parquet, .csv or .jsonl, or the output of `dboost prepare`", positional=2
    )
    split: Text | None = key(None, "split of a prepared folder (default: train to train, else test)")
    features: Names | None = key(
        None,
        "numeric columns, one list column, or two of sparse rows "
        "(default: what the manifest says, else indices,values, else all)",
    )
    label: Names | None = key(None, "column of the label; several for tasks (default: the manifest's)")
    weight: Text | None = key(None, "column of the example weights (default: every example weighs the same)")
    n_features: FromOne | None = key(None, "number of columns of indices,values (default: the manifest's)")
    separator: Text | None = key(None, "of CSV: what stands between fields (default: told by the first rows)")
    encoding: Text | None = key(None, "of CSV and JSON lines, such as latin-1 (default: by its mark, or UTF-8)")
    decimal: Text | None = key(None, "of CSV: what stands before the fraction of a number, a point or a comma")


@dataclass(frozen=True, kw_only=True)
class NewDataSettings(DataSettings):
    """Data that a model is asked about: what it was trained on, or raw documents."""

    text: Names | None = key(None, "columns of the text of raw documents (default: those of the training, or text)")


@dataclass(frozen=True, kw_only=True)
class JudgedDataSettings(NewDataSettings):
    """Data with labels that a model is judged on."""

    label_separator: Text | None = key(
        None, "what stands between the tags of raw documents whose label is one text (default: that of the training)"
    )


def dialect_of(settings: Any) -> Dialect:
    """How files of text are written, where the settings say it."""
    from dboost.data.meaning import Dialect

    return Dialect(settings.separator, settings.encoding, settings.decimal)


# ---- reading -------------------------------------------------------------------------------------------------------


def shown(value: object) -> str:
    """A value of a parameter in a line: a table, or anything long, by its type."""
    text = repr(value)
    return text if len(text) <= _SHOWN and "\n" not in text else type_name(value)


def near(word: str, known: Iterable[str]) -> str:
    """The sentence that names the nearest known word, or nothing."""
    found = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {found[0]!r}?" if found else ""


def named_now(name: str, known: Iterable[str], called: Callable[[str], str]) -> str:
    """The key that a name means; one that the key had before is taken for one version, with a warning."""
    now = PARAMETERS.get(name, name)
    if now == name or name in known or now not in known:
        return name
    warn_renamed(called(name), called(now))
    return now


def read_keys(
    known: Mapping[str, Any],
    given: Mapping[str, Any],
    file: str | None = None,
    *,
    table: str = "",
    called: Callable[[str], str] | None = None,
    elsewhere: Callable[[str], str] = lambda name: "",
) -> dict[str, Any]:
    """What was given, as these keys take it; `called`: how users name a key, `elsewhere`: where it may belong."""
    called = called or (lambda name: f"{table}.{name}" if table else name)
    found = {}
    for name, value in given.items():
        name = named_now(name.replace("-", "_"), known, called)
        if name in found:
            raise UsageError(f"{called(name)} is given twice, once by its former name", hint="give it once", file=file)
        if name not in known:
            where = f" in [{table}]" if table else ""
            raise UsageError(f"unknown key {name!r}{where}{near(name, known) or elsewhere(name)}", file=file)
        try:
            found[name] = TypeAdapter(known[name]).validate_python(value)
        except ValidationError:
            said = f"{called(name)}: found {shown(value)}, expected {expected(known[name], value)}"
            raise UsageError(said, file=file) from None
    return found


def load(
    kind: type[Settings], file: str | None, flags: Mapping[str, object], *, kept: bool = False, python: bool = False
) -> Settings:
    """Settings from a TOML file and the flags that override it.

    `flags`: what the command line gave; keys without a value are absent.
    `kept`: whether the file is that of work which was broken off, and is judged by who goes on with it.
    `python`: whether the values are arguments of a function, which errors call by their names.
    """
    known, values = hints(kind), {}
    if file:
        content = read_toml(file, "settings file")
        if "trust" in content:
            raise UsageError("a file cannot say that it is trusted", file=file, hint="give --trust")
        values = read_keys(known, content, file)
    given = read_keys(known, flags, called=None if python else flag)
    if file and not kept and not given.get("trust", False):
        mine = {name: value for name, value in values.items() if name not in given}
        trust.refuse(mine, Path.cwd(), local_path(file).resolve().parent, file=file)
    return kind(**values | given)


def read_toml(path: str, what: str) -> dict[str, Any]:
    """The content of a TOML file, which errors call `what`."""
    try:
        return tomllib.loads(local_path(path, what).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"there is no such {what}", file=path) from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the {what} cannot be read: {error}", file=path) from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"the {what} is not valid TOML: {error}", file=path) from None


def read_tables(tables: Mapping[str, Any], known: Iterable[str], file: str | None) -> Mapping[str, Mapping[str, Any]]:
    """The tables of a file, refused where one is unknown or none."""
    for table, content in tables.items():
        known_table(table, known, file)
        if not isinstance(content, Mapping):
            raise UsageError(f"{table}: found {content!r}, expected a table [{table}]", file=file)
    return tables


def known_table(table: str, known: Iterable[str], file: str | None = None) -> None:
    """Refuse a table that there is not."""
    if table not in known:
        raise UsageError(f"unknown table {table!r}{near(table, known)}", file=file, hint=f"known: {', '.join(known)}")


def given(settings: Any, kind: type[Any]) -> dict[str, Any]:
    """The values of the fields of `kind` that were given."""
    found = ((item.name, getattr(settings, item.name)) for item in dataclasses.fields(kind))
    return {name: value for name, value in found if value is not None}


def needed(settings: Any, *keys: str) -> None:
    """Refuse settings without these keys."""
    for name in keys:
        if getattr(settings, name) is None:
            raise UsageError(f"{name} is missing: give {flag(name)} or set it in the --config file")


def tables_to_toml(tables: Mapping[str, Mapping[str, Any]]) -> str:
    """Tables of values as a TOML file."""
    from dboost.files.documents import to_toml

    lines = []
    for table, values in tables.items():
        lines += [f"[{table}]", *(f"{name} = {to_toml(value)}" for name, value in values.items()), ""]
    return "\n".join(lines)
