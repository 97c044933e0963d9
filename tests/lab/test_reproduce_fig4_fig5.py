"""The reproductions ``housing``, ``ailerons`` and ``topics``: numerical cores, judges and figures.

Covers: choices by cross-validation, mutual information, the verdict of every claim on made-up numbers on both sides,
figures from tables, and the learners on small made-up data. Does not cover: the real data sets, which take minutes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dboost
from lab.datasets import boston
from lab.reproduce import REGISTRY, housing, regression, regression_page, topics, topics_page
from lab.reproduce.base import Context
from lab.reproduce.claims import FAILS, HOLDS, OPEN, PART
from lab.reproduce.regression import METHODS
from lab.reproduce.regression_parts import Choice, Split, Study, errors, fold_rows, split_of
from lab.reproduce.rows import Rows
from pipelines.console import Console

# ---- numerical cores -----------------------------------------------------------------------------------------------


def test_choice_takes_the_lowest_error_and_the_sparsest_within_one_error() -> None:
    found = np.array([[9.0, 4.0, 3.0, 3.5], [11.0, 5.0, 4.4, 4.5], [10.0, 4.2, 4.0, 4.0]])
    choice = Choice(np.array([4.0, 3.0, 2.0, 1.0]), found)
    slack = found[:, 2].std(ddof=1) / np.sqrt(3)
    assert choice.best == 2 and not choice.at_edge
    assert choice.sparse == (1 if found[:, 1].mean() <= found[:, 2].mean() + slack else 2)
    assert Choice(np.array([2.0, 1.0]), np.array([[2.0, 1.0], [2.0, 1.0]])).at_edge
    # of equal errors the strongest penalty
    assert Choice(np.array([2.0, 1.0]), np.array([[1.0, 1.0], [3.0, 3.0]])).best == 0


def test_folds_part_the_rows() -> None:
    folds = fold_rows(11, 3, seed=4)
    assert sorted(np.concatenate(folds).tolist()) == list(range(11))
    assert {len(fold) for fold in folds} == {3, 4}


def test_errors_are_those_of_the_definition() -> None:
    found = errors(np.array([1.0, 2.0, 5.0]), np.array([1.0, 4.0, 4.0]))
    assert found["rmse"] == pytest.approx(np.sqrt(5 / 3)) and found["mae"] == pytest.approx(1.0)


def test_mutual_information_equals_that_of_scikit_learn() -> None:
    from scipy.sparse import csr_matrix
    from sklearn.metrics import mutual_info_score

    rng = np.random.default_rng(0)
    dense = (rng.random((60, 5)) < [0.1, 0.5, 0.9, 0.3, 0.0]) * rng.random((60, 5))
    y = np.where(dense[:, 1] + 0.3 * rng.random(60) > 0.3, 1, -1).astype(np.int8)
    found = topics.mutual_information(csr_matrix(dense), y)
    expected = [mutual_info_score(dense[:, j] > 0, y) for j in range(5)]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def small_study() -> Study:
    def table() -> Any:
        twin = boston.synthetic(0)
        return np.vstack([twin.X, twin.X_test]), np.concatenate([twin.y, twin.y_test]), twin.feature_names

    return replace(
        housing.STUDY, table=table, splits=2, ratios=(0.2, 0.05), smooth=(1e-3,), folds=2, forward_rounds=60,
        unbounded_rounds=12, smooth_rounds=12, trial_rounds=5, margins=(1.0, 10.0),
        bounded=dboost.Products(scale="range", max_degree=2),
    )  # fmt: skip


def test_learners_measure_a_small_regression() -> None:
    study = small_study()
    split = split_of(study, 0)
    assert split.X.shape == (96, 13) and split.X_test.shape == (24, 13)
    constant = errors(np.full(24, split.y.mean()), split.y_test)["rmse"]
    for name, learner in regression.LEARNERS.items():
        found = learner(study, split)
        assert found.results[0]["method"] == name and name in METHODS
        assert found.results[0]["rmse"] < constant
        if found.curve:
            rounds = found.curve.where(method=name).column("round")
            assert (np.diff(rounds) > 0).all()
            assert found.curve.where(method=name)[-1]["rmse"] == pytest.approx(found.results[0]["rmse"])
    boosted = regression.l1_boosting(study, split).results
    assert [line["method"] for line in boosted] == ["l1 boosting", "l1 boosting (one-se)"]
    assert boosted[0]["gap"] <= 1e-3 and boosted[0]["stop"] == "tol" and boosted[0]["subtrees"] > 0
    assert boosted[0]["strength"] <= boosted[1]["strength"]


def test_certificates_name_the_subtrees_opened() -> None:
    (line,) = housing.certificates(small_study(), (0.2,), tol=1e-3)
    assert line["gap"] <= 1e-3 and line["subtrees"] >= line["subtrees_last"] > 0


# ---- the regressions' claims ---------------------------------------------------------------------------------------


def tables(**changes: dict[str, Any]) -> dict[str, Rows]:
    """Five splits on which every claim holds; `changes` alter a method's lines."""
    plain = {
        "l1 boosting": {"rmse": 3.0, "mae": 2.0, "features": 20, "seconds": 1.0},
        "l1 boosting (one-se)": {"rmse": 3.1, "mae": 2.1, "features": 12, "seconds": 1.0},
        "classical AdaBoost": {"rmse": 4.0, "mae": 3.0, "features": 90, "seconds": 60.0},
        "classical AdaBoost, all degrees": {"rmse": 9.0, "mae": 3.0, "features": 90, "seconds": 60.0},
        "smooth-l1 boosting": {"rmse": 3.2, "mae": 2.2, "features": 200, "seconds": 20.0},
        "l1 least squares": {"rmse": 5.0, "mae": 3.5, "features": 13, "seconds": 0.1},
        "l2 hinge": {"rmse": 5.0, "mae": 3.4, "features": 13, "seconds": 0.1},
    }
    results, curves = [], []
    for split in range(5):
        for method, line in plain.items():
            mine = line | changes.get(method, {})
            more = {"entered": 60, "induction_ended": 7, "rounds": 9, "choosing": 3.0, "gap": 1e-4, "at_edge": False}
            results.append({"split": split, "method": method} | more | mine)
            if "boosting" in method or "AdaBoost" in method:
                for round_, share in ((1, 0.001), (1000, 0.4), (3000, 1.0)):
                    curves.append(
                        {"split": split, "method": method, "round": round_, "seconds": share * mine["seconds"]}
                        | {"rmse": mine["rmse"] + 0.01 * split, "mae": mine["mae"], "active_rows": mine["features"]}
                    )
    return {"results": Rows(results), "curves": Rows(curves)}


