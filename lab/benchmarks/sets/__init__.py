"""The data sets of the benchmarks, one file each: ``LOSS``, ``load()`` and a tiny synthetic ``twin()``.

``SECONDS`` is about what our solver takes to 1e-6 at a tenth of alpha_max: peers get their time by it.
"""

from __future__ import annotations

from types import ModuleType

from lab.benchmarks.sets import (
    a9a,
    arxiv_archives,
    arxiv_categories,
    arxiv_titles,
    bibtex,
    delicious,
    imdb,
    mnist,
    reuters_lasvm,
    stackoverflow20k,
    w8a,
)

SETS: dict[str, ModuleType] = {
    module.__name__.rsplit(".", 1)[1].replace("_", "-"): module
    for module in (
        imdb, reuters_lasvm, a9a, w8a, arxiv_archives, arxiv_categories, arxiv_titles, stackoverflow20k, mnist, bibtex,
        delicious,
    )
}  # fmt: skip
