"""The name by which ``dboost.interop.onnx`` is imported, as in ``from dboost.onnx import ...``."""

import sys

from dboost.interop import onnx

# The module itself and no copy of its names, so that what is set in one is seen in the other.
sys.modules[__name__] = onnx
