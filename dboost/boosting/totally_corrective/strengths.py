"""The strengths that a fit goes through on its way to the one asked for."""

from __future__ import annotations

from dataclasses import dataclass

from dboost.problem.accelerators import Accelerators

# A Newton fit approaches its strength from alpha_max by this factor a round, and one step at each: fewer rows enter too
# early and fewer steps are rejected. Factors of .4 to .5 were best for several outputs. A step of one output on the way
# costs less than the pass that follows it, so that fewer strengths are passed through.
SEVERAL_OUTPUTS = 0.5
ONE_OUTPUT = 0.3


@dataclass(frozen=True)
class Strengths:
    """A geometric sequence that ends at the strength asked for.

    Parameters
    ----------
    final : float
        That strength, sum form.
    factor : float
        From one strength to the next; 0 is the plain way, the final strength at once.
    """

    final: float
    factor: float = 0.0

    @classmethod
    def of(cls, final: float, accelerators: Accelerators) -> Strengths:
        """Those of a fit: on the way from alpha_max by ``continuation``."""
        factor = ONE_OUTPUT if accelerators.on("one_output") else SEVERAL_OUTPUTS
        return cls(final, factor if accelerators.on("continuation") else 0.0)

    def after(self, lam: float) -> float:
        """The strength of the round after one at `lam`."""
        return max(self.final, lam * self.factor)

    def passing(self, lam: float) -> bool:
        """Whether that is still above the final one."""
        return self.after(lam) > self.final
