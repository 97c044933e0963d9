"""Public data sets of the benchmarks, one file each, with a tiny synthetic twin for tests.

Files are read below the folder that the environment variable ``DBOOST_DATA_HOME`` names; nothing is fetched.
"""

from __future__ import annotations

from collections.abc import Callable

from lab.datasets import (
    ailerons,
    arxiv,
    bibtex,
    boston,
    imdb,
    landsat,
    libsvm,
    mnist,
    pendigits,
    reuters,
    segmentation,
    stackoverflow,
    usps,
)
from lab.datasets.base import HOME_VARIABLE, Dataset, data_file, data_home

SYNTHETIC: dict[str, Callable[[int], Dataset]] = {
    "ailerons": ailerons.synthetic,
    "arxiv": arxiv.synthetic,
    "bibtex": bibtex.synthetic,
    "boston": boston.synthetic,
    "imdb": imdb.synthetic,
    "landsat": landsat.synthetic,
    "libsvm": libsvm.synthetic,
    "mnist": mnist.synthetic,
    "pendigits": pendigits.synthetic,
    "reuters": reuters.synthetic,
    "segmentation": segmentation.synthetic,
    "stackoverflow": stackoverflow.synthetic,
    "usps": usps.synthetic,
}

__all__ = [
    "HOME_VARIABLE",
    "SYNTHETIC",
    "Dataset",
    "ailerons",
    "arxiv",
    "bibtex",
    "boston",
    "data_file",
    "data_home",
    "imdb",
    "landsat",
    "libsvm",
    "mnist",
    "pendigits",
    "reuters",
    "segmentation",
    "stackoverflow",
    "usps",
]
