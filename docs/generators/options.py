"""Every option in one table: its flag, its parameter, its key of a run file, its default, its meaning.

Covers: the keys of every command and of a run file, and the parameters of every estimator, read from the settings
classes and the signatures. Does not cover: what a value does in a fit (the reference).
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import Any

from numpydoc.docscrape import NumpyDocString

import dboost
from pipelines.cli import COMMANDS, loaded
from pipelines.config import ClusterSettings, DataSettings, LogSettings, OutputSettings, hints
from pipelines.flags import flag
from pipelines.model_settings import TrainedSettings
from pipelines.registries import in_words
from pipelines.runs.run_file import TABLES, keys_of
from pipelines.usage import default_of, is_switch

# What a key of the data is in Python: the parameters of ParquetData, and those of `fit`.
IN_PYTHON = {
    "features": "ParquetData(features=)",
    "label": "ParquetData(label=), y of fit",
    "weight": "ParquetData(weight=), sample_weight of fit",
    "n_features": "ParquetData(n_features=)",
    "split": "ParquetData(split=)",
    "scheduler": "client",
    "data": "X of fit",
    "test": "X of predict",
    "text": "TextFeatures(column=)",
    "epsilon": "losses.EpsilonInsensitive(epsilon=), losses.Huber(epsilon=)",
    "quantile": "losses.Quantile(quantile=)",
    "width": "losses.Quantile(width=)",
    "path": "regularization_path(n_alphas=)",
    "alphas": "regularization_path(alphas=)",
}
HEAD = """# Every option

This page is written from the code: the flags and keys from the settings of the commands, the parameters from the
signatures of the estimators. One row is one option, under each of its names.

- *Flag* is what a command takes. `dboost COMMAND --help` shows the same words. A name in capitals can also be given
  without its flag. `--config FILE` reads the same keys from a TOML file; a flag wins over the file.
- *Run file* is the table and the key in the file of `dboost run`, where they exist. Dashes in keys are underscores.
- *Parameter* is what Python takes. Where estimators have other defaults, these are named.
- *Commands* are those that take the flag.

