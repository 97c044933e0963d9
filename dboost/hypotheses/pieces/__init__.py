"""Pieces of a piecewise linear model."""
