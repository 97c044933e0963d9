"""Plots of fits, paths and models, with matplotlib (the extra ``plots``).

Every function takes fitted estimators or plain records, draws on `ax` or on a new figure, and returns the Axes. To
save a plot: ``plot_progress(model).figure.savefig("gap.png")``. matplotlib is loaded when a plot is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.errors import UsageError, type_name
from dboost.former_names import column_now

__all__ = [
    "plot_calibration",
    "plot_confusion",
    "plot_coverage",
    "plot_cv",
    "plot_feature_life",
    "plot_path",
    "plot_progress",
    "plot_sparsity_map",
    "plot_stability",
    "plot_staged",
]

Array = NDArray[np.float64]

# Okabe & Ito (2008): told apart by readers with any colour vision. Yellow is left out; it is too light for a line.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
# Lines differ by more than colour, for print in grey.
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1)), (0, (1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
MANY_POINTS = 40
"""Lines with more points than this carry no markers."""

WORDS = {
    "seconds": "Time [s]",
    "rounds": "Round",
    "passes": "Passes over the data",
    "gap": "Relative duality gap",
    "objective": "Objective (penalised mean loss)",
    "error": "Test error [share of examples]",
    "coverage": "Coverage [classes ranked above the true one]",
    "sparsity": "Zero weights [share of entries]",
    "row_sparsity": "Features never computed [share of rows]",
    "features": "Features or hypotheses held",
    "entries": "Nonzero weights",
    "log_loss": "Test log-loss [nats]",
}


def matplotlib() -> Any:
    """``matplotlib.pyplot``."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as fault:
        raise UsageError(
            f"plots need matplotlib, which cannot be imported ({fault})",
            hint="install the extra: pip install 'dboost[plots]'",
        ) from fault
    return plt


def open_axes(ax: Any, width: float = 6.0, height: float = 4.0) -> Any:
    """The Axes to draw on: `ax`, or those of a new figure whose layout leaves room for the legend."""
    plt = matplotlib()
    if ax is None:
        _, ax = plt.subplots(figsize=(width, height), layout="constrained")
    elif not hasattr(ax, "plot"):
        raise UsageError(f"ax is {type_name(ax)}", hint="expected matplotlib Axes, or None for a new figure")
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)
    return ax


def strength_axis(ax: Any, alphas: Array, room: float = 1.05) -> None:
    """Falling strengths, logarithmic with ticks in plain numbers; 1, 2 and 5 of each decade where decades are few."""
    matplotlib()
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    ax.set_xlabel("Strength of the penalty, alpha [on the mean loss]")
    if not np.all(alphas > 0.0):
        return
    low, high = float(alphas.min()), float(alphas.max())
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 200.0 * low else (1.0,)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xlim(high * room, low / room)


def label_axes(ax: Any, x: str, y: str) -> None:
    """Name the axes in words, with units."""
    ax.set_xlabel(WORDS.get(x, x))
    ax.set_ylabel(WORDS.get(y, y))


def draw_lines(ax: Any, lines: Mapping[str, tuple[Array, Array]], steps: bool = False, marks: bool = True) -> None:
    """One line per name, and a legend above the Axes where it covers no data."""
    looks = zip(cycle(COLOURS), cycle(DASHES), cycle(MARKERS))
    for (name, (x, y)), (colour, dash, marker) in zip(lines.items(), looks):
        shown = marker if marks and len(x) <= MANY_POINTS else None
        ax.plot(
            x,
            y,
            label=name,
            color=colour,
            linestyle=dash,
            marker=shown,
            markersize=4,
            linewidth=1.6,
            drawstyle="steps-post" if steps else "default",
        )
    if len(lines) > 1:
        add_legend(ax, len(lines))


def add_legend(ax: Any, count: int) -> None:
    """A legend above the Axes; a title of the Axes is better put on the figure (``ax.figure.suptitle``)."""
    ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.01), ncols=min(count, 3), frameon=False, fontsize="small")


