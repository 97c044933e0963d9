"""The console script ``dboost``: from arguments to a command, from an error to one line and an exit code."""

from __future__ import annotations

import dataclasses
import importlib
import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import click
from click.shell_completion import shell_complete

from dboost.errors import DboostError, UsageError, without_values
from dboost.redact import secret_values

from .console import Console
from .flags import speaker
from .signals import SIGNALS, Interrupted, Received, listening

# group -> name -> what it does
GROUPS = {
    "start here": {
        "demo": "see it work: a model of the source code that this machine has",
        "run": "prepare, train, judge and label as one file says; skips what is done",
        "resume": "go on with a run, or a command, that was interrupted",
        "runs": "list runs, and whether each is done",
    },
    "step by step": {
        "prepare": "from documents to features: a vocabulary, tf-idf, Parquet",
        "train": "fit a model to prepared data, or to a table of numbers",
        "path": "fit models from few features to many, as the penalty weakens",
        "evaluate": "judge a model on data with labels",
        "predict": "label new data with a model",
    },
    "reading a model": {
        "inspect": "show which features a model uses, and which classes share them",
        "explain": "show which words of a document speak for which class",
        "report": "write a model as one HTML page",
    },
    "every night, and on clusters": {
        "retrain": "train on newer data; put the model to use if it is good enough",
        "rollback": "put the model before this one to use again",
        "submit": "put a run on a cluster and leave it there",
        "logs": "show what a run has printed, and follow it",
        "stop": "end a run that was submitted; resume goes on with it",
        "doctor": "check whether this machine or a cluster can do a training",
        "warm": "compile loops ahead of the first fit, here or for another machine",
    },
}
COMMANDS = {name: does for group in GROUPS.values() for name, does in group.items()}
# The file of `commands` that has a command, where it is not that of its name.
FILES = {
    **dict.fromkeys(("resume", "runs", "submit", "logs", "stop"), "run"),
    **dict.fromkeys(("inspect", "report", "explain"), "models"),
    **{"path": "train", "rollback": "retrain", "warm": "doctor"},
}
# Commands of earlier versions, and how the same is run now; they are listed nowhere.
MOVED = {
    "bench": "python -m lab bench",
}

DONE, DEFECT, NOT_CONVERGED = 0, 1, 6
# After the loss of the cluster and faults of storage a run goes on from where it was.
RESUMABLE = (4, 5)
# Set by a shell that asks for completions: `eval "$(_DBOOST_COMPLETE=bash_source dboost)"` turns them on.
COMPLETE = "_DBOOST_COMPLETE"
BEFORE = "nothing was written to the output folder"
AFTER = "its work was done by then"


def loaded(name: str) -> tuple[type[Any], Callable[[Any, Console], Any]]:
    """The settings of a command, and what does it; `dboost --help` loads none, and so neither NumPy nor Dask."""
    module = ".demo" if name == "demo" else f".commands.{FILES.get(name, name)}"
    found: tuple[type[Any], Callable[[Any, Console], Any]] = importlib.import_module(module, __package__).COMMANDS[name]
    return found


class Session:
    """One call: how it prints, and which signals it has received."""

    def __init__(self, arguments: Sequence[str]) -> None:
        # Until the settings are parsed, an error is printed in the plain form.
        self.console = Console("plain", debug="--debug" in arguments)
        self.received = Received()

    def do(self, name: str, settings: Any) -> int:
        """Run a command with its settings."""
        self.console = Console(
            settings.log_format,
            debug=settings.debug,
            secrets=frozenset(secret_values(dataclasses.asdict(settings))),
            speak=speaker(type(settings)),
        )
        from .config import needed

        needed(settings, *settings.required)
        with self.console.warnings():
            given = loaded(name)[1](settings, self.console)
        # an exit code of its own, or what a function of Python returns
        return given if isinstance(given, int) else DONE


