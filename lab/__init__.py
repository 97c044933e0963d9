"""What we run ourselves and do not install: campaigns of faults and fuzz, each by name (``python -m lab NAME``)."""