def by_name(given: Any, what: str) -> dict[str, list[Mapping[str, Any]]]:
    """The records of one thing, or of each in a mapping of names to things."""
    named = dict(given) if isinstance(given, Mapping) else {"": given}
    if not named:
        raise UsageError(f"{what} is empty", hint="there is nothing to draw")
    return {str(name): records_of(value, what) for name, value in named.items()}


def records_of(given: Any, what: str) -> list[Mapping[str, Any]]:
    """A list of records, or those of a fitted estimator (``history_``)."""
    found = getattr(given, "history_", given)
    if isinstance(found, Mapping | str) or not isinstance(found, Sequence):
        raise UsageError(f"{what} holds {type_name(given)}", hint="expected a fitted estimator or a list of records")
    records = list(found)
    if not records or not all(isinstance(record, Mapping) for record in records):
        raise UsageError(f"{what} holds no records", hint="expected at least one, each a mapping of names to numbers")
    return records


def column_of(records: Sequence[Mapping[str, Any]], name: str) -> Array:
    """One quantity of all records; NaN where a record has none."""
    name = name if any(name in record for record in records) else column_now(name)
    if not any(name in record for record in records):
        known = dict.fromkeys(key for record in records for key in record)
        raise UsageError(f"no record has {name!r}", hint=f"there are {', '.join(map(str, known))}")
    return np.array([np.nan if record.get(name) is None else record[name] for record in records], dtype=np.float64)


def choose(name: str, value: Any, known: Sequence[str]) -> None:
    """Refuse an unknown choice."""
    if value not in known:
        raise UsageError(f"{name}={value!r}", hint=f"use one of {', '.join(known)}")


def plot_progress(fits: Any, *, quantity: str = "gap", against: str = "seconds", ax: Any = None) -> Any:
    """How fits approach their optimum.

    Parameters
    ----------
    fits : estimator, list of records, or mapping of names to these
        Fitted estimators; or records as in ``history_``, with ``round``, ``seconds`` (of the round) and ``passes``
        (so far).
    quantity : str
        ``"gap"``, ``"objective"``, ``"features"``, ``"entries"`` or another number in the records. Gaps are drawn
        on a logarithmic scale; rounds without one are left out.
    against : {"seconds", "rounds", "passes"}
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    UsageError
        When matplotlib is missing, or the records do not hold what is asked for.

    Examples
    --------
    >>> records = [{"round": 1, "gap": 0.5, "seconds": 0.1}, {"round": 2, "gap": 0.01, "seconds": 0.1}]
    >>> len(plot_progress({"newton": records}).lines)
    1
    """
    choose("against", against, ("seconds", "rounds", "passes"))
    lines = {}
    for name, records in by_name(fits, "fits").items():
        y = column_of(records, quantity)
        x = elapsed(records, against)
        if quantity == "gap":
            y = np.where(y > 0.0, y, np.nan)
        known = np.isfinite(y)
        lines[name] = (x[known], y[known])
    ax = open_axes(ax)
    if quantity == "gap":
        ax.set_yscale("log")
    draw_lines(ax, lines)
    label_axes(ax, against, quantity)
    return ax


def elapsed(records: Any, against: str) -> Array:
    """Time so far, number of the round, or passes so far."""
    if against == "seconds":
        return np.cumsum(column_of(records, "seconds"))
    return column_of(records, "round" if against == "rounds" else "passes")


