"""The problems of the stored baseline: made up, small, each beside work of scikit-learn, SciPy or Dask on its data.

Covers: a fit to a certified gap of text-like, dense and induced problems, what a pass costs on Dask, and scores of an
array, of a row and of a document. Does not cover: real data and peers that solve the same problem
(``lab.benchmarks.peers``).

The work beside a problem is a yardstick, no competitor: it is always installed, does the same arithmetic in every
version of dboost, and reads memory in a similar way, so that a slower processor or a busy one slows both.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from dboost import BoostedClassifier, TextFeatures
from dboost.boosting.fit import FitSettings, Fitting
from dboost.data.plan import build_plan
from dboost.engine.local import LocalEngine
from dboost.errors import ConvergenceWarning
from dboost.hypotheses.products.family import Products
from dboost.hypotheses.stumps.family import Stumps
from dboost.interop.linear import to_sklearn

Work = Callable[[], object]
Made = Callable[[float], AbstractContextManager[tuple[Work, Work]]]
SHARE_OF_LARGEST = 0.03  # Strength of the penalty, as a share of the least one whose model is empty.
TOL = 1e-3  # Relative duality gap of the fits.


def text(rows: int, columns: int, classes: int, words: int = 40) -> tuple[Any, np.ndarray]:
    """Rows of a few positive values whose columns are as unequal as words, and labels that some of them decide."""
    rng = np.random.default_rng(20091115)
    at = (columns * rng.random((rows, words)) ** 3).astype(np.int64)
    values = rng.exponential(size=at.shape)
    X = scipy.sparse.csr_matrix((values.ravel(), at.ravel(), np.arange(rows + 1) * words), shape=(rows, columns))
    X.sum_duplicates()
    W = rng.normal(size=(columns, classes)) * (rng.random((columns, 1)) < 0.02)
    return X, np.argmax(X @ W + rng.gumbel(size=(rows, classes)), axis=1)


def fitting(X: Any, y: np.ndarray, engine: Any, **settings: Any) -> Work:
    """One whole fit of data that lies ready; its strength is a share of the largest one, found beforehand."""
    task = "binary" if len(np.unique(y)) == 2 else "multiclass"
    plan = build_plan(X, y, task=task, engine=engine)
    chosen = FitSettings("log" if task == "binary" else "multinomial", **settings)
    certified = chosen.penalty != "none"
    alpha: Any = SHARE_OF_LARGEST * Fitting(plan, engine, chosen).alpha_max() if certified else "auto"

    def fit() -> object:
        with warnings.catch_warnings():
            # Rounds that are counted end before they converge, as they are asked to.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return Fitting(plan, engine, chosen).fit(alpha)

    return fit


def products(X: Any, outputs: int, times: int) -> Work:
    """Products of a matrix with some columns, and its transpose with the result: the passes of any first-order fit."""
    W, back = np.full((X.shape[1], outputs), 1e-3), X.T.tocsr() if scipy.sparse.issparse(X) else X.T

    def work() -> object:
        for _ in range(times):
            found = back @ np.tanh(X @ W)
        return found

    return work


def one_by_one(X: Any, y: np.ndarray, epochs: int) -> Work:
    """Coordinates of an l1 problem visited one by one: liblinear, a fixed number of times."""
    from sklearn.exceptions import ConvergenceWarning as Unfinished
    from sklearn.linear_model import SGDClassifier

    def work() -> object:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Unfinished)
            return SGDClassifier(loss="log_loss", penalty="l1", max_iter=epochs, tol=None, random_state=0).fit(X, y)

    return work


def _sparse(penalty: str, classes: int) -> Made:
    @contextmanager
    def made(scale: float) -> Iterator[tuple[Work, Work]]:
        X, y = text(int(12_000 * scale), int(6_000 * scale), classes)
        beside = one_by_one(X, y, 20) if classes == 2 else products(X, 8, 60)
        with LocalEngine(1) as engine:
            yield fitting(X, y, engine, penalty=penalty, tol=TOL), beside

    return made


def table(rows: int, columns: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Normal columns, of which six decide two labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    return X, (X[:, :6].sum(axis=1) + rng.logistic(size=rows) > 0).astype(np.int64)


@contextmanager
def _dense(scale: float) -> Iterator[tuple[Work, Work]]:
    X, y = table(int(20_000 * scale), 60, 1)
    with LocalEngine(1) as engine:
        yield fitting(X, y, engine, penalty="l1", tol=TOL), one_by_one(X, y, 4)


@contextmanager
def _stumps(scale: float) -> Iterator[tuple[Work, Work]]:
    from sklearn.tree import DecisionTreeClassifier

    rng = np.random.default_rng(2)
    X = rng.normal(size=(int(20_000 * scale), 40)).astype(np.float32)
    y = ((X[:, 0] < 0.3).astype(float) + X[:, 1] + rng.logistic(size=len(X)) > 0.5).astype(np.int64)
    rounds = {"update": "forward", "tol": 0.0, "max_rounds": 8, "hypotheses": Stumps(max_listed=0)}
    with LocalEngine(1) as engine:
        yield fitting(X, y, engine, penalty="none", **rounds), lambda: DecisionTreeClassifier(max_depth=1).fit(X, y)


@contextmanager
def _products(scale: float) -> Iterator[tuple[Work, Work]]:
    X, y = text(int(4_000 * scale), 120, 2, words=12)
    with LocalEngine(1) as engine:
        hypotheses = Products(max_degree=2)
        yield fitting(X, y, engine, penalty="l1", tol=TOL, hypotheses=hypotheses), products(X, 8, 100)


@contextmanager
def _dask_pass(scale: float) -> Iterator[tuple[Work, Work]]:
    from dboost.engine.dask.cluster import embedded_cluster
    from dboost.engine.dask.engine import DaskEngine
    from dboost.penalties import get_penalty
    from dboost.problem.problem import ProblemSettings
    from dboost.problem.stored import StoredProblem
    from lab.benchmarks.overhead import Drawn

    times = max(1, int(20 * scale))
    with embedded_cluster(2) as cluster, cluster.get_client() as client, DaskEngine(client) as engine:
        parts = [Drawn(number, 200, 50, 2) for number in range(4)]
        engine.set_plan(parts, [part.n_rows for part in parts], "baseline")
        problem = StoredProblem(engine, ProblemSettings("multinomial", get_penalty("l1/l2"), 50, 2), "baseline")
        null = problem.null()

        def passes() -> object:
            return [problem.evaluate(null.active, null.W, null.intercept) for _ in range(times)]

        def submits() -> object:
            return [client.gather(client.map(abs, range(2), pure=False)) for _ in range(times)]

        yield passes, submits


def _often(work: Work, times: int) -> Work:
    def often() -> object:
        return [work() for _ in range(times)]

    return often


@contextmanager
def _array_scores(scale: float) -> Iterator[tuple[Work, Work]]:
    """Scores of an array, beside the product of the columns held alone: what checks of the others cost."""
    X, y = table(int(20_000 * scale), 200, 3)
    model = BoostedClassifier(penalty="l1", alpha=0.02, standardize=False).fit(X, y)
    held = np.flatnonzero(model.coef_[0])
    W = model.coef_[0, held]
    yield _often(lambda: model.decision_function(X), 10), _often(lambda: X[:, held] @ W, 10)


@contextmanager
def _single_rows(scale: float) -> Iterator[tuple[Work, Work]]:
    """Labels of one row at a time, beside the same model as one of scikit-learn's."""
    X, y = text(2_000, 500, 3)
    model = BoostedClassifier(penalty="l1/l2", alpha=0.01).fit(X, y)
    times, plain = max(1, int(500 * scale)), to_sklearn(model)
    yield _often(lambda: model.predict(X[:1]), times), _often(lambda: plain.predict(X[:1]), times)


