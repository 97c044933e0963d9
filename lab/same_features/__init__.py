"""``python -m lab same-features``: error and time at the same number of features, beside glmnet and abess."""

from __future__ import annotations

from lab.same_features.command import main

__all__ = ["main"]
