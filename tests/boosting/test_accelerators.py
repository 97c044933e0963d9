"""Every accelerator by itself: taken where it applies, and without it the same certified optimum.

The problems are chosen so that what is switched off was taken before: each accelerator has at least one, with sizes
(``Tuning``) at which it pays on few data. Without any accelerator a fit is the papers' own algorithm.

Does not cover: that an accelerator is worth its code (``lab bench``), or how each works, which is beside its module.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
import pytest

from dboost.boosting.fit import FitSettings
from dboost.boosting.path import path
from dboost.columns.given import ColumnGroups
from dboost.engine.local import LocalEngine
from dboost.errors import UsageError
from dboost.estimators.checkpoint import identity
from dboost.hypotheses.products.family import Products
from dboost.hypotheses.stumps.family import Stumps
from dboost.problem.accelerators import EVERY, Accelerators
from dboost.problem.tuning import Samples, Tuning
from tests.boosting import plain


@dataclass(frozen=True)
class Case:
    """A problem, and the accelerators that a fit of it takes.

    Parameters
    ----------
    loss, penalty : str
    takes : str
        Their names.
    share : float
        alpha as a share of the largest.
    shape : dict
        As for ``plain.make``.
    settings : dict
        Of the fit.
    """

    loss: str
    penalty: str
    takes: str
    share: float = 0.05
    shape: dict = field(default_factory=dict)
    settings: dict = field(default_factory=dict)
    tol: float = 1e-7

    @property
    def data(self):
        return plain.make(self.loss, **{"m": 250, "n": 30, "weights": True, "seed": 4, **self.shape})

    def fit(self, accelerators):
        given = {"penalty": self.penalty, "tol": self.tol, "accelerators": accelerators, **self.settings}
        fitting = plain.fitting(self.data, **given)
        largest = fitting.alpha_max()
        return fitting.fit(self.share * largest if np.isfinite(largest) and largest > 0.0 else self.share)

    def __str__(self):
        return "-".join([self.loss, self.penalty, *map(str, self.settings.values()), self.takes.split()[0]])[:60]


LOOK = "null_sums near_rows"
# examples with few values, of which a sample knows little
SOLVE = "conjugate_gradients heavy_blocks"
ALWAYS_SAMPLED = Tuning(samples=Samples(tiny=0, small=0))
THREE_EACH = ColumnGroups.given(np.arange(30) // 3)

CASES = [
    Case("log", "l1", f"{LOOK} one_output quadratic_model"),
    Case("log", "l1/linf", f"{LOOK} chord one_output quadratic_model", settings={"fit_intercept": False}),
    Case("squared", "l1", "one_output", share=0.02),
    Case("squared", "l1", "one_output", settings={"standardize": True}),
    Case("epsilon_insensitive", "l1", "one_output quadratic_model"),
    Case("multinomial", "l1", f"{LOOK} {SOLVE}"),
    Case("multinomial", "l1/l2", f"{LOOK} chord {SOLVE}"),
    Case("multinomial", "l1/linf", f"{LOOK} {SOLVE}"),
    Case("multinomial", "l1/l2+l1", f"{LOOK} {SOLVE}"),
    Case("multinomial", "l1/l2", "sampled_curvature", 0.05, {"m": 1500}, {"tuning": ALWAYS_SAMPLED}, tol=1e-5),
    Case("multitask", "l1/l2", f"{LOOK} chord {SOLVE}"),
    Case("multitask", "l1", f"null_sums {SOLVE}"),
    Case("multitask", "l1/linf", SOLVE),
    Case("margin_softmax", "l1/l2", SOLVE),
    Case("exp", "l1", f"null_sums near_rows {SOLVE}", tol=1e-6),
    Case("log", "l2_squared", "near_rows null_sums one_output"),
    Case("multinomial", "l2", "near_rows null_sums", tol=1e-6),
    Case("multinomial", "l1/l2", "group_curvature", settings={"column_groups": THREE_EACH}),
]
PAIRS = [(case, name) for case in CASES for name in case.takes.split()]


@cache
def whole(number):
    """The fit of a case with everything."""
    return CASES[number].fit(EVERY)


def agree(case, mine, theirs):
    """Both are certified, so that neither objective may be above the other by more than the gap of its own."""
    for result in (mine, theirs):
        assert result.stop_reason == "tol" and result.gap <= case.tol
    slack = 1e-12 * abs(mine.objective)
    for one, other in ((mine, theirs), (theirs, mine)):
        assert one.lower_bound <= other.objective + slack


@pytest.mark.parametrize("case,name", PAIRS, ids=lambda value: str(value))
def test_without_one_the_certified_optimum_is_the_same(case, name):
    mine = whole(CASES.index(case))
    assert mine.taken.get(name, 0) > 0, f"{name} is not taken here, so that nothing is switched off: {mine.taken}"
    theirs = case.fit(plain.without(name))
    assert name not in theirs.taken
    agree(case, mine, theirs)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_without_any_the_certified_optimum_is_the_same(case):
    theirs = case.fit(())
    assert not theirs.taken
    agree(case, whole(CASES.index(case)), theirs)


def test_every_accelerator_is_switched_off_somewhere():
    # those of paths have a test of their own
    elsewhere = {"path_start", "path_predictor", "strong_rule"}
    assert {name for _, name in PAIRS} | elsewhere == set(EVERY)
    assert not elsewhere & {name for _, name in PAIRS}


# ---- paths ---------------------------------------------------------------------------------------------------------


def along(loss, penalty, accelerators):
    data = plain.make(loss, m=200, n=60, weights=True, seed=2)
    settings = FitSettings(loss, penalty, tol=1e-7, accelerators=accelerators)
    return path(plain.plan(data), LocalEngine(1), settings, n_alphas=15)


@cache
def whole_path(loss, penalty):
    return along(loss, penalty, EVERY)


@pytest.mark.parametrize("loss,penalty", [("log", "l1"), ("multinomial", "l1/l2"), ("multitask", "l1/linf")])
@pytest.mark.parametrize("off", ["path_start", "path_predictor", "strong_rule", None])
def test_a_path_has_the_same_optima_without(loss, penalty, off):
    mine = whole_path(loss, penalty)
    assert sum(result.taken.get("strong_rule", 0) for result in mine) > 1
    theirs = along(loss, penalty, plain.without(off) if off else ())
    taken = sum(result.taken.get("strong_rule", 0) for result in theirs)
    assert taken == 0 if off in ("strong_rule", "path_start", None) else taken > 1
    # the first rounds begin elsewhere
    begun = [[result.history[0]["objective"] for result in results] for results in (mine, theirs)]
    assert off == "strong_rule" or begun[0] != begun[1]
    for one, other in zip(mine, theirs, strict=True):
        agree(Case(loss, penalty, ""), one, other)


# ---- hypotheses ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hypotheses", [Products(max_degree=2), Stumps()], ids=["products", "stumps"])
def test_a_class_of_hypotheses_is_certified_without_any(hypotheses):
    data = plain.make("multinomial", m=150, n=6, weights=True, seed=3)
    settings = {"penalty": "l1/l2", "tol": 1e-6, "hypotheses": hypotheses}
    mine, theirs = (plain.fitting(data, **settings, accelerators=names).fit(0.02) for names in (EVERY, ()))
    assert mine.taken["conjugate_gradients"] and not theirs.taken
    agree(Case("multinomial", "l1/l2", "", tol=1e-6), mine, theirs)


# ---- names ---------------------------------------------------------------------------------------------------------


def test_unknown_names_are_refused_with_the_nearest():
    with pytest.raises(UsageError, match=r"unknown accelerator 'null_sum'.*did you mean 'null_sums'"):
        plain.fitting(plain.make("log", m=20, n=3), accelerators=("null_sum",))
    with pytest.raises(UsageError, match="unknown accelerator"):
        Accelerators(("nothing",))


def test_a_checkpoint_is_of_its_accelerators():
    plan = plain.plan(plain.make("log", m=20, n=3))
    plan.fingerprint = "data"
    usual = FitSettings("log", "l1")
    some = identity(plan, replace(usual, accelerators=()))
    assert identity(plan, usual) != some != identity(plan, replace(usual, accelerators=EVERY[:3]))
    assert "accelerators" not in identity(plan, usual).settings
    assert identity(plan, replace(usual, tuning=ALWAYS_SAMPLED)) != identity(plan, usual)
