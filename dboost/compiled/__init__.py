"""Compiled loops on arrays: sums over stored values, margins, curvature products, block descent.

Plain ``numba`` functions without classes, input or output. Every function releases the interpreter lock, runs on one
thread and adds in a fixed order, so that its result depends on its arguments alone; threads run different partitions.
"""