JUDGED = [
    ({}, [HOLDS] * 5),
    ({"l1 boosting": {"features": 60}}, [PART, HOLDS, HOLDS, HOLDS, HOLDS]),
    ({"l1 boosting": {"features": 60, "induction_ended": 9}}, [FAILS, HOLDS, HOLDS, HOLDS, HOLDS]),
    ({"classical AdaBoost": {"rmse": 2.0}}, [HOLDS, FAILS, HOLDS, HOLDS, HOLDS]),
    ({"smooth-l1 boosting": {"rmse": 2.5}}, [HOLDS, HOLDS, FAILS, HOLDS, HOLDS]),
    ({"classical AdaBoost": {"seconds": 5.0}}, [HOLDS, HOLDS, HOLDS, FAILS, HOLDS]),
    ({"classical AdaBoost": {"seconds": 20.0}}, [HOLDS, HOLDS, HOLDS, PART, HOLDS]),
    ({"l2 hinge": {"mae": 1.0}}, [HOLDS, HOLDS, HOLDS, HOLDS, PART]),
]


@pytest.mark.parametrize(("changes", "expected"), JUDGED)
def test_verdicts_on_regression_follow_the_numbers(changes: dict[str, dict[str, Any]], expected: list[str]) -> None:
    found = tables(**changes)
    assert [claim.judge(found).outcome for claim in regression_page.claims()] == expected


def test_comparison_of_splits_can_be_undecided() -> None:
    mine, other = dict.fromkeys(range(4), 1.0), {0: 2.0, 1: 2.0, 2: 0.5, 3: 0.5}
    assert regression_page.better(mine, other, "x").met is None
    assert regression_page.better(mine, other, "x", strictly=False).met is True


