"""
Margins under a budget
======================

AdaBoost under a bound on the sum of the weights pushes the smallest margins up round by round. The lines are the
distribution of the margins of the training rows after some rounds, to the right is better.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

import dboost

X, y = load_breast_cancer(return_X_y=True)
signs = 2 * y - 1
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
for rounds, style in ((5, ":"), (20, "--"), (80, "-")):
    model = dboost.AdaBoostL1Classifier(hypotheses=dboost.Stumps(signed=True), max_rounds=rounds).fit(X, y)
    margins = signs * model.decision_function(X) / np.abs(model.coef_).sum()
    ax.plot(np.sort(margins), np.linspace(0, 1, len(margins)), style, color="#0072b2", label=f"{rounds} rounds")
ax.axvline(0, color="gray", linewidth=0.8)
ax.set(xlabel="margin", ylabel="share of rows")
ax.legend()
