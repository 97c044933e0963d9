"""arXiv titles as tf-idf, the archive is the class: 200,000 short rows, for what pays on many rows only.

No kind of the benchmarks against peers holds it; ``lab ablation`` does.
"""

from __future__ import annotations

import numpy as np

from lab.datasets import arxiv
from lab.datasets.base import Dataset, tfidf
from lab.oracle.problems import Encoded, encode

LOSS = "multinomial"
SECONDS = 3.0
N_DOCUMENTS = 200_000
SEED = 20200101


def load() -> Encoded:
    """The data, labels as the losses take them."""
    texts, primary = arxiv.titles()
    chosen = np.sort(np.random.default_rng(SEED).permutation(len(texts))[:N_DOCUMENTS])
    labels = np.array([str(name).split(".")[0] for name in primary[chosen]], dtype=np.str_)
    X, X_test, names = tfidf([texts[i] for i in chosen], [])
    return encode(Dataset("arxiv-titles", X, labels, X_test, labels[:0], names, "multiclass"))


def twin(seed: int = 0) -> Encoded:
    """A tiny synthetic set of the same shape of problem."""
    return encode(arxiv.synthetic(seed))
