"""``dboost train``: prepared data in, a certified model out."""

from __future__ import annotations

import dataclasses
import json
import platform
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from dboost.storage import sha256_json, write_file

from .. import pages
from ..cluster import connect
from ..config import ClusterSettings, DataSettings, LogSettings, ModelSettings, OutputSettings, needed
from ..console import Console, finite
from ..inputs import make_estimator, open_data, refuse_existing
from ..redact import redact_value

MARKER = "model.json"
# Fits that end for one of these reasons are at their optimum, to the accuracy that was asked for.
CONVERGED = ("tol", "gradient")
NOT_CONVERGED = 6


@dataclass(frozen=True, kw_only=True)
class TrainSettings(DataSettings, ModelSettings, ClusterSettings, OutputSettings, LogSettings):
    """What `dboost train` takes."""

    required: ClassVar[tuple[str, ...]] = ("data", "out")


SETTINGS = TrainSettings


def run(settings: TrainSettings, console: Console) -> int:
    """Fit and save a model; 6 when a limit came before ``tol``."""
    needed(settings, *settings.required)
    refuse_existing(settings.out, MARKER, settings.force)
    make_estimator(settings)
    data = open_data(settings, "train")
    with connect(settings, console) as client, console.stage("train"):
        estimator = fit(settings, data, client, console, f"training on {data.path}")
    save(estimator, settings, console)
    model = estimator.model_
    console.page("trained", [pages.facts(pages.model_facts(model))], {"out": settings.out, **pages.map_values(model)})
    console.say(f"model: {settings.out}   next: dboost inspect {settings.out}")
    # classical boosting has no other end than its budget of rounds
    done = estimator.stop_reason_ in CONVERGED or estimator.update == "forward"
    return 0 if done else NOT_CONVERGED


def fit(settings: ModelSettings, data: Any, client: Any, console: Console, title: str) -> Any:
    """Fit an estimator with the rounds shown as they end."""
    with console.rounds(title) as show:
        return make_estimator(settings, client=client, callbacks=[show]).fit(data)


def save(estimator: Any, settings: TrainSettings, console: Console) -> None:
    """Write the model, and beside it the settings and versions it was made with."""
    with console.stage("save"):
        estimator.save(settings.out, force=settings.force)
        plain = redact_value(finite(dataclasses.asdict(settings)), console.secrets)
        manifest = {
            "settings": plain,
            "settings_sha256": sha256_json(plain),
            "versions": {name: version_of(name) for name in ("dboost", "dask", "numpy", "numba", "pyarrow", "scipy")},
            "python": platform.python_version(),
            "stop_reason": estimator.stop_reason_,
            "rounds": estimator.n_iter_,
        }
        write_file(Path(str(settings.out)) / "run.json", (json.dumps(manifest, indent=1) + "\n").encode())


def version_of(name: str) -> str:
    """The installed version of a distribution."""
    if name == "dboost":
        import dboost

        return dboost.__version__
    return version(name)
