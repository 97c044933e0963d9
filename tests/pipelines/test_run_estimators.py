"""Every estimator by its name in a run file, cross-validated and along a path; `dboost path`."""

from typing import Any

import numpy as np
import pytest

import dboost
import pipelines
from dboost.errors import UsageError
from dboost.model.fitted import read_model
from pipelines.runs.fingerprints import of_model
from tests.pipelines.conftest import LOCAL, figures, give

COLUMNS = [{"family": "columns"}]
# Its labels, its parameters, and those of its cross-validation where it has one.
ESTIMATORS: dict[str, tuple[str, dict[str, Any], dict[str, Any] | None]] = {
    "shareboost": ("label", {"max_rounds": 3, "rule": "norm", "standardize": False}, {"max_rounds": 2, "rule": "norm"}),
    "jointboost": ("label", {"max_rounds": 3}, {"max_rounds": 2}),
    "adaboost_l1": ("two", {"max_rounds": 5, "nu": 0.5, "keep_zeros": True, "loss": "log"}, {"max_rounds": 3}),
    "adaboost_l1_regressor": (
        "number", {"max_rounds": 5, "nu": 0.5, "loss": "huber", "hypotheses": COLUMNS}, {"max_rounds": 3},
    ),
    "leveraging": (
        "two", {"max_rounds": 5, "loss": "log", "step": "exact", "bounds": [-0.5, "inf"]},
        {"max_rounds": 3, "alphas": [0.1, 0.01]},
    ),
    "leveraging_regressor": ("number", {"max_rounds": 5, "learner": "edge", "hypotheses": COLUMNS}, {"max_rounds": 3}),
    "regressor": (
        "number", {"alpha": 0.01, "loss": "quantile", "quantile": 0.8, "width": 0.2},
        {"n_alphas": 3, "scoring": "loss"},
    ),
    "boosted": ("label", {"hypotheses": [{"family": "products", "max_degree": 2}], "alpha": 0.02, "tol": 0.01}, None),
    "multitask": ("two,other", {"alpha": 0.02}, {"n_alphas": 3}),
    "multitarget": ("number,sum", {"alpha": 0.02, "penalty": "l1/l2"}, {"n_alphas": 3, "penalty": "l1/l2"}),
    "one_vs_rest": ("label", {"of": "boosted", "alpha": 0.02, "penalty": "l1"}, None),
}  # fmt: skip


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Numeric columns with labels of every kind."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    kind = np.argmax(X[:, :3] + 0.3 * rng.normal(size=(120, 3)), axis=1)
    columns = {f"x{j}": X[:, j] for j in range(4)}
    labels = {"label": np.array(["a", "b", "c"])[kind], "two": (X[:, 0] > 0).astype(int), "number": X[:, 0] + X[:, 1]}
    labels["other"] = (X[:, 1] > 0.2).astype(int)
    labels["sum"] = X[:, 0] - X[:, 1] + X[:, 2]
    folder = tmp_path_factory.mktemp("rows")
    for name, part in (("train", slice(0, 90)), ("test", slice(90, None))):
        table = pa.table({key: value[part] for key, value in {**columns, **labels}.items()})
        pq.write_table(table, folder / f"{name}.parquet", write_page_checksum=True)
    return folder


def tables_of(rows, label, model):
    data = {"data": str(rows / "train.parquet"), "test": str(rows / "test.parquet"), "label": label.split(",")}
    return {
        "data": {**data, "features": ["x0", "x1", "x2", "x3"]},
        "model": model,
        "predict": {},
        "cluster": {"workers": 0},
    }


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_is_trained_judged_and_predicts(name, rows, tmp_path):
    label, parameters, _ = ESTIMATORS[name]
    result = pipelines.run(tables_of(rows, label, {"estimator": name, **parameters}), out=tmp_path / "run")
    model = result.model
    expected = {"boosted": "BoostedClassifier", "multitask": "MultiTaskBoostedClassifier"}
    expected["multitarget"] = "MultiTaskBoostedRegressor"
    assert type(model).__name__ == expected.get(name, type(model).__name__) and len(model.active_features_) > 0
    assert result.evaluation is not None and result.stages["predict"].state == "done"
    figure = result.evaluation.get("error", result.evaluation.get("rmse"))
    assert figure is not None and figure < 0.6


def test_several_labels_are_judged_by_their_names(rows, tmp_path, refused):
    given = [rows / "train.parquet", "--features", "x0,x1,x2,x3"]
    give("train", *given, "--label", "two,other", "--loss", "multitask", "--out", tmp_path / "m")
    found = []
    for label in ("two,other", "other,two"):
        give("evaluate", tmp_path / "m", *given, "--label", label, "--out", tmp_path / label)
        found.append(figures(tmp_path / label))
    assert found[0] == found[1] and "task_errors" in found[0]
    said = refused("evaluate", tmp_path / "m", *given, "--label", "other,sum", *LOCAL, code=3)
    assert "given in the place of 'two'" in said