A command refuses a key that it does not know, with the nearest one that it knows. An estimator refuses a parameter or
a combination that has no meaning for it. Nothing is accepted and ignored.
"""


@dataclasses.dataclass
class Option:
    """One row."""

    name: str
    flag: str = ""
    parameter: str = ""
    run_file: str = ""
    commands: tuple[str, ...] = ()
    default: str = ""
    meaning: str = ""


def estimators() -> dict[str, Any]:
    """Every public estimator, and the functions that take its parameters beside their own."""
    names = [name for name in dboost.__all__ if re.search(r"(Classifier|Regressor)(CV)?$", name)]
    return {name: getattr(dboost, name) for name in [*names, "regularization_path", "cross_validated"]}


# The one that says the defaults that hold for most comes first.
FIRST = ("BoostedClassifier", "BoostedRegressor", "BoostedClassifierCV")


def parameters() -> dict[str, dict[str, Any]]:
    """Name of each keyword of an estimator -> the default of each estimator that has it."""
    found: dict[str, dict[str, Any]] = {}
    known = estimators()
    for name in [*FIRST, *(other for other in known if other not in FIRST)]:
        for each in inspect.signature(known[name]).parameters.values():
            if each.kind is each.KEYWORD_ONLY or name == "OneVsRestBoostedClassifier":
                found.setdefault(each.name, {})[name] = each.default
    return found


def meaning_of(parameter: str, owner: str) -> str:
    """The first sentence of a parameter's description, in its first owner's docstring."""
    text = NumpyDocString(inspect.getdoc(estimators()[owner]) or "")
    for each in text["Parameters"]:
        if parameter in re.split(r",\s*", each.name):
            said = " ".join(line.strip() for line in each.desc) or each.type
            return re.split(r"(?<=[.;])\s+(?=[A-Z`])", said, maxsplit=1)[0]
    return ""


def default_in_words(defaults: dict[str, Any]) -> str:
    """The default of the first estimator that has the parameter, and those that differ with the names of theirs."""
    owners = list(defaults)
    first = defaults[owners[0]]
    groups: dict[str, list[str]] = {}
    for owner in owners[1:]:
        if defaults[owner] != first:
            groups.setdefault(_word(defaults[owner]), []).append(owner)
    others = [f"{value} ({', '.join(names)})" for value, names in groups.items()]
    return "; ".join([_word(first), *others])


def _word(value: Any) -> str:
    if value is inspect.Parameter.empty:
        return "required"
    return "none" if value is None else in_words(value)


def rows() -> list[Option]:
    """Every option: first those of models, then data, clusters, outputs, and those of single commands."""
    found: dict[str, Option] = {}
    places = {name: place for place, name in enumerate(COMMANDS)}
    shared = (TrainedSettings, DataSettings, ClusterSettings, OutputSettings, LogSettings)
    order = [item.name for kind in shared for item in dataclasses.fields(kind)]
    for command in COMMANDS:
        kind = loaded(command)[0]
        for item in dataclasses.fields(kind):
            # A key of the same name that means something else in another command is a row of its own.
            words = " ".join(str(item.metadata["help"]).split())
            key = item.name if _is_shared(kind, item.name) else f"{item.name} of {words}"
            row = found.setdefault(key, Option(item.name))
            row.commands = (*row.commands, command)
            name = flag(item.name)
            row.flag = f"`{name}`, `--no-{name[2:]}`" if is_switch(hints(kind)[item.name]) else f"`{name}`"
            if item.metadata["positional"]:
                row.flag += f", {item.name.upper()}"
            head, _, tail = words.partition(" (default: ")
            row.meaning = row.meaning or head
            row.default = row.default or tail.removesuffix(")") or _field_default(item)
            if item.name in kind.required:
                row.default = "required"
    tables = {name: [table for table in TABLES if name in keys_of(table)] for name in _all_keys()}
    for row in found.values():
        at = [table for table in tables.get(row.name, []) if _belongs(row, table)]
        row.run_file = ", ".join(f"`{table}.{row.name}`" for table in at)
        in_python = row.name in IN_PYTHON and ("train" in row.commands or row.name in ("test", "text"))
        row.parameter = f"`{IN_PYTHON[row.name]}`" if in_python else ""
    for name, defaults in parameters().items():
        row = found.setdefault(name, Option(name))
        row.parameter = f"`{name}`"
        shown = default_in_words(defaults)
        if len(defaults) < 4 and not row.flag:
            shown += f" (of {', '.join(defaults)})"
        words = row.default if row.flag and row.default != "none" else ""
        if words and not shown.startswith(words):
            # The words of a flag say more than None does, and may be another thing than what Python takes.
            said = shown.removeprefix("none").removeprefix("; ")
            row.default = "; in Python ".join(filter(None, (words, said)))
        else:
            row.default = shown
        row.meaning = row.meaning or meaning_of(name, next(iter(defaults)))
    known = {name: place for place, name in enumerate(order)}

    def place(row: Option) -> tuple[int, int, str]:
        if row.name in known:
            return (known[row.name], 0, row.name)
        return (len(order), 0 if not row.commands else 1 + places[row.commands[0]], row.name)

    return sorted(found.values(), key=place)


def _is_shared(kind: type[Any], name: str) -> bool:
    """Whether a key is stated by a class that several commands have, and not by the command itself."""
    owner = next(each for each in kind.__mro__ if name in each.__dict__.get("__annotations__", {}))
    return owner.__module__ in ("pipelines.config", "pipelines.model_settings")


def _field_default(item: dataclasses.Field[Any]) -> str:
    if isinstance(item.default, bool):
        return in_words(item.default)
    found = default_of(item).strip()
    return found.removeprefix("(default: ").removesuffix(")") if found else "none"


def _all_keys() -> set[str]:
    return {name for table in TABLES for name in keys_of(table)}


def _belongs(row: Option, table: str) -> bool:
    """Whether the key of a table is that of this row: names of single commands are used more than once."""
    if table in ("prepare", "evaluate", "predict"):
        return table in row.commands
    if table == "report":
        return "inspect" in row.commands
    return "train" in row.commands or (table == "data" and row.name == "test")


def page() -> str:
    """The page in Markdown."""
    lines = [HEAD, "| flag | parameter | run file | default | meaning | commands |", "|---|---|---|---|---|---|"]
    for row in rows():
        commands = "all" if len(row.commands) == len(COMMANDS) else ", ".join(row.commands) or "Python only"
        cells = (row.flag, row.parameter, row.run_file, row.default, row.meaning, commands)
        lines.append("| " + " | ".join(_cell(text) for text in cells) + " |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """Text of a docstring as a cell of a Markdown table."""
    return re.sub(r"``(.+?)``", r"`\1`", " ".join(text.split())).replace("|", "\\|").replace("<", "&lt;")
