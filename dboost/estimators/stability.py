"""Stability selection: the features that a sparse fit would use again on other rows of the same kind.

Covers: ``StabilitySelection``, what it asks of an estimator, what the supports of half samples come to, the columns it
leaves of other data, and how many of the chosen features may be false in the mean: the bound of Meinshausen & Buehlmann
(2010), which Shah & Samworth (2013) have under weaker assumptions, and the tighter one of the latter for frequencies of
a certain shape. Does not cover: the half samples and their fits (``dboost.boosting.cross_validation``).

In the bounds p is the number of features, q the mean number of them that a half sample uses at any of the strengths,
theta = q / p, tau, above 1/2, the threshold and B the number of complementary pairs.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_array, get_tags
from sklearn.utils.validation import _check_n_features, check_is_fitted

from dboost.boosting.cross_validation import HalfFits, fit_halves
from dboost.boosting.fit import FitSettings
from dboost.boosting.path import asked
from dboost.boosting.planned import columns_of
from dboost.data.named_columns import flat, without
from dboost.errors import ClusterError, ConvergenceWarning, DataError, UsageError
from dboost.estimators.base import BoostedEstimator, ByReferenceMixin
from dboost.estimators.classifier import BoostedClassifier, MultiTaskBoostedClassifier
from dboost.estimators.fitting import Prepared
from dboost.estimators.params import count, number, parameters, resolve_seed
from dboost.estimators.path import check_grid, for_several_fits
from dboost.estimators.predicting import kind_of
from dboost.estimators.regressor import BoostedRegressor
from dboost.estimators.repr import ShownMixin
from dboost.notices import warn_user
from dboost.penalties import get_penalty


@dataclass(frozen=True)
class Found:
    """What the supports of half samples come to; see the attributes of ``StabilitySelection``."""

    # Shape (T,).
    alphas: NDArray[np.float64]
    # Shape (T, n).
    frequencies: NDArray[np.float64]
    # Shape (T,). Mean number of features that a half uses at one of the strengths so far.
    chosen: NDArray[np.float64]
    # Shape (n_pairs, 2, T).
    gaps: NDArray[np.float64]
    n_pairs: int


def check_rows(settings: FitSettings) -> None:
    """Refuse what leaves no single feature out."""
    penalty = get_penalty(settings.penalty)
    if not (penalty.threshold and penalty.separable):
        raise UsageError(
            f"penalty {penalty.name!r} leaves no single feature out",
            hint="use another, such as 'l1', 'l1/l2' or 'l1/linf'",
        )
    if settings.hypotheses is not None:
        raise UsageError(
            "hypotheses= of the estimator: each half sample induces others, which cannot come again",
            hint="use an estimator of the raw columns",
        )
    if settings.penalty_factors is not None and settings.penalty_factors.has(0.0):
        raise UsageError(
            "penalty_factors of the estimator is 0 for a feature, which every model then has: that it comes again says "
            "nothing",
            hint="give it a small factor such as 1e-3, or leave it to be chosen",
        )


def found_of(ended: Sequence[HalfFits], n: int) -> Found | None:
    """What the halves that have ended come to, of the pairs both of whose halves have; None if there is none."""
    by_place = {(one.pair, one.half): one for one in ended}
    pairs = sorted(pair for pair, half in by_place if half == 0 and (pair, 1) in by_place)
    if not pairs:
        return None
    fits = [by_place[pair, half] for pair in pairs for half in (0, 1)]
    counts = np.zeros((len(fits[0].alphas), n), dtype=np.int64)
    chosen = np.zeros((len(fits), len(counts)), dtype=np.int64)
    for place, one in enumerate(fits):
        seen = np.zeros(n, dtype=np.bool_)
        for t, support in enumerate(one.supports):
            counts[t, support] += 1
            seen[support] = True
            chosen[place, t] = np.count_nonzero(seen)
    gaps = np.array([one.gaps for one in fits]).reshape(len(pairs), 2, -1)
    return Found(fits[0].alphas, counts / len(fits), chosen.mean(axis=0), gaps, len(pairs))


Float = NDArray[np.float64]

# The parameter of a shape is looked for between these: below the first it has its whole mass at zero, above the second
# it is flat, each up to the rounding of a float.
_LEAST, _MOST = 1e-9, 1e9


def worst_case(q: float, p: int, tau: float) -> float:
    """The bound q**2 / ((2 tau - 1) p).

    It holds for the number of false features if those of noise are exchangeable, and the selection is not worse than a
    guess (Meinshausen & Buehlmann 2010, theorem 1). Without any assumption it holds for the number of chosen features
    whose probability to be used by a half sample is at most q / p (Shah & Samworth 2013, theorem 1).
    """
    return q * q / ((2.0 * tau - 1.0) * p)


def r_concave(q: float, p: int, tau: float, pairs: int) -> float:
    """The bound p min{D(theta**2, 2 tau - 1, B, -1/2), D(theta, tau, 2 B, -1/4)}, or `worst_case` where that is less.

    It holds for the number of chosen features whose probability to be used by a half sample is at most theta = q / p,
    if for each of them the share of pairs in which both halves use it has a distribution that is -1/2-concave, and the
    share of the halves that use it one that is -1/4-concave (Shah & Samworth 2013, section 3.3). That is an
    assumption about shape: their simulations support it, and it is not proved of any method of selection.
    """
    theta = q / p
    both = largest_tail(theta * theta, 2.0 * tau - 1.0, pairs, -0.5)
    each = largest_tail(theta, tau, 2 * pairs, -0.25)
    return min(p * min(both, each), worst_case(q, p, tau))


def largest_tail(mean: float, t: float, steps: int, r: float) -> float:
    """D(mean, t, steps, r): the largest probability that an r-concave variable reaches t.

    The variable takes the values 0, 1/steps, ..., 1 and has at most that mean; a function f is r-concave, for r < 0,
    if f**r is convex on its support. The largest is reached by an f(i) proportional to (a + i)**(1/r) for i up to some
    k, with what the mean still needs at k + 1, at most as much as the same curve has there (Shah & Samworth 2013,
    appendix).

    `mean` and `t`: In [0, 1]. `r`: Negative. Returns: In [0, 1]; 1 where t is within twice the mean, which is no bound.
    """
    # a threshold between two values is reached at the larger one; a share such as 0.6 of 100 is not to be the next
    place = math.ceil(t * steps - 1e-9)
    if mean <= 0.0 or place <= 0:
        return float(place <= 0)
    centre = mean * steps
    first = math.floor(2.0 * centre) + 1
    if place <= 2.0 * centre or first > steps:
        return 1.0
    power = 1.0 / r
    best = 0.0
    above = math.log(_MOST)
    for k in range(max(place - 1, first), steps + 1):
        # the curve up to k has the mean itself at a_k, and at a_(k+1) < a_k once all of k + 1 belongs to it
        here = _shape(k, centre, power, above)
        if k == steps:
            return max(best, _tail(here, k, centre, power, place))
        beyond = _shape(k + 1, centre, power, here)
        best = max(best, _highest(beyond, here, k, centre, power, place))
        above = here
    return best


def _curve(log_a: float, k: int, power: float) -> Float:
    """(a + i)**power for i up to k, in units of its first value."""
    a = math.exp(log_a)
    found: Float = (1.0 + np.arange(k + 1) / a) ** power
    return found


def _shape(k: int, centre: float, power: float, above: float) -> float:
    """The logarithm of the a at which the curve up to k has its mean at `centre`; it is at most `above`."""

    def off(log_a: float) -> float:
        f = _curve(log_a, k, power)
        return float(np.arange(k + 1) @ f / f.sum()) - centre

    low = math.log(_LEAST)
    if off(low) >= 0.0:
        return low
    return above if off(above) <= 0.0 else float(brentq(off, low, above, xtol=1e-13, rtol=1e-13))


def _tail(log_a: float, k: int, centre: float, power: float, place: int) -> float:
    """The probability of `place` and more, where the curve ends at k and the mean is made up for at k + 1."""
    f = _curve(log_a, k, power)
    i = np.arange(k + 1)
    more = max(0.0, float((centre - i) @ f)) / (k + 1 - centre)
    return float((f[place:].sum() + more) / (f.sum() + more))


def _highest(low: float, high: float, k: int, centre: float, power: float, place: int) -> float:
    """The largest of these probabilities for shapes between two."""
    ends = max(_tail(low, k, centre, power, place), _tail(high, k, centre, power, place))
    if high - low < 1e-12:
        return ends
    inside = minimize_scalar(lambda a: -_tail(a, k, centre, power, place), bounds=(low, high), method="bounded")
    return max(ends, -float(inside.fun))


BOUNDS = ("worst_case", "r_concave")
_SHOWN = 10  # names in the text of a selection


@parameters
class StabilitySelection(ByReferenceMixin, ShownMixin, SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """Features that come again: those a sparse fit uses on most of many half samples (Meinshausen & Buehlmann 2010).

    The rows are halved `n_pairs` times, and the estimator is fitted to both halves (the complementary pairs of Shah &
    Samworth 2013) along a path of strengths. A feature is used by a fit when its row of weights is not zero, and is
    selected when at one of the strengths at least `threshold` of the fits use it. How many false features are among
    them has a bound.

    Parameters
    ----------
    estimator : BoostedClassifier, BoostedRegressor, MultiTaskBoostedClassifier or MultiTaskBoostedRegressor, optional
        With a penalty that leaves single features out, and without `hypotheses`. Its `tol` is that of every fit. By
        default ``BoostedClassifier()``.
    n_pairs : int, default 50
        Pairs of halves: twice as many fits of a path.
    alphas : sequence of float, optional
        Strengths. By default `n_alphas` values, geometric from the least that uses no feature of all rows to `eps`
        times it; or the `alpha` of the estimator alone, where that is a number.
    n_alphas : int, default 10
    eps : float, default 0.1
        In (0, 1).
    threshold : float, default 0.6
        Share of the half samples, above 0.5 and at most 1.
    expected_false : float, optional
        Bound on the mean number of false features. The weaker strengths are not used, from the first on at which the
        bound would be larger. By default all strengths are used, and the bound is what it is.
    bound : {"worst_case", "r_concave"}, default "worst_case"
        With q the mean number of features that a half uses at any strength that is used, of p in all: q**2 / ((2
        threshold - 1) p), or the tighter bound of Shah & Samworth, which assumes a shape of the frequencies; see Notes.
    max_seconds : float, optional
        No pair but the first begins after so many. The limits of the estimator are those of each fit.
    random_state : int, RandomState or None, default 0
        Seed of the halves.
    callbacks : list of callables, optional
        Each is called with the record of each round of each fit, where ``"pair"`` and ``"half"`` say of which half and
        ``"strength"`` is the place of its strength; a true result ends that one fit.
    client : dask.distributed.Client, optional
        As in ``BoostedClassifier``; by default that of the estimator.

    Attributes
    ----------
    alphas_ : float64 array, shape (n_strengths,)
        Falling.
    frequencies_ : float64 array, shape (n_strengths, n)
        Share of the half samples that use each feature at each strength.
    n_strengths_ : int
        How many of the strengths are used, the strongest first.
    stability_ : float64 array, shape (n,)
        The largest frequency of each feature at a strength that is used.
    support_ : bool array, shape (n,)
        Which features are selected.
    selected_ : int64 array
        Their places.
    support_names_ : list of str
        Their names; x0, x1, ... by place where the data has none.
    chosen_per_half_ : float64 array, shape (n_strengths,)
        Mean number of features that a half uses at one of the strengths so far: q.
    expected_false_bound_ : float
        The bound that was asked for, at the strengths that are used.
    expected_false_bounds_ : dict of str to float
        All of them.
    half_gaps_ : float64 array, shape (n_pairs, 2, n_strengths)
        Certified relative gaps of the fits.
    n_pairs_ : int
        Pairs that were fitted: fewer than asked for after `max_seconds` or an interrupt.
    n_features_in_ : int
    feature_names_in_ : object array, shape (n,)
        Where the data has names.

    Notes
    -----
    Halves are drawn as the folds of ``BoostedClassifierCV`` are, at random and each class split evenly; labels of tasks
    are not. They depend on the order of the rows and `random_state`, and neither on partitions nor on workers.

    The first bound holds for features of noise if all of them are equally likely to be used, and less than the others
    (Meinshausen & Buehlmann 2010, theorem 1). Without this it still holds for the selected features that a half uses
    with a probability of at most q / p (Shah & Samworth 2013, theorem 1). The second one is of these features too, and
    holds if the frequencies of each have an r-concave distribution (section 3.3 of that paper). Both take q as if it
    were known, and it is a mean over the halves.

    Examples
    --------
    >>> import numpy as np
    >>> import dboost
    >>> X = np.random.default_rng(0).normal(size=(200, 30))
    >>> y = X[:, 3] - X[:, 7] + np.random.default_rng(1).normal(size=200) > 0
    >>> selection = StabilitySelection(dboost.BoostedClassifier(), n_pairs=10, expected_false=1.0).fit(X, y)
    >>> selection.support_names_, selection.transform(X).shape, selection.expected_false_bound_ <= 1.0
    (['x3', 'x7'], (200, 2), True)
    """

    estimator: Any = field(default=None, kw_only=False)
    n_pairs: int = 50
    alphas: Sequence[float] | None = None
    n_alphas: int = 10
    eps: float = 0.1
    threshold: float = 0.6
    expected_false: float | None = None
    bound: str = "worst_case"
    max_seconds: float | None = None
    random_state: Any = 0
    callbacks: Any = None
    client: Any = None

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        feature_names: Sequence[str] | None = None,
        groups: Any = None,
    ) -> Self:
        """Fit the paths of all half samples, and select features.

        Parameters
        ----------
        X, y, sample_weight, feature_names
            As for the ``fit`` of the estimator.
        groups : array-like, shape (m,), or str, optional
            As for the ``fit`` of ``BoostedClassifierCV``: both halves have whole groups, and classes as these fall.

        Returns
        -------
        self

        Raises
        ------
        UsageError, DataError
            Before any training; DataError too where a half lacks a class, and UsageError after it where every half uses
            every feature at the strongest strength, or no strength has so small a bound as `expected_false`.
        ClusterError, StorageError
            During it.
        KeyboardInterrupt
            Where it is interrupted. After this and after a ClusterError the attributes are those of the pairs that had
            ended, if any had.

        Warns
        -----
        ConvergenceWarning
            When fits of halves ended above the estimator's `tol`.
        DboostWarning
            When the bound is no less than the number of features, and says nothing; and when `max_seconds` has left
            pairs out.
        """
        base, seed = self._checked(), resolve_seed(self.random_state)
        ended: list[HalfFits] = []
        given = (X, y, sample_weight, feature_names, groups)
        with for_several_fits(base, *given) as (parts, callback):
            settings, plan = parts.settings, parts.plan
            # neither those of an infinite factor, nor those that are offsets
            n_candidates = max(1, int(columns_of(plan, settings).candidates.sum()))
            grid = (asked(settings, self.alphas), self.n_alphas, self.eps)
            try:
                fit_halves(
                    plan, parts.engine, settings, seed, self.n_pairs, *grid, callback, ended.append, self.max_seconds
                )
            except (KeyboardInterrupt, ClusterError) as error:
                found = found_of(ended, plan.n_features)
                if found is not None:
                    self._adopt(found, n_candidates, parts)
                    error.add_note(f"the selection keeps the {found.n_pairs} pairs of halves that were fitted")
                raise
        found = found_of(ended, plan.n_features)
        assert found is not None
        if n_candidates > 1 and np.count_nonzero(found.frequencies[0] == 1.0) >= n_candidates:
            raise UsageError(
                f"every half sample uses every feature at alpha={found.alphas[0]:.4g}, the strongest: nothing tells "
                "them apart",
                hint="give larger alphas",
            )
        least = self._bounds(found, n_candidates, 0)[self.bound]
        if self.expected_false is not None and least > self.expected_false:
            raise UsageError(
                f"up to {least:.3g} false features are expected already at alpha={found.alphas[0]:.4g}, the strongest, "
                f"and expected_false={self.expected_false:g}",
                hint="give larger alphas, or a larger threshold",
            )
        self._adopt(found, n_candidates, parts)
        self._warn(found, n_candidates, settings.tol)
        return self

    # ---- what is asked ---------------------------------------------------------------------------------------------

    def _checked(self) -> BoostedEstimator:
        """A copy of the estimator to fit with, after all parameters were checked."""
        count("n_pairs", self.n_pairs)
        if not 0.5 < number("threshold", self.threshold) <= 1.0:
            raise UsageError(
                f"threshold={self.threshold!r}",
                hint="expected a share above 0.5 and at most 1: up to one half there is no bound on false features",
            )
        if self.expected_false is not None and number("expected_false", self.expected_false) == 0.0:
            raise UsageError("expected_false=0, which no selection can promise", hint="give a number above 0")
        if self.max_seconds is not None:
            number("max_seconds", self.max_seconds)
        if self.bound not in BOUNDS:
            raise UsageError(f"bound={self.bound!r}", hint=f"expected one of {', '.join(BOUNDS)}")
        check_grid(self.alphas, self.n_alphas, self.eps)
        template = BoostedClassifier() if self.estimator is None else self.estimator
        kinds = (BoostedClassifier, BoostedRegressor, MultiTaskBoostedClassifier)
        if not isinstance(template, kinds) or template._fits_several:
            names = ", ".join(kind.__name__ for kind in kinds)
            raise UsageError(f"estimator={template!r}", hint=f"expected one of {names}, which fit at a given strength")
        for name in ("checkpoint", "callbacks"):
            if getattr(template, name) is not None:
                raise UsageError(
                    f"the estimator has {name}=, which is of one fit", hint="leave it out; callbacks= are given here"
                )
        base: BoostedEstimator = clone(template)
        base.set_params(callbacks=self.callbacks, client=template.client if self.client is None else self.client)
        base._fits_several = True
        check_rows(base._settings())
        return base

    # ---- what was found --------------------------------------------------------------------------------------------

    def _bounds(self, found: Found, p: int, place: int) -> dict[str, float]:
        """The bounds with the strengths up to a place."""
        q = float(found.chosen[place])
        return {
            "worst_case": worst_case(q, p, float(self.threshold)),
            "r_concave": r_concave(q, p, float(self.threshold), found.n_pairs),
        }

    def _adopt(self, found: Found, p: int, parts: Prepared) -> None:
        """Take the fitted attributes."""
        names, strengths = parts.plan.feature_names, range(len(found.alphas))
        used = len(strengths)
        if self.expected_false is not None:
            # a bound grows with the number of features, and that with every further strength
            asked = float(self.expected_false)
            used = max(1, bisect.bisect_right(strengths, asked, key=lambda t: self._bounds(found, p, t)[self.bound]))
        self.alphas_, self.frequencies_, self.half_gaps_ = found.alphas, found.frequencies, found.gaps
        self.chosen_per_half_, self.n_pairs_, self.n_strengths_ = found.chosen, found.n_pairs, used
        self.stability_ = found.frequencies[:used].max(axis=0)
        self.support_ = self.stability_ >= float(self.threshold)
        self.selected_ = np.flatnonzero(self.support_).astype(np.int64)
        self.support_names_ = [f"x{j}" if names is None else names[j] for j in self.selected_.tolist()]
        self.expected_false_bounds_ = self._bounds(found, p, used - 1)
        self.expected_false_bound_ = self.expected_false_bounds_[self.bound]
        self.n_features_in_ = parts.plan.n_features
        self.__dict__.pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        self._named = flat(parts.named)

    def _warn(self, found: Found, p: int, tol: float) -> None:
        late = int(np.count_nonzero(found.gaps > tol))
        if late:
            warn_user(
                f"{late} of {found.gaps.size} fits of half samples stopped above tol={tol:g}, "
                f"at a certified relative gap of {found.gaps.max():.2g} at worst",
                ConvergenceWarning,
            )
        if found.n_pairs < self.n_pairs:
            warn_user(
                f"max_seconds={self.max_seconds:g} were over after {found.n_pairs} of {self.n_pairs} pairs of halves"
            )
        if self.expected_false_bound_ >= p > 1:
            warn_user(
                f"a half sample uses {found.chosen[-1]:.3g} of {p} features, so many that the bound on false ones says "
                "nothing; give expected_false=, larger alphas or a larger eps"
            )

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self, "support_")
        mask: NDArray[np.bool_] = self.support_
        return mask

    # ---- other data ------------------------------------------------------------------------------------------------

    def transform(self, X: Any) -> Any:
        """The selected columns.

        Parameters
        ----------
        X : array, SciPy sparse matrix, pandas or Arrow table, dask array or DataFrame
            Shape (m, n), with the columns of the fit.

        Returns
        -------
        array, sparse matrix, or dask collection of the same kind
            Shape (m, number of selected features); of a table an array, unless ``set_output`` asks for a table.
        """
        check_is_fitted(self, "support_")
        kind = kind_of(X)
        if kind == "parquet":
            raise UsageError(
                "a data set on disk is read where it is fitted",
                hint="give support_names_ as features= of a ParquetData instead",
            )
        if kind in ("table", "frame"):
            X = without(X, self._named)
        if kind == "array" or (kind == "frame" and not hasattr(self, "feature_names_in_")):
            if X.ndim != 2 or X.shape[1] != self.n_features_in_:
                raise DataError(f"X has shape {X.shape}; the selection is of {self.n_features_in_} features")
            return X[:, self.selected_] if kind == "array" else X[[X.columns[j] for j in self.selected_.tolist()]]
        if kind == "frame":
            missing = [name for name in self.support_names_ if name not in X.columns]
            if missing:
                raise DataError(f"X lacks {len(missing)} of the selected columns", column=str(missing[0]))
            return X[self.support_names_]
        if kind == "table" and not hasattr(X, "iloc"):
            import pyarrow as pa

            X = (X if isinstance(X, pa.Table) else pa.table(X)).to_pandas()
        if issparse(X):
            # such rows cannot have names: scikit-learn would warn of that where the fit had some
            X = check_array(X, accept_sparse="csr", estimator=self)
            _check_n_features(self, X, reset=False)
            return X[:, self.selected_]
        return super().transform(X)

    # ---- the estimator ---------------------------------------------------------------------------------------------

    def _map_text(self) -> str:
        if "support_" not in self.__dict__:
            return ""
        names = self.support_names_
        shown = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
        halves = f"{self.threshold:.0%} or more of {2 * self.n_pairs_} halves"
        head = f"{len(names)} of {self.n_features_in_} features in {halves}"
        return f"{head}: {shown}" if names else head

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        template = self.estimator if isinstance(self.estimator, BoostedEstimator) else BoostedClassifier()
        tags.target_tags = get_tags(template).target_tags
        tags.input_tags.sparse = True
        return tags
