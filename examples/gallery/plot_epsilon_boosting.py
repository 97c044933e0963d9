"""
Small steps follow the l1 path
==============================

Epsilon-boosting moves the weight of the best feature by a hundredth of a standard deviation in every round, and re-fits
nothing. Its weights (dots) follow those of the exact l1 solutions (lines), over the sum of the sizes of the weights.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

import dboost

X, y = load_diabetes(return_X_y=True)
X, y = StandardScaler().fit_transform(X), (y - y.mean()) / y.std()
lasso = dboost.BoostedRegressor(penalty="l1")
exact = dboost.regularization_path(X, y, estimator=lasso, n_alphas=40, eps=0.01).coefs[:, 0]
steps = []
for rounds in range(10, 131, 20):
    small = dboost.LeveragingRegressor(step=0.01, max_rounds=rounds, tol=1e-6).fit(X, y)
    steps.append(small.coef_.ravel())
steps = np.array(steps)

fig, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
styles = ("-", "--", "-.", ":")
for j in np.argsort(-np.abs(exact[-1]))[:6]:
    (line,) = ax.plot(np.abs(exact).sum(axis=1), exact[:, j], styles[j % 4], label=f"x{j}")
    ax.plot(np.abs(steps).sum(axis=1), steps[:, j], "o", color=line.get_color(), markersize=4)
ax.set(xlim=(0, np.abs(steps[-1]).sum() * 1.05), xlabel="sum of the sizes of the weights", ylabel="weight")
ax.legend(ncols=2)
