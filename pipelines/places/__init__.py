"""Kinds of clusters that a run can be put on, each made by the package of the field for it.

One file per kind: how its cluster is made and removed, and what a dry run shows. ``PLACES`` in ``registry`` names them.
"""
