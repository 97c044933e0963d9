"""The reference: one page for each public name, in an order that a reader looks for.

Covers: which names are public, under which heading each stands, and the pages that list them.
Does not cover: what a page says (the docstrings, by autosummary).
"""

from __future__ import annotations

import inspect
from typing import Any

import dboost

HEADINGS = {
    "Estimators": (
        "BoostedClassifier", "BoostedRegressor", "MultiTaskBoostedClassifier", "BoostedClassifierCV",
        "BoostedRegressorCV", "MultiTaskBoostedClassifierCV", "MultiTaskBoostedRegressor",
        "MultiTaskBoostedRegressorCV",
        "ShareBoostClassifier", "AdaBoostL1Classifier", "AdaBoostL1Regressor", "LeveragingClassifier",
        "LeveragingRegressor", "JointBoostClassifier", "OneVsRestBoostedClassifier", "StabilitySelection",
    ),
    "Paths, cross-validation, models": (
        "regularization_path", "cross_validated", "successive_halving", "adaptive_factors", "relaxed", "load_model",
        "load_pipeline",
        "save_model", "explain", "EarlyStopping",
    ),
    "Solvers of the papers": ("minimise_linf",),
    "Data and features": ("ParquetData", "Features", "TextFeatures", "TableFeatures", "frequent_tags"),
    "Families of hypotheses": (
        "Columns", "Products", "Kernels", "Stumps", "PiecewiseLinear", "Patches", "Learned",
    ),
    "Errors and warnings": (
        "DboostError", "UsageError", "DataError", "ClusterError", "SchedulerLostError", "StorageError",
        "ModelFormatError", "DboostWarning", "ConvergenceWarning",
    ),
}  # fmt: skip
# Public parts, and what a reader finds there.
PARTS = {
    "losses": "What is minimised. A loss is named by a word, or given as an object with parameters of its own.",
    "penalties": "What ties the weights of a feature. A penalty is named by a word, or given as an object.",
    "hypotheses": "What every family of hypotheses has, for those who write one.",
    "metrics": "Measures of predictions, margins and sparsity.",
    "onnx": 'Models as ONNX graphs (`pip install "dboost[onnx]"`).',
    "mlflow": 'A flavour of MLflow (`pip install "dboost[mlflow]"`).',
    "plots": 'Pictures with matplotlib (`pip install "dboost[plots]"`).',
}


def names_of(part: str) -> list[str]:
    """The public classes and functions of a part."""
    module: Any = getattr(dboost, part)
    listed = getattr(module, "__all__", None)
    if listed is None:
        mine = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
        listed = [name for name in mine if not name.startswith("_")]
    values = {name: getattr(module, name) for name in listed}
    return [name for name, value in values.items() if inspect.isclass(value) or inspect.isfunction(value)]


def public_names() -> list[str]:
    """Every public class and function, by the name a user types."""
    own = [name for names in HEADINGS.values() for name in names]
    parts = [f"{getattr(dboost, part).__name__}.{name}" for part in PARTS for name in names_of(part)]
    return [*(f"dboost.{name}" for name in own), *parts]


def _listing(names: list[str]) -> list[str]:
    return [".. autosummary::", "   :toctree: .", "   :nosignatures:", "", *(f"   {name}" for name in names), ""]


def pages() -> dict[str, str]:
    """The pages that list names; autosummary makes one of each name."""
    lines = ["Reference", "=========", "", "One page for each public name; each has an example that the tests run.", ""]
    for title, names in HEADINGS.items():
        lines += [title, "-" * len(title), "", *_listing([f"dboost.{name}" for name in names])]
    for part, said in PARTS.items():
        title = f"dboost.{part}"
        lines += [title, "-" * len(title), "", said.replace("`", "``"), ""]
        lines += _listing([f"{getattr(dboost, part).__name__}.{name}" for name in names_of(part)])
    return {"api/index.rst": "\n".join(lines)}
