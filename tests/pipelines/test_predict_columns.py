"""What ``dboost predict`` writes beside the labels: most probable classes and decision values."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dboost import BoostedClassifier
from pipelines.cli import main


@pytest.fixture(scope="module", params=[2, 3])
def made(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    table = pa.table({f"c{j}": X[:, j] for j in range(4)})
    y = np.array(["a", "b", "c"])[np.argmax(X[:, : request.param], axis=1)]
    model = BoostedClassifier(alpha=1e-2).fit(table, y)
    model.save(folder / "m")
    pq.write_table(table, folder / "t.parquet")
    return model, table, folder


def _predict(folder, out, *flags):
    return main(["predict", str(folder / "m"), str(folder / "t.parquet"), "--out", str(out), "--workers", "0", *flags])


def test_top_classes_and_scores_are_those_of_the_model(made, tmp_path):
    model, table, folder = made
    assert _predict(folder, tmp_path / "p", "--top", "2", "--scores") == 0
    found = pa.concat_tables(pq.read_table(file) for file in sorted((tmp_path / "p").glob("*.parquet")))
    chances = model.predict_proba(table)
    best = np.argsort(-chances, axis=1, kind="stable")[:, :2]
    assert found["top_classes"].to_pylist() == model.classes_[best].tolist()
    assert found["top_probabilities"].to_pylist() == np.take_along_axis(chances, best, axis=1).tolist()
    assert [row[0] for row in found["top_classes"].to_pylist()] == found["prediction"].to_pylist()
    assert found["scores"].to_pylist() == model.decision_function(table).tolist()


def test_more_classes_than_there_are_is_refused(made, tmp_path, capsys):
    assert _predict(made[2], tmp_path / "p", "--top", "9") == 2
    assert "--top 9, but the model has" in capsys.readouterr().err
    assert not (tmp_path / "p").exists()
