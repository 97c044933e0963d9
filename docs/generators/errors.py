"""The page of errors and exit codes.

Covers: classes and codes, read from ``dboost.errors`` and ``pipelines.signals``; the cure of each, written here, which
a test compares with the classes there are. Does not cover: single messages, which say their cure themselves.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

from dboost import errors
from pipelines.cli import DEFECT, DONE, NOT_CONVERGED, RESUMABLE
from pipelines.signals import SIGNALS

# class -> what mostly causes it, and what to do.
CURES = {
    "UsageError": (
        "a parameter, a flag or a combination that has no meaning; an output folder that exists",
        "Read the end of the message: it names the value that was found, those that are allowed, and the nearest "
        "known name. Add `--force` to replace the output of an earlier run.",
    ),
    "DataError": (
        "NaN or infinite values, a column that is missing or of another type than in the manifest, labels of one "
        "class only, a file that changed during the fit",
        "The message names file, column and row group. Repair the data, or leave the column out with `features`. "
        "Missing labels are allowed for tasks; missing values in features are not, but `TableFeatures(missing=...)` "
        "can make features of them.",
    ),
    "ClusterError": (
        "the scheduler does not answer, all workers are gone, a worker died again and again (mostly out of memory), "
        "other versions on the workers",
        "Start the cluster again and repeat the command or the fit with the same `checkpoint`: it goes on where it "
        "was. For lack of memory: smaller row groups, or workers with more memory.",
    ),
    "SchedulerLostError": (
        "the scheduler died, or the network to it; it knows nothing of the work any more",
        "Commands wait for one that is started again at its address (`--rejoin-seconds`). In Python connect a new "
        "client and repeat the fit with the same `checkpoint`.",
    ),
    "StorageError": (
        "no room, no permission, a disk or a network folder that is gone",
        "Repair the storage and repeat the command. What was begun is not there half-written.",
    ),
    "ModelFormatError": (
        "a model folder that is incomplete, changed, of an unknown version, or that points outside itself",
        "Copy the folder again from where it was saved. A model is never repaired by hand: its digest would not fit.",
    ),
}
# exit code -> what the command line means by it, and what to do, where no class of errors says it.
CODES: dict[int, tuple[str, str]] = {
    DONE: ("Everything asked for was done.", ""),
    DEFECT: ("A defect of dboost.", "Repeat the command with `--debug` and report what it prints."),
    NOT_CONVERGED: (
        "The fit ended before `tol`: at a limit of rounds, passes, seconds or features, or because it could not come "
        "closer. The model is written and says which gap it reached.",
        "Mostly nothing: the gap says how good the model is. Else raise the limit, or ask for a larger `tol`.",
    ),
}
HEAD = """# Errors and exit codes

The tables are written from the classes of `dboost.errors` and the signals that the command line knows.

An error is one line: what was found, what was expected, where, and what to do. In Python it is an exception; on the
command line it goes to standard error, and the process ends with the code of its class. `--debug` adds the traceback.
Passwords and signed parameters of URLs are masked in all of them.
"""


def classes() -> dict[str, Any]:
    """Every class of errors that is raised, by its name."""
    found = {name: value for name, value in vars(errors).items() if inspect.isclass(value)}
    base = errors.DboostError
    return {name: value for name, value in found.items() if issubclass(value, base) and value is not base}


def exit_codes() -> dict[int, str]:
    """Every exit code and what it means."""
    found = {code: said for code, (said, _) in CODES.items()}
    for name, value in classes().items():
        said = str(inspect.getdoc(value)).splitlines()[0]
        said = re.sub(r" \(exit code.*\)", "", said)
        found[value.exit_code] = " ".join(filter(None, (found.get(value.exit_code), f"`{name}`: {said}")))
    for number, (_, by) in SIGNALS.items():
        found[128 + number] = f"Stopped by {by}, within seconds and with nothing half-written."
    return dict(sorted(found.items()))


def page() -> str:
    """The page in Markdown."""
    lines = [HEAD, "## Exit codes", "", "| code | meaning | can be gone on with |", "|---|---|---|"]
    for code, said in exit_codes().items():
        goes_on = "yes: repeat the command, or `dboost resume`" if code in RESUMABLE or code > 128 else ""
        lines.append(f"| {code} | {said} | {goes_on} |")
    for code, (_, cure) in CODES.items():
        if cure:
            lines += ["", f"Code {code}: {cure}"]
    lines += ["", "## Classes", "", "| class | code | is also a | mostly because of | what to do |"]
    lines += ["|---|---|---|---|---|"]
    for name, value in classes().items():
        cause, cure = CURES[name]
        other = next(base.__name__ for base in value.__mro__ if base.__module__ == "builtins")
        lines.append(f"| `{name}` | {value.exit_code} | `{other}` | {cause} | {cure} |")
    lines += [
        "",
        "All of them are `dboost.DboostError`. In Python an out-of-memory process raises `MemoryError` as ever; the",
        "command line ends with code 4 then.",
        "",
        "## Warnings",
        "",
        "`DboostWarning` is the base of all warnings, and they point at your line. `ConvergenceWarning` says that a",
        "fit ended above `tol` and which gap it reached; it is scikit-learn's class of that name too, so that filters",
        "for one catch the other. What to do in single cases: [when something fails](../guide/failures.md).",
        "",
    ]
    return "\n".join(lines)
