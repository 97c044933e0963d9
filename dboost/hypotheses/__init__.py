"""Families of hypotheses: columns made from raw features, lazily per partition."""
