"""What a person sees."""

from __future__ import annotations

import doctest

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dboost import (
    AdaBoostL1Classifier,
    BoostedClassifier,
    BoostedRegressor,
    MultiTaskBoostedClassifier,
    PiecewiseLinear,
)
from dboost.estimators import classifier, history
from dboost.estimators.history import Table
from dboost.estimators.repr import sparsity_map


def test_repr_shows_certificate_features_and_who_shares_them(multiclass):
    X, y = multiclass
    names = ["<b>bold</b>", *(f"c{j}" for j in range(1, 12))]
    model = BoostedClassifier(penalty="l1", alpha=0.05).fit(pd.DataFrame(X, columns=names), y)
    text = repr(model)
    used = len(model.active_features_)
    assert text.startswith("BoostedClassifier(alpha=0.05, penalty='l1')\n")
    assert f"3 classes; {used} of 12 features used" in text
    assert "certified gap" in text and "stopped by tol" in text
    first = sparsity_map(model.model_)[0]
    assert first.size == np.abs(model.coef_).max()
    assert first.shared_by == np.count_nonzero(model.coef_[:, names.index(first.name)])
    assert f"{first.shared_by} of 3" in text
    page = model._repr_html_()
    assert "<b>bold</b>" not in page and "&lt;b&gt;bold&lt;/b&gt;" in page
    assert model._repr_mimebundle_() == {"text/plain": text, "text/html": page}


NOISE = ("nan", "1 of 1", "shared by", " 1 rounds", " 1 passes")


@pytest.mark.parametrize("params", [{}, {"penalty": "none"}, {"penalty": "l2_squared"}, {"penalty": "l1"}], ids=str)
def test_repr_of_two_classes_says_nothing_that_is_always_so(binary, params):
    X, y = binary
    model = BoostedClassifier(**params).fit(X, np.array(["no", "yes"])[y])
    for shown in (repr(model), model._repr_html_()):
        assert "weight for yes" in shown
        assert not any(noise in shown for noise in NOISE), shown
    assert ("alpha_max" in repr(model)) == (params.get("penalty") in (None, "l1"))
    assert ("alpha " in repr(model)) == (params.get("penalty") != "none")
    first = sparsity_map(model.model_)[0]
    assert [first.name, f"{first.weights[0][1]:+.4g}"] in [line.split() for line in repr(model).splitlines()]


def test_repr_of_a_budget_names_the_problem_its_gap_is_of_and_holds_tol_against_the_margin(binary):
    X, y = binary
    model = AdaBoostL1Classifier(max_rounds=3, tol=0.125).fit(X, y)
    budget, margin, gap = model.budget_, model.margin_, model.margin_gap_
    assert model.stop_reason_ == "max_rounds" and gap > model.tol
    for shown in (repr(model), model._repr_html_()):
        assert f"certified gap {model.duality_gap_:.2g} among weights of at most {budget:.4g} in sum" in shown
        assert f"least margin {margin:.4g}, certified to be within {gap:.2g} of the best (tol 0.12)" in shown
        assert shown.count("tol 0.12") == 1 and "penalty none" not in shown


def test_repr_of_one_task_and_of_a_regression(binary):
    X, y = binary
    task = MultiTaskBoostedClassifier(alpha=0.05, classes=["rain"]).fit(X, y[:, None])
    assert "  1 task; " in repr(task) and "weight for rain" in repr(task)
    number = BoostedRegressor(alpha=0.05, hypotheses=PiecewiseLinear(centres=3, radii=2)).fit(X, X[:, 0])
    assert not any(noise in repr(number) for noise in NOISE)
    assert " of centre " in repr(number)


def test_repr_before_a_fit_is_scikit_learns(multiclass):
    model = BoostedClassifier(alpha=0.1)
    assert repr(model) == "BoostedClassifier(alpha=0.1)"
    assert "BoostedClassifier(alpha=0.1)" in model._repr_html_()
    pipeline = make_pipeline(StandardScaler(), model).fit(*multiclass)
    assert "3 classes" not in repr(pipeline)


def test_repr_of_an_empty_and_of_a_wide_model(multiclass):
    X, y = multiclass
    assert "0 of 12 features used" in repr(BoostedClassifier(alpha=10.0).fit(X, y))
    wide = BoostedClassifier(alpha=0.001).fit(X, np.arange(len(y)) % 11)
    text = repr(wide)
    assert "more" in text
    assert len(text.splitlines()) < 20


def test_table_behaves_as_a_sequence_and_a_frame():
    table = Table([{"a": 1, "b": 0.5}, {"a": 2, "c": "x"}])
    assert table.columns == ("a", "b", "c")
    assert len(table) == 2 and table[-1] == {"a": 2, "c": "x"}
    assert table[:1] == Table([{"a": 1, "b": 0.5}])
    assert table.column("a").tolist() == [1, 2]
    with pytest.raises(KeyError, match="no column 'z'"):
        table.column("z")
    frame = table.to_pandas()
    assert frame.shape == (2, 3) and frame["a"].tolist() == [1, 2]
    assert repr(table).splitlines()[0].split() == ["a", "b", "c"]
    assert len(repr(Table([{"a": i} for i in range(100)])).splitlines()) == 14
    assert "<td>0.5</td>" in table._repr_html_()
    assert repr(Table()) == "Table(no records)"
    table.records[0]["a"] = 9
    table[0]["a"] = 9
    assert table[0]["a"] == 1


def test_history_is_a_table_of_rounds(multiclass):
    model = BoostedClassifier(alpha=0.05).fit(*multiclass)
    frame = model.history_.to_pandas()
    assert len(frame) == model.n_iter_
    assert {"round", "objective", "gap", "rows_in", "rows_out", "seconds", "bytes_moved"} <= set(frame.columns)
    assert frame["objective"].is_monotonic_decreasing


@pytest.mark.parametrize("module", [history, classifier], ids=["history", "classifier"])
def test_examples_in_docstrings_run(module):
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0
