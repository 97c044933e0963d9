"""What classifiers of two classes only say of themselves.

Covers: ``TwoClassMixin``. Does not cover: fitting.
"""

from __future__ import annotations

from typing import Any

from dboost.estimators.classifying import ClassifyingMixin


class TwoClassMixin(ClassifyingMixin):
    """A ``BoostedEstimator`` that refuses more than two classes; not public."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