@contextmanager
def _single_documents(scale: float) -> Iterator[tuple[Work, Work]]:
    """Labels of one raw document at a time, beside features and a model of scikit-learn's own."""
    rng = np.random.default_rng(4)
    words = np.array([f"w{i}" for i in range(3_000)])
    documents = [" ".join(one) for one in words[rng.integers(3_000, size=(2_000, 100))]]
    y = np.array(["w1 " in one or "w2 " in one for one in documents]).astype(np.int64)
    features, plain_features = TextFeatures(), TfidfVectorizer()
    model = BoostedClassifier(penalty="l1", alpha=0.003).fit(features.fit_transform(documents), y)
    plain = LogisticRegression().fit(plain_features.fit_transform(documents), y)
    ours, theirs = make_pipeline(features, model), make_pipeline(plain_features, plain)
    times = max(1, int(300 * scale))
    yield _often(lambda: ours.predict(documents[:1]), times), _often(lambda: theirs.predict(documents[:1]), times)


PROBLEMS: dict[str, Made] = {
    "text l1": _sparse("l1", 2),
    "text l1/l2": _sparse("l1/l2", 6),
    "text l1/linf": _sparse("l1/linf", 6),
    "dense l1": _dense,
    "stumps": _stumps,
    "products": _products,
    "a pass on Dask": _dask_pass,
    "scores of an array": _array_scores,
    "single rows": _single_rows,
    "single documents": _single_documents,
}
"""By name; each opens its data at a scale and gives the work of ours and that beside it."""
ON_THE_CLOCK = frozenset({"a pass on Dask"})
"""Problems of which waiting is a part: they are timed on the clock, the others in processor time."""