class Commands(click.Group):
    """The commands; a module is loaded when its command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in their order."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command:
        """A command."""
        if name in MOVED:
            raise UsageError(
                f"`dboost {name}` is not part of an installation any more",
                hint=f"run `{MOVED[name]}` in a checkout of dboost; it takes the same arguments",
            )
        if name not in COMMANDS:
            from .config import near

            known = ", ".join(COMMANDS)
            raise UsageError(f"unknown command {name!r}{near(name, COMMANDS)}", hint=f"known: {known}")
        from .usage import SettingsCommand

        def callback(settings: Any) -> int:
            session: Session = click.get_current_context().obj
            return session.do(name, settings)

        return SettingsCommand(f"{ctx.command_path} {name}", COMMANDS[name], loaded(name)[0], callback)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The name of a command and the arguments after it."""
        if not args and not ctx.resilient_parsing:
            raise UsageError("which command?", hint=f"one of {', '.join(COMMANDS)}; see `dboost --help`")
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            raise UsageError(error.format_message().rstrip("."), hint="see `dboost --help`") from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands with what they do; none is loaded for it."""
        width = max(map(len, COMMANDS))
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), does) for name, does in commands.items()])
        formatter.write("\n`dboost COMMAND --help` lists what is used most, `--help all` everything.\n")


def _version(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from dboost import __version__

        click.echo(f"dboost {__version__}")
        ctx.exit()


class Boost(Commands):
    """The same commands within `dask`, whose errors, signals and exit codes are ours all the same."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> click.Context:
        """A context for completion; otherwise the command is run, and the process ends with its exit code."""
        if extra.get("resilient_parsing"):
            return super().make_context(info_name, args, parent, **extra)
        sys.exit(_guarded(args, lambda session: _invoke(dboost, "dask boost", args, session)))


_ABOUT: dict[str, Any] = {
    "subcommand_metavar": "COMMAND [...]",
    "context_settings": {"help_option_names": ["-h", "--help"]},
    "params": [click.Option(["--version"], is_flag=True, expose_value=False, is_eager=True, callback=_version)],
    "help": "Structurally sparse boosting on Dask: few features, shared and certified.",
}
dboost = Commands("dboost", **_ABOUT)
boost = Boost("boost", **_ABOUT)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns the exit code: 0 done, 1 defect, 2 usage, 3 data, 4 cluster, 5 storage, 6 a limit before ``tol``, 129
    SIGHUP, 130 Ctrl-C, 143 SIGTERM.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if COMPLETE in os.environ:
        return shell_complete(dboost, {}, "dboost", COMPLETE, os.environ[COMPLETE])
    return _guarded(arguments, lambda session: _invoke(dboost, "dboost", arguments, session))


def _invoke(command: click.Command, name: str, arguments: Sequence[str], session: Session) -> int:
    # `Command.main` would turn an interrupt and a broken pipe into ends of its own
    with command.make_context(name, list(arguments), obj=session) as context:
        return int(command.invoke(context))


def _guarded(arguments: Sequence[str], start: Callable[[Session], int]) -> int:
    for stream in (sys.stdout, sys.stderr):
        # A feature's name in a language that the terminal cannot show must not end the run.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    session = Session(arguments)
    received = session.received
    try:
        with listening(received), session.console.warnings():
            done = start(session)
        # a signal whose exception was swallowed when there was nothing left to end
        return _interrupted(session.console, received, Interrupted(), AFTER) if received.numbers else done
    except click.exceptions.Exit as leave:  # --help and --version print and leave
        return leave.exit_code
    except Interrupted as error:
        return _interrupted(session.console, received, error)
    except BrokenPipeError:
        # The reader of our output left (`dboost inspect model | head`); there is nobody to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except Exception as error:
        console = session.console
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
        what = f"{type(error).__name__}: {without_values(error)}"
        return "cluster", 4, f"the connection to the cluster broke ({what}); start it again and repeat the command"
    if isinstance(error, OSError):
        what = error.strerror or str(error)
        return "storage", 5, f"{what}; file {error.filename}" if error.filename else what
    if isinstance(error, MemoryError):
        return "memory", 4, "this process ran out of memory; use smaller row groups, or a cluster (--scheduler)"
    # What another library raises may quote a document; names of code, which stand in quotation marks too, are told.
    said = str(error) if type(error) in (AttributeError, NameError, TypeError) else without_values(error)
    return "defect", DEFECT, f"{type(error).__name__}: {said} (please report it, with the output of --debug)"