def plot_staged(
    stages: Any, *, quantity: str = "error", against: str = "seconds", log_time: bool = False, ax: Any = None
) -> Any:
    """A measure of the model after each round, against time or rounds.

    Parameters
    ----------
    stages : list of records, or mapping of names to such lists
        One record per model looked at, in order, with ``seconds`` (since the start of the fit), ``round`` and the
        measures, such as ``error``, ``sparsity``, ``row_sparsity`` or ``coverage``.
    quantity : str
        Which measure; ``dboost.metrics`` computes them.
    against : {"seconds", "rounds"}
    log_time : bool
        Whether the axis of time or rounds is logarithmic: methods often differ by factors of ten.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    UsageError
        When matplotlib is missing, or the records do not hold what is asked for.

    Examples
    --------
    >>> records = [{"round": 1, "error": 0.5, "seconds": 0.1}, {"round": 2, "error": 0.2, "seconds": 0.3}]
    >>> len(plot_staged(records).lines)
    1
    """
    choose("against", against, ("seconds", "rounds"))
    measured = "round" if against == "rounds" else "seconds"
    named = by_name(stages, "stages").items()
    lines = {name: (column_of(records, measured), column_of(records, quantity)) for name, records in named}
    ax = open_axes(ax)
    if log_time:
        ax.set_xscale("log")
    draw_lines(ax, lines)
    label_axes(ax, against, quantity)
    if quantity in ("sparsity", "row_sparsity"):
        ax.set_ylim(top=1.0 + 0.02 * (1.0 - ax.get_ylim()[0]))
    return ax


def plot_feature_life(fit: Any, *, ax: Any = None) -> Any:
    """Features that entered (up) and left (down) in each round, and how many were held after it (line).

    Parameters
    ----------
    fit : estimator, or list of records
        Fitted; or records as in ``history_``, with ``round``, ``features_in``, ``features_out`` and ``features``.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    UsageError
        When matplotlib is missing, or the records do not hold what is asked for.

    Examples
    --------
    >>> records = [
    ...     {"round": 1, "features_in": 3, "features_out": 0, "features": 3},
    ...     {"round": 2, "features_in": 1, "features_out": 2, "features": 2},
    ... ]
    >>> axes = plot_feature_life(records)
    >>> [int(bar.get_height()) for bar in axes.patches]
    [3, 1, 0, -2]
    """
    records = records_of(fit, "fit")
    rounds = column_of(records, "round")
    entered, left, held = (column_of(records, name) for name in ("features_in", "features_out", "features"))
    ax = open_axes(ax)
    ax.bar(rounds, entered, color=COLOURS[0], label="entered")
    # Hatched, so that they differ without colour as well.
    ax.bar(rounds, -left, color="white", edgecolor=COLOURS[1], hatch="////", label="left")
    ax.plot(rounds, held, color="black", linewidth=1.6, marker="o", markersize=3, label="held after the round")
    ax.axhline(0.0, color="0.3", linewidth=0.8)
    ax.set_xlim(rounds.min() - 0.7, rounds.max() + 0.7)
    if np.ptp(rounds) < 12:
        ax.set_xticks(rounds)
    ax.set_xlabel("Round")
    ax.set_ylabel("Features or hypotheses")
    add_legend(ax, 3)
    return ax


QUANTITIES = ("features", "entries", "weights")


def plot_path(path: Any, *, quantity: str = "features", top: int = 7, ax: Any = None) -> Any:
    """How many features a path holds at each strength, or how large their weights are.

    Parameters
    ----------
    path : RegularizationPath
        From ``dboost.regularization_path``.
    quantity : {"features", "entries", "weights"}
        Features held, weights that are not zero, or the largest absolute weight of each feature.
    top : int
        With ``"weights"``: the largest so many are named, the others drawn in grey.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
        Strengths fall from left to right: the path begins with no feature.

    Raises
    ------
    UsageError
        When matplotlib is missing, `path` is none, or `quantity` is unknown.

    Examples
    --------
    >>> import dboost
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
    >>> path = dboost.regularization_path(X, [0, 0, 1, 1], n_alphas=3, eps=0.1)
    >>> len(plot_path(path).lines)
    1
    """
    quantity = column_now(quantity)
    choose("quantity", quantity, QUANTITIES)
    models = getattr(path, "models", None)
    if not models:
        raise UsageError(f"path is {type_name(path)} without models", hint="expected a RegularizationPath")
    alphas = np.array([model.certificate.alpha for model in models])
    ax = open_axes(ax)
    if quantity == "weights":
        _draw_weights(ax, alphas, models, top)
        label_axes(ax, "", "Largest absolute weight of a feature")
    else:
        counts = [
            np.any(model.W != 0, axis=1).sum() if quantity == "features" else np.count_nonzero(model.W)
            for model in models
        ]
        draw_lines(ax, {"": (alphas, np.array(counts, dtype=np.float64))})
        label_axes(ax, "", quantity)
        ax.set_ylim(bottom=0)
    strength_axis(ax, alphas)
    return ax


