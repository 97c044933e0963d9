"""Regression and induced hypotheses through the command line: train, inspect, evaluate, predict."""

import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

from dboost import BoostedRegressor, Columns, Products, load_model
from dboost.losses import EpsilonInsensitive
from pipelines.regression_figures import partial, summarise
from tests.pipelines.conftest import LOCAL, figures, give

NAMES = ["lstat", "rm", "age", "tax"]


def houses(rows=200, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(rows, 4)), columns=NAMES)
    noise = 0.2 * rng.normal(size=rows)
    return frame.assign(price=1000.0 + 5.0 * frame.lstat * frame.rm - 2.0 * frame.age**2 + noise)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("houses")
    frame = houses()
    frame[:120].to_parquet(folder / "a.parquet", index=False)
    frame[120:].to_parquet(folder / "b.parquet", index=False)
    return folder


@pytest.fixture(scope="module")
def model(data, tmp_path_factory):
    out = tmp_path_factory.mktemp("model") / "m"
    file = out.parent / "run.toml"
    file.write_text(
        f'data = "{data}"\nout = "{out}"\nlabel = "price"\nloss = "epsilon_insensitive"\nepsilon = 0.5\n'
        'alpha = 0.01\n[hypotheses]\nfamily = "products"\nmax_degree = 2\n'
    )
    give("train", "--config", file)
    return out


def test_a_table_of_the_settings_names_the_hypotheses(model):
    estimator = load_model(model)
    assert type(estimator) is BoostedRegressor
    assert estimator.loss == EpsilonInsensitive(epsilon=0.5)
    assert estimator.hypotheses == Products(max_degree=2)
    settings = json.loads((model / "run.json").read_text())["settings"]
    assert settings["hypotheses"] == [{"family": "products", "max_degree": 2}]


def test_evaluate_prints_the_figures_of_scikit_learn(model, data, tmp_path, prints, tells):
    found = tells("evaluate", model, data, "--label", "price", "--features", ",".join(NAMES))[-1]
    frame = houses()
    predicted = load_model(model).predict(frame[NAMES])
    assert found["rmse"] == pytest.approx(root_mean_squared_error(frame.price, predicted), rel=1e-9)
    assert found["mae"] == pytest.approx(mean_absolute_error(frame.price, predicted), rel=1e-9)
    assert found["r2"] == pytest.approx(r2_score(frame.price, predicted), rel=1e-9)
    assert found["largest_error"] == pytest.approx(np.abs(frame.price - predicted).max(), rel=1e-9)
    assert (found["examples"], found["n_hypotheses"], found["n_features"]) == (200, 14, 4)
    text = prints("evaluate", model, data, "--label", "price", "--out", tmp_path / "e")
    assert "RMSE" in text and "MAE" in text and "R2" in text
    assert figures(tmp_path / "e")["r2"] == pytest.approx(found["r2"])


def test_inspect_shows_the_hypotheses_in_words(model, prints, tells):
    (found,) = tells("inspect", model)
    words = {feature["name"]: feature["weights"] for feature in found["features"]}
    assert words["lstat * rm"]["target"] > 0 > words["age^2"]["target"]
    assert "column" not in found["features"][0]
    text = prints("inspect", model)
    assert "lstat * rm" in text and "hypotheses used" in text and "features read" in text


def test_predictions_are_those_of_the_model_and_have_no_probabilities(model, data, tmp_path, refused):
    asked = ["predict", model, data, "--out", tmp_path / "p"]
    assert "no probabilities" in refused(*asked, "--probabilities", *LOCAL)
    give(*asked, "--features", ",".join(NAMES))
    table = pq.read_table(tmp_path / "p")
    assert table.column_names == ["file", "row", "prediction"]
    expected = load_model(model).predict(houses()[NAMES])
    assert np.asarray(table["prediction"]).tobytes() == expected.tobytes()


