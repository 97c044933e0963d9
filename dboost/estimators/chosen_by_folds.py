"""What the estimators share that choose their strength by cross-validation along the path.

Covers: ``ChosenByFoldsMixin``. Does not cover: the choice (``cross_validated``), the fits
(``dboost.boosting.cross_validation``), the parameters of each estimator (``cv``, ``regressor_cv``, ``multitask_cv``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, ClassVar, Self

from sklearn.base import clone

from dboost.errors import ClusterError, UsageError
from dboost.estimators.base import BoostedEstimator
from dboost.estimators.cross_validated import Choice, validated, warn_of_ends
from dboost.estimators.fold_record import attributes
from dboost.estimators.params import parameters
from dboost.estimators.path import RegularizationPath
from dboost.model.fitted import Model
from dboost.penalties import get_penalty

_SAVED = "cross_validation"


@parameters
class ChosenByFoldsMixin(BoostedEstimator):
    """A ``BoostedEstimator`` whose strength is chosen by cross-validation; not public."""

    cv: Any = 10
    folds: Any = None
    alphas: Sequence[float] | None = None
    n_alphas: int = 50
    eps: float = 1e-2
    fold_tol: float | None = None
    scoring: Any = "loss"
    rule: str = "1se"
    relax: Any = None
    # What has no meaning along a path.
    alpha: ClassVar[str] = "auto"
    prefer: ClassVar[None] = None  # type: ignore[misc]
    warm_start: ClassVar[bool] = False  # type: ignore[misc]
    _fits_several = True
    # The estimator of one strength, with the same parameters but those of the choice.
    _single: ClassVar[type[BoostedEstimator]]

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        feature_names: Sequence[str] | None = None,
        groups: Any = None,
    ) -> Self:
        """Cross-validate along the path and keep the model of the chosen strength.

        Parameters
        ----------
        X, y, sample_weight, feature_names
            As for the ``fit`` of the estimator of one strength.
        groups : array-like, shape (m,), or str, optional
            The file, author or thread that each row is of, or the name of a column of a table that says it and then is
            no feature: no fold parts the rows of a group. A splitter as `cv` is given them too.

        Returns
        -------
        self

        Raises
        ------
        UsageError, DataError
            Before any training.
        ClusterError, StorageError
            During it; with a checkpoint, the next call goes on from there.
        KeyboardInterrupt
            Where it is interrupted. After this and after a ClusterError `path_` holds the strengths that this call had
            fitted to all rows; none of them was chosen, and the other attributes are as before.

        Warns
        -----
        ConvergenceWarning
            With the gap reached, when the model or a fit without some fold ended above `tol`.
        DboostWarning
            When the best strength is an end of the grid, beyond which there may be a better one.
        """
        choice = self._choice()
        choice.check()
        penalty = get_penalty(self.penalty)
        if penalty.weightless:
            raise UsageError(f"penalty {penalty.name!r} has no strength to choose", hint="use another penalty")
        so_far: list[Model] = []
        try:
            given = (X, y, sample_weight, self._template(), so_far.append, feature_names, groups)
            found = validated(self, choice, *given)
        except (KeyboardInterrupt, ClusterError) as error:
            if so_far:
                self.path_ = RegularizationPath(tuple(so_far), self._template())
                error.add_note(f"path_ of the estimator keeps the {len(so_far)} strengths that were fitted to all rows")
            raise
        model = found.model
        self._adopt(replace(model, manifest={**model.manifest, _SAVED: found.record}))
        self.path_ = RegularizationPath(found.models, self._template())
        warn_of_ends(self, choice)
        return self

    def _choice(self) -> Choice:
        """The parameters of the cross-validation."""
        return Choice(**{item.name: getattr(self, item.name) for item in fields(Choice)})

    def _adopt(self, model: Model) -> Self:
        super()._adopt(model)
        record = model.manifest[_SAVED]
        for name, value in attributes(record).items():
            setattr(self, name, value)
        return self

    def _template(self) -> BoostedEstimator:
        """An unfitted estimator of one strength with the parameters that both have."""
        known = self._single().get_params(deep=False)
        params = self.get_params(deep=False)
        shared = {name: value for name, value in params.items() if name in known}
        found: BoostedEstimator = clone(self._single(**shared | {"checkpoint": None, "callbacks": None}))
        return found
