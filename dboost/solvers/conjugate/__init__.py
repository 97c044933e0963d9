"""Conjugate gradients on the support once it has settled, and their preconditioners."""
