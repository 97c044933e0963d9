"""Where a person sees an estimator: its repr, and in a notebook scikit-learn's diagram with the sparsity map below.

Covers: ``ShownMixin``. Does not cover: the map and the text (``repr``), or what scikit-learn shows of an estimator
inside a pipeline: a path or an address with a secret among its parameters is refused by ``fit``.
"""

from __future__ import annotations

import copy
from typing import Any

from sklearn import get_config
from sklearn.utils import estimator_html_repr

from dboost.redact import redact_urls

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
        shape = _coef_shape(self)
        if shape is None or shape[0] * shape[1] <= LARGE:
            return super()._get_fitted_attr_html(doc_link)  # type: ignore[misc]
        # Of a million columns and hundreds of classes the array would take more memory than the data.
        light = copy.copy(self)
        light.__class__ = type(type(self).__name__, (type(self),), {"coef_": property(_absent)})
        return super(ShownMixin, light)._get_fitted_attr_html(doc_link)  # type: ignore[misc]


def _coef_shape(estimator: Any) -> tuple[int, int] | None:
    """Shape of the weights that ``coef_`` would build; None before a fit."""
    model = estimator.__dict__.get("model_")
    if model is None:
        return None
    return model.n_outputs, model.n_features if model.plain else model.n_hypotheses


def _absent(estimator: Any) -> Any:
    raise AttributeError("coef_ is too large to be shown")
