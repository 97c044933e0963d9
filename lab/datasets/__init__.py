"""Public data sets of the benchmarks, one file each, with a tiny synthetic twin for tests.

Files are read below the folder that the environment variable ``DBOOST_DATA_HOME`` names; nothing is fetched.
"""

from __future__ import annotations

from collections.abc import Callable

from lab.datasets import arxiv, bibtex, imdb, libsvm, mnist, stackoverflow
from lab.datasets.base import Dataset

SYNTHETIC: dict[str, Callable[[int], Dataset]] = {
    "arxiv": arxiv.synthetic,
    "bibtex": bibtex.synthetic,
    "imdb": imdb.synthetic,
    "libsvm": libsvm.synthetic,
    "mnist": mnist.synthetic,
    "stackoverflow": stackoverflow.synthetic,
}
