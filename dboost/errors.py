"""Every error dboost raises on purpose.

Covers: the exception classes, their exit codes, and the one-line form they take on a terminal.
Does not cover: where they are caught (the command line) or warnings (``DboostWarning`` below only names the class).

Each class carries the exit code of the command line, so that an error has one meaning everywhere. Errors that a
scikit-learn user would expect to be a ``ValueError`` are one. Secrets in URLs and options are hidden when an error is
made, so that no log, traceback or pickle of it holds them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dboost.redact import redact, redact_urls

# What other libraries quote of the data: what stands in quotation marks, an array, and the fields of a row. The name of
# a type stands in quotation marks too.
_QUOTED = re.compile(r"""array=\[.*\]|\n\s*\[.*|["'].*["']|["'].*""", re.DOTALL)
_TYPE = re.compile(r"""dtype(=|\()['"]([\w<>|]+)['"]""")
_FIELDS = re.compile(r"(, got \d+): .*", re.DOTALL)
_CONVERTED = re.compile(r"Could not convert .*(?= with type )", re.DOTALL)


def without_values(fault: object) -> str:
    """What another library says was wrong, without the values of the data that it quotes: they may be a document.

    Examples
    --------
    >>> without_values(ValueError("could not convert string to float: 'of the patient'"))
    'could not convert string to float: (a value)'
    """
    said = _CONVERTED.sub("Could not convert (a value)", _FIELDS.sub(r"\1", str(fault)))
    return _QUOTED.sub("(a value)", _TYPE.sub(r"dtype\1\2", said)).strip()


def type_name(value: object) -> str:
    """The type of a value with its article.

    Examples
    --------
    >>> type_name(3), type_name([])
    ('an int', 'a list')
    """
    name = type(value).__name__
    spoken = name.lower()
    return f"an {name}" if spoken.startswith(("a", "e", "i", "o")) and not spoken.startswith("one") else f"a {name}"


@contextmanager
def quoting_no_values() -> Iterator[None]:
    """Take the values of the data out of an error of value that another library raises; its class stays."""
    try:
        yield
    except (DboostError, AttributeError):
        # an estimator that is not fitted is told in names of code: scikit-learn's error of it is of both classes
        raise
    except ValueError as error:
        error.args = (without_values(error),)
        error.__suppress_context__ = True
        raise


class DboostError(Exception):
    """Base of all errors of dboost.

    Parameters
    ----------
    what : str
        What was found and what was expected, in one sentence.
    file, column, row_group : optional
        Where it was found.
    hint : str, optional
        What to do about it.

    Attributes
    ----------
    exit_code : int
        The exit code of the command line for this class of error.
    """

    exit_code = 1
    code = "error"

    def __init__(
        self,
        what: str,
        *,
        file: str | None = None,
        column: str | None = None,
        row_group: int | None = None,
        hint: str | None = None,
    ) -> None:
        self.what = redact(str(what))
        # Files and columns are names that the data chose: `token=red` is a folder or a category there.
        self.file = None if file is None else redact_urls(str(file))
        self.column = redact_urls(column) if isinstance(column, str) else column
        self.row_group = row_group
        self.hint = None if hint is None else redact(str(hint))
        super().__init__(self._line())

    def _line(self) -> str:
        parts = [self.what]
        if self.file is not None:
            parts.append(f"file {self.file}")
        if self.column is not None:
            parts.append(f"column {self.column!r}")
        if self.row_group is not None:
            parts.append(f"row group {self.row_group}")
        if self.hint is not None:
            parts.append(self.hint)
        return "; ".join(parts)

    def __reduce__(self) -> tuple[object, ...]:
        # Errors travel from workers to the driver; keyword-only fields do not survive the default pickling.
        return (_rebuild, (type(self), self.what, self.file, self.column, self.row_group, self.hint))


def _rebuild(
    cls: type[DboostError],
    what: str,
    file: str | None,
    column: str | None,
    row_group: int | None,
    hint: str | None,
) -> DboostError:
    return cls(what, file=file, column=column, row_group=row_group, hint=hint)


class UsageError(DboostError, ValueError):
    """A parameter, a combination of parameters or a command line that has no meaning (exit code 2)."""

    exit_code = 2
    code = "usage"


class DataError(DboostError, ValueError):
    """The data is not what the plan, the manifest or the mathematics needs (exit code 3)."""

    exit_code = 3
    code = "data"


class ClusterError(DboostError, RuntimeError):
    """Workers or scheduler are lost, silent or of another version (exit code 4, resumable)."""

    exit_code = 4
    code = "cluster"


class SchedulerLostError(ClusterError):
    """The scheduler is gone, or does not answer any more; one that is started again knows nothing of before."""


class StorageError(DboostError, OSError):
    """A file could not be written or read back (exit code 5, resumable)."""

    exit_code = 5
    code = "storage"


class ModelFormatError(DboostError, ValueError):
    """A saved model is damaged, of an unknown version, or reaches outside its folder (exit code 3)."""

    exit_code = 3
    code = "model"


class DboostWarning(UserWarning):
    """Base of the warnings of dboost."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*(redact(text) if isinstance(text, str) else text for text in args))


if TYPE_CHECKING:

    class ConvergenceWarning(DboostWarning):
        """A fit ended without reaching ``tol``; the message states the gap it reached."""


def __getattr__(name: str) -> Any:
    # Made when it is first asked for: its second base is in scikit-learn, which these errors do not need.
    if name != "ConvergenceWarning":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, _convergence_warning())


def _convergence_warning() -> type[Warning]:
    """The class of that name: one of ours, and one that filters for scikit-learn's know."""
    from sklearn.exceptions import ConvergenceWarning as Theirs

    about = {"__module__": __name__, "__doc__": "A fit ended without reaching ``tol``; the message states the gap."}
    return type("ConvergenceWarning", (DboostWarning, Theirs), about)