def test_flags_take_a_name_or_json_and_several_are_a_union(data, tmp_path):
    common = ["train", data, "--label", "price", "--loss", "squared", "--alpha", "0.5"]
    give(*common, "--hypotheses", "columns", "--out", tmp_path / "a")
    assert load_model(tmp_path / "a").hypotheses == Columns()
    union = '[{"family": "columns"}, {"family": "products", "min_degree": 2, "max_degree": 2}]'
    give(*common, "--hypotheses", union, "--out", tmp_path / "b")
    assert load_model(tmp_path / "b").hypotheses == Columns() | Products(min_degree=2, max_degree=2)


def test_counts_are_predicted_by_their_means(tmp_path, tells, refused):
    frame = houses()[NAMES]
    counts = np.random.default_rng(1).poisson(np.exp(0.4 * frame.lstat + 1.0))
    frame.assign(visits=counts).to_parquet(tmp_path / "t.parquet", index=False)
    common = ["--label", "visits", "--loss", "poisson", "--penalty", "l1", "--alpha", "0.05"]
    give("train", tmp_path / "t.parquet", *common, "--out", tmp_path / "m")
    give("predict", tmp_path / "m", tmp_path / "t.parquet", "--out", tmp_path / "p")
    model = load_model(tmp_path / "m")
    predicted = np.asarray(pq.read_table(tmp_path / "p")["prediction"])
    np.testing.assert_allclose(predicted, np.exp(frame.to_numpy() @ model.coef_[0] + model.intercept_[0]), rtol=1e-12)
    found = tells("evaluate", tmp_path / "m", tmp_path / "t.parquet", "--label", "visits")[-1]
    assert found["r2"] == pytest.approx(r2_score(counts, predicted), rel=1e-9)
    frame.assign(visits=np.where(np.arange(200) == 17, -1, counts)).to_parquet(
        tmp_path / "bad.parquet", index=False, write_page_checksum=True
    )
    bad = ["train", tmp_path / "bad.parquet", *common, "--out", tmp_path / "n"]
    assert "label -1 in row 17 of partition bad.parquet" in refused(*bad, *LOCAL, code=3)


def test_figures_of_batches_add_up_and_weights_count():
    rng = np.random.default_rng(0)
    y, predicted = 1e6 + rng.normal(size=50), 1e6 + rng.normal(size=50)
    weight = rng.integers(0, 3, 50).astype(float)
    centre = np.array([1e6])
    whole = summarise(partial(predicted, y, weight, centre))
    parts = partial(predicted[:20], y[:20], weight[:20], centre)
    found = summarise(parts.merge(partial(predicted[20:], y[20:], weight[20:], centre)))
    for name, value in vars(found).items():
        np.testing.assert_allclose(value, getattr(whole, name), rtol=1e-9)
    assert found.target_r2 == (found.r2,)
    assert found.r2 == pytest.approx(r2_score(y, predicted, sample_weight=weight), rel=1e-6)
    assert found.largest == np.abs(y - predicted)[weight > 0].max()
    constant = summarise(partial(predicted, np.full(50, 2.0), np.ones(50), np.zeros(1)))
    assert np.isnan(constant.r2)


def test_the_figures_of_several_targets_leave_missing_ones_out():
    rng = np.random.default_rng(0)
    y, weight = rng.normal(size=(60, 2)), rng.uniform(0.5, 2.0, 60)
    predicted = y + rng.normal(size=y.shape)
    y[rng.random(y.shape) < 0.3] = np.nan
    found = summarise(partial(predicted, y, weight, np.zeros((1, 2))))
    for r in range(2):
        seen = ~np.isnan(y[:, r])
        wanted = r2_score(y[seen, r], predicted[seen, r], sample_weight=weight[seen])
        assert found.target_r2[r] == pytest.approx(wanted, rel=1e-12)
    seen = ~np.isnan(y)
    each = np.broadcast_to(weight[:, None], y.shape)[seen]
    assert found.mae == pytest.approx(mean_absolute_error(y[seen], predicted[seen], sample_weight=each), rel=1e-12)
    assert found.weight == pytest.approx(each.sum(), rel=1e-12)
