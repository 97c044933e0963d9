"""
What a penalty pays for
=======================

Error on held-out digits against the number of pixels that have to be read, along the path of each penalty. ``l1`` pays
for every weight, so that it spreads few weights over many pixels; the others pay for a pixel once.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import dboost

X, y = load_digits(return_X_y=True)
train, test, right, truth = train_test_split(X / 16, y, random_state=0, test_size=0.5)
fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
for penalty, style in (("l1", "o:"), ("l1/l2", "s--"), ("l1/linf", "^-"), ("l1/l2+l1", "d-.")):
    path = dboost.regularization_path(train, right, penalty=penalty, n_alphas=14, eps=0.02)
    errors = [np.mean(model.predict(test) != truth) for model in path.models]
    ax.plot(path.n_active_features, errors, style, markersize=4, label=penalty)
ax.set(xlabel="pixels in use", ylabel="error on held-out digits", ylim=(0, 0.6))
ax.legend()
