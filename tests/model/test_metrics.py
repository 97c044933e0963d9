"""Metrics against loops written from their definitions, and the merging of partial sums."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dboost import metrics
from dboost.errors import DataError


def multiclass(seed=0, m=40, k=4):
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(m, k)).round(1)  # rounded, so that ties occur
    return F, rng.integers(0, k, m).astype(np.int32), rng.uniform(0.1, 2, m)


def test_coverage_counts_classes_above_and_half_the_ties():
    F, y, _ = multiclass()
    expected = []
    ties = 0
    for scores, own in zip(F, y, strict=True):
        above = sum(1 for r, f in enumerate(scores) if r != own and f > scores[own])
        level = sum(1 for r, f in enumerate(scores) if r != own and f == scores[own])
        ties += level
        expected.append(above + level / 2)
    assert ties > 0
    np.testing.assert_array_equal(metrics.coverage(F, y), expected)


def test_coverage_of_two_classes_is_that_of_the_two_scores():
    F = np.array([[1.0], [-2.0], [0.0], [3.0]])
    y = np.array([[1], [1], [-1], [-1]], dtype=np.int8)
    pairs = np.hstack([-F, F])
    np.testing.assert_array_equal(metrics.coverage(F, y), metrics.coverage(pairs, (y[:, 0] > 0).astype(np.int32)))
    np.testing.assert_array_equal(metrics.coverage(F, y), [0, 1, 0.5, 1])


def test_the_distribution_of_coverage_against_a_loop():
    F, y, s = multiclass(3, m=70)
    expected = np.zeros(7)
    for value, weight in zip(metrics.coverage(F, y), s, strict=True):
        expected[int(2 * value)] += weight
    np.testing.assert_allclose(metrics.coverage_counts(F, y, s), expected, rtol=1e-14)
    assert metrics.coverage_counts(F, y).sum() == 70 and np.any(expected[1::2] > 0)
    signs = np.array([[1], [-1], [1]], dtype=np.int8)
    assert metrics.coverage_counts(np.array([[1.0], [1.0], [0.0]]), signs).tolist() == [1, 1, 1]


def test_normalised_margins_against_a_loop():
    for k in [1, 4]:
        rng = np.random.default_rng(4)
        W = rng.normal(size=(6, k)) * (rng.random((6, k)) < 0.5)
        X = rng.normal(size=(30, 6))
        F = X @ W
        y = (
            rng.integers(0, 4, 30).astype(np.int32)
            if k > 1
            else np.where(rng.random((30, 1)) < 0.5, 1, -1).astype(np.int8)
        )
        norm = sum(max(abs(w) for w in row) for row in W)
        for i, margin in enumerate(metrics.normalised_margins(F, y, W).reshape(30)):
            if k == 1:
                expected = y[i, 0] * F[i, 0]
            else:
                expected = F[i, y[i]] - max(F[i, r] for r in range(k) if r != y[i])
            assert margin == pytest.approx(expected / norm, rel=1e-12)
        np.testing.assert_allclose(metrics.normalised_margins(5 * F, y, 5 * W), metrics.normalised_margins(F, y, W))
        assert np.all(metrics.normalised_margins(F * 0, y, W[:0]) == 0)


def test_what_must_be_computed():
    class Held:
        inputs = np.array([1, 4, 7])

    class Fitted:
        W = np.array([[0.0, 1.0], [0.0, 0.0], [2.0, 0.0], [0.0, 3.0]])
        hypotheses = Held()
        n_features = 9

    class Estimator:
        model_ = Fitted()

    for given in (Fitted(), Estimator()):
        assert metrics.computed_features(given) == metrics.Computed(hypotheses=3, features=3, of_features=9)
    with pytest.raises(DataError, match="a list has no model"):
        metrics.computed_features([])


def test_of_endlessly_many_candidates_all_but_finitely_many_are_zero():
    W = np.ones((3, 2))
    assert metrics.sparsity(W, math.inf) == metrics.row_sparsity(W, math.inf) == 1.0


def test_log_loss_of_a_confident_example_keeps_its_digits():
    F = np.array([[60.0, 0.0, 0.0], [-800.0, 900.0, 0.0]])
    y = np.array([0, 0], dtype=np.int32)
    loss = metrics.log_loss(F, y)
    assert math.isclose(loss[0], 2 * math.exp(-60), rel_tol=1e-12)
    assert loss[1] == 1700.0
    binary = metrics.log_loss(np.array([[60.0], [-800.0]]), np.array([[1], [1]], dtype=np.int8))
    assert math.isclose(binary[0, 0], math.exp(-60), rel_tol=1e-12)
    assert binary[1, 0] == 800.0


def test_multiclass_metrics_against_loops():
    F, y, s = multiclass(1)
    found = metrics.summarise(metrics.partial(F, y, s), norm=2.0)
    k = F.shape[1]
    guess = [int(np.argmax(row)) for row in F]
    confusion = np.zeros((k, k))
    for t, p, w in zip(y, guess, s, strict=True):
        confusion[t, p] += w
    np.testing.assert_allclose(found.confusion, confusion, rtol=1e-14)
    error = sum(w for t, p, w in zip(y, guess, s, strict=True) if t != p) / s.sum()
    loss = sum(w * (np.log(np.exp(row).sum()) - row[t]) for row, t, w in zip(F, y, s, strict=True)) / s.sum()
    margins = [row[t] - max(row[r] for r in range(k) if r != t) for row, t in zip(F, y, strict=True)]
    assert math.isclose(found.error, error, rel_tol=1e-12)
    assert math.isclose(found.log_loss, loss, rel_tol=1e-12)
    assert math.isclose(found.coverage, np.average(metrics.coverage(F, y), weights=s), rel_tol=1e-12)
    assert math.isclose(found.mean_margin, np.average(margins, weights=s) / 2, rel_tol=1e-12)
    assert math.isclose(found.min_margin, min(margins) / 2, rel_tol=1e-12)
    at_most = [np.average(metrics.coverage(F, y) <= t, weights=s) for t in range(k)]
    np.testing.assert_allclose(found.coverage_at_most(), at_most, rtol=1e-12)
    assert found.coverage_at_most()[-1] == pytest.approx(1.0)


def test_tasks_skip_missing_labels():
    rng = np.random.default_rng(2)
    F = rng.normal(size=(30, 3))
    y = rng.integers(-1, 2, (30, 3)).astype(np.int8)
    y[:, 2] = 0
    s = rng.uniform(0.5, 2, 30)
    found = metrics.summarise(metrics.partial(F, y, s))
    errors, losses, total = [], [], []
    for r in range(2):
        seen = [i for i in range(30) if y[i, r] != 0]
        total.append(sum(s[i] for i in seen))
        errors.append(sum(s[i] for i in seen if (F[i, r] > 0) != (y[i, r] > 0)))
        losses.append(sum(s[i] * math.log1p(math.exp(-F[i, r] * y[i, r])) for i in seen))
    np.testing.assert_allclose(found.task_errors[:2], np.divide(errors, total), rtol=1e-12)
    np.testing.assert_allclose(found.task_log_losses[:2], np.divide(losses, total), rtol=1e-12)
    assert np.isnan(found.task_errors[2])
    assert math.isclose(found.error, sum(errors) / sum(total), rel_tol=1e-12)
    assert math.isclose(found.log_loss, sum(losses) / sum(total), rel_tol=1e-12)
    assert found.coverage is None
    with pytest.raises(DataError, match="tasks"):
        found.coverage_at_most()


def test_merged_partials_equal_the_whole():
    for kind in ["multiclass", "binary", "tasks"]:
        rng = np.random.default_rng(3)
        if kind == "multiclass":
            F, y, s = multiclass(3)
        else:
            k = 1 if kind == "binary" else 3
            F = rng.normal(size=(40, k))
            y = rng.choice([-1, 1], (40, k)).astype(np.int8)
            s = rng.uniform(0.1, 2, 40)
        whole = metrics.summarise(metrics.partial(F, y, s))
        total = metrics.partial(F[:7], y[:7], s[:7])
        for a, b in ((7, 7), (7, 31), (31, 40)):  # one batch is empty
            total.merge(metrics.partial(F[a:b], y[a:b], s[a:b]))
        merged = metrics.summarise(total)
        for name, value in vars(whole).items():
            if value is None:
                assert getattr(merged, name) is None
            else:
                np.testing.assert_allclose(getattr(merged, name), value, rtol=1e-12, err_msg=name)


def test_weight_two_is_the_row_twice_and_zero_its_absence():
    F, y, _ = multiclass(4)
    s = np.ones(40)
    s[:5], s[5:9] = 2, 0
    keep = [*range(5), *range(5), *range(9, 40)]
    weighted = metrics.summarise(metrics.partial(F, y, s))
    repeated = metrics.summarise(metrics.partial(F[keep], y[keep]))
    for name in ("weight", "error", "log_loss", "coverage", "mean_margin", "min_margin", "confusion"):
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name), rtol=1e-12, err_msg=name)


def test_sparsity_counts_entries_and_rows_of_all_features():
    W = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0], [0.0, -3.0, 0.0]])
    assert metrics.sparsity(W, 10) == 1 - 3 / 30
    assert metrics.row_sparsity(W, 10) == 1 - 2 / 10
    assert metrics.margin_norm(W) == 5.0
    assert metrics.margin_norm(np.array([[1.0], [-2.0]])) == 3.0
    empty = np.zeros((0, 3))
    assert metrics.sparsity(empty, 10) == metrics.row_sparsity(empty, 10) == 1.0
    assert metrics.margin_norm(empty) == 0.0


def test_mismatched_input_is_refused():
    F, y, s = multiclass()
    for broken in (
        lambda: metrics.partial(F[:, :2], y),
        lambda: metrics.partial(F[:5], y),
        lambda: metrics.partial(F, y, s[:5]),
        lambda: metrics.partial(F[:, :1], np.zeros(40, dtype=np.int32)),
        lambda: metrics.partial(F[:, :1], np.zeros((40, 1), dtype=np.int8)),
        lambda: metrics.partial(F, np.full((40, 4), 2, dtype=np.int8)),
        lambda: metrics.partial(np.full_like(F, np.nan), y),
        lambda: metrics.summarise(metrics.partial(F, y, np.zeros(40))),
    ):
        with pytest.raises(DataError):
            broken()
