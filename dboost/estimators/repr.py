"""What a person sees of a fitted model: the certificate, the features used, and which classes share each.

Covers: the text under the repr, the HTML for notebooks, and the sparsity map both show.
Does not cover: the history (``history``) and plots.
"""

from __future__ import annotations

import html
import math
from dataclasses import dataclass

import numpy as np

from dboost.metrics import row_sparsity, sparsity
from dboost.model.fitted import Model

_ROWS = 10
_HTML_ROWS = 25
_HTML_CLASSES = 40
_CLASSES = 4


@dataclass(frozen=True)
class FeatureUse:
    """One line of the sparsity map.

    Parameters
    ----------
    name : str
        The feature, in words.
    size : float
        Largest absolute weight.
    shared_by : int
        Number of classes with a weight that is not zero.
    weights : list of (label, weight)
        These classes, largest absolute weight first.
    """

    name: str
    size: float
    shared_by: int
    weights: list[tuple[str, float]]


def sparsity_map(model: Model, limit: int | None = None) -> list[FeatureUse]:
    """The features a model uses, largest first, each with the classes that share it.

    Parameters
    ----------
    model : Model
    limit : int, optional
        At most so many features.
    """
    labels = output_labels(model)
    W = model.weights
    sizes = np.abs(W).max(axis=1, initial=0.0)
    order = np.argsort(-sizes, kind="stable")[:limit]
    names = model.hypotheses.words()
    uses = []
    for j in order.tolist():
        row = W[j]
        ranked = [r for r in np.argsort(-np.abs(row), kind="stable").tolist() if row[r] != 0.0]
        weights = [(labels[r], float(row[r])) for r in ranked]
        uses.append(FeatureUse(names[j], float(sizes[j]), len(ranked), weights))
    return uses


def output_labels(model: Model) -> list[str]:
    """A word for each column of W; for two classes the column speaks for the second."""
    if model.task == "regression":
        return ["target"]
    labels = [str(label) for label in model.classes.tolist()]
    return labels[1:] if model.task == "binary" else labels


def summary_lines(model: Model, tol: float | None = None) -> list[str]:
    """What is used, how good the optimum is, and what it took."""
    cert = model.certificate
    penalty = f"penalty {model.penalty}"
    if model.penalty != "none":
        largest = f" (alpha_max {cert.alpha_max:.4g})" if math.isfinite(cert.alpha_max) else ""
        penalty += f", alpha {cert.alpha:.4g}{largest}"
    gap = f"certified gap {cert.gap:.2g}" if math.isfinite(cert.gap) else "no certificate"
    against = "" if tol is None else f" (tol {tol:.2g})"
    last = model.history[-1] if model.history else {}
    if "margin_gap" in last:
        # The gap is that of a problem whose budget grows from round to round: it says nothing of the way to the best
        # margin, which the fit is after and `tol` speaks of.
        quality = [
            f"objective {cert.objective:.6g}, {gap} among weights of at most {last['budget']:.4g} in sum",
            f"least margin {last['margin']:.4g}, certified to be within {last['margin_gap']:.2g} of the best{against}",
        ]
    else:
        quality = [f"{penalty}; objective {cert.objective:.6g}, {gap}{against if math.isfinite(cert.gap) else ''}"]
    return [
        f"{_outputs(model)}; {_held(model)}",
        *quality,
        f"stopped by {cert.stop_reason} after {_many(cert.n_iter, 'round')} and {_many(cert.passes, 'pass', 'passes')} "
        "over the data",
    ]


def _many(count: int, one: str, more: str | None = None) -> str:
    """A number of things, in words."""
    return f"{count} {one if count == 1 else more or one + 's'}"


def _outputs(model: Model) -> str:
    if model.task == "regression":
        return "one target"
    count = len(model.classes)
    return _many(count, "task") if model.task == "multitask" else _many(count, "class", "classes")


