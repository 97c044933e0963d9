"""The passes: what one partition contributes to sums over the data, one file for each kind of pass.

Covers: the leaf functions (partition, memo, ...) -> Sums that an engine maps and reduces, and the small values they
travel with. Does not cover: where they run (``dboost.engine``) or what the driver decides from the sums.

Every leaf is a pure function of the partition and its arguments; the memo only spares repeated work.
"""

from __future__ import annotations

from dboost.passes.curvature import (
    curvature_diagonal,
    curvature_of,
    hessian_product,
    losses_along,
    template_sums,
)
from dboost.passes.point import Point, arguments_at, columns_held
from dboost.passes.scores import active_gradient, dual_value, intercept_sums, repaired_gradient, score
from dboost.passes.statistics import NULL_SUMS, feature_statistics, label_counts, moments_about

__all__ = [
    "NULL_SUMS",
    "Point",
    "active_gradient",
    "arguments_at",
    "columns_held",
    "curvature_diagonal",
    "curvature_of",
    "dual_value",
    "feature_statistics",
    "hessian_product",
    "intercept_sums",
    "label_counts",
    "losses_along",
    "moments_about",
    "repaired_gradient",
    "score",
    "template_sums",
]
