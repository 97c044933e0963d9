"""One training: a fit, a path of strengths or a cross-validation of any estimator, kept in a folder while it runs."""

from __future__ import annotations

import contextlib
import inspect
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dboost
from dboost.errors import ClusterError, DboostError, UsageError
from dboost.files.paths import PathLike
from dboost.files.storage import write_folder

from . import registries
from .config import given
from .console import finite
from .inputs import read_model
from .model_settings import ALL, CrossValidationSettings, EstimatorSettings, ModelSettings, TrainedSettings
from .unfinished import FIT, SEVERAL

Record = Mapping[str, Any]


# Fits that end for one of these reasons are at their optimum, to the accuracy that was asked for.
CONVERGED = ("tol", "gradient")
# Limits that end even a fit that has no other end than its number of rounds before that.
LIMITS = ("max_passes", "max_seconds")
# Those whose rounds end at an optimum; the others have ends of their own, and a budget of rounds is one.
CERTIFIED = (
    "BoostedClassifier", "BoostedClassifierCV", "BoostedRegressor", "MultiTaskBoostedClassifier",
    "MultiTaskBoostedRegressor",
)  # fmt: skip
# Strengths of a cross-validation that names none, as the estimator has it.
STRENGTHS = 50


@dataclass(frozen=True)
class Trained:
    """What a training came to."""

    estimator: Any  # fitted; of a path that of the weakest strength
    path: Any = None  # where one was fitted, or a cross-validation chose from one

    @property
    def table(self) -> list[dict[str, Any]]:
        """One record for each strength, with what the folds say where there are some."""
        return list(getattr(self.estimator, "cv_results_", self.path.table))

    @property
    def converged(self) -> bool:
        """Whether the model is what was asked for; otherwise a limit came first."""

        def reached(one: Any) -> bool:
            own = type(one).__name__ not in CERTIFIED and math.isnan(one.duality_gap_)
            spent = own or getattr(one, "update", None) == "forward"
            return one.stop_reason_ in CONVERGED or (spent and one.stop_reason_ not in LIMITS)

        return all(map(reached, getattr(self.estimator, "estimators_", [self.estimator])))


@dataclass(frozen=True)
class Training:
    """A training whose settings were checked."""

    way: str  # {"fit", "path", "cv"}
    kind: Any
    parameters: dict[str, Any]  # of the estimator
    grid: dict[str, Any]  # of a path: its strengths; of a cross-validation: how it chooses
    start: str | None = None  # folder of the model that a single fit starts from

    @property
    def n_strengths(self) -> int:
        """How many strengths a path goes through."""
        given = self.grid.get("alphas") or self.parameters.get("alphas")
        count = self.grid.get("n_alphas") or self.parameters.get("n_alphas") or STRENGTHS
        return len(given) if given else int(count)

    def run(
        self,
        data: Any,
        *,
        client: Any = None,
        on_round: Callable[[Record], Any] | None = None,
        progress: Path | None = None,
        partial: Path | None = None,
    ) -> Trained:
        """Train.

        `on_round`: called with the record of each round; of several fits it says which fit ("strength", "fold").
        `progress`: a folder that is there; the training goes on from what it holds.
        `partial`: where the model so far is saved when the training is broken off by an interrupt or the loss of the
        cluster: of a single fit that of its last round, of several that of the last strength that was fitted to all
        rows. By default ``model.partial`` in the folder of the progress.
        """
        more: dict[str, Any] = {"client": client, "callbacks": [on_round] if on_round is not None else None}
        if progress is not None:
            more["checkpoint"] = progress / (FIT if self.way == "fit" else SEVERAL)
        if partial is None and progress is not None:
            partial = progress / "model.partial"
        if self.kind is dboost.BoostedClassifierCV:
            # it is saved with what the folds say
            estimator = self.kind(**self.parameters, **self.grid, **more)
            with _kept(partial, lambda: estimator.path_.models[-1] if hasattr(estimator, "path_") else None):
                return Trained(estimator.fit(data), estimator.path_)
        estimator = build_estimator(self.kind, self.parameters, **(more if self.way == "fit" else {}))
        if hasattr(estimator, "estimator"):
            return Trained(estimator.fit(data))
        if self.start is not None:
            estimator.set_params(warm_start=True)
            estimator.model_ = read_model(self.start)
        if self.way == "fit":
            with _kept(partial, lambda: getattr(estimator, "model_", None)):
                return Trained(estimator.fit(data))
        done: list[Any] = []
        with _kept(partial, lambda: done[-1] if done else None):
            if self.way == "path":
                more["on_model"] = done.append
                found = dboost.regularization_path(data, estimator=estimator, **self.grid, **more)
                return Trained(found.estimator(len(found) - 1), found)
            fitted = dboost.cross_validated(data, estimator=estimator, on_model=done.append, **self.grid, **more)
            return Trained(fitted, fitted.path_)