def test_figures_of_the_regressions_are_drawn_from_tables() -> None:
    for name in ("housing", "ailerons"):
        module = REGISTRY[name].load()
        figure = module.FIGURES[0].draw(tables())
        assert len(figure.axes) == 3 and len(figure.axes[0].get_lines()) >= 8
        assert module.CLAIMS == regression_page.claims() or len(module.CLAIMS) == 5


# ---- topics --------------------------------------------------------------------------------------------------------


def topic_tables(**changes: dict[str, Any]) -> dict[str, Rows]:
    """One corpus on which every claim holds."""
    results, curves = [], []
    for topic in ("a", "b", "c", "d"):
        common = {"corpus": "news", "topic": topic, "train_loss": 0.1, "test_loss": 0.2, "choosing": 1.0}
        l1 = {"features": 700, "rounds": 34, "induction_ended": 31, "stop": "tol", "at_edge": False}
        smooth = {"features": 400, "rounds": 400, "stop": "max_rounds", "best_round": 180, "best_test_loss": 0.19,
                  "rise": 0.01, "rise_se": 0.002, "train_fall": 0.05}  # fmt: skip
        for method, line in ((topics_page.L1, l1), (topics_page.SMOOTH, smooth), (topics_page.L2, {"features": 100})):
            results.append(common | {"method": method} | line | changes.get(method, {}))
        for method in (topics_page.L1, topics_page.SMOOTH):
            curves += [common | {"method": method, "round": round_} for round_ in (1, 30, 400)]
    return {"results": Rows(results), "curves": Rows(curves)}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, [HOLDS, HOLDS, HOLDS]),
        ({topics_page.L1: {"features": 90}}, [PART, HOLDS, HOLDS]),
        ({topics_page.L1: {"features": 90, "induction_ended": 6, "stop": "max_rounds"}}, [FAILS, HOLDS, HOLDS]),
        ({topics_page.SMOOTH: {"stop": "gradient"}}, [HOLDS, PART, HOLDS]),
        ({topics_page.SMOOTH: {"rise": 0.003}}, [HOLDS, HOLDS, FAILS]),
        ({topics_page.SMOOTH: {"train_fall": -0.01}}, [HOLDS, HOLDS, FAILS]),
    ],
)
def test_verdicts_on_topics_follow_the_numbers(changes: dict[str, dict[str, Any]], expected: list[str]) -> None:
    found = topic_tables(**changes)
    assert [claim.judge(found).outcome for claim in topics_page.CLAIMS] == expected
    assert OPEN not in expected
    assert "smooth-l1" in topics_page.findings(found["results"])[0]
    figure = topics_page.FIGURES[0].draw(found)
    assert len(figure.axes) == 4 and all(axis.get_lines() for axis in figure.axes)


def test_topics_run_on_a_small_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    from lab.datasets import reuters

    twin = reuters.synthetic(0)

    def load(sizes: Any) -> topics.Corpus:
        Y, names = twin.y[:, :2], ("one", "two")
        return topics.Corpus("twin", twin.X, Y, twin.X_test, twin.y_test[:, :2], names)

    sizes = replace(topics.QUICK, smooth_rounds=12, trial_rounds=4, folds=2, chosen=(5,))
    monkeypatch.setattr(topics, "CORPORA", (load,))
    monkeypatch.setattr(topics, "QUICK", sizes)
    report = topics.run(Context(Console("plain"), quick=True))
    results = report.tables["results"]
    assert len(results) == 6 and set(results.values("method")) == {topics_page.L1, topics_page.SMOOTH, topics_page.L2}
    smooth = results.where(method=topics_page.SMOOTH)
    assert smooth.column("features").tolist() == smooth.column("rounds").tolist() == [12, 12]
    assert (smooth.column("rise") >= 0).all()
    assert all(claim.judge(report.tables).checks for claim in report.claims)
    assert all(figure.draw(report.tables) for figure in report.figures)


def test_a_split_judges_models() -> None:
    class Constant:
        def predict(self, X: Any) -> Any:
            return np.full(len(X), 2.0)

    split = Split(0, np.zeros((2, 1)), np.zeros(2), np.zeros((3, 1)), np.array([1.0, 2.0, 3.0]))
    assert split.judge(Constant())["mae"] == pytest.approx(2 / 3)
