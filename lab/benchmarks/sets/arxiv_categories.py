"""arXiv abstracts as tf-idf, the primary category is the class: 60,000 rows.

The abstracts have fewer primary categories than the 172 of all titles; those that occur are the classes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lab.benchmarks.sets import arxiv_archives
from lab.datasets import arxiv
from lab.oracle.problems import Encoded, encode

LOSS = "multinomial"
SECONDS = 1.5


def load() -> Encoded:
    """The data, labels as the losses take them."""
    names, codes = np.unique(arxiv.primary_categories(), return_inverse=True)
    whole = arxiv_archives.load()
    return replace(whole, name=f"arxiv-categories ({len(names)})", y=codes.astype(np.int64))


def twin(seed: int = 0) -> Encoded:
    """A tiny synthetic set: the five topics, each cut in two."""
    data = encode(arxiv.synthetic(seed))
    halves = np.random.default_rng(seed).integers(0, 2, data.y.shape[0])
    return replace(data, y=np.unique(2 * data.y + halves, return_inverse=True)[1].astype(np.int64))
