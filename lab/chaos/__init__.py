"""Faults of a cluster in the middle of a fit: ``python -m lab chaos`` (``python -m lab campaign --part cluster-faults``).

Every trial is one fit in a process of its own, in which one thing goes wrong: workers are killed or stopped, run out of
memory, or are not there yet. It must end with the bits of the undisturbed fit, or with one clear error in time.
"""

from lab.chaos.campaign import main

__all__ = ["main"]
