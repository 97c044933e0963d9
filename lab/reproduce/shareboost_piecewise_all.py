"""The experiment of ``shareboost_piecewise`` with all training images of MNIST but those that choose.

A fit takes hours: the ridge is chosen by fits of half of the pieces, the machine's parameters on the images that
``shareboost_piecewise`` has. The last model has 120 pieces, not the 230 of the paper.
"""

from __future__ import annotations

from lab.reproduce.base import Context, Report
from lab.reproduce.shareboost_piecewise import SMALL, Sizes, measured
from lab.reproduce.shareboost_piecewise_claims import CLAIMS, FIGURES

__all__ = ["CLAIMS", "FIGURES", "run"]

WHOLE = Sizes(55_000, 50, 400, 12, 120, 5_000, 60, 5_000)


def run(context: Context) -> Report:
    """Measure; see ``CLAIMS`` for what is judged."""
    return measured(context, SMALL if context.quick else WHOLE)
