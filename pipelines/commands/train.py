"""``dboost train``: prepared data in, a certified model out."""

from __future__ import annotations

import dataclasses
import json
import platform
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, ClassVar

from dboost.estimators.params import loss_spec, penalty_spec
from dboost.files.paths import local_path
from dboost.files.storage import sha256_json, write_file
from dboost.redact import redact_value

from .. import pages
from ..cluster import connect
from ..config import (
    ClusterSettings,
    CrossValidationSettings,
    DataSettings,
    LogSettings,
    ModelSettings,
    OutputSettings,
    needed,
)
from ..console import Console, finite
from ..cross_validation import (
    auto_was_left,
    hint_of_auto,
    make_cross_validation,
    needs_cv,
    strength_facts,
    strengths_table,
)
from ..inputs import make_estimator, open_data, refuse_existing

MARKER = "model.json"
# Fits that end for one of these reasons are at their optimum, to the accuracy that was asked for.
CONVERGED = ("tol", "gradient")
# Limits that end even a fit that has no other end than its number of rounds before that.
LIMITS = ("max_passes", "max_seconds")
NOT_CONVERGED = 6


@dataclass(frozen=True, kw_only=True)
class TrainSettings(DataSettings, ModelSettings, CrossValidationSettings, ClusterSettings, OutputSettings, LogSettings):
    """What `dboost train` takes."""

    required: ClassVar[tuple[str, ...]] = ("data", "out")


SETTINGS = TrainSettings


def run(settings: TrainSettings, console: Console) -> int:
    """Fit and save a model; 6 when a limit came before ``tol``."""
    needed(settings, *settings.required)
    refuse_existing(settings.out, MARKER, settings.force)
    if settings.cv is None:
        needs_cv(settings)
        make_estimator(settings)
    else:
        make_cross_validation(settings)
    data = open_data(settings, "train")
    with connect(settings, console) as client, console.stage("train"):
        estimator = (fit if settings.cv is None else cross_validate)(settings, data, client, console)
    save(estimator, settings, console)
    show(estimator, settings, console)
    # classical boosting has no other end than its budget of rounds
    spent = estimator.update == "forward" and estimator.stop_reason_ not in LIMITS
    done = estimator.stop_reason_ in CONVERGED or spent
    return 0 if done else NOT_CONVERGED


def fit(settings: ModelSettings, data: Any, client: Any, console: Console, title: str | None = None) -> Any:
    """Fit an estimator with the rounds shown as they end."""
    with console.rounds(title or f"training on {data.path}") as show:
        return make_estimator(settings, client=client, callbacks=[show]).fit(data)


def cross_validate(settings: TrainSettings, data: Any, client: Any, console: Console) -> Any:
    """Fit the path of strengths with and without each fold; single rounds of so many fits are not shown."""
    console.say(f"cross-validation on {data.path}: {settings.cv} folds")
    return make_cross_validation(settings, client=client).fit(data)


def show(estimator: Any, settings: TrainSettings, console: Console) -> None:
    """Print what came out, and what to do next."""
    model = estimator.model_
    values = {"out": settings.out, **pages.map_values(model)}
    blocks: list[Any] = [pages.facts(pages.model_facts(model))]
    if settings.cv is not None:
        facts = pages.facts([*strength_facts(estimator), *pages.model_facts(model)])
        blocks = [strengths_table(estimator).renderable(), "", facts]
        values["cross_validation"] = list(estimator.cv_results_)
    console.page("trained", blocks, values)
    if settings.cv is None and auto_was_left(settings, model):
        console.say(hint_of_auto(model))
    console.say(f"model: {settings.out}   next: dboost inspect {settings.out}")


def save(estimator: Any, settings: TrainSettings, console: Console) -> None:
    """Write the model, and beside it the settings and versions it was made with."""
    with console.stage("save"):
        estimator.save(settings.out, force=settings.force)
        plain = redact_value(finite(dataclasses.asdict(settings)), console.secrets)
        manifest = {
            "settings": plain,
            "settings_sha256": sha256_json(plain),
            "parameters": finite(parameters_used(estimator)),
            "versions": {name: version_of(name) for name in ("dboost", "dask", "numpy", "numba", "pyarrow", "scipy")},
            "python": platform.python_version(),
            "stop_reason": estimator.stop_reason_,
            "rounds": estimator.n_iter_,
        }
        write_file(local_path(str(settings.out), "out") / "run.json", (json.dumps(manifest, indent=1) + "\n").encode())


def parameters_used(estimator: Any) -> dict[str, Any]:
    """Every parameter of a fit, with the default where none was given and what the data decided where it did."""
    where_it_runs = ("client", "callbacks")
    used = {name: value for name, value in estimator.get_params(deep=False).items() if name not in where_it_runs}
    family = used["hypotheses"]
    decided = {
        "loss": loss_spec(estimator.model_.loss if isinstance(used["loss"], str | None) else used["loss"]),
        "penalty": penalty_spec(used["penalty"]),
        "hypotheses": None if family is None else family.to_json(),
        "alpha": estimator.alpha_,
    }
    return used | decided


def version_of(name: str) -> str:
    """The installed version of a distribution."""
    if name == "dboost":
        import dboost

        return dboost.__version__
    return version(name)
