"""``dboost train``: prepared data in, a certified model out."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import platform
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import dboost
from dboost.errors import UsageError
from dboost.estimators.params import loss_spec, penalty_spec
from dboost.estimators.transform_files import transform_of_prepared, write_beside
from dboost.files.storage import sha256_json, write_file
from dboost.redact import redact_value

from .. import pages
from ..before_training import announce
from ..cluster import ClusterSession
from ..config import ClusterSettings, DataSettings, FromOne, LogSettings, OutputSettings, key
from ..console import Console, finite
from ..inputs import as_parquet, is_text_table, open_data, refuse_existing
from ..model_settings import TrainedSettings
from ..pages import choice_facts, path_table, strength_facts, strengths_table
from ..runs.folder import TABLES
from ..training import Trained, Training, plan_training, save_path
from ..unfinished import finished_folder, is_saved, resumable_work_folder

MARKER, PATH_MARKER = "model.json", "path.json"
NOT_CONVERGED = 6
# Strengths of a path that names none.
STRENGTHS = 20


@dataclass(frozen=True, kw_only=True)
class TrainSettings(TrainedSettings, DataSettings, ClusterSettings, OutputSettings, LogSettings):
    """What `dboost train` takes."""

    required: ClassVar[tuple[str, ...]] = ("data", "out")
    first: ClassVar[tuple[str, ...]] = (
        "data", "label", "penalty", "alpha", "cv", "out", "loss", "features", "workers", "force"
    )  # fmt: skip


def do_train(settings: TrainSettings, console: Console) -> int:
    """Fit and save a model; 6 when a limit came before ``tol``."""
    return 0 if done(settings, console).converged else NOT_CONVERGED


def done(settings: TrainSettings, console: Console, client: Any = None) -> Trained:
    """Do it, on a client of the caller where one is given."""

    def written(trained: Trained, data: Any, made: Path) -> None:
        save(trained, data, made, dataclasses.asdict(settings), console)

    trained = _train("train", MARKER, settings, console, client, written)
    show(trained, console, out=settings.out)
    console.say(f"model: {settings.out}   next: dboost inspect {settings.out}")
    return trained


def _train(
    name: str,
    marker: str,
    settings: TrainSettings,
    console: Console,
    client: Any,
    write: Callable[[Trained, Any, Path], None],
) -> Trained:
    """Train on a client of the caller, or on a cluster of the settings, and have `write` save what came of it."""
    force = settings.force or is_saved(settings, name, marker)
    refuse_existing(settings.out, marker, force)
    training = plan_training(settings)
    if not is_text_table(settings):
        open_data(settings, "train", groups=settings.groups)  # refused before a cluster starts
    place = ClusterSession(settings, console, client, [settings.data])
    with resumable_work_folder(settings, name, console) as work, place as cluster:
        keep = [settings.groups] if settings.groups else []
        data = open_data(as_parquet(settings, work / TABLES, keep), "train", groups=settings.groups)
        cluster.client()  # starts before the stage whose seconds are counted
        with console.stage(name):
            trained = cluster.run_with_rejoin(
                lambda there: fit(training, data, there, console, named=settings.data, work=work)
            )
        with console.stage("save"), finished_folder(str(settings.out), marker, force, work) as made:
            write(trained, data, made)
    return trained


def fit(
    training: Training,
    data: Any,
    client: Any,
    console: Console,
    *,
    named: str | None,
    work: Path,
    partial: Path | None = None,
) -> Trained:
    """Train with the rounds of a single fit shown as they end; those of many fits are events only.

    What it will take is said first, and refused where no worker could do it. `named` is what the user calls the data.
    """
    announce(data, client, training.kind.__name__, console)
    if training.way == "fit":
        tol = training.parameters.get("tol", 1e-4)
        with console.rounds(f"training on {named}", tol if isinstance(tol, float) else 0.0) as show:
            return training.run(data, client=client, on_round=show, progress=work, partial=partial)
    folds = int(training.grid.get("cv") or 0)
    console.say(f"cross-validation on {named}: {folds} folds" if folds else f"path of strengths on {named}")
    told = console.several_fits(training.n_strengths, folds)
    return training.run(data, client=client, on_round=told, progress=work)


def save(trained: Trained, data: Any, out: Path, settings: dict[str, Any], console: Console) -> None:
    """Write the model with its transform, its settings and the versions it was made with."""
    trained.estimator.save(out)
    keep_transform(data, out)
    write_manifest(trained.estimator, out, settings, console, data)


def show(trained: Trained, console: Console, **more: Any) -> None:
    """Print what came out, and where no feature is used, why."""
    values, blocks = outcome(trained)
    console.page("trained", blocks, more | values)
    if trained.path is None and (hint := why_empty(trained)):
        console.say(hint)


def outcome(trained: Trained) -> tuple[dict[str, Any], list[Any]]:
    """What came out, as plain values and as renderables."""
    estimator = trained.estimator
    if hasattr(estimator, "estimators_"):
        features = len(estimator.active_features_)
        facts = [("models", f"{len(estimator.estimators_)}, one for each class"), ("features used", f"{features:,}")]
        return {"classes": estimator.classes_.tolist(), "features_used": features}, [pages.facts(facts)]
    model = estimator.model_
    values, facts = pages.map_values(model), pages.model_facts(model)
    if hasattr(estimator, "cv_results_"):
        values["cross_validation"] = list(estimator.cv_results_)
        return values, [strengths_table(estimator), "", pages.facts([*strength_facts(estimator), *facts])]
    if trained.path is not None:
        values["path"] = list(trained.path.table)
        return values, [path_table(trained.path), "", pages.facts(facts)]
    return values, [pages.facts([*choice_facts(estimator), *facts])]


def why_empty(trained: Trained) -> str:
    """That a model uses no feature, and what to do; nothing for others."""
    model = getattr(trained.estimator, "model_", None)
    if model is None or len(trained.estimator.active_features_) > 0:
        return ""
    found = model.certificate
    if not found.alpha_max > 0.0:
        return (
            "the model uses no feature and says the same of every row: no feature says anything of the labels; check "
            "that the features vary, and that the rows of features and labels belong together"
        )
    return (
        f"the model uses no feature and says the same of every row: alpha {found.alpha:.4g} is not below "
        f"{found.alpha_max:.4g}, the least that uses none; give a smaller --alpha, or --cv 5"
    )


def keep_transform(data: Any, out: Path) -> None:
    """Put the transform of prepared documents beside the model that was trained on them, so that it reads raw ones."""
    manifest = data.resolve()[1]
    transform = None if manifest is None else transform_of_prepared(manifest)
    if transform is not None and (out / MARKER).is_file():
        write_beside(transform, out)


def write_manifest(estimator: Any, out: Path, settings: dict[str, Any], console: Console, data: Any) -> None:
    """Write the settings and versions that a model was made with beside it, and the columns of its labels."""
    prepared, label = data.resolve()[1], data.label
    if label is None and prepared is not None:
        label = prepared.label
    plain = redact_value(finite(settings), console.secrets)
    first = getattr(estimator, "estimators_", [estimator])[0]
    manifest = {
        # by their names in what the data was made of
        "label": [label] if isinstance(label, str) else list(label or ()),
        "label_separator": None if prepared is None else prepared.settings.get("label_separator"),
        "cross_validation": finite(list(getattr(first, "cv_results_", ()))),
        "settings": plain,
        "settings_sha256": sha256_json(plain),
        "parameters": finite(parameters_used(first)),
        "versions": versions(),
        "stop_reason": first.stop_reason_,
        "rounds": first.n_iter_,
    }
    write_file(out / "run.json", (json.dumps(manifest, indent=1, default=str) + "\n").encode())


def parameters_used(estimator: Any) -> dict[str, Any]:
    """Every parameter of a fit, with the default where none was given and what the data decided where it did."""
    where_it_runs = ("client", "callbacks", "checkpoint")
    used = {name: value for name, value in estimator.get_params(deep=False).items() if name not in where_it_runs}
    loss = estimator.model_.loss if isinstance(used.get("loss"), str | None) else used["loss"]
    decided: dict[str, Any] = {"alpha": estimator.alpha_}
    with contextlib.suppress(UsageError):  # a loss of one estimator alone has no name of its own
        decided["loss"] = loss_spec(loss)
    if used.get("penalty") is not None:
        decided["penalty"] = penalty_spec(used["penalty"])
    if used.get("hypotheses") is not None:
        decided["hypotheses"] = used["hypotheses"].to_json()
    return used | decided


def versions() -> dict[str, str]:
    """What something was made with."""
    packages = ("dask", "numpy", "numba", "pyarrow", "scikit-learn", "scipy")
    here = {"python": platform.python_version(), "dboost": dboost.__version__}
    return here | {name: version(name) for name in packages}


@dataclass(frozen=True, kw_only=True)
class PathCommandSettings(TrainSettings):
    """What `dboost path` takes."""

    first: ClassVar[tuple[str, ...]] = (
        "data", "label", "penalty", "path", "eps", "out", "loss", "features", "workers", "force"
    )  # fmt: skip

    path: FromOne | None = key(None, "strengths, falling by a constant factor (default: 20)")


def do_path(settings: PathCommandSettings, console: Console) -> int:
    """Fit and save the path."""
    if settings.alphas is None and settings.path is None:
        # the number of strengths goes by its other name here too
        settings = dataclasses.replace(settings, path=settings.n_alphas or STRENGTHS, n_alphas=None)

    trained = _train("path", PATH_MARKER, settings, console, None, lambda trained, data, made: save_path(trained, made))
    values, blocks = outcome(trained)
    console.page("path", blocks, {"out": settings.out, **values})
    console.say(f"path: {settings.out}   next: dboost inspect {settings.out}/models/{len(trained.path) - 1:05d}")
    return 0


COMMANDS: dict[str, Any] = {"train": (TrainSettings, do_train), "path": (PathCommandSettings, do_path)}
