"""Structurally sparse boosting on Dask, with certified optima.

The names below are loaded on first use, so that ``import dboost`` imports neither Dask nor scikit-learn nor numba.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dboost.kernel_cache import settle

__version__ = "0.1.0"

settle(Path(__file__).parent / "compiled")

if TYPE_CHECKING:
    from dboost import hypotheses, losses, metrics, penalties, plots
    from dboost.data.labels.tags import frequent_tags
    from dboost.data.parquet.input import ParquetData
    from dboost.errors import (
        ClusterError,
        ConvergenceWarning,
        DataError,
        DboostError,
        DboostWarning,
        ModelFormatError,
        SchedulerLostError,
        StorageError,
        UsageError,
    )
    from dboost.estimators.classifier import BoostedClassifier, MultiTaskBoostedClassifier
    from dboost.estimators.cv import (
        BoostedClassifierCV,
        BoostedRegressorCV,
        MultiTaskBoostedClassifierCV,
        MultiTaskBoostedRegressorCV,
        cross_validated,
        successive_halving,
    )
    from dboost.estimators.earlier import adaptive_factors, relaxed
    from dboost.estimators.features import Features, TableFeatures
    from dboost.estimators.greedy import (
        AdaBoostL1Classifier,
        AdaBoostL1Regressor,
        JointBoostClassifier,
        LeveragingClassifier,
        LeveragingRegressor,
        ShareBoostClassifier,
    )
    from dboost.estimators.one_vs_rest import OneVsRestBoostedClassifier
    from dboost.estimators.path import regularization_path
    from dboost.estimators.persistence import load_model, load_pipeline, save_model
    from dboost.estimators.regressor import BoostedRegressor, MultiTaskBoostedRegressor
    from dboost.estimators.scoring import EarlyStopping
    from dboost.estimators.stability import StabilitySelection
    from dboost.estimators.text_features import TextFeatures
    from dboost.hypotheses.columns import Columns
    from dboost.hypotheses.kernels.family import Kernels
    from dboost.hypotheses.learned import Learned
    from dboost.hypotheses.patches.family import Patches
    from dboost.hypotheses.pieces.family import PiecewiseLinear
    from dboost.hypotheses.products.family import Products
    from dboost.hypotheses.stumps.family import Stumps
    from dboost.model.explained import explain
    from dboost.penalties.linf_minimum import minimise_linf

_HOMES = {
    "AdaBoostL1Classifier": "dboost.estimators.greedy",
    "AdaBoostL1Regressor": "dboost.estimators.greedy",
    "BoostedClassifier": "dboost.estimators.classifier",
    "BoostedClassifierCV": "dboost.estimators.cv",
    "BoostedRegressor": "dboost.estimators.regressor",
    "BoostedRegressorCV": "dboost.estimators.cv",
    "Columns": "dboost.hypotheses.columns",
    "LeveragingClassifier": "dboost.estimators.greedy",
    "LeveragingRegressor": "dboost.estimators.greedy",
    "JointBoostClassifier": "dboost.estimators.greedy",
    "MultiTaskBoostedClassifier": "dboost.estimators.classifier",
    "MultiTaskBoostedClassifierCV": "dboost.estimators.cv",
    "MultiTaskBoostedRegressor": "dboost.estimators.regressor",
    "MultiTaskBoostedRegressorCV": "dboost.estimators.cv",
    "OneVsRestBoostedClassifier": "dboost.estimators.one_vs_rest",
    "ParquetData": "dboost.data.parquet.input",
    "Kernels": "dboost.hypotheses.kernels.family",
    "Learned": "dboost.hypotheses.learned",
    "Patches": "dboost.hypotheses.patches.family",
    "PiecewiseLinear": "dboost.hypotheses.pieces.family",
    "Products": "dboost.hypotheses.products.family",
    "ShareBoostClassifier": "dboost.estimators.greedy",
    "EarlyStopping": "dboost.estimators.scoring",
    "Features": "dboost.estimators.features",
    "StabilitySelection": "dboost.estimators.stability",
    "Stumps": "dboost.hypotheses.stumps.family",
    "TextFeatures": "dboost.estimators.text_features",
    "adaptive_factors": "dboost.estimators.earlier",
    "cross_validated": "dboost.estimators.cv",
    "TableFeatures": "dboost.estimators.features",
    "explain": "dboost.model.explained",
    "frequent_tags": "dboost.data.labels.tags",
    "load_model": "dboost.estimators.persistence",
    "load_pipeline": "dboost.estimators.persistence",
    "minimise_linf": "dboost.penalties.linf_minimum",
    "regularization_path": "dboost.estimators.path",
    "relaxed": "dboost.estimators.earlier",
    "save_model": "dboost.estimators.persistence",
    "successive_halving": "dboost.estimators.cv",
    "ClusterError": "dboost.errors",
    "ConvergenceWarning": "dboost.errors",
    "DataError": "dboost.errors",
    "DboostError": "dboost.errors",
    "DboostWarning": "dboost.errors",
    "ModelFormatError": "dboost.errors",
    "SchedulerLostError": "dboost.errors",
    "StorageError": "dboost.errors",
    "UsageError": "dboost.errors",
}

# Parts that a user calls by name; they, too, are loaded on first use.
# The two at the end are no part of what type checkers see: they need packages of their own.
_PARTS = ("hypotheses", "losses", "metrics", "penalties", "plots", "mlflow", "onnx")

__all__ = [
    "AdaBoostL1Classifier",
    "AdaBoostL1Regressor",
    "BoostedClassifier",
    "BoostedClassifierCV",
    "BoostedRegressor",
    "BoostedRegressorCV",
    "ClusterError",
    "Columns",
    "ConvergenceWarning",
    "DataError",
    "DboostError",
    "DboostWarning",
    "EarlyStopping",
    "Features",
    "JointBoostClassifier",
    "Kernels",
    "Learned",
    "LeveragingClassifier",
    "LeveragingRegressor",
    "ModelFormatError",
    "MultiTaskBoostedClassifier",
    "MultiTaskBoostedClassifierCV",
    "MultiTaskBoostedRegressor",
    "MultiTaskBoostedRegressorCV",
    "OneVsRestBoostedClassifier",
    "ParquetData",
    "Patches",
    "PiecewiseLinear",
    "Products",
    "SchedulerLostError",
    "ShareBoostClassifier",
    "StabilitySelection",
    "StorageError",
    "Stumps",
    "TextFeatures",
    "TableFeatures",
    "UsageError",
    "__version__",
    "adaptive_factors",
    "cross_validated",
    "explain",
    "frequent_tags",
    "hypotheses",
    "load_model",
    "load_pipeline",
    "losses",
    "metrics",
    "minimise_linf",
    "mlflow",
    "onnx",
    "penalties",
    "plots",
    "regularization_path",
    "relaxed",
    "save_model",
    "successive_halving",
]


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return import_module(f"{__name__}.{name}")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'dboost' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