def _held(model: Model) -> str:
    """How many features or hypotheses are in use, of how many, and the share of zeros where there is one."""
    if model.plain:
        held = f"{model.n_hypotheses} of {model.n_features} features used"
    else:
        read = f"which read {len(model.inputs)} of {model.n_features} features"
        many = f"{model.n_candidates:.0f}" if math.isfinite(model.n_candidates) else "infinitely many"
        held = f"{model.n_hypotheses} of {many} hypotheses held, {read}"
        if not math.isfinite(model.n_candidates):
            return held
    offered = int(model.n_candidates)
    if model.n_outputs == 1:
        return f"{held} ({row_sparsity(model.W, offered):.1%} are zero)"
    entries, every = int(np.count_nonzero(model.W)), offered * model.n_outputs
    return (
        f"{held} ({row_sparsity(model.W, offered):.1%} of rows and {sparsity(model.W, offered):.1%} of entries are "
        f"zero, {entries} of {every} are not)"
    )


def _weight_of(model: Model) -> str:
    """The heading of the weights where a feature has one: whom it speaks for."""
    return "weight" if model.task == "regression" else f"weight for {output_labels(model)[0]}"


def text_map(model: Model, tol: float | None = None, rows: int = _ROWS) -> str:
    """Summary and sparsity map as text."""
    lines = summary_lines(model, tol)
    uses = sparsity_map(model, rows)
    if uses:
        k = model.n_outputs
        width = min(40, max(len("feature"), *(len(use.name) for use in uses)))
        shares = k > 1
        lines.append(f"{'feature':<{width}}  " + (f"{'shared by':<10}  weights" if shares else _weight_of(model)))
        for use in uses:
            if not shares:
                lines.append(f"{_cut(use.name, width):<{width}}  {use.weights[0][1]:+.4g}")
                continue
            shown = ", ".join(f"{label} {weight:+.3g}" for label, weight in use.weights[:_CLASSES])
            more = f", {use.shared_by - _CLASSES} more" if use.shared_by > _CLASSES else ""
            share = f"{use.shared_by} of {k}"
            lines.append(f"{_cut(use.name, width):<{width}}  {share:<10}  {shown}{more}")
    if model.n_hypotheses > len(uses):
        lines.append(f"... {model.n_hypotheses - len(uses)} more features")
    return "\n".join("  " + line for line in lines)


def _cut(name: str, width: int) -> str:
    return name if len(name) <= width else name[: width - 3] + "..."


def html_map(title: str, model: Model, tol: float | None = None) -> str:
    """Summary and sparsity map as a self-contained piece of HTML; every name is escaped."""
    uses = sparsity_map(model, _HTML_ROWS)
    labels = output_labels(model)
    shown = labels[:_HTML_CLASSES]
    scale = max((use.size for use in uses), default=1.0) or 1.0
    shares = model.n_outputs > 1
    heads = shown if shares else [_weight_of(model)]
    head = "".join(f"<th>{html.escape(label)}</th>" for label in heads)
    head = f"<th>feature</th>{'<th>shared by</th>' if shares else ''}{head}"
    body = []
    for use in uses:
        weight = dict(use.weights)
        cells = "".join(_cell(weight.get(label, 0.0), scale) for label in shown)
        name = html.escape(use.name)
        share = f"<td>{use.shared_by} of {len(labels)}</td>" if shares else ""
        body.append(f"<tr><th style='text-align:left'>{name}</th>{share}{cells}</tr>")
    notes = []
    if model.n_hypotheses > len(uses):
        notes.append(f"{model.n_hypotheses - len(uses)} more features")
    if len(labels) > len(shown):
        notes.append(f"{len(labels) - len(shown)} more classes")
    lines = "".join(f"<div>{html.escape(line)}</div>" for line in summary_lines(model, tol))
    table = f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody>"
    more = f"<div>and {', '.join(notes)}</div>" if notes else ""
    return f"<div class='dboost'><pre>{html.escape(title)}</pre>{lines}<table>{table}</table>{more}</div>"


def _cell(weight: float, scale: float) -> str:
    if weight == 0.0:
        return "<td></td>"
    colour = "200,80,40" if weight > 0 else "40,90,200"
    strength = 0.15 + 0.85 * min(1.0, abs(weight) / scale)
    return f"<td style='background:rgba({colour},{strength:.2f})' title='{weight:+.4g}'>{weight:+.2g}</td>"


def html_text(text: str) -> str:
    """Plain text as HTML."""
    return f"<pre>{html.escape(text)}</pre>"
