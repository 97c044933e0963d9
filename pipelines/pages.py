"""What a person reads: the figures of an evaluation, the sparsity map, and how a strength was chosen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Group
from rich.table import Table
from rich.text import Text

from dboost import metrics
from dboost.model.fitted import Model
from dboost.partition import NUMBERS

from .fitting_table import LEAST_WORDS, Column, FittingTable, grid
from .regression_figures import RegressionFigures

# One character per class fits beside the words up to this many classes.
WIDEST_MAP = 40
# A confusion matrix is printed whole up to this many classes, as the most frequent mistakes beyond.
LARGEST_MATRIX = 12
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
# For the class (at least half of the row's largest weight, less), against it (the same), not used.
BLOCKS = ("█", "▄", "=", "-", "·")
PLAIN_BLOCKS = ("#", "+", "=", "-", ".")


def blocks_for(encoding: str | None) -> tuple[str, ...]:
    """Characters of the map that an output stream can encode."""
    try:
        "".join(BLOCKS).encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return PLAIN_BLOCKS
    return BLOCKS


def labels_of(model: Model) -> list[str]:
    """Classes (or tasks) as text, one for each column of ``both_sides``."""
    return ["target"] if model.task == "regression" else [str(label) for label in model.classes.tolist()]


def percent(share: float) -> str:
    """A share with as many digits as it needs to differ from 0 and 1."""
    digits = 1 if 0.01 <= share <= 0.99 or share in (0.0, 1.0) else 3
    return f"{100 * share:.{digits}f} %"


def facts(rows: Sequence[tuple[str, str]]) -> Table:
    """Two columns: name and value."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def model_facts(model: Model) -> list[tuple[str, str]]:
    """What a model is and how good its certificate is."""
    found = model.certificate
    share = f" = {found.alpha / found.alpha_max:.3g} of alpha_max" if found.alpha_max > 0 else ""
    made = f"{model.penalty} penalty, {model.loss} loss, alpha {found.alpha:.4g}{share}"
    ridge = (model.manifest.get("relaxed") or {}).get("ridge")
    if ridge:
        chosen = f"{model.penalty} at alpha {found.alpha:.4g}" if found.alpha > 0.0 else "their rank in a ridge of all"
        made = f"{model.loss} loss, features by {chosen}, fitted again with a ridge of {ridge:.3g}"
    kinds = {"multitask": "tasks", "regression": "target", "multitarget": "targets"}
    return [
        ("model", made),
        ("outputs", f"{len(labels_of(model))} {kinds.get(model.task, 'classes')}"),
        *use_facts(model),
        (
            "certificate",
            f"objective {found.objective:.6f}, within {found.gap:.1e} of the optimum (relative); {found.stop_reason}",
        ),
        ("work", f"{found.n_iter} rounds, {found.passes} passes over the data"),
    ]


def use_facts(model: Model) -> list[tuple[str, str]]:
    """How much of what was offered a model uses."""
    weights, offered, zeros = int(np.count_nonzero(model.W)), model.n_candidates, zero_shares(model)
    if zeros is None:
        used = [("hypotheses used", f"{model.n_hypotheses:,} of infinitely many"), ("weights used", f"{weights:,}")]
    else:
        rows, entries = zeros
        what = "features used" if model.plain else "hypotheses used"
        used = [
            (what, f"{model.n_hypotheses:,} of {offered:,.0f}; zero rows {percent(rows)}"),
            ("weights used", f"{weights:,} of {offered * model.n_outputs:,.0f}; zero entries {percent(entries)}"),
        ]
    if not model.plain:
        used.append(("features read", f"{len(model.inputs):,} of {model.n_features:,}"))
    return used


def zero_shares(model: Model) -> tuple[float, float] | None:
    """Shares of zero rows and of zero entries among all hypotheses offered; None where these are countless."""
    if not np.isfinite(model.n_candidates):
        return None
    offered = int(model.n_candidates)
    return metrics.row_sparsity(model.W, offered), metrics.sparsity(model.W, offered)


def use_values(model: Model) -> dict[str, Any]:
    """The same as plain values."""
    rows, entries = zero_shares(model) or (None, None)
    return {
        "zero_entries": entries,
        "zero_rows": rows,
        "features_used": len(model.inputs),
        "n_features": model.n_features,
        "hypotheses_used": model.n_hypotheses,
        "n_hypotheses": model.n_candidates,
    }


