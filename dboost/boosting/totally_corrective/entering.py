"""Which rows enter a round of the totally corrective loop, and how many."""

from __future__ import annotations

from dboost.problem.iterate import Iterate, Score
from dboost.problem.problem import Problem
from dboost.problem.state import FitSettings

# Rows a round may add; more of them where they have few entries: one that has to wait costs another scoring pass.
FIRST_ROWS = 200
_MOST_FIRST_ROWS = 400
_FIRST_ENTRIES = 15_000
# Hypotheses a round may induce at first; Duchi & Singer (2009, section 6) take 30 in every round.
INDUCED_ROWS = 30
# Hypotheses that may enter together under a penalty that leaves none of them at zero; of more the best enter first, and
# as many as the model holds in each round.
MOST_AT_ONCE = 10_000_000


class Entering:
    """How many rows of one fit may enter; `sparse` where they vanish one by one, so that there are rows to keep out."""

    def __init__(self, problem: Problem, settings: FitSettings, sparse: bool) -> None:
        self.problem = problem
        self.settings = settings
        self.sparse = sparse

    def full(self, at: Iterate) -> bool:
        """Whether the model holds as many rows as it may."""
        budget = self.settings.max_features
        return budget is not None and at.active.shape[0] >= budget

    def most(self, n_active: int) -> int:
        """How many new rows a round may add."""
        asked = self.settings.features_per_round
        if asked is None:
            free = self.settings.update == "newton" and self.sparse
            more = min(_FIRST_ENTRIES // self.problem.k, _MOST_FIRST_ROWS) if self.problem.k > 1 else 0
            asked = max(FIRST_ROWS, more, n_active) if free else self.problem.n
            if not self.problem.screens and (self.problem.penalty.separable or self.problem.n > MOST_AT_ONCE):
                asked = max(INDUCED_ROWS, n_active)
        if self.settings.max_features is not None:
            asked = min(asked, max(0, self.settings.max_features - n_active))
        return asked

    def widened(self, at: Iterate, score: Score, lam: float) -> tuple[Iterate, int, bool]:
        """The model with the best violating rows added at zero; how many, and whether others wait for a next round.

        Which violate optimality, at which strength, is in the score: the final one, `lam`, asks for nothing more.
        """
        held = at.active.shape[0]
        fresh = self.most(held)
        new, G = score.best[:fresh], score.best_G[:fresh]
        cut = self.settings.features_per_round is None and len(new) == fresh < self.problem.n_candidates - held
        return at.widened(new, G), int(new.shape[0]), cut
