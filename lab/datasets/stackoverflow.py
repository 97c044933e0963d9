"""Questions: 20,000 titles of 20 tags.

Covers: ``load`` (tf-idf, every fifth title held out) and the synthetic twin.

Source: Xu et al., "Short Text Clustering via Convolutional Neural Networks", NAACL VSM workshop 2015.
"""

from __future__ import annotations

import numpy as np

from dboost.errors import DataError
from lab.datasets.base import Dataset, data_file, open_text, synthetic_documents, tfidf


def load(min_df: int = 3) -> Dataset:
    """Load the titles as tf-idf; the source has no split, every fifth title is held out."""
    with open_text(data_file("stackoverflow20k", "title_StackOverflow.txt")) as file:
        titles = [line.rstrip("\n") for line in file]
    label_path = data_file("stackoverflow20k", "label_StackOverflow.txt")
    with open_text(label_path) as file:
        labels = np.asarray([int(line) for line in file if line.strip()], dtype=np.int64)
    if len(titles) != labels.shape[0]:
        raise DataError(f"{labels.shape[0]} labels for {len(titles)} titles", file=str(label_path))
    test = np.arange(len(titles)) % 5 == 4
    train_titles = [title for title, held in zip(titles, test, strict=True) if not held]
    test_titles = [title for title, held in zip(titles, test, strict=True) if held]
    X, X_test, names = tfidf(train_titles, test_titles, min_df=min_df)
    return Dataset("stackoverflow20k", X, labels[~test], X_test, labels[test], names, "multiclass")


def synthetic(seed: int = 0) -> Dataset:
    """Return a tiny twin: 240 + 60 made-up titles of 4 tags, labels 1 to 4."""
    documents, topics = synthetic_documents(seed, 300, ("1", "2", "3", "4"))
    X, X_test, names = tfidf(documents[:240], documents[240:], min_df=2)
    labels = topics.astype(np.int64)
    return Dataset("stackoverflow-synthetic", X, labels[:240], X_test, labels[240:], names, "multiclass")