@contextlib.contextmanager
def _kept(partial: Path | None, so_far: Callable[[], Any]) -> Iterator[None]:
    """Save the model that a training has left which is broken off."""
    try:
        yield
    except (KeyboardInterrupt, ClusterError):
        model = so_far()
        if partial is not None and model is not None:
            # the break is what is to be told, not that its model could not be written
            with contextlib.suppress(DboostError):
                model.save(partial, force=True)
        raise


def save_path(trained: Trained, out: PathLike) -> None:
    """Write every model of a path, and a table of them, as a folder."""
    with write_folder(out, marker="path.json") as folder:
        for place, model in enumerate(trained.path.models):
            model.save(folder / "models" / f"{place:05d}")
        text = json.dumps(finite(trained.table), indent=1) + "\n"
        (folder / "path.json").write_text(text, encoding="utf-8")


def plan_training(settings: TrainedSettings) -> Training:
    """What the settings ask for, refused here where it has no meaning; nothing is read."""
    cv, alphas = settings.cv, settings.alphas
    if settings.start is not None:
        if why := why_no_start(settings):
            raise UsageError(f"start={settings.start} has no meaning: {why}", hint="leave start= out")
        read_model(settings.start)
    if settings.groups is not None and cv is None:
        _needs_held_out(settings)
    if cv is not None and settings.path is not None:
        raise UsageError(
            f"cv={cv} beside path={settings.path}", hint="cv goes along a path; set n_alphas= for its length"
        )
    if settings.path is not None and alphas is not None:
        raise UsageError(
            f"path={settings.path} beside alphas=, which are the strengths themselves", hint="use one of them"
        )
    if cv is None and alphas is None and settings.path is None:
        for name, value in given(settings, CrossValidationSettings).items():
            if name != "rule" or value in ("1se", "best"):
                raise UsageError(f"{name}={value} without cv=", hint=f"give cv=5, or leave {name}= out")
        kind, parameters = kind_and_parameters(settings)
        build_estimator(kind, parameters)
        return Training("fit", kind, parameters, {}, settings.start)
    kind, parameters = kind_and_parameters(settings)
    asked = f"cv={cv}" if cv is not None else "a path"
    chooses = cv is None or kind.__name__ in CERTIFIED or alphas is not None
    if chooses and parameters.pop("alpha", "auto") not in ("auto", "quick"):
        does = "chooses alpha" if cv is not None else "goes through strengths"
        raise UsageError(f"{asked} {does}, and alpha={settings.alpha:g} was given", hint="use one of them")
    if chooses and parameters.get("penalty") == "none":
        raise UsageError("penalty 'none' has no strength to choose", hint="use another --penalty")
    if cv is not None:
        return _cross_validation(settings, kind, parameters)
    if "warm_start" not in registries.parameters_of(kind) or "alpha" not in registries.parameters_of(kind):
        raise UsageError(
            f"{kind.__name__} has no path of strengths",
            hint="use estimator boosted, regressor, multitask, multitarget, leveraging or leveraging_regressor",
        )
    for name in ("rule", "scoring", "fold_tol", "n_alphas"):
        value = getattr(settings, name)
        if value is not None:
            length = "path= is the length of a path" if name == "n_alphas" else f"give cv=5, or leave {name}= out"
            raise UsageError(f"{name}={value} without cv=", hint=length)
    # some have no penalty unless it is asked for
    parameters["alpha"] = "auto"
    build_estimator(kind, parameters)
    grid: dict[str, Any] = {"alphas": list(alphas)} if alphas is not None else {"n_alphas": settings.path}
    if settings.eps is not None:
        if alphas is not None:
            raise UsageError(f"eps={settings.eps:g} beside alphas=", hint="use one of them")
        grid["eps"] = settings.eps
    from dboost.estimators.path import check_grid

    check_grid(alphas, grid.get("n_alphas", 1), grid.get("eps", 0.5))
    return Training("path", kind, parameters, grid)


