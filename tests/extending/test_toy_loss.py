"""A loss of one's own: its formulas, a certified fit on both engines, and what it costs to write one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
from scipy.optimize import minimize

from dboost import BoostedRegressor, load_model
from dboost.losses import LOSSES
from tests.extending import toy_loss
from tests.extending.toy_loss import LogCosh


@pytest.fixture
def registered(monkeypatch):
    """The one line of the registry."""
    monkeypatch.setitem(LOSSES, "logcosh", LogCosh())


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 12))
    return X, 2.0 * X[:, 0] - X[:, 3] + 1.0 + rng.standard_t(2, size=300)


def test_it_is_one_file_of_at_most_sixty_lines():
    assert len(Path(toy_loss.__file__).read_text(encoding="utf-8").splitlines()) <= 60


@pytest.mark.full
def test_the_formulas_are_those_of_one_loss():
    rng = np.random.default_rng(1)
    y, f, step = rng.normal(size=40) * 5, rng.normal(size=40) * 5, 1e-5
    target = LogCosh().target(y)
    for i in range(40):
        at = [toy_loss.value(target, i, f[i] + t) for t in (-step, 0.0, step)]
        theta = toy_loss.pull(target, i, f[i])
        assert at[1] == pytest.approx(np.log(np.cosh(y[i] - f[i])), rel=1e-12, abs=1e-15)
        assert theta == pytest.approx((at[0] - at[2]) / (2 * step), abs=1e-9)
        pulls = [toy_loss.pull(target, i, f[i] + t) for t in (-step, step)]
        assert toy_loss.curvature(target, i, f[i]) == pytest.approx((pulls[0] - pulls[1]) / (2 * step), abs=1e-9)
        # Fenchel and Young: equal at the residual, below everywhere else
        assert toy_loss.dual(target, i, theta) == pytest.approx(at[1] + theta * f[i], abs=1e-12)
        other = toy_loss.value(target, i, f[i] + 1.0) + theta * (f[i] + 1.0)
        assert toy_loss.dual(target, i, theta) <= other + 1e-12


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("update", ["newton", "gradboost"])
def test_a_fit_is_certified_and_optimal(registered, data, update, fit_intercept):
    X, y = data
    model = BoostedRegressor(
        standardize=False,
        loss="logcosh",
        penalty="l1",
        alpha=0.05,
        tol=1e-8,
        update=update,
        fit_intercept=fit_intercept,
    ).fit(X, y)
    assert 0.0 <= model.duality_gap_ <= 1e-8

    def objective(v):
        w, b = v[:12] - v[12:24], v[24] * fit_intercept
        z = y - X @ w - b
        slope = -np.tanh(z) / 300
        value = np.mean(np.logaddexp(z, -z) - np.log(2.0)) + 0.05 * v[:24].sum()
        return value, np.concatenate([X.T @ slope + 0.05, 0.05 - X.T @ slope, [slope.sum() * fit_intercept]])

    bounds = [(0.0, None)] * 24 + [(None, None)]
    best = minimize(objective, np.zeros(25), jac=True, bounds=bounds, options={"ftol": 1e-15, "gtol": 1e-10})
    found = model.model_.certificate
    assert found.lower_bound <= best.fun * (1 + 1e-12)
    assert found.objective == pytest.approx(best.fun, rel=1e-7)


def test_on_a_cluster_the_same_bits_and_a_saved_model_is_read_by_the_name(registered, data, two_processes, tmp_path):
    X, y = data
    rows = (100, 120, 80)
    on_dask = BoostedRegressor(loss="logcosh", alpha=0.05, client=two_processes).fit(
        da.from_array(X, chunks=(rows, 12)), da.from_array(y, chunks=(rows,))
    )
    assert on_dask.duality_gap_ <= 1e-4
    in_process = BoostedRegressor(loss="logcosh", alpha=0.05).fit(X, y)
    np.testing.assert_allclose(on_dask.coef_, in_process.coef_, atol=1e-3)
    again = BoostedRegressor(loss=LogCosh(), alpha=0.05, client=two_processes).fit(
        da.from_array(X, chunks=(rows, 12)), da.from_array(y, chunks=(rows,))
    )
    assert again.coef_.tobytes() == on_dask.coef_.tobytes()
    in_process.save(tmp_path / "m")
    assert load_model(tmp_path / "m").predict(X).tobytes() == in_process.predict(X).tobytes()


@pytest.mark.full
def test_a_process_that_lacks_the_loss_still_reads_the_compiled_loops(registered, data, tmp_path):
    X, y = data
    BoostedRegressor(loss="logcosh", alpha=0.05).fit(X, y)
    code = (
        "import importlib.util, numpy as np, dboost; assert importlib.util.find_spec('tests') is None;"
        "X = np.random.default_rng(0).normal(size=(50, 4));"
        "print(dboost.BoostedRegressor(alpha=0.1).fit(X, 2.0 * X[:, 0]).duality_gap_ <= 1e-4)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "True", done.stderr
