"""Columns of any kind as features: what a column is, what is learned of it, and the entries of its rows."""
