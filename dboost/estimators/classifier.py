"""``BoostedClassifier``: one label per example, two classes or many."""

from __future__ import annotations

from typing import ClassVar

from dboost.estimators.base import BoostedEstimator
from dboost.estimators.params import FitParameters, ObjectiveParameters, parameters
from dboost.estimators.scoring import ClassifyingMixin


@parameters
class BoostedClassifier(ClassifyingMixin, FitParameters, ObjectiveParameters, BoostedEstimator):
    """Linear classifier with few features, each shared by the classes, fitted to a certified optimum.

    Minimises ``sum_i s_i loss(y_i, W'x_i + b) / sum_i s_i + alpha sum_j omega(W_j)``, W_j being the weights of feature
    j for all classes (Duchi & Singer 2009). The intercept b is not penalised.

    The first seven parameters, up to `hypotheses`, are what most need. Then come what is said of single columns and
    labels (to `classes`), limits (`max_rounds` and the next three), how the optimum is reached (to `random_state`), and
    where a fit begins, runs and what it leaves (from `warm_start`).

    Parameters
    ----------
    loss : {"log", "exp", "multinomial", "margin_softmax"} or loss object, optional
        By default ``"log"`` for two classes (one score) and ``"multinomial"`` for more. ``"exp"`` is AdaBoost's
        exponential loss for two classes, whose score f means the probability ``1 / (1 + exp(-2f))``.
        ``"margin_softmax"`` is ``"multinomial"`` with a head start of one for every wrong class in training
        (Shalev-Shwartz, Wexler & Shashua 2011), an upper bound on the number of mistakes.
    penalty : {"l1", "l1/l2", "l1/linf", "l1/l2+l1", "l2", "l2_squared", "smooth_l1", "none"} or penalty object
        What ties the weights of a feature together; by default ``"l1/linf"``. ``"l1/l2+l1"`` weighs both parts
        equally; another mix is ``dboost.penalties.SparseGroup(l1_ratio)``. The last four put no single feature to
        zero: ``"l2"`` is the Euclidean norm of all weights, ``"l2_squared"`` half its square (ridge), ``"smooth_l1"``
        the rounded l1 norm of Dekel et al. (2005), less its value at zero, or
        ``dboost.penalties.SmoothL1(sharpness)``. Under ``"smooth_l1"`` and ``"none"`` a fit stops by its gradient,
        without a certificate. ``"smooth_l1/linf"`` rounds the largest entry of a row in the same way, for
        ``update="newton"``.
    alpha : float or "auto", default "auto"
        Strength of the penalty on the mean loss; glmnet's lambda, and ``1 / (C * sum_i s_i)`` in scikit-learn's terms.
        ``"auto"`` selects features and then refits them, both on strengths that are judged on rows which these fits do
        not see: a path of the penalty, and ridges of all columns, which rank those past its end. The selected features
        are fitted again with a ridge, to `tol`, since it is shrinking that costs accuracy. The model of the path itself
        is taken, without a refit, with `hypotheses`, `update`, `offset`, signs, `penalty_factors`, `column_groups`, or
        a penalty under which no single feature vanishes. `callbacks` are told of all fits, ``"fold"`` being what is
        held out, and limits hold for each. ``"quick"`` is one fit without held-out rows, at 0.05 times the smallest
        strength at which no feature is used, as are fits of fewer than ten rows; ``"l2_squared"`` and ``"smooth_l1"``
        have no such strength: there it is ``1 / sum_i s_i``, scikit-learn's ``C=1``.
    standardize : bool or "auto", default "auto"
        Penalise each feature by its standard deviation, as if columns had been scaled; weights are on the original
        scale and sparse data stays sparse. ``"auto"`` does so for tables (dense arrays, frames, Parquet tables), whose
        columns may be in any unit, and not for sparse rows, as text is; nor with `hypotheses`, or for a penalty of a
        norm and a ridge, which follows no scale. With False, a column in small units is all but left out by the
        penalty, and one in large units all but free; a warning says so where they differ much. A constant column has no
        deviation to be scaled by and is left out, with a warning where it was asked for.
    class_weight : "balanced" or dict of label to weight, optional
        Where labels are numbers, their texts name them too, as in JSON: ``{"1": 2.0}``.
    tol : float, default 1e-4
        Target of the certified relative duality gap.
    prefer : {"few", "accurate"}, optional
        With ``alpha="auto"``, which model is taken. By default that with the fewest features whose share of wrong
        labels, or loss of a regression, is within one standard error of the difference to the best that was seen, or
        half of one of the best's own; of sparse rows more than half of the features only where these are better by one
        standard error. ``"few"`` allows the standard error of the best one, which is larger;
        ``"accurate"`` takes the best.
    max_features : int, optional
        At most so many features. With ``alpha="auto"`` as many, unless fewer are better; at a strength that is given
        the fit may end above `tol`.
    hypotheses : Family, optional
        What is weighed: by default the raw columns. ``dboost.Products(max_degree=2)``, ``dboost.Kernels()``,
        ``dboost.Stumps()`` and ``dboost.Columns()``, or several joined by ``|``, are families of columns that are
        computed from the raw ones where they are needed. A prediction reads raw rows, and only the columns of the
        hypotheses held.
    fit_intercept : bool, default True
    penalty_factors : array-like, shape (n,), or dict of str to float, optional
        What the strength of each feature is multiplied by, from 0 on; by the feature's name as a dict or a series that
        is indexed by names, 1 for those it does not name. A feature with a smaller factor enters earlier, one with
        ``inf`` never does, and one with 0 is in every model, without penalty, as the intercept is, unless `lower` or
        `upper` hold its weights at zero. They are taken as they are, where glmnet divides its `penalty.factor` by their
        mean. See ``dboost.adaptive_factors``.
    column_groups : array-like of int, shape (n,), or dict of str to list, optional
        Which features belong together, as the columns that a category was made into do: the label of the group of each
        feature, or the features of each group by name or place, where those in no list are groups of their own. All
        features of a group enter a model together, or not at all. With the penalty ``"l1/l2"`` a group of p features
        costs ``sqrt(p)`` times the Euclidean norm of all its weights, with ``"l1/linf"`` p times their largest size;
        `penalty_factors` multiply the weights within, and one of 0 takes a feature out. Groups of one feature each
        change nothing.
    positive : bool, default False
        Whether no weight is negative: ``lower=0`` for every feature. The intercept may have any sign.
    lower, upper : number, array-like of shape (n,), or dict of str to float, optional
        The sign that the weights of each feature may have: ``lower`` is 0 where none is negative and ``-inf``
        elsewhere, ``upper`` is 0 where none is positive and ``inf`` elsewhere; as a dict by the feature's name. For
        other bounds see ``LeveragingClassifier``. R's `lower.limits` and `upper.limits`.
    offset : str, int or sequence of these, optional
        Columns of X, by name or place, that are added to the scores as they are, one for each output: of two classes
        and the loss ``"log"`` one, of more one for each class in the order of ``classes_``. Such a column is no
        feature: it has the weight 1, in ``coef_`` too, and a prediction needs it as the fit does. R's `offset`,
        xgboost's `base_margin`.
    classes : sequence, optional
        All labels there may be, where the data does not hold every one.
    max_rounds : int, default 1000
    max_passes : int, optional
        The fit ends once it has made so many passes over the data, those before a resumed checkpoint included, with
        `stop_reason_` "max_passes". Only the certificate of its last model is made beyond them.
    max_seconds : float, optional
        The fit ends once its rounds have taken so long, counted anew when it is resumed, with `stop_reason_`
        "max_seconds". How far it then came depends on the machine.
    update : {"newton", "gradboost", "adaboost", "forward"}, default "newton"
        How the weights of the chosen features move: blocks of exact curvature, or the quadratic and exponential bounds
        of Duchi & Singer. These reach the same optimum; ``"newton"`` needs tens of passes over the data.
        ``"forward"`` is classical boosting, for ``penalty="none"``: a round moves the best single feature and nothing
        is re-optimised. It ends after `max_rounds`, or once no step gains more than ``0.1 * tol`` of the loss (set
        ``tol=0`` for all rounds). Of a class of hypotheses without end, such as ``dboost.Products()``, it looks at
        those next to the model.
    select : {"greedy", "cyclic", "random", "template", "template_uniform"}, default "greedy"
        The order in which ``"gradboost"`` and ``"adaboost"`` update features: one at a time, or all at once in a
        template, with the constant of each feature or one for all. ``penalty="l2"`` needs a template.
    sweeps : int, optional
        At most so many updates, or sweeps of them, of ``"gradboost"`` and ``"adaboost"`` between two scorings of all
        features. 1 is the loop of the paper's Figs. 2 and 3, which scores before every update. By default the chosen
        features are solved to a share of the gap first, in at most a thousand passes a round (fewer on large data).
    features_per_round : int, optional
        At most so many new features per round; chosen by the fit when missing.
    random_state : int, RandomState or None, default 0
    warm_start : bool, default False
        Start from the weights of the last fit. Classes and features must agree with it.
    checkpoint : path, optional
        A file that holds the state after each round or, where rounds are short, after some of them, so that writing it
        takes at most a twentieth of the time; the last state is written in any case. A later fit with the same data and
        settings goes on from it, with the bits of the undisturbed fit; other data or settings are refused. It stays
        after the fit.
    callbacks : list, optional
        Functions of a round's record, of which a true result ends the fit, and objects with the hooks of
        ``sklearn.callback`` (scikit-learn 1.9).
    client : distributed.Client, optional
        Runs the fit. By default the current client for Dask and Parquet input, and this process otherwise. It is
        dropped on pickling.
    rows_per_round, max_active_rows : optional
        Former names of `features_per_round` and `max_features`, for one version; they warn (FutureWarning).

    Attributes
    ----------
    coef_ : float64 array, shape (k or 1, n)
        Built on each access. With `hypotheses`, the weights of those held, shape (k or 1, number held), in the order
        of `active_features_`.
    intercept_ : float64 array, shape (k or 1,)
    classes_ : array, shape (number of classes,)
    n_features_in_ : int
    feature_names_in_ : object array, shape (n,)
        Where the data has names.
    active_features_ : list of str
        Names of the features or hypotheses used, in words, such as "price^2 * area".
    history_ : Table
        One record per round: objective, gap, rows in and out, seconds, bytes moved.
    duality_gap_, objective_, alpha_, alpha_max_ : float
    frontier_ : Table
        With ``alpha="auto"``: the models that were judged, by their number of features, each better than all with
        fewer: `features`, the held-out `score` (share of right labels, or of the loss explained) and its standard error
        `se_score`, `loss` and `se_loss`, the `alpha` of the path (0 past its end) and the `ridge`; `chosen` marks what
        was taken.
    relaxed_ : dict
        Of a refit: its `ridge`, `stop_reason`, `rounds` and `passes`, and the `selection_gap` that was certified for
        the fit that selected. ``objective_`` and ``duality_gap_`` are those of the refit, ``alpha_`` and
        ``alpha_max_`` those of the selection.
    stop_reason_ : str
        "tol" or "gradient" (done), "max_rounds", "max_passes", "max_seconds", "max_features", "max_opened" (the
        search of hypotheses had to end), "callback", "precision" (numbers are not exact enough to go on, or scores of
        data far from zero to show `tol`), or "stalled" (at the pace of its last rounds the fit would not reach `tol` in
        a million more).
    n_iter_ : int
        Rounds.
    induction_stop_ : int or None
        The round after which no feature entered any more; None when features still entered in the last round before
        the fit ended.
    model_ : dboost.model.fitted.Model
        What predicts, and what is saved.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BoostedClassifier(penalty="l1/l2", alpha=0.05).fit(X, y)
    >>> bool(model.duality_gap_ <= 1e-4), model.coef_.shape
    (True, (3, 4))
    """

    _tasks: ClassVar[tuple[str, ...]] = ("binary", "multiclass")
    _task = "classification"
