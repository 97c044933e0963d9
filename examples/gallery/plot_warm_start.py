"""
Retraining on a window that moves
=================================

Twelve windows of documents whose words drift. A fit that starts from the model of the window before needs fewer passes
over the data than one that starts from nothing, and ends at the same optimum.
"""

import matplotlib.pyplot as plt
import numpy as np

import dboost

rng = np.random.default_rng(0)
words, topics = 400, 5
weights = rng.normal(size=(words, topics)) * (rng.random((words, 1)) < 0.1)


def month(at: int) -> tuple[np.ndarray, np.ndarray]:
    """Documents of one month: which words come in each, and the topic that they speak for."""
    X = (rng.random((500, words)) < 0.05 * (1 + np.cos(np.arange(words) + at / 4))).astype(float)
    return X, (X @ weights + rng.gumbel(size=(500, topics)) / 2).argmax(axis=1)


months = [month(at) for at in range(23)]
warm = dboost.BoostedClassifier(penalty="l1/l2", alpha=0.004, tol=1e-5, warm_start=True)
passes = {"from the model before": [], "from nothing": []}
for last in range(12, 24):
    X, y = (np.concatenate(part) for part in zip(*months[last - 12 : last], strict=True))
    cold = dboost.BoostedClassifier(penalty="l1/l2", alpha=0.004, tol=1e-5).fit(X, y)
    passes["from nothing"].append(cold.model_.certificate.passes)
    passes["from the model before"].append(warm.fit(X, y).model_.certificate.passes)

fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
for (name, count), style in zip(passes.items(), ("o-", "s--"), strict=True):
    ax.plot(range(1, 13), count, style, label=name)
ax.set(xlabel="window", ylabel="passes over the data", ylim=(0, None))
ax.legend()
