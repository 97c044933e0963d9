"""Labelling data with a model, part by part: what is asked, where rows come from, and files that are written once."""