def _draw_weights(ax: Any, alphas: Any, models: Any, top: int) -> None:
    sizes: dict[str, Any] = {}
    for place, model in enumerate(models):
        for name, row in zip(model.hypotheses.words(), np.abs(model.weights).max(axis=1, initial=0.0), strict=True):
            sizes.setdefault(name, np.zeros(len(models)))[place] = row
    ranked = sorted(sizes, key=lambda name: -float(sizes[name].max()))
    for name in ranked[top:]:
        ax.plot(alphas, sizes[name], color="0.8", linewidth=0.8, zorder=1)
    named = ranked[: min(top, len(COLOURS))]
    draw_lines(ax, {name: (alphas, sizes[name]) for name in named}, marks=False)


def plot_cv(fit: Any, *, quantity: str = "loss", ax: Any = None) -> Any:
    """Held-out loss, error or score by strength, with one standard error, and the strength that was chosen.

    Parameters
    ----------
    fit : estimator
        Fitted with cross-validation: it has ``cv_results_`` and ``alpha_``.
    quantity : {"loss", "error", "score"}
        ``"score"`` is that of a scorer that chose (``scoring="roc_auc"``).
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    UsageError
        When matplotlib is missing, the fit had no cross-validation, or no scorer was asked.

    Examples
    --------
    >>> import numpy as np
    >>> import dboost
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> model = dboost.BoostedClassifierCV(cv=3, n_alphas=3).fit(X, X[:, 0] > 0)
    >>> len(plot_cv(model).containers[0].lines[0].get_xdata())
    3
    """
    choose("quantity", quantity, ("loss", "error", "score"))
    if not hasattr(fit, "cv_results_"):
        raise UsageError(
            f"{type_name(fit)} has no cv_results_", hint="fit one that ends in CV, or use dboost.cross_validated"
        )
    records = records_of(fit.cv_results_, "fit")
    if hasattr(fit, "gammas_"):
        # the curve of the share that was chosen
        records = [record for record in records if record["gamma"] == fit.relaxed_["gamma"]]
    alphas = column_of(records, "alpha")
    what = "test_score" if quantity == "score" else quantity
    mean, error = column_of(records, f"mean_{what}"), column_of(records, f"se_{what}")
    ax = open_axes(ax)
    ax.errorbar(
        alphas, mean, yerr=error, color=COLOURS[0], marker="o", markersize=4, capsize=3, label="mean and standard error"
    )
    ax.axvline(float(fit.alpha_), color=COLOURS[1], linestyle="--", linewidth=1.4, label=f"chosen: {fit.alpha_:.3g}")
    label_axes(ax, "", "error" if quantity == "error" else f"Held-out {quantity} [mean]")
    strength_axis(ax, alphas, 1.1)
    add_legend(ax, 2)
    return ax


