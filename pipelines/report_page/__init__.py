"""The page of a model: one HTML file that is read without a network, from the figures of a run or of a model folder."""
