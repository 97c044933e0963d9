"""Loops over the stored values of sparse blocks."""
