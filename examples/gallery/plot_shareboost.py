"""
One feature at a time
=====================

ShareBoost adds the pixel that all classes together gain most from, and fits all pixels held anew. One run gives the
model of every number of pixels.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import dboost

X, y = load_digits(return_X_y=True)
train, test, right, truth = train_test_split(X / 16, y, random_state=0, test_size=0.5)
model = dboost.ShareBoostClassifier(max_rounds=25).fit(train, right)
errors = [np.mean(said != truth) for said in model.staged_predict(test)]
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.plot(range(1, len(errors) + 1), errors, color="#0072b2", marker="o", markersize=3)
ax.set(xlabel="pixels in use", ylabel="error on held-out digits", ylim=(0, None))