def plot_stability(selection: Any, *, top: int = 7, ax: Any = None) -> Any:
    """Share of the half samples that use each feature, over falling strengths, and the threshold of the selection.

    Parameters
    ----------
    selection : StabilitySelection
        Fitted.
    top : int
        The most stable selected features, so many, are named; other selected ones are thin and blue, the rest grey.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
        Strengths fall from left to right. Those that the selection does not use, so that no more false features are
        expected than was asked for, are shaded.

    Raises
    ------
    UsageError
        When matplotlib is missing, or `selection` is no fitted one.

    Examples
    --------
    >>> import dboost
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> selection = dboost.StabilitySelection(n_pairs=2, alphas=[0.2, 0.1]).fit(X, X[:, 0] > 0)
    >>> [line.get_label() for line in plot_stability(selection).get_lines()][-2:]
    ['x0', 'threshold 0.6']
    """
    if not hasattr(selection, "frequencies_"):
        raise UsageError(
            f"selection is {type_name(selection)} without frequencies_",
            hint="expected a fitted StabilitySelection",
        )
    alphas = np.asarray(selection.alphas_, dtype=np.float64)
    shares = np.asarray(selection.frequencies_, dtype=np.float64)
    stability, used = np.asarray(selection.stability_), int(selection.n_strengths_)
    names = dict(zip(np.asarray(selection.selected_).tolist(), selection.support_names_, strict=True))
    ranked = sorted(names, key=lambda j: (-float(stability[j]), -float(shares[:, j].sum())))
    named = ranked[: min(top, len(COLOURS))]
    ax = open_axes(ax)
    # A feature that no half uses would hide the axis, and one grey line cannot be told from many.
    for j in np.flatnonzero(shares.any(axis=0)).tolist():
        if j not in names:
            ax.plot(alphas, shares[:, j], color="0.8", linewidth=0.8, zorder=1)
        elif j not in named:
            ax.plot(alphas, shares[:, j], color=COLOURS[0], linewidth=0.8, alpha=0.5, zorder=1.5)
    draw_lines(ax, {names[j]: (alphas, shares[:, j]) for j in named}, marks=len(alphas) == 1)
    threshold = float(selection.threshold)
    ax.axhline(threshold, color="0.3", linestyle=":", linewidth=1.2, label=f"threshold {threshold:g}")
    label_axes(ax, "", "Half samples that use a feature [share]")
    strength_axis(ax, alphas)
    if used < len(alphas):
        edge = float(np.sqrt(alphas[used - 1] * alphas[used]))
        ax.axvspan(edge, ax.get_xlim()[1], color="0.94", zorder=0, label="strengths not used")
    ax.set_ylim(-0.02, 1.02)
    ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize="small")
    return ax


def plot_calibration(probability: Any, right: Any, *, bins: int = 10, ax: Any = None) -> Any:
    """The share of events among examples that were given about the same probability, with 95 % intervals (Wilson).

    Parameters
    ----------
    probability : array, shape (m,)
        What was predicted: of the second of two classes, or of the class that was named.
    right : array of bool, shape (m,)
        Whether it was so.
    bins : int
        Intervals of equal width between 0 and 1; those without examples are left out.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    UsageError
        When matplotlib is missing, shapes disagree, or a probability lies outside [0, 1].

    Examples
    --------
    >>> axes = plot_calibration([0.1, 0.1, 0.9, 0.9], [False, False, True, True], bins=2)
    >>> axes.lines[1].get_ydata().tolist()
    [0.0, 1.0]
    """
    p, hit = np.asarray(probability, dtype=np.float64), np.asarray(right, dtype=bool)
    if p.ndim != 1 or p.shape != hit.shape or not len(p):
        raise UsageError(f"probability of shape {p.shape} and right of shape {hit.shape}", hint="give one for each row")
    if not np.all((p >= 0.0) & (p <= 1.0)):
        raise UsageError("a probability lies outside [0, 1]", hint="give predict_proba, not decision_function")
    if bins < 1:
        raise UsageError(f"bins={bins}", hint="use at least 1")
    place = np.minimum((p * bins).astype(np.int64), bins - 1)
    rows = np.bincount(place, minlength=bins).astype(np.float64)
    seen = rows > 0
    rows = rows[seen]
    said = np.bincount(place, weights=p, minlength=bins)[seen] / rows
    share = np.bincount(place, weights=hit, minlength=bins)[seen] / rows
    # Wilson (1927): unlike the plain one, this interval has a width where every example of a bin was right.
    z = 1.959964
    middle = (share + z**2 / (2 * rows)) / (1 + z**2 / rows)
    half = z / (1 + z**2 / rows) * np.sqrt(share * (1 - share) / rows + z**2 / (4 * rows**2))
    low, high = np.maximum(share - (middle - half), 0.0), np.maximum(middle + half - share, 0.0)
    ax = open_axes(ax, width=4.8, height=4.4)
    ax.plot([0, 1], [0, 1], color="0.5", linestyle="--", linewidth=1.0, label="as often as said")
    ax.errorbar(said, share, yerr=[low, high], color=COLOURS[0], marker="o", markersize=4, capsize=3, label="observed")
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(-0.02, 1.02)
    ax.set_aspect("equal")
    ax.set_xlabel("Predicted probability")
    ax.set_ylabel("Share that was right")
    add_legend(ax, 2)
    return ax


