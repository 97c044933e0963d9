"""
Who shares a feature
====================

Pixels of handwritten digits under three penalties. ``l1`` chooses a pixel for each class by itself; ``l1/l2`` and
``l1/linf`` choose it for all classes or for none, so that fewer pixels have to be looked at.
"""

import numpy as np
from sklearn.datasets import load_digits

import dboost
from dboost import plots

X, y = load_digits(return_X_y=True)
for penalty in ("l1", "l1/linf"):
    model = dboost.BoostedClassifier(penalty=penalty, alpha=0.01).fit(X / 16, y)
    shared = np.count_nonzero(model.coef_, axis=0)
    classes = np.median(shared[shared > 0])
    print(f"{penalty}: {np.count_nonzero(shared)} of 64 pixels are used, by {classes:.0f} classes each")
plots.plot_sparsity_map(model)