def test_one_model_for_each_class_is_judged_as_the_estimator_judges(rows, tmp_path):
    import pandas as pd
    import pyarrow.parquet as pq

    for label, classes in (("label", 3), ("two", 2)):
        tables = tables_of(rows, label, {"estimator": "one_vs_rest", "max_rounds": 2})
        tables["predict"] = {"probabilities": True}
        result = pipelines.run(tables, out=tmp_path / label)
        test = pd.read_parquet(rows / "test.parquet")
        X = test[["x0", "x1", "x2", "x3"]]
        found = pq.read_table(result.folder / "predictions").to_pandas()
        np.testing.assert_array_equal(found["prediction"], result.model.predict(X))
        chances = np.stack(found["probabilities"].to_list())
        assert chances.shape[1] == classes
        np.testing.assert_allclose(chances, result.model.predict_proba(X), rtol=1e-10, atol=1e-14)
        assert result.evaluation is not None
        assert result.evaluation["error"] == pytest.approx(1.0 - result.model.score(X, test[label]))


@pytest.mark.filterwarnings("ignore::dboost.errors.DboostWarning")
@pytest.mark.parametrize("name", [name for name, (*_, folds) in ESTIMATORS.items() if folds])
def test_every_estimator_is_cross_validated(name, rows, tmp_path):
    label, _, parameters = ESTIMATORS[name]
    tables = tables_of(rows, label, {"estimator": name, "cv": 3, **parameters})
    del tables["predict"], tables["data"]["test"]
    table = pipelines.run(tables, out=tmp_path / "run").report["path"]
    assert len(table) == parameters.get("n_alphas", len(parameters.get("alphas", [0])))
    assert all(row["mean_loss"] is not None for row in table)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::dboost.errors.DboostWarning")
def test_every_target_has_a_loss_of_its_own(rows, tmp_path):
    model = {"loss": ["squared", "log"], "penalty": "l1/l2", "alpha": 0.02}
    result = pipelines.run(tables_of(rows, "number,two", model), out=tmp_path / "run")
    assert type(result.model).__name__ == "MultiTaskBoostedRegressor" and result.model.loss == "squared,log"
    assert result.evaluation is not None and result.evaluation["rmse"] < 0.6
    data = [rows / "train.parquet", "--label", "number,two", "--features", "x0,x1,x2,x3"]
    given = ["--loss", "squared, log", "--penalty", "l1/l2", "--alpha", "0.02"]
    give("train", *data, "--out", tmp_path / "model", *given)
    again = dboost.load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.model_.W, result.model.model_.W)
    give("train", *data, "--out", tmp_path / "cv", *given[:4], "--cv", "3", "--n-alphas", "3")
    for losses in ("squared,logg", "squared,log,log"):
        give("train", *data, "--out", tmp_path / "no", "--loss", losses, code=2)


def test_leveraging_has_a_path(rows, tmp_path):
    model = {"estimator": "leveraging", "loss": "log", "path": 3, "eps": 0.3}
    result = pipelines.run(tables_of(rows, "two", model), out=tmp_path / "run")
    assert [row["features"] for row in result.report["path"]][0] == 0 and len(result.report["path"]) == 3


def test_the_rules_of_shareboost_and_of_cross_validation_are_told_apart(rows, tmp_path):
    with pytest.raises(UsageError, match="rule has no meaning for estimator 'boosted'"):
        pipelines.run(tables_of(rows, "label", {"rule": "norm"}), out=tmp_path / "a")
    result = pipelines.run(tables_of(rows, "label", {"cv": 3, "n_alphas": 4, "rule": "best"}), out=tmp_path / "b")
    assert result.model.alpha_ == result.model.alpha_best_
    assert len(list((result.folder / "path" / "models").iterdir())) == 4


def test_the_papers_own_steps_of_shareboost_have_names_on_the_command_line(rows, tmp_path):
    given = ["--label", "label", "--features", "x0,x1,x2,x3", "--estimator", "shareboost"]
    own = ["--rule", "row", "--shortlist", "all", "--corrective", "nesterov", "--max-rounds", "2"]
    give("train", rows / "train.parquet", "--out", tmp_path / "model", *given, *own)
    kept = dboost.load_model(tmp_path / "model").get_params()
    assert kept["shortlist"] is None and kept["corrective"] == "nesterov"


def test_a_path_is_a_run_and_a_command(rows, tmp_path, prints, refused):
    result = pipelines.run(tables_of(rows, "label", {"path": 4, "eps": 0.1}), out=tmp_path / "run")
    data = dboost.ParquetData(rows / "train.parquet", features=["x0", "x1", "x2", "x3"], label="label")
    peer = dboost.regularization_path(data, n_alphas=4, eps=0.1)
    models = sorted((result.folder / "path" / "models").iterdir())
    for folder, model in zip(models, peer.models, strict=True):
        assert read_model(folder).W.tobytes() == model.W.tobytes()
    assert of_model(result.folder / "model") != of_model(models[0])
    assert [row["features"] for row in result.report["path"]] == peer.n_active_features.tolist()
    path = ["path", rows / "train.parquet", "--features", "x0,x1,x2,x3", "--label", "label", "--eps", "0.1"]
    assert "certified gap" in prints(*path, "--path", "4", "--out", tmp_path / "out")
    assert read_model(tmp_path / "out" / "models" / "00003").W.tobytes() == peer.models[3].W.tobytes()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("out")] == ["out"]
    # the same number by its other name, and what only a cross-validation reads is refused
    give(*path, "--n-alphas", "4", "--out", tmp_path / "other")
    assert len(list((tmp_path / "other" / "models").iterdir())) == 4
    for more in (["--n-alphas", "3"], ["--scoring", "error"], ["--fold-tol", "0.1"]):
        assert "without" in refused(*path, "--path", "4", "--out", tmp_path / "refused", *more, *LOCAL)
