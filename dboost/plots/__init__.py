"""Plots of fits, paths and models, with matplotlib (the extra ``plots``).

Every function takes fitted estimators or plain records, draws on `ax` or on a new figure, and returns the Axes. To
save a plot: ``plot_progress(model).figure.savefig("gap.png")``.
"""

from __future__ import annotations

from dboost.plots.judged import plot_calibration, plot_confusion, plot_coverage, plot_sparsity_map
from dboost.plots.rounds import plot_feature_life, plot_progress, plot_staged
from dboost.plots.strengths import plot_cv, plot_path, plot_stability

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
