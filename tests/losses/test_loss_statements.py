"""What a loss says of itself is true of its formulas, and nobody else asks which loss it is.

Does not cover: curvature, intercepts and residuals (test_loss_rows), dual values and repairs (test_loss_duals).
"""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.metrics import mean_poisson_deviance

from dboost.losses import LOSSES, get_loss, loss_of_model, losses_of
from dboost.partition import TASKS
from tests.losses.references import REFERENCES, Rows

ROOT = Path(__file__).resolve().parents[2]
M = 200


@pytest.fixture(params=list(LOSSES))
def case(request):
    """(row functions, reference, labels, margins, weights)."""
    rng = np.random.default_rng(3)
    reference = REFERENCES[request.param]
    y, F = reference.labels(rng, M), 2.0 * rng.normal(size=(M, reference.k))
    return Rows(request.param), reference, y, F, rng.random(M)


def test_every_task_has_losses_and_every_loss_a_task():
    assert {loss.task for loss in LOSSES.values()} == set(TASKS)
    assert sorted(name for task in TASKS for name in losses_of(task)) == sorted(LOSSES)
    assert losses_of("binary")[0] == "log" and losses_of("regression")[0] == "squared"
    assert all(loss_of_model(name) is loss for name, loss in LOSSES.items())
    assert loss_of_model("exp_one_vs_rest") is not None and "exp_one_vs_rest" not in LOSSES


def test_labels_of_the_task_are_valid_and_counted_where_they_are_no_numbers(case):
    rows, reference, y, _, _ = case
    kinds = {"binary": "sign", "multitask": "sign", "multiclass": "code", "regression": "real", "multitarget": "reals"}
    assert reference.kind == kinds[rows.loss.task]
    assert rows.loss.invalid(y) == -1
    # the residuals of e^(-y f) have no bound, and its intercept is found without their help
    assert rows.loss.counted is (reference.kind not in ("real", "reals") and not rows.loss.exponential)


def test_a_parabola_has_one_curvature_and_no_other_loss_has(case):
    rows, _, y, F, _ = case
    H = rows.hessian(y, F, np.ones(M))
    assert rows.loss.parabolic is bool(np.allclose(H, rows.loss.kappa * np.eye(H.shape[1])))


def test_the_curvature_grows_like_an_exponential_where_it_falls_like_one(case):
    rows, _, y, F, _ = case
    H, farther = (rows.hessian(y, t * F, np.ones(M)) for t in (1.0, 5.0))
    assert rows.loss.growing is not bool(np.all(farther >= 5e-5 * H))


def test_residuals_of_an_exponential_loss_sum_to_it(case):
    rows, _, y, F, s = case
    same = np.allclose(np.abs(rows.residual(y, F, s)).sum(axis=1), rows.value(y, F, s))
    assert rows.loss.exponential is bool(same)


@pytest.mark.parametrize("case", [name for name, loss in LOSSES.items() if np.isinf(loss.kappa)], indirect=True)
@pytest.mark.parametrize("size", [0.0, 1e-6, 1.0, 10.0])
def test_residuals_without_bounded_curvature_sum_to_no_more_than_the_loss_says(case, size):
    rows, reference, y, F, s = case
    mass, total = rows.loss.label_mass(y, s, reference.k)
    near = np.log(np.maximum(y, 0.1))[:, None] if reference.kind == "real" else 0.0
    U, value = rows.residual(y, near + size * F, s), rows.value(y, near + size * F, s).sum()
    bound = rows.loss.pulls(value, mass, total, U.sum(axis=0))
    assert np.abs(U).sum() <= bound * (1 + 1e-12)
    assert rows.loss.terms(value, 1.0, mass, total, U.sum(axis=0)) >= 0.0


def test_the_null_model_predicts_what_the_labels_are_on_average(case):
    """The inverse link at the best intercept; a margin in training shifts it, and a tube makes it a kind of median."""
    rows, reference, y, _, s = case
    if rows.loss.name in ("margin_softmax", "epsilon_insensitive"):
        return
    mass, total = rows.loss.label_mass(y, s, reference.k)
    scores = rows.loss.predicted(rows.loss.null_intercept(mass, total)[None])
    links = {"sign": expit, "code": lambda F: softmax(F, axis=1)}
    found = links.get(reference.kind, np.asarray)(scores)
    np.testing.assert_allclose(found[0], mass / total, rtol=1e-12)


def test_the_deviance_of_counts_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    y, mean = rng.poisson(2.0, 50).astype(float), rng.uniform(0.1, 5.0, 50)
    assert get_loss("poisson").deviance(y, mean).mean() == pytest.approx(mean_poisson_deviance(y, mean), rel=1e-12)
    assert get_loss("squared").deviance(y, mean) is None


@pytest.mark.parametrize(
    "bad,place", [([0, 1, -1], 2), ([np.nan, 1, -1], 0), ([1, np.inf], 1), ([2.0**53, 2.0**54], 1)]
)
def test_the_first_label_that_is_no_count_is_found(bad, place):
    assert get_loss("poisson").invalid(np.array(bad, float)) == place


def named(path: Path) -> list[int]:
    """Lines of a file that compare a loss with the name of one."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Compare):
            names = {part.value for part in ast.walk(node) if isinstance(part, ast.Constant)}
            about = any("loss" in part.id for part in ast.walk(node) if isinstance(part, ast.Name))
            about |= any("loss" in part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute))
            found += [node.lineno] if about and names & {*LOSSES, "exp_one_vs_rest"} else []
    return found


def test_nobody_outside_asks_for_a_loss_by_its_name(tmp_path):
    files = [path for folder in ("dboost", "pipelines") for path in sorted((ROOT / folder).rglob("*.py"))]
    assert len(files) > 100
    asking = {str(path.relative_to(ROOT)): named(path) for path in files if path.parent.name != "losses"}
    assert not {path: lines for path, lines in asking.items() if lines}
    sample = tmp_path / "sample.py"
    sample.write_text('a = problem.loss.name == "squared"\nb = loss in ("exp", *others)\nc = scale == "log"\n')
    assert named(sample) == [1, 2]
