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
from dataclasses import dataclass
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
    "run": "do what is not done yet of the run that a file describes",
    "resume": "go on with a run that was broken off",
    "runs": "list runs and how each stands",
    "prepare": "from documents to features: a vocabulary, tf-idf, Parquet",
    "train": "fit a model to prepared data",
    "path": "fit models of falling strengths to prepared data",
    "evaluate": "judge a model on data with labels",
    "predict": "label data with a model",
    "inspect": "show which features a model uses, and which classes share them",
}
# Commands of earlier versions, and how the same is run now; they are listed nowhere.
MOVED = {
    "bench": "python -m lab bench",
    "reproduce": "python -m lab reproduce",
}

DONE, DEFECT, NOT_CONVERGED = 0, 1, 6
# After the loss of the cluster and faults of storage a run goes on from where it was.
RESUMABLE = (4, 5)
BEFORE = "nothing was written to the output folder"
AFTER = "its work was done by then"


@dataclass(frozen=True)
class Command:
    """A command that can be run.

    Parameters
    ----------
    called : str
        What is typed for it, as help and errors say it: ``dboost train``.
    summary : str
        What it does, in one line.
    load : function of nothing
        Gives its module, with ``SETTINGS`` and ``run(settings, console) -> exit code``. A function, so that
        `dboost --help` loads neither NumPy nor Dask.
    """

    called: str
    summary: str
    load: Callable[[], Any]


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
    return _guarded(arguments, lambda: (choose(arguments), arguments[1:]))


def run(command: Command, arguments: Sequence[str]) -> int:
    """Run a command of another program, with the same signals, errors and exit codes as ``main``.

    Parameters
    ----------
    command : Command
    arguments : sequence of str
        Those after the command's name.
    """
    return _guarded(arguments, lambda: (command, arguments))


def _guarded(arguments: Sequence[str], chosen: Callable[[], tuple[Command, Sequence[str]]]) -> int:
    for stream in (sys.stdout, sys.stderr):
        # A feature's name in a language that the terminal cannot show must not end the run.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    # Until the settings are parsed, an error is printed in the plain form.
    console = Console("plain", debug="--debug" in arguments)
    received = Received()
    try:
        with listening(received):
            command, given = chosen()
            settings = parse(command, given)
            console = Console(
                settings.log_format,
                debug=settings.debug,
                secrets=frozenset(secret_values(dataclasses.asdict(settings))),
                speak=speaker(type(settings)),
            )
            with console.warnings():
                done = int(command.load().run(settings, console))
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
        if exit_code in RESUMABLE and console.left:
            line = f"{line}; {console.left}"
        console.error(code, error, line)
        return exit_code


def _interrupted(console: Console, received: Received, error: BaseException, what: str = "") -> int:
    what = what or console.left or BEFORE
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


def choose(arguments: Sequence[str]) -> Command:
    """The command that the first argument names.

    Raises
    ------
    UsageError
        Without a name, or for an unknown one (with the nearest known one).
    SystemExit
        After ``--help`` and ``--version``.
    """
    if not arguments or arguments[0].startswith("-"):
        _top_parser().parse_args(arguments)
        raise UsageError("which command?", hint=f"one of {', '.join(COMMANDS)}; see `dboost --help`")
    name = arguments[0]
    if name in MOVED:
        raise UsageError(
            f"`dboost {name}` is not part of an installation any more",
            hint=f"run `{MOVED[name]}` in a checkout of dboost; it takes the same arguments",
        )
    if name not in COMMANDS:
        raise UsageError(f"unknown command {name!r}{config.near(name, COMMANDS)}", hint=f"known: {', '.join(COMMANDS)}")
    module = ".demo" if name == "demo" else f".commands.{name}"
    return Command(f"dboost {name}", COMMANDS[name], lambda: importlib.import_module(module, __package__))


def parse(command: Command, arguments: Sequence[str]) -> Any:
    """The checked settings of a command, from the arguments after its name.

    Raises
    ------
    UsageError
        For an unknown flag or key (with the nearest known one), or a value of the wrong kind.
    SystemExit
        After ``--help``.
    """
    kind = command.load().SETTINGS
    asked = any(word in ("-h", "--help") for word in arguments)
    parser = command_parser(command.called, command.summary, kind, full=asked)
    found, unknown = parser.parse_known_args(arguments)
    if unknown:
        raise unknown_argument(command.called, unknown[0].split("=")[0], kind)
    keys = [item.name for item in dataclasses.fields(kind)]
    values = vars(found)
    flags = {key: values[f"positional_{key}"] for key in keys if values.get(f"positional_{key}") is not None}
    flags |= {key: values[key] for key in keys if values[key] is not None}
    return config.load(kind, found.config, flags)


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
