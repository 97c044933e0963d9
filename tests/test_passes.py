"""The passes: any cut of the rows gives the sums of the whole, one plan the same bits on any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

from dboost import passes
from dboost.engine.local import LocalEngine
from dboost.hypotheses.held_by_model import Held
from dboost.losses import LOSSES
from dboost.passes import Point
from tests.boosting import plain

ACTIVE = np.array([0, 3, 4, 9])
HELD = Held(ACTIVE, "cut")
NOTHING = Held(ACTIVE[:0], "nothing")
CUTS = [1, 2, 7, [1, 2, 3, 60, 80], [0, 0, 40, 40, 80]]


class Run:
    """Every leaf on one plan and engine, by name."""

    def __init__(self, data, cuts, threads=1, dtype=np.float64):
        self.plan = plain.plan(data, cuts, dtype)
        self.engine = LocalEngine(threads)
        self.engine.set_plan(self.plan.items, self.plan.rows, "test")
        rng = np.random.default_rng(0)
        self.W, self.b = rng.normal(size=(4, data.k)), rng.normal(size=data.k)
        self.point = Point(data.loss, HELD, self.W, self.b, "point")
        self.D, self.d = rng.normal(size=(4, data.k)), rng.normal(size=data.k)
        self.data = data

    def sums(self):
        """{name: array} over all leaves but the sample."""
        k, point = self.data.k, self.point
        dual = np.full(k, 0.5), np.zeros(k), np.zeros(k), np.zeros(k)
        columns = np.arange(self.data.X.shape[1])
        steps = np.array([0.0, 0.5, 2.0])
        calls = {
            "labels": (passes.label_counts, self.data.loss, k),
            "statistics": (passes.feature_statistics,),
            "score": (passes.score, columns, point, False, True),
            "null": (passes.score, columns, Point(self.data.loss, NOTHING, self.W[:0], self.b, "null"), False, True),
            "mu": (passes.score, columns, point, True, True),
            "gradient": (passes.active_gradient, point),
            "grid": (passes.losses_along, point, self.D, self.d, steps),
            "hessian": (passes.hessian_product, point, self.D, self.d),
            "dual": (passes.dual_value, point, *dual),
            "template": (passes.template_sums, HELD, 1.0),
        }
        out = {}
        for name, (leaf, *args) in calls.items():
            total = self.engine.map_reduce(leaf, *args, name=name)
            for field, value in {**total.add, **total.peak}.items():
                out[f"{name}.{field}"] = np.asarray(value, float)
        return out


@pytest.fixture(params=list(LOSSES))
def data(request):
    made = plain.make(request.param, m=80, n=12, weights=True, seed=50)
    made.s[[0, 40, 79]] = 0.0
    made.X[:, 4] = 0.0
    return made


def assert_close(got, wanted, tolerance=1e-12):
    assert got.keys() == wanted.keys()
    for name in wanted:
        # the curvature of the examples is kept in float32 on purpose
        rtol = 1e-5 if name.startswith("hessian") else tolerance
        scale = np.abs(wanted[name]).max(initial=0.0)
        np.testing.assert_allclose(got[name], wanted[name], rtol=rtol, atol=rtol * scale, err_msg=name)


@pytest.mark.parametrize("cuts", CUTS[1:], ids=str)
def test_any_cut_gives_the_sums_of_the_whole(data, cuts):
    assert_close(Run(data, cuts).sums(), Run(data, 1).sums())


@pytest.mark.parametrize("cuts", CUTS, ids=str)
def test_threads_do_not_change_a_bit(data, cuts):
    first, *others = (Run(data, cuts, threads).sums() for threads in (1, 2, 3))
    for other in others:
        assert {name: value.tobytes() for name, value in other.items()} == {
            name: value.tobytes() for name, value in first.items()
        }


def test_doubled_rows_are_weight_two_and_weight_zero_is_absent(data):
    chosen = np.arange(5, 60, 4)
    doubled = data.take(np.concatenate([np.arange(80), chosen]))
    weight = data.s.copy()
    weight[chosen] *= 2
    expected = Run(plain.replace(data, s=weight), 3).sums()
    got = Run(doubled, 3).sums()
    rows = "labels.rows"
    assert (got.pop(rows), expected.pop(rows)) == (80 + len(chosen), 80)
    assert_close(got, expected)
    present = data.take(np.flatnonzero(data.s > 0))
    got, expected = Run(data, 3).sums(), Run(present, 3).sums()
    assert got.pop(rows) - expected.pop(rows) == 3
    assert_close(got, expected)


def test_sums_against_dense_numpy(data):
    got = Run(data, 3).sums()
    run = Run(data, 1)
    X, s = data.X, data.s
    A = X[:, ACTIVE]
    F = A @ run.W + run.b
    U = data.residual(F)
    mu_plus, mu_minus = data.sums(F)
    # of the intercept, whose column is one everywhere
    bias_plus, bias_minus = plain.replace(data, X=np.ones((80, 1))).sums(F)
    ones = np.hstack([A, np.ones((80, 1))])
    rho = np.abs(ones).sum(axis=1)
    wanted = {
        "labels.weight": s.sum(),
        "statistics.total": s @ X,
        "statistics.absolute": s @ np.abs(X),
        "statistics.square": s @ X**2,
        "statistics.peak": np.abs(X[s > 0]).max(axis=0),
        "score.G": X.T @ U,
        "score.loss": data.value(F),
        "score.bias": U.sum(axis=0),
        "mu.mu_plus": mu_plus,
        "mu.mu_minus": mu_minus,
        "mu.bias_plus": bias_plus[0],
        "mu.bias_minus": bias_minus[0],
        "gradient.G": A.T @ U,
        "gradient.loss": data.value(F),
        "gradient.bias": U.sum(axis=0),
        "grid.loss": [data.value(F + t * (A @ run.D + run.d)) for t in (0.0, 0.5, 2.0)],
        "dual.dual": data.dual(0.5 * U),
        "template.diagonal": (s * rho) @ np.abs(ones),
        "template.peak": (((ones != 0) & (s > 0)[:, None]) * rho[:, None]).max(axis=0),
    }
    for name, value in wanted.items():
        np.testing.assert_allclose(got[name], value, rtol=1e-11, atol=1e-11, err_msg=name)


@pytest.mark.parametrize("repeat", [1, 40])
def test_a_model_without_features_is_one_of_zeros(data, repeat):
    # repeated rows give columns more values than there are classes
    run = Run(data.take(np.tile(np.arange(80), repeat)), 3)
    zeros = Point(data.loss, HELD, np.zeros_like(run.W), run.b, "zeros")
    nothing = Point(data.loss, NOTHING, run.W[:0], run.b, "nothing")
    columns = np.array([0, 2, 3, 11])
    got, wanted = (
        run.engine.map_reduce(passes.score, columns, point, False, True, name="score").add for point in (nothing, zeros)
    )
    assert_close(got, wanted)
