"""Compiled loops over the bytes of documents: words, a table of terms, counts per document, weights.

Covers: text as Arrow holds it, UTF-8 bytes and offsets. ``words`` cuts documents into words, ``terms`` is the table
that numbers distinct terms, ``counting`` fills it, ``weighing`` turns counts into rows of weights, ``murmur`` hashes
terms as scikit-learn does.
Does not cover: lower case beyond ASCII, and any other rule for words. Python knows these, and gives what it finds to
the same loops (``dboost.data.prepared``).

All of it is integer arithmetic on bytes and counts until the weights, whose sums run in one order that the terms fix:
results do not depend on how documents are shared out among threads.
"""
