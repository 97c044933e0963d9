"""A fuzz of fits: hostile data, every loss, penalty and update, judged by an oracle in long double.

``cases`` draws a problem from a seed, ``objective`` is what it minimises, ``descent`` minimises it independently,
``judge`` runs the fit and looks for claims that are not true, and ``campaign`` counts. ``python -m lab fuzz`` runs it;
with ``--paths`` paths and cross-validations of tables of any unit instead, of which no claim is judged.
"""

from lab.fuzz.campaign import main

__all__ = ["main"]
