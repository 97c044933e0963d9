"""Optima of this library against those of independent solvers, on real data."""
