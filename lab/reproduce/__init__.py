"""The experiments of the papers that dboost is built from, one command each.

Two series: "structural" are those of Duchi & Singer, "Boosting with Structural Sparsity" (2009), section 6; "seeds" are
those of the papers beside it (ShareBoost, AdaBoost+L1, leveraging, boosting as coordinate descent).

How a reproduction is written
-----------------------------
One module here, named in ``REGISTRY``. It has

- ``CLAIMS``: a tuple of ``claims.Claim``. A claim carries a judge, a function ``judge(tables) -> Verdict`` that reads
  nothing but the numbers and ends with ``return judged(Check("... measured figures ...", met), ...)``. The word of the
  verdict ("holds", "holds in part", "does not hold", "cannot be judged") is computed there, never typed. What counts
  as agreement is written in ``Claim.test``, before the numbers are seen.
- ``FIGURES``: a tuple of ``base.Figure``; ``draw(tables)`` returns a matplotlib figure made with ``figures``
  (``figures.panels``, ``figures.STYLES``), from the tables alone.
- ``run(context) -> base.Report``: measures. Data comes from ``lab.datasets`` (``DBOOST_DATA_HOME``; what is
  missing is a ``DataError``). Every part runs in ``with context.stage("name"):``; ``context.say`` prints a line;
  ``context.quick`` asks for the version of a minute. It returns tables (``rows.Rows``, one per CSV file), the protocol
  with the sizes used, and every difference from the paper.

Common steps are in ``measure``: ``Staged`` follows a fit round by round on held-out data (time without the
evaluation), ``along_path`` evaluates a regularisation path, ``draw_per_class`` and ``best_by_validation`` serve
repeats. Files (page, CSV, PNG, the marker ``reproduction.json``), atomicity, the machine's description and the index
page are ``output``'s; a module writes nothing itself.

A claim that fails is a finding. Nothing is tuned until it holds: settings are fixed by the protocol or chosen by
validation on training data, and the same rule serves every method that is compared.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lab.reproduce.base import Context, Report


STRUCTURAL, SEEDS = "structural", "seeds"


@dataclass(frozen=True)
class Entry:
    """A reproduction that can be asked for.

    Parameters
    ----------
    module : str
        Its module in this package; loaded only when it runs.
    figures : str
        The figures of the paper; of the series "seeds" with the paper's name before them.
    summary : str
        One line for ``--list``.
    series : str
        The papers it belongs to, "structural" or "seeds": what is run together.
    long : bool
        Whether it takes hours, so that no series runs it.
    resumes : bool
        Whether its fits keep checkpoints where they are asked to, so that the same command goes on after a stop.
    """

    module: str
    figures: str
    summary: str
    series: str = STRUCTURAL
    long: bool = False
    resumes: bool = False

    @property
    def source(self) -> str:
        """The paper with its figures, as a page names them."""
        paper = 'Duchi & Singer, "Boosting with Structural Sparsity" (2009), section 6, '
        return (paper if self.series == STRUCTURAL else "") + self.figures

    def load(self) -> Any:
        """The module, with ``CLAIMS``, ``FIGURES`` and ``run``."""
        return importlib.import_module(f".{self.module}", __package__)

    def run(self, context: Context) -> Report:
        """Measure."""
        report: Report = self.load().run(context)
        return report


REGISTRY: dict[str, Entry] = {
    "landsat": Entry("landsat", "Figs. 6, 7, 8", "products of spectral values: entries or rows that are zero"),
    "mnist-kernel": Entry(
        "mnist_kernel", "Figs. 7, 8", "kernels of digits: which penalty learns most from few examples"
    ),
    "housing": Entry("housing", "Fig. 5", "products of columns: l1 boosting against classical and smooth-l1 boosting"),
    "ailerons": Entry("ailerons", "Fig. 5", "the same on a larger regression"),
    "topics": Entry("topics", "Fig. 4", "documents: when induction stops, and when boosting overfits"),
    "shareboost-synthetic": Entry(
        "shareboost_synthetic",
        "ShareBoost, section 6",
        "constructions: who finds the features that all classes share",
        SEEDS,
    ),
    "shareboost-sharing": Entry(
        "shareboost_sharing",
        "ShareBoost, Fig. 2",
        "features needed for a fixed error against the number of classes",
        SEEDS,
    ),
    "shareboost-uci": Entry(
        "shareboost_uci", "ShareBoost, Fig. 3", "products of columns: ShareBoost against the whole l1/linf path", SEEDS
    ),
    "shareboost-digits": Entry(
        "shareboost_digits",
        "ShareBoost, Table 1, Fig. 4",
        "patches of digits: the error by the number of features",
        SEEDS,
        resumes=True,
    ),
    "shareboost-deformed": Entry(
        "shareboost_deformed",
        "ShareBoost, Table 1, Fig. 6",
        "patches of digits and their deformations",
        SEEDS,
        long=True,
        resumes=True,
    ),
    "shareboost-piecewise": Entry(
        "shareboost_piecewise",
        "ShareBoost, Fig. 7",
        "digits by pieces of a linear model, beside Gaussian kernels",
        SEEDS,
        resumes=True,
    ),
    "shareboost-piecewise-all": Entry(
        "shareboost_piecewise_all",
        "ShareBoost, Fig. 7",
        "the same with all training images",
        SEEDS,
        long=True,
        resumes=True,
    ),
    "adaboost-l1": Entry(
        "adaboost_l1", "AdaBoost+L1, Tables 1, 2", "error, classifiers and margins of stumps", SEEDS
    ),
    "adaboost-l1-margin": Entry(
        "adaboost_l1_margin", "AdaBoost+L1, Theorems 1, 2", "the margin beside the exact minimax value", SEEDS
    ),
    "leveraging": Entry("leveraging", "Convergence of Leveraging", "linear convergence, measured", SEEDS),
    "coordinate-descent": Entry(
        "coordinate_descent",
        "Coordinate Descent",
        "AdaBoost step by step, and epsilon-boosting",
        SEEDS,
    ),
}
