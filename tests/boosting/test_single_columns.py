"""What is said of single columns: factors of the strength, signs, no penalty, and offsets, against one plain solver.

Covers: fits by settings. Does not cover: names, models, files and refusals (tests/estimators), the certificate of
columns without penalty (``test_free_rows``), groups (``test_column_groups``), glmnet (lab).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy import sparse

from dboost.boosting.fit import FitSettings
from dboost.boosting.path import path
from dboost.columns.given import PENALTY_FACTORS, ColumnGroups, Signs, given_offset
from dboost.data.streamed import StreamedPartition
from dboost.engine.local import LocalEngine
from dboost.errors import DataError
from dboost.losses import LOSSES
from dboost.passes.offsets import Offsets
from dboost.penalties.bound import rightly_signed
from tests.boosting import plain
from tests.boosting.conftest import STRENGTHS

N = 12


@dataclass(frozen=True)
class Said:
    """Whether some columns never enter, some have no penalty, some have a sign, and whether scores begin at offsets."""

    out: bool = False
    free: bool = False
    signed: bool = False
    offset: bool = False

    def factors(self, n):
        found = np.exp(np.random.default_rng(2).uniform(-1.6, 1.6, n)) if self.out or self.free else np.ones(n)
        found[[0, 7]] = np.inf if self.out else found[[0, 7]]
        found[self.free_columns] = 0.0
        return found

    @property
    def free_columns(self):
        return [0, 1, 2, 3, 4, 9] if self.free else []

    def signs(self, n):
        return np.resize(np.array([1, -1, 0], np.int8), n) * self.signed

    def made(self, loss, **shape):
        """A problem, which knows its offsets."""
        data = plain.make(loss, **{"m": 90, "n": N, "seed": 4, "weights": True} | shape)
        begin = np.random.default_rng(1).normal(size=(len(data.s), data.k)) * 1.5
        return replace(data, begin=begin) if self.offset else data

    def asked(self, data):
        """The data as a fit has them, offsets being their last columns, and the settings."""
        n, k = data.X.shape[1], data.k * self.offset
        settings = {}
        if self.offset:
            settings["offset"] = given_offset(list(range(n, n + k)))
            data = replace(data, X=np.hstack([data.X, data.begin]), begin=0.0)
        if self.out or self.free:
            settings["penalty_factors"] = PENALTY_FACTORS.read(np.append(self.factors(n), np.ones(k)))
        if self.signed:
            settings["signs"] = Signs.of_signs(np.append(self.signs(n), np.zeros(k, np.int8)))
        return data, settings

    def fitting(self, data, **settings):
        data, said = self.asked(data)
        return plain.fitting(data, **said | settings)

    def holds(self, found, data, penalty, tol, intercept=True):
        """The model is certified, the optimum that the plain solver finds, and as all columns are asked to be."""
        n, total = data.X.shape[1], data.s.sum()
        factors, signs = self.factors(n), self.signs(n)
        best = plain.optimum(data, penalty, found.alpha * total * factors, intercept, signs)
        plain.certified(found, data, penalty, found.alpha, best, tol, factors, rel=2.0 * tol)
        W = plain.dense(found, n)
        assert np.all(signs[:, None] * W >= 0.0)
        if self.free:
            # what has no penalty is solved for to the end
            G = data.X.T @ (U := data.residual(data.X @ W + found.intercept))
            pull = np.where(W == 0.0, rightly_signed(G, signs), G)[self.free_columns]
            reach = (np.abs(data.X).T @ data.s)[self.free_columns, None]
            assert np.abs(pull / reach).max() <= tol and (not intercept or np.abs(U.sum(axis=0)).max() <= tol * total)


SAID = {
    "factors": Said(out=True),
    "signs": Said(signed=True),
    "free": Said(free=True),
    "free_signed": Said(free=True, signed=True),
    "offset": Said(offset=True),
    "offset_scaled": Said(offset=True, out=True),
}


def optimal(option, loss, penalty, intercept, **settings):
    said = SAID[option]
    data = said.made(loss)
    fitting = said.fitting(data, penalty=penalty, tol=1e-8, fit_intercept=intercept, **settings)
    largest = fitting.alpha_max()
    found = fitting.fit(STRENGTHS.get(penalty, 0.2 * largest))
    said.holds(found, data, penalty, 1e-8, intercept)
    if option == "offset" and np.isfinite(largest):
        assert largest == pytest.approx(plain.alpha_max(data, penalty, intercept), rel=1e-7)
    elif penalty in plain.PULLING:
        above, below = (set(fitting.fit(share * largest).active.tolist()) for share in (1.0001, 0.99))
        assert above <= set(said.free_columns) and below - set(said.free_columns)


@pytest.mark.parametrize(
    "loss,penalty,intercept", plain.covering(LOSSES, [*plain.PULLING, "l2", "l2_squared"], [True, False])
)
def test_factors(loss, penalty, intercept):
    optimal("factors", loss, penalty, intercept)


@pytest.mark.parametrize(
    "loss,penalty,intercept", plain.covering(LOSSES, [*plain.PULLING, "l2", "l2_squared", "none"], [True, False])
)
def test_signs(loss, penalty, intercept):
    optimal("signs", loss, penalty, intercept)


@pytest.mark.parametrize(
    "loss,penalty,intercept,accelerators,option",
    plain.covering(LOSSES, [*plain.PULLING, "l2", "l2_squared"], [True, False], [None, ()], ["free", "free_signed"]),
)
def test_columns_without_penalty(loss, penalty, intercept, accelerators, option):
    optimal(option, loss, penalty, intercept, accelerators=accelerators)


@pytest.mark.parametrize(
    "loss,penalty,intercept", plain.covering(LOSSES, [*plain.PULLING, "l2_squared"], [True, False])
)
def test_offsets(loss, penalty, intercept):
    optimal("offset", loss, penalty, intercept)


def test_the_norm_of_all_rows_leaves_zero_beside_columns_without_penalty():
    """These are in the model from the start on, so that it is not at its kink as a whole."""
    said = SAID["free"]
    data = said.made("log")
    said.holds(said.fitting(data, penalty="l2", tol=1e-8).fit(0.05), data, "l2", 1e-8)


KINDS = {
    "multinomial": "l1/l2", "log": "l1", "epsilon_insensitive": "l1", "poisson": "l1", "multitask": "l1/linf",
    "squared": "elastic_net", "margin_softmax": "l1/l2+l1", "multitarget": "l1/l2+ridge",
}  # fmt: skip
WAYS = [("gradboost", "greedy"), ("gradboost", "cyclic"), ("gradboost", "template"), ("adaboost", "template")]


@pytest.mark.parametrize(
    "option,loss,update,select",
    [
        (option, loss, *way)
        for option, loss, way in plain.covering(
            [option for option in SAID if option != "offset_scaled"],
            KINDS,
            WAYS,
            allowed=lambda option, loss, way: (
                plain.defined(loss, way[0])
                # under the exponential bound signs are solved entry by entry
                and not ("sign" in option and way[0] == "adaboost" and len(KINDS[loss]) > 2)
            ),
        )
    ],
)
def test_every_update_ends_there(option, loss, update, select):
    said = SAID[option]
    data = said.made(loss, m=60)
    fitting = said.fitting(data, penalty=KINDS[loss], update=update, select=select, tol=1e-6)
    said.holds(fitting.fit(0.05), data, KINDS[loss], 1e-6)


@pytest.mark.parametrize("option", SAID)
def test_along_a_path_screening_keeps_what_the_optimum_needs(option):
    said = SAID[option]
    data = said.made("log", m=150, n=60)
    whole, asked = said.asked(data)
    settings = FitSettings("log", "l1", tol=1e-8, **asked)
    for found in path(plain.plan(whole), LocalEngine(1), settings, n_alphas=5, eps=0.03):
        said.holds(found, data, "l1", 1e-8)


@pytest.mark.parametrize(
    "nothing",
    [
        {"penalty_factors": PENALTY_FACTORS.read(np.ones(N))},
        {"signs": Signs.given(lower=-np.inf, upper=np.full(N, np.inf))},
        {"column_groups": ColumnGroups.given(np.arange(N)[::-1])},
        {"column_groups": ColumnGroups.given({"one": [3], "other": [0]})},
    ],
    ids=["factors", "signs", "groups", "named groups"],
)
def test_what_asks_nothing_changes_no_bit(nothing):
    data = plain.make("multinomial", m=90, n=N, seed=4)
    asked, usual = (plain.fitting(data, penalty="l1/l2", tol=1e-8, **some).fit(0.01) for some in (nothing, {}))
    np.testing.assert_array_equal(asked.W, usual.W)
    np.testing.assert_array_equal(asked.intercept, usual.intercept)
    assert asked.passes == usual.passes


def test_rows_that_are_stored_by_row_have_the_same_offsets():
    data = plain.make("multitask", m=40, n=8)
    (part,) = plain.plan(data, cuts=1).items
    rows = sparse.csr_array(data.X)
    arrays = rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data
    by_row = StreamedPartition(*arrays, data.X.shape[1], part.y, part.weight, part.key)
    offsets = Offsets(np.array([7, 5, 6]), "token")
    np.testing.assert_array_equal(offsets.of(by_row), data.X[:, [7, 5, 6]])
    np.testing.assert_array_equal(offsets.of(part), data.X[:, [7, 5, 6]])


def test_a_task_with_one_label_has_no_best_intercept_beside_offsets():
    said = SAID["offset"]
    data = said.made("multitask", m=60, n=6)
    one = replace(data, y=np.where(np.arange(data.k) == 1, np.int8(1), data.y).astype(np.int8))
    with pytest.raises(DataError, match="one label only"):
        said.fitting(one, penalty="l1")
    assert said.fitting(one, penalty="l1", fit_intercept=False, tol=1e-6).fit(0.05).gap <= 1e-6
