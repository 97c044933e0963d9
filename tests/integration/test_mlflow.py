"""The MLflow flavour against a real server on loopback with SQLite: saving, logging, the registry, autolog, pyfunc.

MLflow is large, so it is no package of ``make test``; ``make integration`` installs it and runs this.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

import dboost
from dboost import BoostedClassifier
from dboost.errors import UsageError

mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed; make integration installs it")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The address of a server of this module's own."""
    folder = tmp_path_factory.mktemp("mlflow")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", f"sqlite:///{folder}/mlflow.db", "--artifacts-destination", str(folder / "art")]
    with open(folder / "log", "w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
    address, until = f"http://127.0.0.1:{port}", time.monotonic() + 90
    while True:
        try:
            with urllib.request.urlopen(f"{address}/health", timeout=2):
                break
        except OSError:
            assert process.poll() is None and time.monotonic() < until, (folder / "log").read_text()
            time.sleep(0.3)
    mlflow.set_tracking_uri(address)
    mlflow.set_experiment("tests")
    yield address
    mlflow.set_tracking_uri(None)
    process.terminate()
    process.wait(30)


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def test_a_model_is_logged_registered_and_read_back(server, iris):
    X, y = iris
    ours = BoostedClassifier(alpha=1e-3).fit(X, y)
    with mlflow.start_run():
        info = dboost.mlflow.log_model(ours, "flowers", registered_model_name="flowers", input_example=X[:2])
    client = mlflow.MlflowClient()
    client.set_registered_model_alias("flowers", "champion", 1)
    back = dboost.mlflow.load_model("models:/flowers@champion")
    assert np.array_equal(back.predict_proba(X), ours.predict_proba(X))
    assert info.signature is not None
    files = [one.path for one in client.list_artifacts(info.run_id)]
    assert not any(path.endswith(".pkl") for path in files)


def test_pyfunc_predicts_tables_sparse_rows_and_probabilities(server, iris, tmp_path):
    X, y = iris
    ours = BoostedClassifier(alpha=1e-3).fit(X, y)
    dboost.mlflow.save_model(ours, tmp_path / "model")
    found = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    assert np.array_equal(found.predict(pd.DataFrame(X)), ours.predict(X))
    assert np.array_equal(found.predict(sp.csr_matrix(X)), ours.predict(X))
    wrapped = found.unwrap_python_model() if not hasattr(found, "get_raw_model") else found.get_raw_model()
    assert np.array_equal(wrapped.predict_proba(X), ours.predict_proba(X))
    chances = dboost.mlflow.PyfuncModel(ours).predict(X, {"method": "predict_proba"})
    assert np.array_equal(chances, ours.predict_proba(X))
    with pytest.raises(UsageError, match="method='fit'"):
        dboost.mlflow.PyfuncModel(ours).predict(X, {"method": "fit"})


def test_every_fit_is_logged(server, iris):
    X, y = iris
    dboost.mlflow.autolog(registered_model_name="logged")
    try:
        model = BoostedClassifier(alpha=1e-3, checkpoint=None).fit(X, y)
    finally:
        dboost.mlflow.autolog(disable=True)
    client = mlflow.MlflowClient()
    run = mlflow.last_active_run()
    assert run.data.params["alpha"] == "0.001" and run.data.params["estimator"] == "BoostedClassifier"
    assert run.data.metrics["certified_gap"] == pytest.approx(model.duality_gap_)
    rounds = client.get_metric_history(run.info.run_id, "objective")
    assert [one.value for one in rounds] == pytest.approx([one["objective"] for one in model.history_])
    names = {one.path for one in client.list_artifacts(run.info.run_id)}
    assert {"gap.png", "sparsity_map.png", "active_features.txt"} <= names
    back = dboost.mlflow.load_model("models:/logged/1")
    assert np.array_equal(back.predict(X), model.predict(X))
    before = len(client.search_runs([run.info.experiment_id]))
    BoostedClassifier(alpha=1e-2).fit(X, y)
    assert len(client.search_runs([run.info.experiment_id])) == before


def test_no_parameter_that_may_hold_a_password_is_logged(server, iris, tmp_path):
    dboost.mlflow.autolog(log_models=False, log_plots=False)
    try:
        BoostedClassifier(alpha=1e-2, checkpoint=str(tmp_path / "CANARY")).fit(*iris)
    finally:
        dboost.mlflow.autolog(disable=True)
    assert "CANARY" not in str(mlflow.last_active_run().to_dictionary())
    assert os.path.exists(tmp_path)


def test_the_method_that_a_server_is_asked_for_is_the_one_that_answers(tmp_path, iris):
    """Without a signature that names it MLflow passes over ``params``, with a warning, and labels come back."""
    X, y = iris
    ours = BoostedClassifier(alpha=0.01).fit(X, y)
    inferred = mlflow.models.infer_signature(X, ours.predict(X))
    for name, more in {"none": {}, "given": {"signature": inferred}, "example": {"input_example": X[:2]}}.items():
        dboost.mlflow.save_model(ours, tmp_path / name, **more)
        served = mlflow.pyfunc.load_model(str(tmp_path / name))
        assert np.array_equal(served.predict(X), ours.predict(X))
        assert np.array_equal(served.predict(X, params={"method": "predict_proba"}), ours.predict_proba(X))
    dboost.mlflow.save_model(ours, tmp_path / "without", signature=False)
    assert mlflow.pyfunc.load_model(str(tmp_path / "without")).metadata.signature is None
