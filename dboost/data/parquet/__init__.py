"""Data in Parquet files as blocks of a plan."""
