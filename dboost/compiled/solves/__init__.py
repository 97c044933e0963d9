"""Loops that minimise small models: coordinate descent, small linear systems, conjugate gradients."""
