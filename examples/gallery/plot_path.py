"""
Which features enter when
=========================

The strength of the penalty falls from where no feature is used. Each line is the weight of one measurement of breast
tumours; the first to come in are those that a model of few features would rest on.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

import dboost
from dboost import plots

X, y = load_breast_cancer(return_X_y=True)
path = dboost.regularization_path(StandardScaler().fit_transform(X), y, n_alphas=30, eps=0.01)
plots.plot_path(path, quantity="weights")
