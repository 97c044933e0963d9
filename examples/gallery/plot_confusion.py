"""
What is taken for what
======================

Held-out digits: right labels in rows, what the model says in columns.
"""

from sklearn.datasets import load_digits
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import train_test_split

import dboost
from dboost import plots

X, y = load_digits(return_X_y=True)
train, test, right, truth = train_test_split(X / 16, y, random_state=0, test_size=0.5)
model = dboost.BoostedClassifier(penalty="l1/l2", alpha=2e-3).fit(train, right)
counts = confusion_matrix(truth, model.predict(test))
plots.plot_confusion(counts, model.classes_)