# A matrix of more classes than this has no room for its numbers.
MOST_NUMBERS = 20


def plot_confusion(counts: Any, labels: Sequence[Any], *, ax: Any = None) -> Any:
    """A confusion matrix: right classes in rows, predicted ones in columns, shaded by the share of the row.

    Parameters
    ----------
    counts : array, shape (k, k)
        Examples, or their weight, as in ``dboost.metrics.Evaluation.confusion``.
    labels : sequence, shape (k,)
        The classes.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    UsageError
        When matplotlib is missing, or the shapes disagree.

    Examples
    --------
    >>> axes = plot_confusion([[8, 2], [1, 9]], ["no", "yes"])
    >>> [text.get_text() for text in axes.texts]
    ['8', '2', '1', '9']
    """
    found = np.asarray(counts, dtype=np.float64)
    k = len(labels)
    if found.shape != (k, k):
        raise UsageError(f"counts of shape {found.shape} for {k} labels", hint="expected one row and column for each")
    totals = found.sum(axis=1, keepdims=True)
    shares = np.divide(found, totals, out=np.zeros_like(found), where=totals > 0)
    ax = open_axes(ax, width=2.6 + 0.4 * k, height=2.0 + 0.4 * k)
    ax.grid(False)
    image = ax.pcolormesh(shares, cmap=matplotlib().get_cmap("Greys"), vmin=0.0, vmax=1.0, edgecolors="0.85")
    ax.invert_yaxis()
    ax.set_aspect("equal")
    words = [str(label) for label in labels]
    crowded = max(map(len, words), default=0) > 4
    ax.set_xticks(np.arange(k) + 0.5, words, fontsize="small", rotation=90 if crowded else 0)
    ax.set_yticks(np.arange(k) + 0.5, words, fontsize="small")
    ax.tick_params(length=0)
    ax.set_xlabel("Predicted class")
    ax.set_ylabel("Right class")
    if k <= MOST_NUMBERS:
        for (right, said), count in np.ndenumerate(found):
            if count:
                # White on dark and black on light, so that every number can be read.
                colour = "white" if shares[right, said] > 0.55 else "black"
                ax.text(
                    said + 0.5, right + 0.5, f"{count:.6g}", ha="center", va="center", color=colour, fontsize="small"
                )
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.8)
    bar.set_label("Share of the right class")
    bar.outline.set_visible(False)
    return ax


