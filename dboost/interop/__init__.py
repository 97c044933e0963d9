"""Fitted models in the forms of other systems: plain scikit-learn, ONNX graphs, MLflow's folders.

Each module imports its system only when it is called, and names the package that is missing.
"""
