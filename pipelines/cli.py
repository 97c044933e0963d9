"""The console script ``dboost``: from arguments to a command, from an error to one line and an exit code.

Covers: parsing, help, signals, exit codes. Does not cover: what a command does (``commands``) or what a key means
(``config``).
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from dboost.errors import DboostError, UsageError
from dboost.redact import secret_values

from . import config
from .console import Console
from .signals import SIGNALS, Interrupted, Received, listening

# name -> what it does; the module `commands.<name>` (or `demo`) has SETTINGS and run(settings, console) -> exit code.
COMMANDS = {
    "demo": "train and judge three models on the source code this machine has",
    "prepare": "from documents to features: vocabulary with names, tf-idf, Parquet with a manifest",
    "train": "fit a model to prepared data",
    "evaluate": "judge a model on data with labels",
    "predict": "label data with a model",
    "inspect": "show which features a model uses, and which classes share them",
    "reproduce": "the paper's experiments: figures, numbers, and whether each claim holds",
    "bench": "how fast it is: against peers on one machine and on a cluster, to a given accuracy",
}

DONE, DEFECT, NOT_CONVERGED = 0, 1, 6
BEFORE = "nothing was written to the output folder"
AFTER = "its work was done by then"


class Parser(argparse.ArgumentParser):
    """A parser whose errors are exceptions, because an error is one line."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, hint=f"see `{self.prog} --help`")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after the program's name.

    Returns
    -------
    int
        The exit code: 0 done, 1 defect, 2 usage, 3 data, 4 cluster, 5 storage, 6 a limit before ``tol``,
        129 SIGHUP, 130 Ctrl-C, 143 SIGTERM.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        # A feature's name in a language that the terminal cannot show must not end the run.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    # Until the settings are parsed, an error is printed in the plain form.
    console = Console("plain", debug="--debug" in arguments)
    received = Received()
    try:
        with listening(received):
            name, settings = parse(arguments)
            console = Console(
                settings.log_format,
                debug=settings.debug,
                secrets=frozenset(secret_values(dataclasses.asdict(settings))),
            )
            with console.warnings():
                done = int(_module(name).run(settings, console))
        # a signal whose exception was swallowed when there was nothing left to end
        return _interrupted(console, received, Interrupted(), AFTER) if received.numbers else done
    except SystemExit as leave:  # --help and --version print and leave
        return int(leave.code or 0)
    except Interrupted as error:
        return _interrupted(console, received, error)
    except BrokenPipeError:
        # The reader of our output left (`dboost inspect model | head`); there is nobody to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except Exception as error:
        if received.numbers:
            # Compiled code that a signal interrupts turns the exception of the handler into one of its own.
            return _interrupted(console, received, error)
        code, exit_code, line = _describe(error)
        console.error(code, error, line)
        return exit_code


def _interrupted(console: Console, received: Received, error: BaseException, what: str = BEFORE) -> int:
    name, by = SIGNALS[received.numbers[0]]
    try:
        console.error(name, error, f"stopped by {by}; {what}")
    except OSError:
        # The terminal is gone, and whoever would have read this with it.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            os.dup2(nowhere, stream.fileno())
    return received.code


def _describe(error: Exception) -> tuple[str, int, str]:
    """Name, exit code and line of an error."""
    if isinstance(error, DboostError):
        return error.code, error.exit_code, str(error)
    if type(error).__module__.split(".")[0] == "distributed" or isinstance(error, TimeoutError):
        what = f"{type(error).__name__}: {error}"
        return "cluster", 4, f"the connection to the cluster broke ({what}); start it again and repeat the command"
    if isinstance(error, OSError):
        what = error.strerror or str(error)
        return "storage", 5, f"{what}; file {error.filename}" if error.filename else what
    if isinstance(error, MemoryError):
        return "memory", 4, "this process ran out of memory; use smaller row groups, or a cluster (--scheduler)"
    return "defect", DEFECT, f"{type(error).__name__}: {error} (please report it, with the output of --debug)"


def parse(arguments: Sequence[str]) -> tuple[str, Any]:
    """The command's name and its checked settings.

    Raises
    ------
    UsageError
        For an unknown command, flag or key (with the nearest known one), or a value of the wrong kind.
    SystemExit
        After ``--help`` and ``--version``.
    """
    if not arguments or arguments[0].startswith("-"):
        _top_parser().parse_args(arguments)
        raise UsageError("which command?", hint=f"one of {', '.join(COMMANDS)}; see `dboost --help`")
    name = arguments[0]
    if name not in COMMANDS:
        raise UsageError(f"unknown command {name!r}{config.near(name, COMMANDS)}", hint=f"known: {', '.join(COMMANDS)}")
    kind = _module(name).SETTINGS
    parser = _command_parser(name, kind)
    found, unknown = parser.parse_known_args(arguments[1:])
    keys = [item.name for item in dataclasses.fields(kind)]
    if unknown:
        word = unknown[0].split("=")[0]
        near = config.near(word, [_flag(key) for key in [*keys, "config"]])
        raise UsageError(f"unknown argument {word!r}{near}", hint=f"see `dboost {name} --help`")
    values = vars(found)
    flags = {key: values[f"positional_{key}"] for key in keys if values.get(f"positional_{key}") is not None}
    flags |= {key: values[key] for key in keys if values[key] is not None}
    return name, config.load(kind, found.config, flags)


def _module(name: str) -> Any:
    # Imported by the command that runs: `dboost --help` loads neither NumPy nor Dask.
    return importlib.import_module(".demo" if name == "demo" else f".commands.{name}", __package__)


def _top_parser() -> Parser:
    from dboost import __version__

    width = max(map(len, COMMANDS))
    commands = "\n".join(f"  {name.ljust(width)}  {summary}" for name, summary in COMMANDS.items())
    parser = Parser(
        prog="dboost",
        usage="dboost COMMAND [...]",
        description="Structurally sparse boosting on Dask: few features, shared by classes, certified.",
        epilog=f"commands:\n{commands}\n\n`dboost COMMAND --help` lists the keys of a command.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"dboost {__version__}")
    return parser


def _command_parser(name: str, kind: type[Any]) -> Parser:
    summary = COMMANDS[name]
    parser = Parser(prog=f"dboost {name}", description=summary[0].upper() + summary[1:] + ".", allow_abbrev=False)
    parser.add_argument("--config", metavar="FILE", help="TOML file with the same keys; flags win over it")
    for item in dataclasses.fields(kind):
        # Values stay text here: one place, `config`, says what a key takes, for flags and for files.
        extra: dict[str, Any] = {"metavar": item.name.upper()}
        if item.metadata["parse"] is config.boolean:
            extra = {"action": argparse.BooleanOptionalAction}
        parser.add_argument(_flag(item.name), dest=item.name, default=None, help=item.metadata["help"], **extra)
    ranked = [item for item in dataclasses.fields(kind) if item.metadata["positional"]]
    for item in sorted(ranked, key=lambda item: item.metadata["positional"]):
        parser.add_argument(
            f"positional_{item.name}", nargs="?", metavar=item.name.upper(), help=f"the same as {_flag(item.name)}"
        )
    return parser


def _flag(key: str) -> str:
    return "--" + key.replace("_", "-")
