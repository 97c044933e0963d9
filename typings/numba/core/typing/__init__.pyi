"""See ``numba/__init__.pyi``."""
