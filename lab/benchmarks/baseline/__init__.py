"""Our own speed from one day and one commit to another, on the problems of ``python -m lab bench peers``.

``bench record`` stores a measurement, ``bench compare`` sets two side by side, and ``bench ab`` measures two commits
in turn.
"""
