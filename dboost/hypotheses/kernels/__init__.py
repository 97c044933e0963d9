"""Gaussian kernels of rows."""
