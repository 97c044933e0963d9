"""Film reviews: 25,000 + 25,000 documents, positive or negative.

Covers: ``load`` (tf-idf, labels -1 and +1) and the synthetic twin. Does not cover: the ratings, which are not used.

Source: Maas, Daly, Pham, Huang, Ng, Potts, "Learning Word Vectors for Sentiment Analysis", ACL 2011.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lab.datasets.base import Dataset, data_file, synthetic_documents, tfidf


def reviews() -> tuple[list[str], NDArray[np.int8], NDArray[np.bool_]]:
    """Return the texts, the labels -1 and +1, and which reviews are training ones."""
    import pyarrow.parquet as pq

    table = pq.read_table(data_file("imdb", "aclImdb.parquet"), columns=["split", "label", "text"])
    training = np.asarray(table.column("split").to_pylist(), dtype=np.str_) == "train"
    y = np.where(np.asarray(table.column("label").to_pylist(), dtype=np.str_) == "pos", 1, -1).astype(np.int8)
    # The source kept the reviews as raw bytes; all are UTF-8 up to a few stray bytes, which carry no word.
    texts = [text.decode("utf-8", errors="replace").replace("<br />", " ") for text in table.column("text").to_pylist()]
    return texts, y, training


def load(min_df: int = 5) -> Dataset:
    """Load the reviews as tf-idf in their original split.

    `min_df`: A term is kept when it occurs in this
    many training documents.
    """
    texts, y, training = reviews()
    train, test = np.flatnonzero(training), np.flatnonzero(~training)
    X, X_test, names = tfidf([texts[i] for i in train], [texts[i] for i in test], min_df=min_df)
    return Dataset("imdb", X, y[train], X_test, y[test], names, "binary")


def synthetic(seed: int = 0) -> Dataset:
    """Return a tiny twin: 200 + 80 made-up reviews."""
    documents, labels = synthetic_documents(seed, 280, ("neg", "pos"))
    X, X_test, names = tfidf(documents[:200], documents[200:], min_df=2)
    y = np.where(labels == "pos", 1, -1).astype(np.int8)
    return Dataset("imdb-synthetic", X, y[:200], X_test, y[200:], names, "binary")
