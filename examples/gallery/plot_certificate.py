"""
How far from the optimum
========================

Every fit ends with a number that its objective is at most above the best possible one. Here it is drawn against the
time for three penalties on handwritten digits: each line falls, and ends below the tolerance that was asked for.
"""

from sklearn.datasets import load_digits

import dboost
from dboost import plots

X, y = load_digits(return_X_y=True)
fits = {
    penalty: dboost.BoostedClassifier(penalty=penalty, alpha=3e-3, tol=1e-5).fit(X / 16, y)
    for penalty in ("l1", "l1/l2", "l1/linf")
}
ax = plots.plot_progress(fits)
ax.axhline(1e-5, color="gray", linewidth=0.8)
