"""Loops that minimise small models: coordinate descent and small linear systems."""