def plot_coverage(curves: Any, *, against: str = "row_sparsity", quantity: str = "coverage", ax: Any = None) -> Any:
    """What sparsity costs: coverage against the share of zero weights or zero rows (Duchi & Singer 2009, figure 6).

    Parameters
    ----------
    curves : mapping of names (penalties) to lists of records, or one list
        One record per model of a path, with ``coverage``, ``sparsity`` and ``row_sparsity``. Their order is free.
    against : {"sparsity", "row_sparsity"}
    quantity : str
        What is drawn upwards; lower is better for ``"coverage"`` and ``"error"``.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    UsageError
        When matplotlib is missing, or the records do not hold what is asked for.

    Examples
    --------
    >>> records = [{"coverage": 0.5, "sparsity": 0.9, "row_sparsity": 0.8}]
    >>> records += [{"coverage": 0.2, "sparsity": 0.5, "row_sparsity": 0.4}]
    >>> len(plot_coverage({"l1": records}).lines)
    1
    """
    choose("against", against, ("sparsity", "row_sparsity"))
    lines = {}
    for name, records in by_name(curves, "curves").items():
        x, y = column_of(records, against), column_of(records, quantity)
        order = np.lexsort((y, x))
        lines[name] = (x[order], y[order])
    ax = open_axes(ax)
    draw_lines(ax, lines)
    label_axes(ax, against, quantity)
    return ax


def plot_sparsity_map(model: Any, *, top: int = 40, ax: Any = None) -> Any:
    """Weights of the largest features (rows) for each class or task (columns); a zero is a blank.

    Parameters
    ----------
    model : Model, or a fitted estimator
    top : int
        At most so many features, the largest by absolute weight first.
    ax : matplotlib Axes, optional
        The colour bar takes its room beside them.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    UsageError
        When matplotlib is missing, there is no model, or it holds no feature.

    Examples
    --------
    >>> import dboost
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
    >>> axes = plot_sparsity_map(dboost.BoostedClassifier(alpha=0.3).fit(X, [0, 0, 1, 1]))
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['x0']
    """
    found = getattr(model, "model_", model)
    if not hasattr(found, "W") or not hasattr(found, "hypotheses"):
        raise UsageError(f"{type_name(model)} has no model", hint="give a dboost Model, or an estimator after fit")
    by_name = found.weights
    if not np.any(by_name != 0):
        raise UsageError("the model holds no feature, so its map is blank", hint="fit with a smaller alpha")
    sizes = np.abs(by_name).max(axis=1)
    order = np.argsort(-sizes, kind="stable")[:top]
    order = order[sizes[order] > 0]
    weights = np.ma.masked_equal(by_name[order], 0.0)
    words = found.hypotheses.words()
    labels = found.output_names
    height = 1.4 + 0.2 * len(order)
    ax = open_axes(ax, width=3.2 + 0.35 * len(labels) + 0.06 * max(len(words[j]) for j in order), height=height)
    ax.grid(False)
    limit = float(sizes.max())
    colours = _colours()
    image = ax.pcolormesh(weights, cmap=colours, vmin=-limit, vmax=limit, edgecolors="0.85", linewidth=0.5)
    ax.invert_yaxis()
    ax.set_yticks(np.arange(len(order)) + 0.5, [words[j] for j in order], fontsize="small")
    crowded = len(labels) > 10 or max(map(len, labels)) > 4
    ax.set_xticks(np.arange(len(labels)) + 0.5, labels, fontsize="small", rotation=90 if crowded else 0)
    ax.tick_params(length=0)
    ax.set_xlabel({"multitask": "Task", "multitarget": "Target", "regression": ""}.get(found.task, "Class"))
    more = int(np.count_nonzero(sizes)) - len(order)
    ax.set_ylabel(f"Feature, the largest {len(order)} of {len(order) + more}" if more else "Feature")
    bar = ax.figure.colorbar(image, ax=ax, shrink=min(1.0, 3.0 / height), aspect=15)
    bar.set_label("Weight")
    bar.outline.set_visible(False)
    return ax


def _colours() -> Any:
    """Orange, against a class, to blue, for it, which readers with any colour vision tell apart; no weight is white."""
    matplotlib()
    from matplotlib.colors import LinearSegmentedColormap, ListedColormap

    whole = LinearSegmentedColormap.from_list("against to for", [COLOURS[1], "white", COLOURS[0]])
    places = np.concatenate([np.linspace(0.0, 0.4, 128), np.linspace(0.6, 1.0, 128)])
    return ListedColormap(whole(places)).with_extremes(bad="white")
