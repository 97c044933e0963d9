"""Leveraging as a system: its parameters, what they cannot be combined with, and the rounds that they ask for.

Covers: Algorithms 1 and 2 of Raetsch, Mika & Warmuth (2001), their box, and both norms of steepest descent. Does not
cover: the rounds (``rounds``, ``every_weight``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dboost.boosting.leveraging.box import Bound, given_bounds
from dboost.boosting.leveraging.every_weight import BoxRounds, SteepestRounds
from dboost.boosting.leveraging.rounds import LeveragingRounds, learns
from dboost.boosting.leveraging.steepest import NORMS
from dboost.boosting.rules import RULES, RankedL1, RankedNone, refuse_searched
from dboost.errors import UsageError
from dboost.losses import LOSSES, Loss, get_loss
from dboost.penalties import Penalty
from dboost.problem.iterate import Score
from dboost.problem.problem import Problem
from dboost.problem.state import FitSettings


def _leverages(loss: Loss) -> bool:
    """Whether it has one score, and a bound that the search along a step begins with (``coordinate.exact_step``)."""
    return loss.task in ("binary", "regression") and (math.isfinite(loss.kappa) or loss.exponential)


@dataclass(frozen=True)
class Leveraging:
    """Settings of the system. With a strength (``FitSettings.alpha``) it is Algorithm 2, otherwise Algorithm 1."""

    rule: str = "edge"  # The learner (``rules.rank``).
    step: str | float = "exact"  # A number is epsilon-boosting: every step has this length.
    # In which a step is one of steepest descent: one hypothesis moves, or all in proportion to their edges.
    norm: str = "l1"
    # Between which every weight stays, each a number or one for each feature.
    bounds: tuple[Bound, Bound] | None = None

    @property
    def name(self) -> str:
        """Its name."""
        return "leveraging"

    @property
    def learns(self) -> bool:
        """It asks for a hypothesis in every round, so that a family may learn one."""
        return True

    @property
    def exponential(self) -> bool:
        """It ranks by <d, h>."""
        return False

    @property
    def takes_factors(self) -> bool:
        """Each hypothesis may have a strength of its own, the paper's vector gamma."""
        return True

    def penalty(self, alpha: Any) -> Penalty:
        """What scoring passes are given for a strength: the l1 penalty, or none for a strength of zero."""
        return RankedNone(self.rule) if alpha == 0.0 else RankedL1(self.rule)

    @property
    def optimises(self) -> bool:
        """It ends by its own rules."""
        return False

    def check(self, settings: FitSettings, penalty: Penalty) -> None:
        """Refuse losses, learners and steps that the algorithms do not have, and pairs without meaning."""
        loss = get_loss(settings.loss)
        if not _leverages(loss):
            raise UsageError(
                f"leveraging with loss {loss.name!r}: its step needs one score and a largest curvature, or e^(-y f)",
                hint=f"known losses: {', '.join(name for name, one in LOSSES.items() if _leverages(one))}",
            )
        if getattr(penalty, "rule", "") != self.rule:
            raise UsageError(f"leveraging with penalty {penalty.name!r}", hint="use dboost.LeveragingClassifier")
        if self.rule not in RULES:
            raise UsageError(f"learner={self.rule!r}", hint=f"known learners: {', '.join(RULES)}")
        if self.rule != "edge" and not loss.parabolic:
            raise UsageError(f"learner={self.rule!r} fits residuals", hint="use it with the squared loss")
        fixed = not isinstance(self.step, str)
        number = isinstance(self.step, float | int) and not isinstance(self.step, bool)
        if fixed and not (number and 0.0 < float(self.step) < math.inf):
            raise UsageError(f"step={self.step!r}", hint="expected 'exact' or a finite number > 0")
        if not fixed and self.step != "exact":
            raise UsageError(f"step={self.step!r}", hint="expected 'exact' or a finite number > 0")
        self._check_norm(settings, penalty)
        self._check_bounds(settings, penalty)
        if not penalty.weightless and (fixed or self.rule == "nearest"):
            raise UsageError(
                f"alpha={settings.alpha!r} with step={self.step!r} and learner={self.rule!r}",
                hint="the l1 penalty needs step='exact' and a learner other than 'nearest'; or set alpha=0",
            )

    def _check_norm(self, settings: FitSettings, penalty: Penalty) -> None:
        """Refuse a norm that is none, and one with which no single hypothesis is chosen where one must be."""
        if self.norm not in NORMS:
            known = ", ".join(map(repr, NORMS))
            raise UsageError(f"norm={self.norm!r}", hint=f"expected one of {known}")
        if self.norm == "l1":
            return
        if not penalty.weightless:
            raise UsageError(
                f"norm={self.norm!r} with alpha={settings.alpha!r}: Algorithm 2 moves one hypothesis at a time",
                hint="use norm='l1', or alpha=0",
            )
        if learns(settings):
            raise UsageError(
                f"norm={self.norm!r} moves all hypotheses at once, and hypotheses=Learned(...) gives one at a time",
                hint="use norm='l1', or a family of hypotheses",
            )

    def _check_bounds(self, settings: FitSettings, penalty: Penalty) -> None:
        """Refuse bounds beside what moves no single weight to its best value within them."""
        if self.bounds is None:
            return
        if given_bounds(self.bounds) != self.bounds:
            raise UsageError(f"bounds={self.bounds!r}", hint="expected plain numbers, as given_bounds makes them")
        if self.norm != "l1" or not isinstance(self.step, str) or self.rule == "nearest" or learns(settings):
            raise UsageError(
                f"bounds={self.bounds!r} with norm={self.norm!r}, step={self.step!r} and learner={self.rule!r}",
                hint="bounds need norm='l1', step='exact', a learner other than 'nearest' and hypotheses not learned",
            )
        if settings.standardize:
            raise UsageError("bounds are those of the weights as they are reported", hint="set standardize=False")

    def rounds(self, problem: Problem, settings: FitSettings, null: Score, n_rows: int) -> LeveragingRounds:
        """The rounds of a fit."""
        refuse_searched(problem)
        if self.bounds is not None:
            return BoxRounds(problem, settings, null, self)
        kind = LeveragingRounds if self.norm == "l1" else SteepestRounds
        return kind(problem, settings, null, self)

    def to_json(self) -> dict[str, Any]:
        """Its parameters."""
        found: dict[str, Any] = {"system": self.name, "rule": self.rule, "step": self.step}
        # Checkpoints written before there were these choices say nothing of them.
        if self.norm != "l1":
            found["norm"] = self.norm
        if self.bounds is not None:
            found["bounds"] = [side if isinstance(side, float) else list(side) for side in self.bounds]
        return found
