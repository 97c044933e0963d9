"""Decision stumps."""
