"""
Products in words
=================

The target is three times one column, less twice the product of two others. All products of two columns are offered, and
the model says which it took, with the weights of the products themselves.
"""

import matplotlib.pyplot as plt
import numpy as np

import dboost

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 8))
y = 3 * X[:, 0] - 2 * X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=400)
model = dboost.BoostedRegressor(alpha=0.05, hypotheses=dboost.Products(max_degree=2)).fit(X, y)
fig, ax = plt.subplots(figsize=(6, 2.2), layout="constrained")
ax.barh(model.active_features_, model.coef_[0], color="#0072b2")
ax.axvline(0, color="gray", linewidth=0.8)
ax.set_xlabel("weight")
