"""``dboost path``: prepared data in, the models of falling strengths out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from ..cluster import Cluster
from ..config import FromOne, key
from ..console import Console
from ..inputs import as_parquet, is_text_table, open_data, refuse_existing
from ..runs.folder import TABLES
from ..training import plan_training, save_path
from ..unfinished import kept_beside
from .train import TrainSettings, fit, outcome

MARKER = "path.json"


@dataclass(frozen=True, kw_only=True)
class PathCommandSettings(TrainSettings):
    """What `dboost path` takes."""

    first: ClassVar[tuple[str, ...]] = (
        "data", "label", "penalty", "path", "eps", "out", "loss", "features", "workers", "force"
    )  # fmt: skip

    path: FromOne | None = key(None, "strengths, falling by a constant factor (default: 20)")


SETTINGS = PathCommandSettings
STRENGTHS = 20


def run(settings: PathCommandSettings, console: Console) -> int:
    """Fit and save the path."""
    refuse_existing(settings.out, MARKER, settings.force)
    if settings.alphas is None and settings.path is None:
        # the number of strengths goes by its other name here too
        settings = replace(settings, path=settings.n_alphas or STRENGTHS, n_alphas=None)
    training = plan_training(settings)
    if not is_text_table(settings):
        open_data(settings, "train")  # refused before a cluster starts
    with kept_beside(settings, "path", console) as work, Cluster(settings, console, data=[settings.data]) as cluster:
        data = open_data(as_parquet(settings, work / TABLES), "train")
        cluster.client()  # starts before the stage whose seconds are counted
        with console.stage("path"):
            trained = cluster.do(lambda client: fit(training, data, client, console, named=settings.data, work=work))
        save_path(trained, str(settings.out), force=settings.force)
    values, blocks = outcome(trained)
    console.page("path", blocks, {"out": settings.out, **values})
    console.say(f"path: {settings.out}   next: dboost inspect {settings.out}/models/{len(trained.path) - 1:05d}")
    return 0
