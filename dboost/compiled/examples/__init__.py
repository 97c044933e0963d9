"""Loops over examples: margins, loss, residuals and sums."""
