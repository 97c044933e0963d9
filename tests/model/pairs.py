"""A small family of hypotheses for tests: products of two raw columns, from outside the package."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from dboost.errors import UsageError
from dboost.files.documents import expect_array
from dboost.hypotheses.base import Block
from dboost.model.fitted import Model, Origin
from tests.model.models import make


@dataclass(frozen=True)
class Pairs:
    """The family."""

    offset: int = 0

    def prepare(self, context):
        raise NotImplementedError("the tests make models by hand")

    def to_json(self):
        return {"family": "pairs", "offset": self.offset}

    @classmethod
    def from_json(cls, spec):
        if set(spec) != {"family", "offset"}:
            raise UsageError("pairs have an offset")
        return cls(spec["offset"])

    @staticmethod
    def restore(spec, arrays, n_features):
        return PairSet(expect_array(arrays, "pairs", np.int64, (spec.count("held"), 2), spec.file))


@dataclass(frozen=True, eq=False)
class PairSet:
    """What a model holds of it: pairs, shape (a, 2)."""

    pairs: np.ndarray
    family = "pairs"

    @property
    def inputs(self):
        return np.unique(self.pairs)

    @property
    def n_hypotheses(self):
        return len(self.pairs)

    def words(self):
        return [f"x{a} * x{b}" if a != b else f"x{a}^2" for a, b in self.pairs.tolist()]

    def evaluate(self, raw):
        dense = sp.csc_array((raw.values, raw.rows, raw.indptr), shape=(raw.n_rows, len(raw.indptr) - 1)).toarray()
        place = np.searchsorted(self.inputs, self.pairs)
        made = sp.csc_array(dense[:, place[:, 0]] * dense[:, place[:, 1]])
        return Block(made.indptr.astype(np.int64), made.indices.astype(np.int32), made.data, raw.n_rows)

    def to_json(self):
        return {"family": "pairs", "held": len(self.pairs)}

    def arrays(self):
        return {"pairs": self.pairs}


PAIRS = np.array([[1, 4], [2, 2], [4, 7]], dtype=np.int64)


def induced(task="multiclass", names=True, seed=0, pairs=PAIRS):
    """A model over products of columns."""
    plain = make(task, names=names, seed=seed, active=tuple(range(len(pairs))))
    fields = vars(plain) | {
        "hypotheses": PairSet(pairs),
        "origin": Origin(45.0, "pairs", tuple(tuple(pair) for pair in pairs.tolist())),
    }
    return Model(**fields)
