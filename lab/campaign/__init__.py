"""Everything that may go wrong, tried many times and counted: ``python -m lab campaign``.

A part is one module with ``run(count, folder, tally)``; ``command`` lists them. Each runs in a process of its own, and
its trials that may hang in further ones, which are ended from outside.
"""

from lab.campaign.command import main

__all__ = ["main"]
