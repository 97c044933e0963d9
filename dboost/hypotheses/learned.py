"""Hypotheses that a scikit-learn estimator learns, one in every round of a leveraging fit.

Covers: the family ``Learned``, its pool, which holds what was learned so far, and the hypotheses of a model.
Does not cover: the rounds (``dboost.boosting.leveraging``). scikit-learn is not imported: an estimator is
whatever has ``fit(X, y, sample_weight=)`` and ``predict(X)``.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dboost.errors import UsageError
from dboost.hypotheses.base import Array, Block, Context, Key, NamedSet, Pool
from dboost.partition import Partition, Sums


@dataclass(frozen=True, eq=False)
class Learned:
    """Base learners of scikit-learn, for ``LeveragingClassifier`` and ``LeveragingRegressor``.

    In every round a copy of the estimator is fitted in the calling process to the residuals d of the examples, on raw
    rows: a classifier to the signs of d with weights |d|, so that it is a hypothesis in {-1, +1} of small weighted
    error; a regressor to d itself. All examples take part where there are at most `max_samples`; of more, on either
    engine, a random sample of about so many travels to the calling process. The fitted copies travel to the data.

    Parameters
    ----------
    estimator : scikit-learn classifier or regressor
        Its ``fit`` must take `sample_weight`. Where its `random_state` is None, each round sets one of its own.
    max_samples : int, default 100_000
    sparse : bool, default False
        Whether the estimator is given SciPy CSR matrices instead of dense arrays.

    Notes
    -----
    A saved model never brings code, so a model of such hypotheses cannot be saved, and a fit of them has no
    checkpoint. Pickle it, or use a family of hypotheses.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> Learned(DecisionTreeClassifier(max_depth=2), max_samples=1000).to_json()
    {'family': 'learned', 'estimator': 'DecisionTreeClassifier(max_depth=2)', 'max_samples': 1000, 'sparse': False}
    """

    estimator: Any
    max_samples: int = 100_000
    sparse: bool = False
    # a round of a fit must ask for a hypothesis: nothing is there to be scored
    learns: bool = field(default=True, init=False, repr=False)

    def __post_init__(self) -> None:
        estimator = self.estimator
        usable = not isinstance(estimator, type) and hasattr(estimator, "fit") and hasattr(estimator, "predict")
        if not usable or "sample_weight" not in inspect.signature(estimator.fit).parameters:
            raise UsageError(
                f"Learned needs an estimator whose fit takes sample_weight, got {estimator!r}",
                hint="such as DecisionTreeClassifier(max_depth=1)",
            )
        if isinstance(self.max_samples, bool) or not isinstance(self.max_samples, int) or self.max_samples < 1:
            raise UsageError(f"max_samples={self.max_samples!r}", hint="expected an integer >= 1")

    def prepare(self, context: Context) -> LearnedPool:
        return LearnedPool(self, context.n_features, context.seed, min(1.0, self.max_samples / max(context.n_rows, 1)))

    def to_json(self) -> dict[str, Any]:
        """What it is, for a reader: no estimator can be made from it."""
        words = " ".join(repr(self.estimator).split())
        return {"family": "learned", "estimator": words, "max_samples": self.max_samples, "sparse": self.sparse}


def classifies(estimator: Any) -> bool:
    """Whether an estimator predicts labels."""
    tags = getattr(estimator, "__sklearn_tags__", None)
    kind = tags().estimator_type if tags is not None else getattr(estimator, "_estimator_type", None)
    return bool(kind == "classifier")


def _offered(X: Any, sparse: bool) -> Any:
    """A CSR array as estimators take it: dense, or with the 32-bit places that most of them insist on."""
    if not sparse:
        return X.toarray()
    if X.nnz < 2**31:
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X


def outputs(estimators: Sequence[Any], raw: Block, sparse: bool) -> Block:
    """Predictions of fitted estimators as columns; labels are -1 and +1."""
    from scipy.sparse import csc_array

    shape = (raw.n_rows, raw.indptr.shape[0] - 1)
    H = np.zeros((len(estimators), raw.n_rows))
    if raw.n_rows and len(estimators):
        X = csc_array((raw.values.astype(np.float64), raw.rows, raw.indptr), shape=shape)
        X = _offered(X.tocsr(), sparse)
        for place, estimator in enumerate(estimators):
            H[place] = np.asarray(estimator.predict(X), dtype=np.float64).reshape(-1)
    count = len(estimators)
    indptr = np.arange(count + 1, dtype=np.int64) * raw.n_rows
    return Block(indptr, np.tile(np.arange(raw.n_rows, dtype=np.int32), count), H.reshape(-1), raw.n_rows)


@dataclass(frozen=True, eq=False)
class LearnedPool(Pool):
    """What was learned so far; the key of a hypothesis is the number of its round."""

    family: Learned
    n_features: int
    seed: int
    share: float  # Share of the examples that an estimator is fitted to.
    fitted: tuple[Any, ...] = ()
    size: ClassVar[float] = np.inf

    @property
    def token(self) -> str:
        return f"learned-{len(self.fitted)}"

    def learn(self, X: Any, d: Array, weight: Array) -> LearnedPool:
        """The pool with one more hypothesis, of rows (m, n), weighted residuals d (m,) and the weights (m,)."""
        estimator = copy.deepcopy(self.family.estimator)
        if "random_state" in estimator.get_params(deep=False) and estimator.get_params()["random_state"] is None:
            rng = np.random.Generator(np.random.Philox(key=[self.seed, len(self.fitted)]))
            estimator.set_params(random_state=int(rng.integers(2**31)))
        X = _offered(X, self.family.sparse)
        if classifies(estimator):
            size = np.abs(d)
            estimator.fit(X, np.where(d >= 0.0, 1, -1), sample_weight=size / max(float(size.mean()), 1e-300))
        else:
            counted = np.where(weight > 0.0, weight, 1.0)
            estimator.fit(X, d / counted, sample_weight=weight)
        return replace(self, fitted=(*self.fitted, estimator))

    def columns(self, raw: Block, keys: Sequence[Key]) -> Block:
        return outputs([self.fitted[number] for (number,) in keys], raw, self.family.sparse)

    def shards(self, active: Sequence[Key], row_bytes: int, shard_bytes: int) -> list[Any]:
        """None: there are no candidates to sum."""
        return []

    def keys(self, shard: Any, places: NDArray[np.int64] | None = None) -> list[Key]:
        return []

    def sums(self, partition: Partition, memo: Any, shard: Any, plus: Array, minus: Array | None) -> Sums:
        raise UsageError("learned hypotheses are not summed", hint="use them in a leveraging fit")

    def names(self, keys: Sequence[Key], features: Sequence[str] | None) -> list[str]:
        return [f"{type(self.fitted[number]).__name__} {number + 1}" for (number,) in keys]

    def chosen(self, keys: Sequence[Key], features: Sequence[str] | None) -> LearnedSet:
        estimators = tuple(self.fitted[number] for (number,) in keys)
        return LearnedSet(estimators, tuple(self.names(keys, features)), self.n_features, self.family.sparse)


@dataclass(frozen=True, eq=False)
class LearnedSet(NamedSet):
    """The fitted estimators that a model holds."""

    estimators: tuple[Any, ...]
    names: tuple[str, ...]
    n_features: int
    sparse: bool

    family = "learned"

    @property
    def inputs(self) -> NDArray[np.int64]:
        """All raw columns: an estimator reads what it wants."""
        return np.arange(self.n_features)

    def evaluate(self, raw: Block) -> Block:
        return outputs(self.estimators, raw, self.sparse)

    def to_json(self) -> dict[str, Any]:
        """Refused: a file of a model may not bring code, and an estimator is code."""
        raise UsageError(
            f"a model of {len(self.estimators)} fitted scikit-learn estimators cannot be saved: loading it would run "
            "code from the file",
            hint="pickle the model, or fit it with a family of hypotheses",
        )
