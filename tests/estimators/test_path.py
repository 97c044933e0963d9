"""Paths: the grid, warm starts, and agreement with single fits."""

from __future__ import annotations

import numpy as np
import pytest

from dboost import BoostedClassifier, UsageError, regularization_path
from dboost.files.documents import Document


def test_a_path_goes_from_no_feature_to_many(multiclass):
    X, y = multiclass
    path = regularization_path(X, y, penalty="l1/l2", n_alphas=8, eps=0.05, tol=1e-6)
    assert len(path) == 8
    largest = BoostedClassifier(alpha="quick", penalty="l1/l2").fit(X, y).alpha_max_
    np.testing.assert_allclose(path.alphas, largest * np.geomspace(1, 0.05, 8), rtol=1e-9)
    assert path.n_active_features[0] == 0
    assert path.n_active_features[-1] > 6
    assert np.all(np.diff(path.objectives) < 0)
    assert np.all(path.gaps <= 1e-6)
    assert path.coefs.shape == (8, 3, 12)
    assert path.intercepts.shape == (8, 3)
    assert [record["features"] for record in path.table] == path.n_active_features.tolist()
    alphas = list(path.entering.values())
    assert alphas == sorted(alphas, reverse=True)
    assert set(path.models[-1].hypotheses.words()) <= set(path.entering)
    assert "RegularizationPath(8 models)" in repr(path)
    assert "<table>" in path._repr_html_()


def test_a_point_of_a_path_is_the_single_fit(multiclass):
    X, y = multiclass
    path = regularization_path(X, y, alphas=[0.02, 0.1, 0.05], tol=1e-7)
    assert path.alphas.tolist() == [0.1, 0.05, 0.02]
    for index, alpha in enumerate(path.alphas):
        alone = BoostedClassifier(alpha=alpha, tol=1e-7).fit(X, y)
        assert path.objectives[index] == pytest.approx(alone.objective_, rel=2e-7)
        there = path.estimator(index)
        assert there.alpha == alpha
        assert there.predict(X).tolist() == alone.predict(X).tolist()


@pytest.mark.parametrize(
    "params",
    [
        {"alphas": []},
        {"alphas": [-1.0]},
        {"n_alphas": 0},
        {"eps": 1.5},
        {"eps": 0},
        {"alpha": 0.1},
        {"warm_start": True},
        {"penalty": "none"},
    ],
)
def test_paths_without_meaning_are_refused(multiclass, params):
    with pytest.raises(UsageError):
        regularization_path(*multiclass, **params)


def test_former_names_of_columns_are_taken_with_a_warning_and_files_that_have_them_are_read(multiclass):
    X, y = multiclass
    heard = []
    model = BoostedClassifier(alpha="quick", callbacks=[lambda record: heard.append(record)]).fit(X, y)
    for record in (model.history_[0], next(iter(model.history_)), heard[0]):
        with pytest.warns(FutureWarning, match="rows_in is called features_in now"):
            assert record["rows_in"] == record["features_in"] > 0
        with pytest.raises(KeyError, match="rows_up"):
            record["rows_up"]
    with pytest.warns(FutureWarning, match="active_rows is called features now"):
        assert model.history_.column("active_rows").tolist() == model.history_.column("features").tolist()
    written = Document({"history": [{"rows_in": 2, "rows_out": 1, "active_rows": 3, "gap": 0.5}]}, file="model.json")
    assert written.records("history") == ({"features_in": 2, "features_out": 1, "features": 3, "gap": 0.5},)
    path = regularization_path(X, y, n_alphas=2)
    with pytest.warns(FutureWarning, match="n_active_rows is called n_active_features now"):
        assert path.n_active_rows.tolist() == path.n_active_features.tolist()
