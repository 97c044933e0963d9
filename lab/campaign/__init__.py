"""Everything that may go wrong, tried many times and counted: ``python -m lab campaign`` (``python -m lab campaign``).

Each part is one module with ``run(count, folder, tally)`` and one line of ``parts.PARTS``.
"""

from lab.campaign.command import main

__all__ = ["main"]
