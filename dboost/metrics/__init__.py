"""How good a model is, from scores and labels, in sums that partitions can add up.

Each measure comes per example (``per_example``), and as partial sums that merge (``sums``): ``partial`` maps a batch to
``Sums``, ``summarise`` turns the total into numbers. Of a model there are the two measures of sparsity, and what must
be computed to classify (``of_model``).
Does not cover: computing the scores (``dboost.model.fitted``), or where the batches come from.
"""

from __future__ import annotations

from dboost.metrics.of_model import Computed, computed_features, row_sparsity, sparsity
from dboost.metrics.per_example import (
    coverage,
    coverage_counts,
    log_loss,
    margin_norm,
    margins,
    normalised_margins,
    predicted_codes,
)
from dboost.metrics.sums import Evaluation, partial, summarise

__all__ = [
    "Computed",
    "Evaluation",
    "computed_features",
    "coverage",
    "coverage_counts",
    "log_loss",
    "margin_norm",
    "margins",
    "normalised_margins",
    "partial",
    "predicted_codes",
    "row_sparsity",
    "sparsity",
    "summarise",
]
