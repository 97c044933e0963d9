"""What a person sees of an estimator: its repr, the certificate, the features used, and which classes share each.

Covers: the text under the repr, the HTML under scikit-learn's diagram and table in notebooks, and the sparsity map both
show. Does not cover: the history (``rounds``), plots, or what scikit-learn shows of an estimator inside a pipeline: a
path or an address with a secret among its parameters is refused by ``fit``.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.utils import estimator_html_repr

from dboost import notebook_html as page
from dboost.metrics import row_sparsity, sparsity
from dboost.model.fitted import Model
from dboost.redact import redact_urls

_ROWS = 10
_HTML_ROWS = 25
_HTML_CLASSES = 40
_CLASSES = 4


@dataclass(frozen=True)
class FeatureUse:
    """One line of the sparsity map."""

    # The feature, in words.
    name: str
    # Largest absolute weight.
    size: float
    # Number of classes with a weight that is not zero.
    shared_by: int
    # These classes, largest absolute weight first.
    weights: list[tuple[str, float]]


def sparsity_map(model: Model, limit: int | None = None) -> list[FeatureUse]:
    """The features a model uses, largest first and at most `limit`, each with the classes that share it."""
    labels = model.output_names
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


def summary_lines(model: Model, tol: float | None = None) -> list[str]:
    """What is used, how good the optimum is, and what it took."""
    cert = model.certificate
    penalty = f"penalty {model.penalty}"
    if math.isfinite(cert.alpha) and cert.alpha > 0.0:
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
    words = {"multitask": ("task", "tasks"), "multitarget": ("target", "targets")}
    return _many(count, *words.get(model.task, ("class", "classes")))


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
    return "weight" if model.task == "regression" else f"weight for {model.output_names[0]}"


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


def html_map(model: Model, tol: float | None = None) -> str:
    """Summary and sparsity map as a self-contained piece of HTML."""
    uses = sparsity_map(model, _HTML_ROWS)
    labels = model.output_names
    shares = model.n_outputs > 1
    table = _uses_table(uses, labels if shares else [_weight_of(model)], labels, model.n_hypotheses)
    return page.block(page.lines(summary_lines(model, tol)), table)


def html_maps(models: Sequence[Model], labels: Sequence[str]) -> str:
    """As `html_map`, of one model for each label that tells it from the others."""
    found: dict[str, dict[str, float]] = {}
    for label, model in zip(labels, models, strict=True):
        for name, weight in zip(model.hypotheses.words(), model.weights[:, 0].tolist(), strict=True):
            if weight != 0.0:
                found.setdefault(name, {})[label] = weight
    ranked = {name: sorted(weights.items(), key=lambda one: -abs(one[1])) for name, weights in found.items()}
    uses = [FeatureUse(name, abs(weights[0][1]), len(weights), weights) for name, weights in ranked.items()]
    uses.sort(key=lambda use: -use.size)
    held = f"{len(uses)} of {models[0].n_features} features used" if models[0].plain else f"{len(uses)} hypotheses held"
    head = f"{_many(len(models), 'classifier')} of two classes; {held}"
    heads = labels if len(labels) > 1 else [f"weight for {labels[0]}"]
    return page.block(page.lines([head]), _uses_table(uses[:_HTML_ROWS], heads, labels, len(uses)))


def _uses_table(uses: Sequence[FeatureUse], heads: Sequence[str], labels: Sequence[str], held: int) -> str:
    """The first of the `held` features in use as a table of HTML, whose columns of weights have the headings."""
    if not uses:
        return ""
    places = {label: place for place, label in enumerate(labels)}
    wide = min(len(labels), _HTML_CLASSES)
    shares = len(labels) > 1
    scale = max(use.size for use in uses) or 1.0
    rows = []
    for use in uses:
        weights = [0.0] * len(labels)
        for label, weight in use.weights:
            weights[places[label]] = weight
        share = [page.bar(use.shared_by / len(labels), f"{use.shared_by} of {len(labels)}")] if shares else []
        rows.append([use.name, *share, *(page.shaded(weight, scale) for weight in weights[:wide])])
    left = [_many(held - len(uses), "more feature")] if held > len(uses) else []
    left += [_many(len(labels) - wide, "more class", "more classes")] if len(labels) > wide else []
    more = page.lines([f"and {', '.join(left)}"]) if left else ""
    return page.table(["feature", *(["shared by"] if shares else []), *heads[:wide]], rows) + more


# Entries of a `coef_` above which a notebook does not build it only to show a corner.
LARGE = 1_000_000


class ShownMixin:
    """What a person sees of an estimator; to stand before ``BaseEstimator``."""

    def _map_text(self) -> str:
        """What stands below the parameters in a terminal; nothing before a fit."""
        return ""

    def _map_html(self) -> str:
        """What stands below the parameters in a notebook; nothing before a fit."""
        return ""

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        # A path or an address among the parameters may hold a password.
        head = redact_urls(super().__repr__(N_CHAR_MAX))  # type: ignore[call-arg]
        below = self._map_text()
        return head + "\n" + below if below else head

    # scikit-learn 1.6 asks for the inner one, later ones for the first. Whether a notebook is given HTML at all is
    # decided there, by ``set_config(display=...)``.
    def _html_repr(self) -> str:
        return redact_urls(estimator_html_repr(self)) + self._map_html()

    def _repr_html_inner(self) -> str:
        return self._html_repr()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = {"text/plain": repr(self)}
        return bundle | {"text/html": self._html_repr()} if get_config()["display"] == "diagram" else bundle

    def _get_fitted_attr_html(self, doc_link: str = "") -> Any:
        """scikit-learn's table of fitted attributes, which reads all of them."""
        model: Model | None = self.__dict__.get("model_")
        if model is None or model.n_outputs * (model.n_features if model.plain else model.n_hypotheses) <= LARGE:
            return super()._get_fitted_attr_html(doc_link)  # type: ignore[misc]
        # Of a million columns and hundreds of classes the array would take more memory than the data.
        light = copy.copy(self)
        light.__class__ = type(type(self).__name__, (type(self),), {"coef_": property(_absent)})
        return super(ShownMixin, light)._get_fitted_attr_html(doc_link)  # type: ignore[misc]


def _absent(estimator: Any) -> Any:
    raise AttributeError("coef_ is too large to be shown")
