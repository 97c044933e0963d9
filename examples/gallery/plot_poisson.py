"""
Counts
======

Half the Poisson deviance with a logarithmic link: what is predicted is the mean of the counts. Of twenty columns two
matter, and two are used.
"""

import matplotlib.pyplot as plt
import numpy as np

import dboost

rng = np.random.default_rng(0)
X = rng.normal(size=(2000, 20))
y = rng.poisson(np.exp(0.3 + 0.6 * X[:, 0] - 0.4 * X[:, 1]))
model = dboost.BoostedRegressor(loss="poisson", alpha=0.05).fit(X, y)
print(model.active_features_)
mean = model.predict(X)
edges = np.quantile(mean, np.linspace(0, 1, 11))
group = np.clip(np.searchsorted(edges, mean, side="right") - 1, 0, 9)
fig, ax = plt.subplots(figsize=(4, 3.4), layout="constrained")
ax.plot([0, mean.max()], [0, mean.max()], color="gray", linestyle="--", linewidth=0.8)
ax.plot([mean[group == g].mean() for g in range(10)], [y[group == g].mean() for g in range(10)], "o", color="#0072b2")
ax.set(xlabel="mean that was predicted, by tenths", ylabel="mean of the counts")
