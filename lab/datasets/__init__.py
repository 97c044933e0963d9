"""Public data sets of the benchmarks, one file each, with a tiny synthetic twin for tests.

Files are read below the folder that the environment variable ``DBOOST_DATA_HOME`` names; nothing is fetched.
"""

from __future__ import annotations

from collections.abc import Callable

from lab.datasets import arxiv, bibtex, imdb, libsvm, mnist, reuters, stackoverflow, usps
from lab.datasets.base import HOME_VARIABLE, Dataset, data_file, data_home

SYNTHETIC: dict[str, Callable[[int], Dataset]] = {
    "arxiv": arxiv.synthetic,
    "bibtex": bibtex.synthetic,
    "imdb": imdb.synthetic,
    "libsvm": libsvm.synthetic,
    "mnist": mnist.synthetic,
    "stackoverflow": stackoverflow.synthetic,
}

__all__ = [
    "HOME_VARIABLE",
    "SYNTHETIC",
    "Dataset",
    "arxiv",
    "bibtex",
    "data_file",
    "data_home",
    "imdb",
    "libsvm",
    "mnist",
    "reuters",
    "stackoverflow",
    "usps",
]
