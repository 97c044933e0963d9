"""Data in memory as blocks of a plan."""
