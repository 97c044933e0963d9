"""
Which model for which question
==============================

One question after the other, each with the model that answers it, on data that is made here. All of them are sparse,
run on the same engines and data, and say how far they are from the best model of their kind.
"""

import matplotlib.pyplot as plt
import numpy as np

import dboost
from dboost import plots

rng = np.random.default_rng(0)
rows, columns = 400, 30
X = rng.normal(size=(rows, columns))
names = [f"f{j}" for j in range(columns)]

# %%
# Which features tell several classes apart?
# ------------------------------------------
# ``"l1/linf"`` and ``"l1/l2"`` take a feature for all classes or for none: few features, to be measured, stored and
# looked at. ``"l1"`` gives every class weights of its own, from more features. The strengths are those at
# which both tell as many of the rows apart.

weights = np.zeros((columns, 4))
weights[:5] = rng.normal(size=(5, 4)) * 1.5
topic = np.argmax(X @ weights + rng.gumbel(size=(rows, 4)), axis=1)
fig, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
for ax, (penalty, alpha) in zip(axes, {"l1/linf": 0.09, "l1": 0.02}.items(), strict=True):
    model = dboost.BoostedClassifier(penalty=penalty, alpha=alpha).fit(X, topic, feature_names=names)
    plots.plot_sparsity_map(model, ax=ax)
    used, entries = model.model_.n_hypotheses, np.count_nonzero(model.model_.W)
    ax.set_title(f"{penalty}: {used} features, {entries} weights, {1 - model.score(X, topic):.0%} wrong")

# %%
# How many features are worth their price?
# ----------------------------------------
# Cross-validation along the path says what each strength costs; ``rule="1se"`` takes the sparsest model that is no
# worse than the best within the noise.

chosen = dboost.BoostedClassifierCV(penalty="l1/l2", cv=5, n_alphas=15).fit(X, topic)
ax = plots.plot_cv(chosen)

# %%
# Exactly ten features, whatever they cost?
# -----------------------------------------
# ``ShareBoostClassifier`` adds one feature a round, and fits the weights of all chosen ones anew.

share = dboost.ShareBoostClassifier(max_rounds=10).fit(X, topic)
print(len(share.active_features_), "features, error", round(1 - share.score(X, topic), 3))

# %%
# A number, or several of them?
# -----------------------------
# ``BoostedRegressor`` takes squared errors, errors that may be gross (``"huber"``), counts (``"poisson"``) and
# quantiles. Here: the middle, and the band that holds four fifths of the targets.

x = np.sort(rng.uniform(0.0, 4.0, rows))
y = 2.0 * x + (0.3 + 0.6 * x) * rng.normal(size=rows)
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.plot(x, y, ".", color="0.7", markersize=3)
for share_below, style in ((0.1, "--"), (0.5, "-"), (0.9, "--")):
    loss = dboost.losses.Quantile(share_below, 0.2)
    line = dboost.BoostedRegressor(loss=loss, alpha=1e-4).fit(x[:, None], y)
    ax.plot(x, line.predict(x[:, None]), style, color="#0072B2")
ax.set(xlabel="x", ylabel="target", title="quantiles 0.1, 0.5 and 0.9")

# %%
# Several numbers from one set of features are ``MultiTaskBoostedRegressor``, several yes-or-no labels
# ``MultiTaskBoostedClassifier``; some may be missing.

targets = X[:, :3] @ rng.normal(size=(3, 4)) + rng.normal(size=(rows, 4))
several = dboost.MultiTaskBoostedRegressor(alpha=0.2).fit(X, targets, feature_names=names)
print("features of all four targets:", several.active_features_)

# %%
# What if features act together, or not in a straight line?
# ---------------------------------------------------------
# Give the fit hypotheses to choose from: products of features, thresholds, kernels, pieces. They are made where the
# data is, and only those that help are kept. Two classes that a line cannot part:

Z = rng.uniform(-1.0, 1.0, size=(rows, 2))
inside = Z[:, 0] * Z[:, 1] > 0
grid = np.stack(np.meshgrid(np.linspace(-1, 1, 80), np.linspace(-1, 1, 80)), axis=-1).reshape(-1, 2)
families = {
    "columns": None,
    "products": dboost.Products(max_degree=2),
    "stumps": dboost.Stumps(),
    "kernels": dboost.Kernels(support=100),
}
fig, axes = plt.subplots(1, 4, figsize=(9, 2.6), layout="constrained", sharey=True)
for ax, (name, family) in zip(axes, families.items(), strict=True):
    model = dboost.BoostedClassifier(penalty="l1", alpha=5e-3, hypotheses=family).fit(Z, inside)
    scores = model.decision_function(grid).reshape(80, 80)
    ax.contourf(*grid.T.reshape(2, 80, 80), scores, levels=[-99, 0, 99], colors=["#0072B2", "#E69F00"], alpha=0.25)
    ax.scatter(*Z[inside].T, s=3, color="#E69F00")
    ax.scatter(*Z[~inside].T, s=3, color="#0072B2")
    ax.set(title=f"{name}: {1 - model.score(Z, inside):.0%} wrong", aspect="equal")

# %%
# Large margins, or the algorithm of a paper?
# -------------------------------------------
# ``AdaBoostL1Classifier`` seeks the largest margin of all sums of hypotheses, ``LeveragingClassifier`` and
# ``LeveragingRegressor`` take the steps of classical boosting, and ``JointBoostClassifier`` shares hypotheses between
# classes.

margins = dboost.AdaBoostL1Classifier(hypotheses=dboost.Stumps(), max_rounds=60).fit(X, topic == 0)
print(margins.model_.n_hypotheses, "stumps; the least margin", round(margins.history_[-1]["margin"], 4))
