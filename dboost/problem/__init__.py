"""The problem of a fit: the objective, the passes over the data, and the state between two rounds."""
