"""Sparse matrices by row and by column, checked."""
