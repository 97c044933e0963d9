"""arXiv abstracts as tf-idf, the archive is the class: 60,000 rows, 37 classes."""

from __future__ import annotations

from lab.datasets import arxiv
from lab.oracle.problems import Encoded, encode

LOSS = "multinomial"
SECONDS = 0.45
N_DOCUMENTS = 60_000


def load() -> Encoded:
    """The data, labels as the losses take them."""
    return encode(arxiv.load(n_documents=N_DOCUMENTS, n_test=0))


def twin(seed: int = 0) -> Encoded:
    """A tiny synthetic set of the same shape of problem."""
    return encode(arxiv.synthetic(seed))