def strength(W: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much a feature matters: its largest absolute weight."""
    return np.abs(W).max(axis=1, initial=0.0)


def both_sides(model: Model) -> NDArray[np.float64]:
    """Weights per class, shape (a, classes): two classes share one column of W, with opposite signs."""
    return np.hstack([-model.weights, model.weights]) if model.task == "binary" else model.weights


def map_row(weights: NDArray[np.float64], blocks: tuple[str, ...]) -> str:
    """One feature's weights as one character per class."""
    largest = float(np.abs(weights).max(initial=0.0)) or 1.0
    strong, weak, against, slightly, unused = blocks
    return "".join(
        unused
        if weight == 0
        else (strong if weight >= 0.5 * largest else weak)
        if weight > 0
        else (against if weight <= -0.5 * largest else slightly)
        for weight in weights.tolist()
    )


def named(labels: Sequence[str], weights: NDArray[np.float64], sign: int, most: int) -> str:
    """The classes a feature speaks for (or against), the strongest first, the rest counted."""
    order = [r for r in np.argsort(-sign * weights, kind="stable").tolist() if sign * weights[r] > 0]
    shown = ", ".join(labels[r] for r in order[:most])
    return shown + (f" +{len(order) - most}" if len(order) > most else "")


def sparsity_map(model: Model, top: int, blocks: tuple[str, ...] = BLOCKS) -> list[Any]:
    """The `top` features a model uses most, in words, and which classes share each; the counts are of all."""
    W, labels, words = both_sides(model), labels_of(model), model.hypotheses.words()
    order = np.argsort(-strength(W), kind="stable")[:top]
    if not len(order):
        said = "the same numbers" if model.task in NUMBERS else "the most frequent class"
        return [Text(f"No feature is used: the model predicts {said}.")]
    if model.task == "regression":
        one, what = ("feature", "features") if model.plain else ("hypothesis", "hypotheses")
        table = grid((one, "weight"), [(words[j], f"{model.weights[j, 0]:+.4g}") for j in order.tolist()])
        return [titled(f"Weights, the strongest {len(order)} of {model.n_hypotheses:,} {what}", table)]
    drawn = len(labels) <= WIDEST_MAP
    what = "Features" if model.plain else "Hypotheses"
    title = f"{what}, the strongest {len(order)} of {model.n_hypotheses:,}, and who shares them"
    columns = [
        Column("feature", least=LEAST_WORDS, widest=24),
        Column("weight", right=True),
        Column("shared", right=True),
        *([Column(LETTERS[: len(labels)])] if drawn else []),
        Column("for", least=LEAST_WORDS, drop=1),
        Column("against", least=LEAST_WORDS, drop=2),
    ]
    rows = []
    for j in order.tolist():
        row = [words[j], f"{strength(W[j : j + 1])[0]:.3g}", f"{np.count_nonzero(W[j])}"]
        row += [map_row(W[j], blocks)] if drawn else []
        rows.append([*row, named(labels, W[j], +1, 2), named(labels, W[j], -1, 1)])
    parts: list[Any] = [titled(title, FittingTable(columns, rows))]
    if drawn:
        strong, weak, against, slightly, unused = blocks
        key = "  ".join(f"{letter}={label}" for letter, label in zip(LETTERS, labels))
        parts.append(Text(f"{strong}{weak} for (strong, weak)  {against}{slightly} against  {unused} not used"))
        parts.append(Text(key))
    return [*parts, Text(""), sharing(model), Text(""), class_table(model, top)]


def titled(title: str, table: FittingTable) -> Group:
    """A table below its title (rich would fold a title to the width of its table)."""
    return Group(Text(title, style="bold"), table)


def sharing(model: Model) -> Group:
    """How many features are shared by how many classes."""
    counts = np.count_nonzero(both_sides(model), axis=1)
    k = len(model.classes)
    edges = list(range(1, k + 1)) if k <= 12 else sorted({1, 2, 3, 5, *np.linspace(8, k, 7).astype(int).tolist()})
    low, found = 1, []
    for high in edges:
        number = int(np.count_nonzero((counts >= low) & (counts <= high)))
        found.append((f"{low}" if low == high else f"{low}-{high}", number))
        low = high + 1
    most = max((number for _, number in found), default=0) or 1
    rows = [(classes, f"{number:,}", "#" * -(-50 * number // most)) for classes, number in found if number]
    return titled("How many classes share a feature", grid(("classes", "features", ""), rows, left={2}))


def class_table(model: Model, top: int) -> Group:
    """For every class: how many features it uses, and the ones that speak for it most."""
    W, labels, words = both_sides(model), labels_of(model), model.hypotheses.words()
    used = np.count_nonzero(W, axis=0)
    shown = range(len(labels)) if len(labels) <= WIDEST_MAP else np.argsort(-used, kind="stable")[:top].tolist()
    columns = [Column("class", least=2 * LEAST_WORDS, widest=24), Column("features", right=True)]
    rows = []
    for r in shown:
        best = [j for j in np.argsort(-W[:, r], kind="stable")[:8].tolist() if W[j, r] > 0]
        rows.append((labels[r], f"{used[r]:,}", ", ".join(words[j] for j in best)))
    table = FittingTable([*columns, Column("the strongest", least=LEAST_WORDS)], rows)
    return titled("Classes, and the features that speak for each most", table)


def map_values(model: Model) -> dict[str, Any]:
    """The sparsity map as plain values: all features, the strongest first."""
    W, words = both_sides(model), model.hypotheses.words()
    order = np.argsort(-strength(W), kind="stable").tolist()
    labels = labels_of(model) if model.task == "regression" else model.classes.tolist()
    return {
        "penalty": model.penalty,
        "loss": model.loss,
        "classes": model.classes.tolist(),
        **use_values(model),
        "certificate": dict(vars(model.certificate)),
        "features": [
            {
                "name": words[j],
                **({"column": int(model.active[j])} if model.plain else {}),
                "weights": {str(labels[r]): W[j, r] for r in np.flatnonzero(W[j]).tolist()},
            }
            for j in order
        ],
    }


def evaluation_rows(found: metrics.Evaluation, model: Model) -> list[tuple[str, str]]:
    """The figures of an evaluation in words."""
    rows = [
        ("examples", f"{found.weight:,.10g}" + (" labels" if model.task == "multitask" else "")),
        ("error", f"{percent(found.error)} of labels are wrong"),
        ("log-loss", f"{found.log_loss:.4f} nats"),
    ]
    if found.coverage is not None:
        rows.append(("coverage", f"{found.coverage:.4f} classes on average rank above the right one (0 = correct)"))
    if model.tags is not None and found.micro_f1 is not None and found.precision_at is not None:
        best = ", ".join(f"{found.precision_at[k - 1]:.3f} at {k}" for k in (1, 3, 5))
        rows.append(("F1", f"{found.micro_f1:.4f} micro, {found.macro_f1:.4f} macro"))
        rows.append(("precision", f"{best} of the most probable tags"))
        first = 1.0 + (found.depth or 0.0)
        rows.append(("coverage", f"the right tags are among the first {first:.2f} of an example, on average"))
    return rows


def regression_rows(found: RegressionFigures, labels: Sequence[str] = ()) -> list[tuple[str, str]]:
    """The figures of a regression in words."""
    return [
        ("examples", f"{found.weight:,.10g}" + (" targets" if len(labels) > 1 else "")),
        ("RMSE", f"{found.rmse:.6g}"),
        ("MAE", f"{found.mae:.6g}"),
        ("largest error", f"{found.largest:.6g}"),
        ("R2", f"{found.r2:.4f}"),
        *((f"R2 of {label}", f"{r2:.4f}") for label, r2 in zip(labels, found.target_r2) if len(labels) > 1),
    ]


def confusion_table(found: metrics.Evaluation, model: Model, top: int) -> Group | None:
    """Right classes by predicted ones; the most frequent mistakes where there are many classes."""
    if found.confusion is None:
        return None
    labels, counts = labels_of(model), found.confusion
    if len(labels) <= LARGEST_MATRIX:
        matrix = [
            (f"{letter} {label}", *(f"{count:.6g}" if count else "." for count in row))
            for letter, label, row in zip(LETTERS, labels, counts.tolist())
        ]
        table = grid(("", *LETTERS[: len(labels)]), matrix, widest=40)
        return titled("Confusion: the right class in rows, the predicted one in columns", table)
    found_ones = mistakes(counts, labels, top)
    rows = [(one["right"], one["said"], f"{one['count']:.6g}", percent(one["share"])) for one in found_ones]
    return titled("The most frequent mistakes", grid(("right", "predicted", "examples", "of the class"), rows, {0, 1}))


def mistakes(counts: NDArray[np.float64], labels: Sequence[str], most: int) -> list[dict[str, Any]]:
    """The most frequent mistakes: the right class, the one that was said, how often, and the share of the right one."""
    wrong = counts * (1 - np.eye(len(labels)))
    found = []
    for flat in np.argsort(-wrong, axis=None, kind="stable")[:most].tolist():
        right, said = divmod(flat, len(labels))
        if (count := float(wrong[right, said])) > 0:
            share = count / float(counts[right].sum())
            found.append({"right": labels[right], "said": labels[said], "count": count, "share": share})
    return found


def task_table(found: metrics.Evaluation, model: Model, top: int) -> Group | None:
    """Error and log-loss of each task, the worst first."""
    if found.task_errors is None or found.task_log_losses is None:
        return None
    order = np.argsort(-np.nan_to_num(found.task_errors, nan=-1.0), kind="stable")[:top].tolist()
    tags = model.tags is not None and found.task_f1 is not None
    judged = (found.task_f1, found.task_precision, found.task_recall) if tags else ()
    headings = ("tag" if tags else "task", "error", "log-loss", *(("F1", "precision", "recall") if tags else ()))
    rows = []
    for r in order:
        error, loss = float(found.task_errors[r]), float(found.task_log_losses[r])
        figures = [percent(error), f"{loss:.4f}", *(f"{float(one[r]):.3f}" for one in judged if one is not None)]
        rows.append((labels_of(model)[r], *(figures if error == error else ["no label", *[""] * (len(figures) - 1)])))
    return titled(f"Tasks, the {len(order)} with the largest error", grid(headings, rows))


def per_class(found: metrics.Evaluation) -> dict[str, Any]:
    """Of each class the share of the rows that were given it that has it (precision), and of those that have it the
    share that was given it (recall); NaN where there are none."""
    if found.confusion is None:
        return {}
    right, said, has = np.diag(found.confusion), found.confusion.sum(axis=0), found.confusion.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return {"precision": right / said, "recall": right / has}


def recall_table(found: metrics.Evaluation, model: Model, top: int) -> Group | None:
    """Precision and recall of each class, the lowest recall first where they are many."""
    if found.confusion is None:
        return None
    labels, figures, has = labels_of(model), per_class(found), found.confusion.sum(axis=1)
    order = list(range(len(labels)))
    if len(labels) > top:
        order = np.argsort(np.nan_to_num(figures["recall"], nan=2.0), kind="stable")[:top].tolist()
    rows = []
    for r in order:
        shares = [float(figures[name][r]) for name in ("precision", "recall")]
        rows.append((labels[r], f"{has[r]:.6g}", *("none" if math.isnan(one) else percent(one) for one in shares)))
    table = grid(("class", "examples", "precision", "recall"), rows, widest=40)
    more = f", the {len(order)} of {len(labels)} with the lowest recall" if len(order) < len(labels) else ""
    said = "precision: of the rows labelled so, the right ones; recall: of the rows of the class, those found"
    return titled(f"By class{more} ({said})", table)


def figure_values(found: metrics.Evaluation | RegressionFigures, model: Model) -> dict[str, Any]:
    """The figures of an evaluation as plain values."""
    if isinstance(found, RegressionFigures):
        return {"examples": found.weight, "rmse": found.rmse, "mae": found.mae, "r2": found.r2} | {
            "largest_error": found.largest,
            **({"targets": dict(zip(labels_of(model), found.target_r2))} if model.task == "multitarget" else {}),
            **use_values(model),
        }
    figures = {name: value for name, value in vars(found).items() if name != "coverage_counts"}
    return {
        "examples": figures.pop("weight"),
        **figures,
        **use_values(model),
        "classes": model.classes.tolist(),
        **per_class(found),
    }


# Rows of the table of strengths; between its ends, the best and the chosen one, strengths are left out evenly.
MOST_ROWS = 12


def strengths_table(estimator: Any) -> FittingTable:
    """Strengths with their loss, error and score on held-out rows, the chosen one marked."""
    table = list(estimator.cv_results_)
    marks = ["" for _ in table]
    least = _sought(estimator)
    best, chosen = place(estimator, estimator.alpha_best_), place(estimator, estimator.alpha_)
    marks[best] = least
    marks[chosen] = "chosen" if chosen != best else f"{least}, chosen"
    rows = [
        (
            f"{row['alpha']:.4g}",
            f"{row['mean_loss']:.4f}",
            f"{row['se_loss']:.4f}",
            _share(row["mean_error"]),
            _share(row["se_error"]),
            *(f"{row[name]:.4f}" for name in ("mean_test_score", "se_test_score") if name in row),
            f"{row['features']:,}",
            mark,
        )
        for row, mark in zip(table, marks, strict=True)
    ]
    shown = spread(len(rows), MOST_ROWS, {best, chosen})
    score = ("score", "+-") if _scored(estimator) else ()
    headings = ("alpha", "loss", "+-", "error", "+-", *score, "features", "")
    return grid(headings, [rows[t] for t in shown], left={len(headings) - 1})


def _scored(estimator: Any) -> bool:
    """Whether a scorer chose, of which more is better."""
    return hasattr(estimator, "fold_scores_")


def _sought(estimator: Any) -> str:
    return "greatest score" if _scored(estimator) else "least loss"


def _share(value: float) -> str:
    """A share of wrong labels; a regression has none."""
    return "" if math.isnan(value) else f"{100 * value:.1f} %"


def path_table(path: Any) -> FittingTable:
    """The models of a path."""
    rows = [
        (f"{r['alpha']:.4g}", f"{r['features']:,}", f"{r['entries']:,}", f"{r['objective']:.6f}", f"{r['gap']:.1e}")
        for r in path.table
    ]
    shown = spread(len(rows), MOST_ROWS, set())
    return grid(("alpha", "features", "weights", "objective", "certified gap"), [rows[t] for t in shown])


def place(estimator: Any, alpha: float) -> int:
    """Place of a strength in the grid."""
    return [float(one) for one in estimator.alphas_].index(float(alpha))


def spread(count: int, most: int, kept: set[int]) -> list[int]:
    """At most about `most` of `count` places, the ends and `kept` among them, the others evenly."""
    if count <= most:
        return list(range(count))
    even = {round(i * (count - 1) / (most - 1)) for i in range(most)}
    return sorted(even | kept)


def strength_facts(estimator: Any) -> list[tuple[str, str]]:
    """How the strength was chosen, in words."""
    alphas = estimator.alphas_
    folds = len(estimator.fold_weights_)
    if len(alphas) == 1:
        return [("judged", f"by {folds} folds")]
    said = f"{estimator.alpha_:.4g} by {folds} folds, of {len(alphas)} from {alphas[0]:.4g} to {alphas[-1]:.4g}"
    return [("alpha", said), *(("grid", words) for words in end_of_grid(estimator))]


def end_of_grid(estimator: Any) -> list[str]:
    """What to do when the best strength is at an end of the grid; nothing where it is within."""
    least = _sought(estimator)
    best, last = place(estimator, estimator.alpha_best_), len(estimator.alphas_) - 1
    if last == 0:
        return []
    if best == last:
        share = float(estimator.alphas_[-1] / estimator.alphas_[0]) / 10
        return [f"the {least} is at the end of the grid: try weaker ones with --eps {share:.2g}"]
    if best == 0:
        return [f"the {least} is at the start of the grid, where no feature is used: none of them helps"]
    return []


def choice_facts(estimator: Any) -> list[tuple[str, str]]:
    """How features were chosen where nobody gave a strength, in words; nothing for others."""
    frontier = list(getattr(estimator, "frontier_", ()))
    taken = [row for row in frontier if row["chosen"]]
    if not taken:
        return []
    best = max(frontier, key=lambda row: row["score"])
    said = [
        f"{row['score']:.3g} +- {row['se_score']:.2g} with {row['features']:,.0f} features" for row in (taken[0], best)
    ]
    held_out = f"held-out score {said[0]}" + (f", best {said[1]}" if best is not taken[0] else ", the best")
    return [("chosen", f"{held_out}; --prefer few, --prefer accurate or --max-features take another")]
