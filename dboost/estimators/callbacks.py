"""Callbacks of a fit: scikit-learn's protocol, and plain functions of a record.

Covers: one function of a round's record for the core loop, made from every callback of an estimator.
Does not cover: the checkpoint (``checkpoint``).

scikit-learn has the protocol (``sklearn.callback``) since 1.9. With an older one plain functions work, and an object
with the protocol's hooks is refused.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sklearn.base import clone

from dboost.errors import UsageError

Record = dict[str, Any]

try:
    from sklearn.callback import CallbackSupportMixin, FitCallback, with_callbacks
except ImportError:  # scikit-learn < 1.9
    HAS_PROTOCOL = False

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands where scikit-learn has no callback protocol; offers no hooks."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method: there is nothing to tear down."""
        return method
else:
    HAS_PROTOCOL = True

__all__ = ["HAS_PROTOCOL", "CallbackSupportMixin", "OfModels", "Rounds", "registered", "split", "with_callbacks"]


class OfModels(ABC):
    """A callback that is told of the model after each round of a single fit, and not of its record alone."""

    @abstractmethod
    def begin(self) -> None:
        """A fit begins."""

    @abstractmethod
    def after_round(self, record: Record, estimator: Any) -> bool:
        """Whether the fit is to end, by an estimator that is fitted as if it had ended here."""


def split(callbacks: Any) -> tuple[list[Any], list[Any]]:
    """Part the list into objects with scikit-learn's hooks, and plain functions of a record or callbacks of models."""
    hooks, functions = [], []
    for callback in callbacks or ():
        named = not isinstance(callback, type) and hasattr(callback, "on_fit_task_end")
        if named and HAS_PROTOCOL and isinstance(callback, FitCallback):
            hooks.append(callback)
        elif named:
            raise UsageError(
                f"the callback {callback!r} has hooks of scikit-learn's protocol, but not all of them are usable here",
                hint="it needs setup, on_fit_task_begin, on_fit_task_end and teardown, and scikit-learn >= 1.9",
            )
        elif isinstance(callback, OfModels) or (callable(callback) and not isinstance(callback, type)):
            functions.append(callback)
        else:
            raise UsageError(
                f"callbacks holds {callback!r}",
                hint="expected functions of a round's record, or objects with the hooks of sklearn.callback",
            )
    return hooks, functions


@contextmanager
def registered(estimator: Any, hooks: list[Any]) -> Iterator[None]:
    """Register the hooks of the parameter beside those of ``set_callbacks`` for the length of a fit."""
    if not hooks:
        yield
        return
    before = list(getattr(estimator, "_skl_callbacks", []))
    estimator.set_callbacks(*before, *[hook for hook in hooks if hook not in before])
    try:
        yield
    finally:
        estimator.set_callbacks(*before)


class Rounds:
    """Tells every callback of one fit about its rounds.

    `functions`: Each gets the record of a round; a true value ends the fit after it. `X`, `y`, `sample_weight`: Handed
    to hooks that ask for it.
    """

    def __init__(self, estimator: Any, functions: list[Any], X: Any, y: Any, weight: Any) -> None:
        self._estimator = estimator
        self._functions = [one for one in functions if not isinstance(one, OfModels)]
        self._of_models = [one for one in functions if isinstance(one, OfModels)]
        for one in self._of_models:
            one.begin()
        self._context: Any = None
        self._data: dict[str, Any] = {}
        if HAS_PROTOCOL and getattr(estimator, "_skl_callbacks", None):
            metadata = None if weight is None else {"sample_weight": weight}
            self._data = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}
            # How many rounds a fit takes is not known before it ends.
            self._context = estimator._init_callback_context(max_subtasks=None)
            self._context.call_on_fit_task_begin(**self._data)

    def __call__(self, record: Record, attributes: Callable[[], dict[str, Any]] | None = None) -> bool:
        """Report the end of a round.

        `record`: The round's record; each function gets its own copy. `attributes`: Gives the fitted attributes of an
        estimator that had stopped here. Returns: Whether a callback asks the fit to stop.
        """
        stop = False
        for function in self._functions:
            stop |= bool(function(dict(record)))
        if self._of_models:
            assert attributes is not None
            model = attributes()["model_"]
            for one in self._of_models:
                stop |= one.after_round(dict(record), clone(self._estimator)._adopt(model).to_local())
        if self._context is not None:
            task = self._context.subcontext(task_name="round")
            task.call_on_fit_task_begin(**self._data)
            stop |= bool(task.call_on_fit_task_end(**self._data, reconstruction_attributes=attributes))
        return stop

    def told(self, record: dict[str, Any], state: Any) -> bool:
        """Report the end of a round of a fit that is only judged, to functions of the record alone."""
        return any([bool(function(dict(record))) for function in self._functions])

    def finish(self, attributes: Callable[[], dict[str, Any]]) -> None:
        """Report the end of the fit."""
        if self._context is not None:
            self._context.call_on_fit_task_end(**self._data, reconstruction_attributes=attributes)
