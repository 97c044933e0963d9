"""Products of raw features."""
