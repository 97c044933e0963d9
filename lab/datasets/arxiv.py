"""arXiv metadata: abstracts of 37 archives, and all titles with their 172 categories.

Covers: ``load`` (abstracts as tf-idf, the label is the archive), ``abstracts`` (their texts, with every archive that a
paper lists), ``titles`` (texts and labels only; they are too many for one vectoriser and go through ``prepare``), the
synthetic twin.
Does not cover: preparing Parquet.

Source: arXiv metadata to the end of 2019, collected by R. S. Geiger, doi 10.5281/zenodo.1463242 (CC0).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.datasets.base import Dataset, data_file, synthetic_documents, tfidf

ABSTRACTS = ("arxiv", "arxiv_abstracts_60k.parquet")
TITLES = ("arxiv", "arxiv_titles.parquet")
TOPICS = ("math", "cs", "physics", "hep-th", "q-bio")


def archives(primary: list[str], categories: list[str]) -> NDArray[np.str_]:
    """Return the archive of each paper.

    The archive is the part of the primary category before the dot ("math" of "math.NA"). An archive that is the primary
    one of no paper but is listed by some would be lost: it takes the papers that list it. In the 60,000 abstracts
    36 archives are primary ones and one (ao-sci) is only listed, which makes 37.

    `primary`: primary categories. `categories`: all categories of each paper, joined by commas.
    """
    labels = [name.split(".")[0] for name in primary]
    of_primary = set(labels)
    for i, listed in enumerate(categories):
        for name in listed.split(","):
            archive = name.split(".")[0]
            if archive not in of_primary:
                labels[i] = archive
    return np.asarray(labels, dtype=np.str_)


def draw(labels: NDArray[np.str_], size: int, seed: int, at_least: int = 3) -> NDArray[np.int64]:
    """Choose `size` papers so that no archive is lost.

    All papers are put in one random order; the first `at_least` of each archive are taken (all, where there are fewer),
    then the order is followed until `size` are chosen.
    """
    order = np.random.default_rng(seed).permutation(labels.shape[0])
    seen: dict[str, int] = {}
    first = np.zeros(labels.shape[0], dtype=bool)
    for i in order:
        archive = str(labels[i])
        seen[archive] = seen.get(archive, 0) + 1
        first[i] = seen[archive] <= at_least
    ranked = np.concatenate([order[first[order]], order[~first[order]]])
    return np.sort(ranked[:size]).astype(np.int64)


def _columns(path: Path, names: list[str]) -> list[list[Any]]:
    import pyarrow.parquet as pq

    table = pq.read_table(path, columns=names, memory_map=False)
    return [table.column(name).to_pylist() for name in names]


def load(
    n_documents: int = 20_000,
    n_test: int = 10_000,
    min_df: int = 5,
    seed: int = 20200101,
) -> Dataset:
    """Load abstracts as tf-idf, with the archive as the label (37 classes).

    `n_documents`, `n_test`: number of training and
    test documents, drawn as `draw` says. `min_df`: A term is kept when it occurs in this many training documents.
    """
    path = data_file(*ABSTRACTS)
    primary, categories, titles, abstracts = _columns(path, ["primary_cat", "categories", "title", "abstract"])
    labels = archives(primary, categories)
    chosen = draw(labels, n_documents, seed)
    rest = np.setdiff1d(np.arange(labels.shape[0]), chosen)
    test = np.sort(np.random.default_rng(seed + 1).permutation(rest)[:n_test])
    texts = [f"{title} {abstract}" for title, abstract in zip(titles, abstracts, strict=True)]
    X, X_test, names = tfidf([texts[i] for i in chosen], [texts[i] for i in test], min_df=min_df)
    return Dataset("arxiv-abstracts", X, labels[chosen], X_test, labels[test], names, "multiclass")


def primary_categories() -> NDArray[np.str_]:
    """Return the primary category of each of the 60,000 abstracts, in the order of `load` with all documents."""
    (primary,) = _columns(data_file(*ABSTRACTS), ["primary_cat"])
    return np.asarray(primary, dtype=np.str_)


def titles_path() -> Path:
    """Return the Parquet file of all titles (columns ``title``, ``primary_cat``)."""
    return data_file(*TITLES)


def titles() -> tuple[list[str], NDArray[np.str_]]:
    """Return all 573,800 titles and their primary categories (172)."""
    texts, primary = _columns(titles_path(), ["title", "primary_cat"])
    return texts, np.asarray(primary, dtype=np.str_)


def synthetic(seed: int = 0) -> Dataset:
    """Return a tiny twin: 240 + 80 made-up documents of 5 archives."""
    documents, labels = synthetic_documents(seed, 320, TOPICS)
    X, X_test, names = tfidf(documents[:240], documents[240:], min_df=2)
    return Dataset("arxiv-synthetic", X, labels[:240], X_test, labels[240:], names, "multiclass")