def why_no_start(settings: TrainedSettings) -> str:
    """Why such a training cannot begin with a model; empty where it can."""
    if settings.cv is not None or settings.path is not None or settings.alphas is not None:
        return "a path or cross-validation begins where no feature is used"
    kind, _ = kind_and_parameters(settings)
    return "" if "warm_start" in registries.parameters_of(kind) else f"{kind.__name__} does not start from a model"


def _cross_validation(settings: TrainedSettings, kind: Any, parameters: dict[str, Any]) -> Training:
    """Of an estimator with a path its strength is chosen; another is judged as it is."""
    from dboost.estimators.cv import ChoiceParameters, check_choice

    grid = given(settings, CrossValidationSettings)
    if settings.rule not in (None, "1se", "best"):
        # that of the estimator
        parameters["rule"] = grid.pop("rule")
    if settings.alphas is not None:
        grid["alphas"] = list(settings.alphas)
    if kind is dboost.BoostedClassifier:
        kind = dboost.BoostedClassifierCV
        odd = sorted(set(parameters) - registries.parameters_of(kind))
        if odd:
            raise UsageError(
                f"{odd[0]}={parameters[odd[0]]} has no meaning with cross-validation", hint=f"leave {odd[0]}= out"
            )
        check_choice(ChoiceParameters(**grid))
        kind(**parameters)._settings()
    elif not hasattr(kind, "_settings"):
        raise UsageError(f"{kind.__name__} has no cross-validation", hint="use another estimator, or leave cv= out")
    else:
        check_choice(ChoiceParameters(**grid))
        build_estimator(kind, parameters)
    return Training("cv", kind, parameters, grid)


def _needs_held_out(settings: TrainedSettings) -> None:
    """Refuse groups of rows where none are held out."""
    from dboost.estimators.selecting import holds_out

    kind, parameters = kind_and_parameters(settings)
    estimator = build_estimator(kind, parameters)
    several = settings.path is not None or settings.alphas is not None or not hasattr(estimator, "_settings")
    if several or not holds_out(estimator._settings(), getattr(estimator, "alpha", None)):
        raise UsageError(
            f"groups={settings.groups} says which rows are held out together, and such a training holds none out",
            hint="leave groups= out, or give alpha=auto or cv=5",
        )


# Keys that are parameters of the loss, not of the estimator.
LOSS_PARAMETERS = ("epsilon", "quantile", "width")


def build_estimator(kind: Any, parameters: Mapping[str, Any], **more: Any) -> Any:
    """An estimator, its parameters checked together; one for each class takes them for its parts."""
    parameters = dict(parameters)
    if kind.__name__ == registries.ESTIMATORS["one_vs_rest"]:
        inner = registries.estimator(parameters.pop("of", "shareboost"))
        parameters.setdefault("loss", "log")
        more.pop("checkpoint", None)
        return kind(build_estimator(inner, parameters, **more))
    estimator = kind(**parameters, **more)
    estimator._settings()
    return estimator


