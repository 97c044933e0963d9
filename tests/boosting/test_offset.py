"""Scores that begin at offsets: against a plain solver that adds them itself, whatever the loss, penalty or way.

Covers: fits by settings. Does not cover: names, models, files and refusals (tests/estimators), glmnet (lab).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from dboost.boosting import fit as fits
from dboost.boosting import path as paths
from dboost.boosting.fit import FitSettings
from dboost.columns.given import PENALTY_FACTORS, Signs, given_offset
from dboost.data.streamed import StreamedPartition
from dboost.engine.local import LocalEngine
from dboost.errors import DataError, UsageError
from dboost.losses import LOSSES
from dboost.passes.offsets import Offsets
from tests.boosting import plain

N = 12


@dataclass(frozen=True)
class Begun(plain.Data):
    """Data whose scores begin at offsets (m, k)."""

    begin: Any = None

    def seen(self, F):
        return super().seen(F + self.begin)

    def take(self, rows):
        return replace(super().take(rows), begin=self.begin[rows])


def problem(loss, n=N, m=90, far=0.0, **more):
    """Data that knows its offsets, and the same with them as its last columns."""
    data = plain.make(loss, m=m, n=n, seed=4, **more)
    begin = np.random.default_rng(1).normal(size=(m, data.k)) * 1.5 + far
    data = Begun(**vars(data), begin=begin)
    return data, replace(data, X=np.hstack([data.X, begin]))


def asked(data, **settings):
    n = data.X.shape[1] - data.k
    return {"offset": given_offset(list(range(n, n + data.k))), **settings}


def same_as_plain(found, data, penalty, alpha, intercept=True, rel=2e-8):
    total = data.s.sum()
    best = plain.optimum(data, penalty, alpha * total, intercept)
    assert found.objective * total == pytest.approx(best.value, rel=rel)
    assert found.lower_bound * total <= best.value * (1.0 + 1e-10)
    n = data.X.shape[1]
    assert found.active.max(initial=0) < n
    value = plain.objective(data, penalty, alpha * total, plain.dense(found, n), found.intercept)
    assert value == pytest.approx(found.objective * total, rel=1e-9)


CASES = plain.covering(LOSSES, [*plain.PULLING, "l2_squared"], [True, False], allowed=lambda *case: True)


@pytest.mark.parametrize("loss,penalty,intercept", CASES)
def test_a_plain_solver_finds_the_same(loss, penalty, intercept):
    data, whole = problem(loss, weights=True)
    fitting = plain.fitting(whole, **asked(whole, penalty=penalty, tol=1e-8, fit_intercept=intercept))
    largest = fitting.alpha_max()
    if np.isfinite(largest):
        assert largest == pytest.approx(plain.alpha_max(data, penalty, intercept), rel=1e-7)
    alpha = 0.2 * largest if np.isfinite(largest) else 0.01
    found = fitting.fit(alpha)
    assert found.stop_reason == "tol" and found.gap <= 1e-8
    same_as_plain(found, data, penalty, alpha, intercept)


@pytest.mark.parametrize("loss,update", [("multinomial", "gradboost"), ("epsilon_insensitive", "adaboost"),
                                         ("poisson", "adaboost"), ("log", "adaboost")])  # fmt: skip
def test_every_update_ends_there(loss, update):
    data, whole = problem(loss, m=60, n=6)
    found = plain.fitting(whole, **asked(whole, penalty="l1", update=update, select="template", tol=1e-6)).fit(0.05)
    assert found.gap <= 1e-6
    same_as_plain(found, data, "l1", 0.05, rel=2e-6)


def test_along_a_path_with_factors():
    data, whole = problem("log", n=60)
    f = np.exp(np.random.default_rng(3).uniform(-2.0, 2.0, 60))
    factors = PENALTY_FACTORS.read(np.append(f, 1.0))
    settings = fits.FitSettings("log", tol=1e-8, **asked(whole, penalty="l1", penalty_factors=factors))
    for found in paths.path(plain.plan(whole), LocalEngine(1), settings, n_alphas=5, eps=0.03):
        best = plain.optimum(data, "l1", found.alpha * data.s.sum() * f)
        assert found.gap <= 1e-8
        assert found.objective * data.s.sum() == pytest.approx(best.value, rel=2e-8)


# ---- starts at a sample, rows on disk ------------------------------------------------------------------------------


def test_rows_that_are_stored_by_row_have_the_same_offsets():
    _, whole = problem("multitask", m=40, n=5)
    (part,) = plain.plan(whole, cuts=1).items
    rows = sparse.csr_array(whole.X)
    arrays = rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data
    by_row = StreamedPartition(*arrays, whole.X.shape[1], part.y, part.weight, part.key)
    offsets = Offsets(np.array([7, 5, 6]), "token")
    np.testing.assert_array_equal(offsets.of(by_row), whole.X[:, [7, 5, 6]])
    np.testing.assert_array_equal(offsets.of(part), whole.X[:, [7, 5, 6]])


# ---- what has no meaning -------------------------------------------------------------------------------------------


def test_forward_steps_end_at_no_optimum_that_has_them():
    for asked_for in ({"offset": (0,)}, {"signs": Signs.given(positive=True)}):
        with pytest.raises(UsageError, match="with update='forward', which ends at no certified optimum"):
            fits.check_settings(FitSettings("log", "none", update="forward", **asked_for))


def test_a_task_with_one_label_has_no_best_intercept():
    data, whole = problem("multitask", m=60, n=6)
    one = replace(whole, y=np.where(np.arange(data.k) == 1, np.int8(1), whole.y).astype(np.int8))
    with pytest.raises(DataError, match="one label only"):
        plain.fitting(one, **asked(one, penalty="l1"))
    assert plain.fitting(one, **asked(one, penalty="l1", fit_intercept=False, tol=1e-6)).fit(0.05).gap <= 1e-6
