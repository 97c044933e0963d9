"""The name by which ``dboost.interop.mlflow`` is imported, as in ``from dboost.mlflow import ...``."""

import sys

from dboost.interop import mlflow

# The module itself and no copy of its names, so that what is set in one is seen in the other.
sys.modules[__name__] = mlflow
