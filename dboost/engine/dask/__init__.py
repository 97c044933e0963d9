"""The engine that runs on a Dask cluster."""
