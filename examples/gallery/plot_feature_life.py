"""
Features come and go
====================

The loop lets the best features in, solves for those in use, and drops what became exactly zero. Bars are the features
that entered and left in each round, the line those that are held.
"""

from sklearn.datasets import load_digits

import dboost
from dboost import plots

X, y = load_digits(return_X_y=True)
model = dboost.BoostedClassifier(penalty="l1", alpha=2e-3, features_per_round=6).fit(X / 16, y)
plots.plot_feature_life(model)
