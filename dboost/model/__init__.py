"""The fitted object, its metrics and the models along a fit."""
