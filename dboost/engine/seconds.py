"""Where the time of an engine goes.

Covers: ``Seconds``, the four sums an engine keeps. Does not cover: rounds (``dboost.boosting.systems``).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Seconds:
    """Seconds since an engine was opened; those of passes that failed are not in them."""

    driver: float = 0.0  # The driver itself, inside the engine: planning a pass and packing its arguments.
    # The rest of the wait for passes: turns through the scheduler and the queues of workers. 0 in-process.
    scheduler: float = 0.0
    # Arguments on the way to a worker (receiving from other workers, decoding), and results on the way back, once all
    # of a pass were ready. What the scheduler copies beside its other work is not told apart from it. 0 in-process.
    network: float = 0.0
    kernels: float = 0.0  # The work itself: reading, leaves, merging and finishing, of the worker that took longest.

    def add(self, driver: float, wait: float, kernels: float, network: float) -> None:
        """Count a pass: `wait` is all the time between handing it over and having its results."""
        # Clocks of several workers overlap: together the shares never exceed the wait.
        kernels = min(kernels, wait)
        network = min(network, wait - kernels)
        self.driver += driver
        self.kernels += kernels
        self.network += network
        self.scheduler += wait - kernels - network
