"""
A strength by cross-validation
==============================

The mean loss on the folds with one standard error, over falling strengths. The rule of one standard error takes the
strongest penalty that is as good as the best one but for chance.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

import dboost
from dboost import plots

X, y = load_breast_cancer(return_X_y=True)
model = dboost.BoostedClassifierCV(cv=5, n_alphas=20, eps=0.005).fit(StandardScaler().fit_transform(X), y)
plots.plot_cv(model)
