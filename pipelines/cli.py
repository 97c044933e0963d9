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
from collections.abc import Callable, Sequence
from typing import Any

from dboost.errors import DboostError, UsageError
from dboost.redact import secret_values

from . import config
from .console import Console
from .flags import speaker
from .signals import SIGNALS, Interrupted, Received, listening
from .usage import Parser, command_parser, unknown_argument

# name -> what it does; the module `commands.<name>` (or `demo`) has SETTINGS and run(settings, console) -> exit code.
COMMANDS = {
    "demo": "train and judge three models on the source code this machine has",
    "prepare": "from documents to features: a vocabulary, tf-idf, Parquet",
    "train": "fit a model to prepared data",
    "evaluate": "judge a model on data with labels",
    "predict": "label data with a model",
    "inspect": "show which features a model uses, and which classes share them",
    "reproduce": "the papers' experiments: figures, numbers, whether each claim holds",
    "bench": "how fast it is, against peers and on a cluster, to a given accuracy",
}

DONE, DEFECT, NOT_CONVERGED = 0, 1, 6
BEFORE = "nothing was written to the output folder"
AFTER = "its work was done by then"


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
                speak=speaker(type(settings)),
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
        code, exit_code, line = _describe(error, console.speak)
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


def _describe(error: Exception, speak: Callable[[str], str]) -> tuple[str, int, str]:
    """Name, exit code and line of an error; `speak` puts the words of the library into those of the command line."""
    if isinstance(error, DboostError):
        # Files and columns are the user's own names, which stay as they are.
        hint = None if error.hint is None else speak(error.hint)
        shown = DboostError(
            speak(error.what), file=error.file, column=error.column, row_group=error.row_group, hint=hint
        )
        return error.code, error.exit_code, str(shown)
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
    asked = any(word in ("-h", "--help") for word in arguments[1:])
    found, unknown = command_parser(name, COMMANDS[name], kind, full=asked).parse_known_args(arguments[1:])
    if unknown:
        raise unknown_argument(name, unknown[0].split("=")[0], kind)
    keys = [item.name for item in dataclasses.fields(kind)]
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
        description="Structurally sparse boosting on Dask: few features, shared and certified.",
        epilog=f"commands:\n{commands}\n\n`dboost COMMAND --help` lists the keys of a command.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"dboost {__version__}")
    return parser


