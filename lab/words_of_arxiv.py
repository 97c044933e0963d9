"""The picture of the README: words that tell eight archives of arXiv apart, with what the model says of itself.

Covers: the fit, its figures, the picture. Does not cover: a judgement; the words are drawn, not compared.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

import dboost
from dboost import plots
from lab.datasets import arxiv

ARCHIVES = ("astro-ph", "cond-mat", "cs", "hep-th", "math", "q-bio", "quant-ph", "stat")
SHARE = 0.3  # of the strength at which no word is used
TOP = 24  # words that are drawn


def main(arguments: Sequence[str] = ()) -> int:
    """Fit, print the figures, write the picture."""
    parser = argparse.ArgumentParser(prog="python -m lab words-of-arxiv", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/_static/words-of-arxiv.png"))
    given = parser.parse_args(list(arguments))
    import pandas as pd

    data = arxiv.load(n_documents=40_000, n_test=10_000, min_df=20)
    words = np.asarray(data.feature_names, dtype=str)
    said = ~np.isin(words, list(ENGLISH_STOP_WORDS))
    kept, held = np.isin(data.y, ARCHIVES), np.isin(data.y_test, ARCHIVES)
    X, y = pd.DataFrame.sparse.from_spmatrix(data.X[kept][:, said], columns=words[said]), data.y[kept]
    strongest = dboost.BoostedClassifier(penalty="l1/l2").fit(X, y).alpha_max_
    model = dboost.BoostedClassifier(penalty="l1/l2", alpha=SHARE * strongest).fit(X, y)
    right = float(np.mean(model.model_.predict(data.X_test[held][:, said]) == data.y_test[held]))
    print(
        f"{len(model.active_features_)} of {X.shape[1]:,} words; {right:.1%} of {held.sum():,} other abstracts; "
        f"certified gap {model.duality_gap_:.1e}"
    )
    given.out.parent.mkdir(parents=True, exist_ok=True)
    plots.plot_sparsity_map(model, top=TOP).figure.savefig(given.out, dpi=110)
    return 0
