"""Loops over rows of numbers, held in vector registers."""
