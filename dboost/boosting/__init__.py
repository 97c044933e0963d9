"""The boosting rounds: choose rows, reduce sums, solve, certify, prune. Knows no Dask, no scikit-learn and no files."""
