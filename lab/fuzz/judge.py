"""Run one case and say how it ended: whether what the fit claims is true, and what it said where it gave up.

A fit claims of its model (W, b) that no model is better than P(W, b) (1 - gap). The oracle refutes that with a model
that is: one it finds itself, in long double, from the fit's own model and from nothing.
"""

from __future__ import annotations

import math
import re
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lab.fuzz.cases import CERTIFIED, Case, draw
from lab.fuzz.descent import improved
from lab.fuzz.objective import Objective, long

BAD = ("FALSE certificate", "foreign error", "foreign warning")
"""Outcomes that are defects."""
# Reasons to stop that need no warning: the gap is reached, or the gradient vanishes where no certificate exists.
_DONE = ("tol", "gradient")
# The objective below this share of that of no model at all is rounding; claims are made to no less.
_RESOLUTION = 1e-24
_WORDS = 60


@dataclass(frozen=True)
class Outcome:
    """How a case ended."""

    seed: int
    # "certified", "no certificate exists", "refused", "honest end", "out of time", or one of `BAD`.
    kind: str
    # The reason to stop, or the class of the message, without the numbers of this case.
    detail: str
    # Figures and messages of this case.
    note: str
    # Of the fit.
    seconds: float
    # What the fit claims, and what the oracle knows to be there at least; nan where there is none.
    gap: float = math.nan
    true_gap: float = math.nan


def run(seed: int) -> Outcome:
    """Draw the case of a seed, fit it and judge it."""
    return judge(draw(seed))


def judge(case: Case) -> Outcome:
    """Fit a case and judge what the fit says."""
    import dboost

    estimator = getattr(dboost, case.estimator)(**case.settings())
    started = time.perf_counter()

    def outcome(kind: str, detail: str, note: str = "", gap: float = math.nan, true: float = math.nan) -> Outcome:
        return Outcome(case.seed, kind, detail, note, time.perf_counter() - started, gap, true)

    ended, said = tried(lambda: estimator.fit(case.X, case.y, sample_weight=case.weight), outcome)
    if ended is not None:
        return ended
    # a model far from any optimum may have no objective in long double either
    with np.errstate(over="ignore", invalid="ignore"):
        return judged(case, estimator, said, outcome)


def tried(
    call: Callable[[], Any], outcome: Callable[..., Outcome], *, not_of: str | None = None
) -> tuple[Outcome | None, list[str]]:
    """How a call ended that gave nothing, or a warning that is not the library's; and what the library warned of.

    Warnings of files whose path holds `not_of` are those of somebody who was asked to judge, and are left to them.
    """
    from dboost.errors import DboostError, DboostWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call()
        except DboostError as fault:
            return outcome("refused", class_of(str(fault)), str(fault)), []
        except Exception as fault:
            if type(fault) is ValueError and "sklearn" in last_file(fault):
                return outcome("refused", "scikit-learn: " + class_of(str(fault)), str(fault)), []
            kind = f"{type(fault).__name__}: {class_of(str(fault))}"
            return outcome("foreign error", kind, traceback.format_exc()), []
    mine = [one for one in caught if issubclass(one.category, DboostWarning)]
    for one in caught:
        if one not in mine and (not_of is None or not_of not in one.filename):
            where = f"{one.filename.rsplit('/dboost/', 1)[-1]}:{one.lineno}"
            return outcome("foreign warning", f"{one.category.__name__}: {class_of(str(one.message))}", where), []
    return None, [str(one.message) for one in mine]


def judged(case: Case, fitted: Any, said: list[str], outcome: Callable[..., Outcome]) -> Outcome:
    """What a fit that ended without an error is worth, `said` the texts of its warnings."""
    W, b = fitted.coef_.T[: case.n_weights], fitted.intercept_
    gap, reason, value = float(fitted.duality_gap_), str(fitted.stop_reason_), float(fitted.objective_)
    kind = "certified" if reason == "tol" else "no certificate exists" if reason == "gradient" else "honest end"
    note = f"gap {gap:.3g}, objective {value:.6g}, {np.count_nonzero(W)} weights, {fitted.n_iter_} rounds; {said}"
    if not (np.all(np.isfinite(W)) and np.all(np.isfinite(b))):
        return outcome("foreign error", "weights that are no numbers", note, gap)
    problem = case.objective(float(fitted.alpha_))
    true = problem.value(W, b)
    rounding = problem.rounding(W, b)
    fault = _fault(case, reason, gap, value, said, true, rounding, problem)
    if fault:
        return outcome("FALSE certificate", fault, f"{note}; objective in long double {true:.9g}", gap)
    if case.params["penalty"] not in CERTIFIED or not math.isfinite(gap):
        return outcome(kind, reason, note, gap)
    best, _, _ = improved(problem, W, b)
    base = max(true, _RESOLUTION * _at_zero(problem))
    found = float((true - best) / base) if base > 0 else 0.0
    note += (
        f"; a model of {best:.9g} exists, true gap {found:.3g}, rounding {float(rounding / base) if base else 0:.1g}"
    )
    if true - best > gap * base + rounding:
        return outcome("FALSE certificate", "a better model exists", note, gap, found)
    if kind == "honest end" and found <= case.params["tol"]:
        reason += " (at an optimum)" if gap > 10 * case.params["tol"] else " (near tol)"
    return outcome(kind, reason, note, gap, found)


def _fault(
    case: Case, reason: str, gap: float, value: float, said: list[str], true: Any, rounding: Any, problem: Objective
) -> str:
    """What is wrong with the words of a fit, whatever the optimum is; empty where nothing is."""
    # a change of the objective by a millionth of what was asked for is not looked at
    room = 1e-12 + 1e-6 * case.params["tol"]
    if gap < 0.0 or (reason == "tol" and not gap <= case.params["tol"]):
        return "its own gap does not bear it out"
    if reason not in _DONE and not said:
        return "no warning"
    if math.isfinite(gap) and not math.isfinite(value):
        return "a gap of an objective that is no number"
    if math.isfinite(value) and not abs(long(value)[()] - true) <= rounding + room * true + _tiny(problem):
        return "another objective than that of its model"
    return ""


def _at_zero(problem: Objective) -> Any:
    return problem.loss_at(np.zeros_like(problem.y) + problem.offset)[0]


def _tiny(problem: Objective) -> Any:
    """What counts as nothing beside the objective of no model, or as float64 counts."""
    return max(_RESOLUTION * _at_zero(problem), long(np.finfo(float).tiny)[()])


def last_file(fault: BaseException) -> str:
    """The file in which an error was raised."""
    trace = traceback.extract_tb(fault.__traceback__)
    return trace[-1].filename if trace else ""


def class_of(message: str) -> str:
    """A message without the numbers and names of its case."""
    line = message.splitlines()[0] if message else ""
    plain = re.sub(r"[-+]?\d[\d.e+-]*|\binf\b|\bnan\b", "#", line)
    return re.sub(r"'[^']*'", "'…'", plain)[:_WORDS]
