"""Solve one stored problem with one other program; run as a script by whatever Python has that program installed.

Usage: ``python worker.py job.json answer.npz``. The job names the peer, the folder of the data (``X.npz`` or ``X.npy``,
``y.npy``), loss, penalty, alpha, intercept and a budget of seconds. The answer holds W (n, k), b (k,) and the seconds
of the fit alone. Exit code 3: the peer is not installed here (its name on stderr).

Imports nothing of this project, because the peer's environment need not have it. Every peer minimises
mean_i loss_i + alpha sum_j omega(W_j); how its own parameters say that is stated at each.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

MIX = 0.5
NOT_INSTALLED = 3


def liblinear(X: Any, y: Any, job: dict[str, Any]) -> tuple[Any, Any]:
    """C sum_i loss_i + |w|_1 with C = 1 / (alpha m), task by task; it penalises its intercept, so none is used."""
    from sklearn.linear_model import LogisticRegression

    Y = y.reshape(y.shape[0], -1)
    W = np.zeros((X.shape[1], Y.shape[1]))
    for r in range(Y.shape[1]):
        model = LogisticRegression(
            solver="liblinear",
            l1_ratio=1.0,
            C=1.0 / (job["alpha"] * X.shape[0]),
            fit_intercept=False,
            tol=1e-8,
            max_iter=2000,
        )
        W[:, r] = model.fit(X, Y[:, r]).coef_[0]
    return W, np.zeros(Y.shape[1])


def saga(X: Any, y: Any, job: dict[str, Any]) -> tuple[Any, Any]:
    """C sum_i loss_i + |W|_1 with C = 1 / (alpha m), continued until it stands still or the time is up."""
    from sklearn.linear_model import LogisticRegression

    deadline = time.perf_counter() + job["seconds"]
    chunk = 40
    model = LogisticRegression(
        solver="saga",
        l1_ratio=1.0,
        C=1.0 / (job["alpha"] * X.shape[0]),
        fit_intercept=job["intercept"],
        tol=1e-7,
        max_iter=chunk,
        warm_start=True,
        random_state=0,
    )
    while True:
        model.fit(X, y)
        if np.max(model.n_iter_) < chunk or time.perf_counter() > deadline:
            return model.coef_.T, np.atleast_1d(model.intercept_) * job["intercept"]


def skglm(X: Any, y: Any, job: dict[str, Any]) -> tuple[Any, Any]:
    """Mean loss + alpha |w|_1, intercept free; compiled on a slice first so that the seconds are those of the fit."""
    from skglm import SparseLogisticRegression

    model = SparseLogisticRegression(
        alpha=job["alpha"], fit_intercept=job["intercept"], tol=1e-10, max_iter=200, max_epochs=50_000
    )
    return model.fit(X, y).coef_[0][:, None], np.atleast_1d(model.intercept_)[:1]


def celer(X: Any, y: Any, job: dict[str, Any]) -> tuple[Any, Any]:
    """C sum_i loss_i + |w|_1 with C = 1 / (alpha m); it has no intercept."""
    from celer import LogisticRegression

    model = LogisticRegression(C=1.0 / (job["alpha"] * X.shape[0]), tol=1e-10, max_iter=200, fit_intercept=False)
    return model.fit(X, y).coef_[0][:, None], np.zeros(1)


def cyanure(X: Any, y: Any, job: dict[str, Any]) -> tuple[Any, Any]:
    """Mean loss + lambda_1 psi, intercept free; the sparse group is lambda_1 |W_j|_2 + lambda_2 |W_j|_1.

    It stops at its own duality gap; 2e-7 of the objective settles an agreement to 1e-6.
    """
    from cyanure.estimators import Classifier

    names = {"l1": "l1", "l1/l2": "l1l2", "l1/linf": "l1linf", "l1/l2+l1": "l1l2+l1"}
    mixed = job["penalty"] == "l1/l2+l1"
    model = Classifier(
        loss="logistic",
        penalty=names[job["penalty"]],
        lambda_1=job["alpha"] * (1.0 - MIX if mixed else 1.0),
        lambda_2=job["alpha"] * MIX if mixed else 0.0,
        fit_intercept=job["intercept"],
        tol=2e-7,
        max_iter=3000,
        duality_gap_interval=10,
        n_threads=2,
        verbose=False,
        multi_class="multinomial" if job["loss"] == "multinomial" else "auto",
    )
    model.fit(X, y)
    W = np.asarray(model.coef_)
    W = W.reshape(X.shape[1], -1) if W.shape[0] == X.shape[1] else W.T.reshape(X.shape[1], -1)
    b = np.asarray(model.intercept_, dtype=np.float64).ravel() if job["intercept"] else np.zeros(W.shape[1])
    return W, b


def glmnet(X: Any, y: Any, job: dict[str, Any]) -> tuple[Any, Any]:
    """Mean loss + lambda |W|_1 along a short path down to lambda = alpha, without standardisation, intercept free."""
    from glmnet import LogitNet

    path = job["alpha"] * np.array([8.0, 4.0, 2.0, 1.5, 1.0])
    model = LogitNet(
        alpha=1, lambda_path=path, standardize=False, fit_intercept=job["intercept"], n_splits=0, tol=1e-11,
        max_iter=1_000_000,
    )  # fmt: skip
    model.fit(X, y)
    coefficients, intercept = np.asarray(model.coef_path_), np.asarray(model.intercept_path_)
    W = coefficients[..., -1].reshape(-1, X.shape[1]).T
    b = intercept[..., -1].ravel() if job["intercept"] else np.zeros(W.shape[1])
    return W, b


PEERS: dict[str, Callable[[Any, Any, dict[str, Any]], tuple[Any, Any]]] = {
    "liblinear": liblinear,
    "saga": saga,
    "skglm": skglm,
    "celer": celer,
    "cyanure": cyanure,
    "glmnet": glmnet,
}
MODULE = {"liblinear": "sklearn", "saga": "sklearn"}


def read_problem(folder: Path) -> tuple[Any, Any]:
    """Return X (csr_matrix or dense) and y as `run` stored them."""
    import scipy.sparse

    sparse = folder / "X.npz"
    X = scipy.sparse.csr_matrix(scipy.sparse.load_npz(sparse)) if sparse.exists() else np.load(folder / "X.npy")
    return X, np.load(folder / "y.npy")


def main(job_path: str, answer_path: str) -> int:
    """Solve the job and write the answer; returns the exit code."""
    job = json.loads(Path(job_path).read_text())
    module = MODULE.get(job["peer"], job["peer"])
    try:
        __import__(module)
    except ImportError as error:
        print(f"{module} is not installed: {error}", file=sys.stderr)
        return NOT_INSTALLED
    warnings.simplefilter("ignore")
    X, y = read_problem(Path(job["data"]))
    y = y.astype(np.int64)
    if job["peer"] == "skglm":
        skglm(X[:300], y[:300], {**job, "alpha": 10.0 * job["alpha"]})
    began = time.perf_counter()
    W, b = PEERS[job["peer"]](X, y, job)
    seconds = time.perf_counter() - began
    np.savez(answer_path, W=np.asarray(W, dtype=np.float64), b=np.asarray(b, dtype=np.float64), seconds=seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
