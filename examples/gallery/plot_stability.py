"""
Stability selection: which features would come again
====================================================

A single fit uses some features by chance, and does not say which. Here it is fitted to both halves of the rows, twenty
times over, with 170 columns of noise beside the 30 measurements of breast tumours. Each line is the share of the fits
that use a column. What at least 60 % of them use is selected, as long as no more than one false column is expected; the
columns of noise stay below.
"""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

import dboost
from dboost import plots

data = load_breast_cancer(as_frame=True)
noise = np.random.default_rng(0).normal(size=(len(data.target), 170))
X = np.hstack([StandardScaler().fit_transform(data.data), noise])
names = [*data.data.columns, *(f"noise {j}" for j in range(170))]

estimator = dboost.BoostedClassifier(penalty="l1", tol=1e-3)
selection = dboost.StabilitySelection(estimator, n_pairs=20, n_alphas=12, eps=0.05, expected_false=1.0)
selection.fit(X, data.target, feature_names=names)
ax = plots.plot_stability(selection)
ax.figure.set_size_inches(8.0, 4.0)
