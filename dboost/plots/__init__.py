"""Plots of fits, paths and models, with matplotlib (the extra ``plots``).

Every function takes fitted estimators or plain records, draws on `ax` or on a new figure, and returns the Axes. To
save a plot: ``plot_progress(model).figure.savefig("gap.png")``.
"""

from __future__ import annotations

from dboost.plots.calibration import plot_calibration
from dboost.plots.confusion import plot_confusion
from dboost.plots.coverage import plot_coverage
from dboost.plots.cv import plot_cv
from dboost.plots.feature_life import plot_feature_life
from dboost.plots.path import plot_path
from dboost.plots.progress import plot_progress
from dboost.plots.sparsity_map import plot_sparsity_map
from dboost.plots.stability import plot_stability
from dboost.plots.staged import plot_staged

__all__ = [
    "plot_calibration",
    "plot_confusion",
    "plot_coverage",
    "plot_cv",
    "plot_feature_life",
    "plot_path",
    "plot_progress",
    "plot_sparsity_map",
    "plot_stability",
    "plot_staged",
]