def kind_and_parameters(settings: ModelSettings) -> tuple[Any, dict[str, Any]]:
    """The class of estimator that the settings name, and the parameters that were given."""
    parameters = given(settings, ModelSettings)
    if isinstance(settings, EstimatorSettings):
        parameters |= given(settings, EstimatorSettings)
    rule = getattr(settings, "rule", None)
    if rule is not None and getattr(settings, "cv", None) is None:
        parameters["rule"] = rule
    name = parameters.pop("estimator", None)
    loss = parameters.get("loss")
    own = {key: parameters.pop(key) for key in LOSS_PARAMETERS if key in parameters}
    kind = registries.estimator(name or "boosted")
    if name in (None, "boosted"):
        kind = _by_loss(loss)
    if kind is not dboost.BoostedClassifier and name in (None, "boosted", "regressor", "multitask", "multitarget"):
        shown = f"loss {loss!r}" if loss is not None else f"estimator {name!r}"
        if parameters.pop("class_weight", None) is not None:
            raise UsageError(f"class_weight has no meaning for {shown}", hint="use a column of example weights")
        if issubclass(kind, dboost.BoostedRegressor) and parameters.pop("classes", None) is not None:
            raise UsageError(f"classes has no meaning for {shown}", hint="leave classes= out")
    if own:
        parameters["loss"] = _with_parameters(loss, own)
    if parameters.get("shortlist") == ALL:
        parameters["shortlist"] = None
    if "bounds" in parameters:
        parameters["bounds"] = tuple(float(side) for side in parameters["bounds"])
    for each in ("penalty_factors", "lower", "upper"):
        if each in parameters:
            parameters[each] = _numbers(parameters[each])
    if "column_groups" in parameters and "groups" in taken(kind, parameters.get("of", "shareboost")):
        if isinstance(parameters["column_groups"], Mapping):
            raise UsageError("column_groups is a table", hint="give shareboost a whole number for each column")
        parameters["groups"] = parameters.pop("column_groups")
    if "hypotheses" in parameters:
        from dboost.hypotheses import family_from_json

        several = parameters["hypotheses"]
        one = several[0] if len(several) == 1 else {"family": "union", "members": several}
        parameters["hypotheses"] = family_from_json(one)
    _refuse_foreign(kind, name or "boosted", parameters)
    return kind, parameters


def _with_parameters(loss: Any, own: Mapping[str, Any]) -> Any:
    """A loss with parameters of its own; one that has no such parameter is refused with those that do."""
    from dboost.losses import LOSSES

    for name, value in own.items():
        taking = [one for one, known in LOSSES.items() if hasattr(known, name)]
        if loss not in taking:
            with_loss = "without a loss" if loss is None else f"with loss {loss!r}"
            raise UsageError(f"{name}={value:g} {with_loss}", hint=f"it belongs to {', '.join(taking)}")
    made: Any = type(LOSSES[loss])
    return made(**own)


def _by_loss(loss: Any) -> Any:
    from dboost.losses import get_loss

    by_task: dict[str, Any] = {"multitask": dboost.MultiTaskBoostedClassifier, "regression": dboost.BoostedRegressor}
    by_task["multitarget"] = dboost.MultiTaskBoostedRegressor
    return by_task.get("" if loss is None else get_loss(loss).task, dboost.BoostedClassifier)


def taken(kind: Any, of: str = "shareboost") -> set[str]:
    """Parameters that an estimator takes; one for each class takes those of its parts."""
    names = registries.parameters_of(kind)
    if kind.__name__ == registries.ESTIMATORS["one_vs_rest"]:
        return (taken(registries.estimator(of)) - {"checkpoint", "classes"}) | {"of"}
    return names


def _refuse_foreign(kind: Any, name: str, parameters: Mapping[str, Any]) -> None:
    """Refuse a parameter of other estimators, and name those."""
    takes = taken(kind, parameters.get("of", "shareboost"))
    for key in parameters:
        if key not in takes:
            others = [other for other in registries.ESTIMATORS if key in taken(registries.estimator(other))]
            hint = f"it belongs to estimator {', '.join(others)}" if others else f"leave {key}= out"
            raise UsageError(f"{key} has no meaning for estimator {name!r}", hint=hint)


def _numbers(factors: Any) -> Any:
    """Factors or bounds as numbers: settings, which are also written as JSON, hold infinity as a word."""
    if isinstance(factors, int | float | str):
        return float(factors)
    if isinstance(factors, Mapping):
        return {name: float(one) for name, one in factors.items()}
    return [float(one) for one in factors]


def own_defaults(name: str | None) -> dict[str, Any]:
    """The defaults of an estimator's parameters, by name."""
    kind = registries.estimator(name or "boosted")
    found = inspect.signature(kind).parameters
    return {key: item.default for key, item in found.items() if item.default is not inspect.Parameter.empty}
