"""
Can its probabilities be believed?
==================================

Held-out digits by the probability of the label that was said: the share that was right, with its 95 % interval. On the
diagonal both are equal.
"""

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import dboost
from dboost import plots

X, y = load_digits(return_X_y=True)
train, test, right, truth = train_test_split(X / 16, y, random_state=0, test_size=0.5)
model = dboost.BoostedClassifier(penalty="l1/l2", alpha=2e-3).fit(train, right)
chances = model.predict_proba(test)
said = model.classes_[chances.argmax(axis=1)]
plots.plot_calibration(chances.max(axis=1), said == truth)
