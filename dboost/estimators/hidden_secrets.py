"""Parameters as scikit-learn shows them: a password in a path or an address among them is hidden.

Covers: ``MaskedMixin``. Does not cover: what counts as a secret (``dboost.redact``), or the text below the parameters
(``repr``).

scikit-learn prints the parameters of an estimator inside a pipeline or a search without asking the estimator for its
repr: the only way it asks for is ``get_params``. So that function gives stand-ins for texts with secrets to the parts
of scikit-learn that write parameters down, and to nobody else: a clone gets the values themselves.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from dboost.redact import redact_urls

# The module that makes the text of an estimator, and the method that makes its table in HTML.
_PRINTER = "sklearn.utils._pprint"
_TABLE = "_get_params_html"
# Parameters of an estimator inside others are asked for through theirs.
_ASKING = frozenset({"get_params", "_get_params"})


class MaskedMixin:
    """An estimator whose parameters scikit-learn shows without secrets; to stand before ``BaseEstimator``."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Get parameters for this estimator; see ``sklearn.base.BaseEstimator.get_params``."""
        found: dict[str, Any] = super().get_params(deep=deep)  # type: ignore[misc]
        if not _is_shown(sys._getframe(1)):
            return found
        return {name: _masked(value) for name, value in found.items()}


class Shown:
    """Stands for a value whose repr holds a secret.

    Parameters
    ----------
    text : str
        Its repr without the secret.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _is_shown(caller: FrameType | None) -> bool:
    """Whether the parameters that are asked for will be written down."""
    while caller is not None and caller.f_code.co_name in _ASKING:
        caller = caller.f_back
    if caller is None:
        return False
    return caller.f_globals.get("__name__") == _PRINTER or caller.f_code.co_name == _TABLE


def _masked(value: Any) -> Any:
    if hasattr(value, "get_params"):
        return value  # which is asked for its own parameters
    text = repr(value)
    masked = redact_urls(text)
    return value if masked == text else Shown(masked)
