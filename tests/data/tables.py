"""Changes of small tables that several tests make."""

from __future__ import annotations


def replace(table, name, values):
    """The table with other values in one column."""
    return table.set_column(table.column_names.index(name), name, values)
