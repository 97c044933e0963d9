"""Warnings that point at the line of the user's program that led to them.

Covers: ``warn_user``. Does not cover: the classes of warnings (``dboost.errors``) or how a terminal shows them.
"""

from __future__ import annotations

import sys
import warnings

from dboost.errors import DboostWarning

# Calls pass through these packages, and through Python's own library, on the way from a user's line to the place that
# has something to say: a context manager, an estimator of scikit-learn around ours, a thread.
PASSED_THROUGH = frozenset({"dboost", "sklearn", "joblib"})


def warn_user(message: str, category: type[Warning] = DboostWarning) -> None:
    """Warn at the innermost line that is in neither dboost, scikit-learn nor Python's library.

    The parameter ``skip_file_prefixes`` of ``warnings.warn`` does this from Python 3.12 on.

    Parameters
    ----------
    message : str
    category : type of Warning
    """
    warnings.warn(message, category, stacklevel=_levels_to_user())


def _levels_to_user() -> int:
    """The ``stacklevel`` for a call of ``warnings.warn`` in the caller of this function.

    Where no line is a user's, as in a worker's thread, it is that of the outermost one.
    """
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and _passed_through(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
        level += not _importing(frame.f_code.co_filename)
    return level


def _importing(filename: str) -> bool:
    """Whether a line is one of Python's import system, which ``warnings.warn`` does not count."""
    return "importlib" in filename and "_bootstrap" in filename


def _passed_through(module: str) -> bool:
    top = module.partition(".")[0]
    return top in PASSED_THROUGH or top in sys.stdlib_module_names
